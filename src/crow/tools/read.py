"""The tool `read` (lines, an image, a folder), and which lines of a file the model has been shown.

What it has not seen, it may not overwrite.
"""

import base64
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Any, NamedTuple

import msgspec

from crow import diff
from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import Journal
from crow.files.base import FileInfo, Workspace
from crow.files.resolved_path import ResolvedPath
from crow.files.text import Line, LineRange
from crow.messages import LARGEST_IMAGE, Image, ToolCall, ToolSpec, media_type
from crow.paths import relative_to, shown
from crow.results import ImageBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader, ignored_arguments
from crow.tools.base import OF_A_SESSION, Action, Advice, Tool, verb_and_path
from crow.tools.paths_meant import path_meant, stat_or_suggest
from crow.visible import language_of, one_line

# --- which lines of a file the model has been shown

MOST_REMEMBERED = 16 * 2**20
"""Characters that are kept; beyond that the files that were not looked at for the longest time are forgotten."""

UNREAD, CUT, READ = range(3)
"""Of a line: never shown, shown only in part because it is so long, shown."""


class _Known(NamedTuple):
    text: str
    lines: bytearray
    """For each line one of the three."""


class ReadTracker:
    def __init__(self) -> None:
        self._files: dict[str, _Known] = {}
        self._size = 0
        self._opened: set[str] = set()

    def note_read(self, path: str, text: str | None, first: int, last: int, cut: Iterable[int] = ()) -> None:
        """The model was shown these lines of a text, counted from 1; some of them not in full.

        None stands for a text that is too long to be remembered.
        """
        self._opened.add(path)
        if text is None:
            self._forget(path)
            return
        known = self._files.get(path)
        lines = known.lines if known is not None and known.text == text else bytearray(count_lines(text))
        in_part = [line for line in cut if lines[line - 1] != READ]
        lines[first - 1 : last] = bytes([READ]) * (last - first + 1)
        for line in in_part:
            lines[line - 1] = CUT
        self._remember(path, _Known(text, lines))

    def note_written(self, path: str, text: str) -> None:
        """All of the text is the model's own."""
        self._opened.add(path)
        self._remember(path, _Known(text, bytearray([READ]) * count_lines(text)))

    def note_changed(self, path: str, before: str, after: str) -> None:
        """A text that the model knew in part, or not at all, was changed by it."""
        known = self._files.get(path)
        lines = bytearray(count_lines(after))
        if not before:
            lines = bytearray([READ]) * len(lines)  # there was nothing that it could not have known
        elif known is not None and known.text == before:
            lines = _lines_known_after(known.lines, before, after)
        self._remember(path, _Known(after, lines))

    def note_replaced(self, path: str, text: str) -> None:
        """Somebody else made something of what the model wrote: what is there now it has not seen."""
        self._remember(path, _Known(text, bytearray(count_lines(text))))

    def has_read(self, path: str) -> bool:
        """Whether the model was ever shown anything of the file."""
        return path in self._opened

    def text(self, path: str) -> str | None:
        """What the file held when the model last had to do with it; None if it had not, or long ago."""
        known = self._files.get(path)
        return known.text if known is not None else None

    def gap(self, path: str, text: str) -> str:
        """What the model does not know of a text that it wants to replace, in a sentence; empty if it knows all."""
        known = self._files.get(path)
        if not text:
            return ""
        if known is None:
            return f"{shown(path)} exists and has not been read."
        if known.text != text:
            return f"{shown(path)} has changed since it was last read or written."
        if UNREAD in known.lines:
            return f"{shown(path)} was only partly read: line {known.lines.index(UNREAD) + 1} was not."
        if CUT in known.lines:
            return f"{shown(path)} cannot be read in full: line {known.lines.index(CUT) + 1} is too long."
        return ""

    def _remember(self, path: str, known: _Known) -> None:
        self._forget(path)
        self._files[path] = known
        self._size += len(known.text)
        while self._size > MOST_REMEMBERED:
            self._forget(next(iter(self._files)))

    def _forget(self, path: str) -> None:
        known = self._files.pop(path, None)
        if known is not None:
            self._size -= len(known.text)


def count_lines(text: str) -> int:
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def _lines_known_after(lines: bytearray, before: str, after: str) -> bytearray:
    """Unchanged lines are as well known as they were; a changed one is known if what it replaced was."""
    if lines.count(READ) == len(lines):
        return bytearray([READ]) * count_lines(after)
    carried = bytearray()
    position = 0
    for change in diff.changes(before, after):
        carried += lines[position : change.old_start]
        replaced = lines[change.old_start : change.old_end]
        state = READ if replaced.count(READ) == len(replaced) else UNREAD
        carried += bytes([state]) * (change.new_end - change.new_start)
        position = change.old_end
    return carried + lines[position:]


# --- the tool

MOST_LINES = 2000
MOST_BYTES = 256 * 1024
LONGEST_LINE = 2000
MOST_NAMES = 1000

DESCRIPTION = (
    "Read a file as numbered lines, look at an image, or list a folder. "
    f"Gives at most {MOST_LINES} lines or {MOST_NAMES} names a call: go on with `offset`. "
    "To look for something in many files, do not read them one by one."
)


class ReadArguments(msgspec.Struct, frozen=True):
    path: Annotated[str, msgspec.Meta(min_length=1, description="absolute, or relative to the working directory")]
    offset: Annotated[int, msgspec.Meta(ge=1, description="first line, or name in a folder, counted from 1")] = 1
    limit: Annotated[int, msgspec.Meta(ge=1, description="number of lines or names")] = MOST_LINES


_reader = ArgumentReader(ReadArguments)


class Read(Tool):
    kind = ToolKind.READ

    def __init__(self, seen: ReadTracker | None = None, advice: Advice = OF_A_SESSION) -> None:
        self.spec = ToolSpec("read", DESCRIPTION, _reader.schema())
        self._seen = seen or ReadTracker()
        self._advice = advice

    def title(self, arguments: dict[str, Any]) -> str:
        match arguments:
            case {"path": str(), "offset": int(first), "limit": int(limit)}:
                return verb_and_path("Read", arguments) + _part(first, limit)
            case _:
                return verb_and_path("Read", arguments)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "ReadAction":
        arguments, unknown = _reader.read(call)
        path, note = await path_meant(workspace, arguments.path)
        notes = [*([note] if note else []), *ignored_arguments(unknown)]
        return ReadAction(workspace, self._seen, path, arguments, notes, self._advice)


class ReadAction(Action):
    def __init__(
        self,
        workspace: Workspace,
        seen: ReadTracker,
        target: ResolvedPath,
        arguments: ReadArguments,
        notes: Sequence[str],
        advice: Advice,
    ) -> None:
        self._workspace = workspace
        self._seen = seen
        self._target = target
        self._path = target.real
        self._arguments = arguments
        self._notes = notes
        self._advice = advice
        self._most = MOST_BYTES
        self.deed = Deed("read", ToolKind.READ, reads=(target.real,), read_as=target.judged[1:])
        self.locations = (Location(target.real, arguments.offset),)
        part = _part(arguments.offset, arguments.limit)
        self.title = f"Read {relative_to(target.real, workspace.roots[0])}{part}"

    def fit(self, most: int) -> None:
        self._most = min(self._most, most)

    async def perform(self, journal: Journal) -> ToolResult:
        info = await stat_or_suggest(self._workspace, self._target, self._advice)
        match info.kind:
            case "folder":
                return await self._list()
            case "file":
                return await self._read_image(info) or await self._read_lines()
            case "other":
                raise WorkspaceError(f"{shown(self._path)} is neither a file nor a folder: it cannot be read.")

    async def _list(self) -> ToolResult:
        names = await self._workspace.list_folder(self._target)
        if not names:
            return self._result("(empty folder)", "0 entries")
        first = self._arguments.offset
        if first > len(names):
            raise WorkspaceError(f"{shown(self._path)} has {len(names)} entries: there is no entry {first}.")
        listed = _fitting(names[first - 1 : first - 1 + min(self._arguments.limit, MOST_NAMES)], self._most)
        last = first + len(listed) - 1
        text = "\n".join(one_line(name) for name in listed)
        if last < len(names):
            text += f"\n({len(names) - last} more entries: {self._advice.go_on.format(line=last + 1)})"
        if len(listed) < len(names):
            return self._result(text, f"entries {first}-{last} of {len(names)}")
        return self._result(text, f"{len(names)} {'entry' if len(names) == 1 else 'entries'}")

    async def _read_image(self, info: FileInfo) -> ToolResult | None:
        head = await self._workspace.read_bytes(self._target, 16)
        mime_type = image_type(head)
        if mime_type is None:
            return None
        if info.size > LARGEST_IMAGE:
            raise WorkspaceError(f"{shown(self._path)} is an image of {info.size:,} bytes, too large for models.")
        content = await self._workspace.read_bytes(self._target, LARGEST_IMAGE)
        image = Image(base64.b64encode(content).decode(), mime_type)
        message = f"{mime_type}, {info.size:,} bytes"
        return ToolResult(
            ok=True, text=message, message=message, display=(ImageBlock(image),), images=(image,), brief=message
        )

    async def _read_lines(self) -> ToolResult:
        first, most = self._arguments.offset, min(self._arguments.limit, MOST_LINES)
        found = await self._workspace.read_lines(self._target, LineRange(first, most, LONGEST_LINE))
        if not found.total:
            self._seen.note_read(self._path, found.text, 1, 0)
            return self._result("(empty file)", "empty")
        if first > found.total:
            raise WorkspaceError(f"{shown(self._path)} ends at line {found.total}: there is no line {first}.")
        numbered, last = number_lines(found.lines, first, self._most)
        shown_lines = enumerate(found.lines[: last - first + 1], first)
        cut = [number for number, line in shown_lines if line.length > LONGEST_LINE]
        self._seen.note_read(self._path, found.text, first, last, cut)
        count = last - first + 1
        message = f"{count} line" if count == 1 else f"{count} lines"
        if last < found.total:
            numbered += f"\n({found.total - last} more lines: {self._advice.go_on.format(line=last + 1)})"
            message = f"lines {first}-{last} of {found.total}"
        return self._result(numbered, message, language_of(self._path))

    def _result(self, text: str, message: str, language: str = "") -> ToolResult:
        told = "\n".join([text, *self._notes])
        display = (TextBlock(text, language=language),)
        brief = "" if _part(self._arguments.offset, self._arguments.limit) else message  # the title says it already
        return ToolResult(ok=True, text=told, message=message, display=display, brief=brief)


def _part(first: int, limit: int) -> str:
    """Which lines are read, for a title; nothing for the usual."""
    return "" if first == 1 and limit == MOST_LINES else f":{first}-{first + limit - 1}"


def _fitting(names: list[str], most: int) -> list[str]:
    """As many names as there is room for, and one in any case."""
    sizes = accumulate(len(name.encode("utf-8", "surrogatepass")) + 1 for name in names)
    return names[: max(1, sum(size <= most for size in sizes))]


def number_lines(lines: Sequence[Line], first: int, most: int = MOST_BYTES) -> tuple[str, int]:
    """Lines with their numbers, as many as fit the budget, and the number of the last one."""
    numbered: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        text = line.text
        if line.length > LONGEST_LINE:
            text = f"{text} … (line of {line.length} characters, cut)"
        size += len(text.encode("utf-8", "surrogatepass")) + 8
        if size > most and numbered:
            break
        numbered.append(f"{number:>6}\t{text}")
    return "\n".join(numbered), first + len(numbered) - 1


def image_type(head: bytes) -> str | None:
    """Of a picture that models take, from its first bytes; None for anything else."""
    kind = media_type(head)
    return kind if kind is not None and kind.startswith("image/") else None
