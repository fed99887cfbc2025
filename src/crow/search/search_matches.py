"""Reads what a search found and checks it against the files; and searches the text that an editor has not saved."""

import asyncio
import base64
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from crow.errors import ClientRefused, StaleFile, WorkspaceError
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath, open_resolved
from crow.timeouts import timeout

Cut = Literal["", "time", "size", "matches", "files"]
"""Why there may be more than was found: the time was up, there was too much to look at, or enough was found."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
"""As in `search/ripgrep_stand_in.py`, a program of its own that imports nothing and is imported by nobody."""


class Line(NamedTuple):
    number: int
    text: str
    start: int | None
    """Where in it the match begins; None for a line that only surrounds one."""


class FileMatches(msgspec.Struct, frozen=True):
    path: str
    count: int
    """Matching lines; in mode `files` only that there are some."""
    lines: list[Line]


# --- what an editor holds of the files that are searched and has not saved: it is what the person sees of them
#
# No editor says which files it has open, and each text has to be asked for. So a search asks about the files that were
# read or written in this session, and about those that match on disk; about few of them, and not for long.

MOST_KNOWN = 32
"""Files that are asked about because the session had to do with them, the last ones first."""
MOST_MATCHED = 32
"""Files that are asked about because something matches in them."""
AT_A_TIME = 4
EDITOR_TIMEOUT = 2
"""Seconds in which an editor answers all of it; after that, what is on disk counts."""


class UnsavedTexts:
    """The texts that one search has been given."""

    def __init__(self, editor: Workspace | None) -> None:
        self._editor = editor
        self._asked: set[str] = set()
        self._matched_left = MOST_MATCHED
        self._seconds_left: float = EDITOR_TIMEOUT
        self.texts: dict[str, str] = {}
        self.refused: set[str] = set()
        """Files that are not to be shown from the disk either."""

    def is_saved(self, path: str) -> bool:
        """Whether the disk has what counts, as far as is known."""
        return path not in self.texts and path not in self.refused

    async def ask_about_known(self, searched: Sequence[str]) -> None:
        known = self._editor.known_buffers() if self._editor is not None else ()
        if known:
            chosen = set(searched)
            await self._ask([path for path in known if path in chosen][:MOST_KNOWN])

    async def ask_about_matched(self, paths: Sequence[str]) -> None:
        new = [path for path in paths if path not in self._asked][: self._matched_left]
        self._matched_left -= len(new)
        await self._ask(new)
        if self.refused:  # what could not be asked about might be refused too
            self.refused.update(path for path in paths if path not in self._asked)

    async def _ask(self, paths: Sequence[str]) -> None:
        if self._editor is None or not paths or self._seconds_left <= 0:
            return
        self._asked.update(paths)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        waiting = iter(paths)
        try:
            async with timeout(self._seconds_left), asyncio.TaskGroup() as group:
                for _ in range(min(AT_A_TIME, len(paths))):
                    group.create_task(self._ask_one_by_one(self._editor, waiting))
        except TimeoutError:
            self._seconds_left = 0
        else:
            self._seconds_left -= loop.time() - begin

    async def _ask_one_by_one(self, editor: Workspace, waiting: Iterator[str]) -> None:
        for path in waiting:
            try:
                text = await editor.unsaved_text(ResolvedPath(path))
            except ClientRefused:
                self.refused.add(path)
            except WorkspaceError:
                continue  # no text, or gone by now: whoever reads it from disk will see
            else:
                if text is not None:
                    self.texts[path] = text


# --- what the files hold


class Gathered:
    """Takes in what the batches give, until it is enough."""

    def __init__(self, room: int, unsaved: UnsavedTexts, *, is_content: bool) -> None:
        """`room` is for so many matches if the content is wanted, else for so many files."""
        self.files: list[FileMatches] = []
        self.binary = 0
        self.cut: Cut = ""
        self._unsaved = unsaved
        self._is_content = is_content
        self._room = room

    def add(self, matches: Sequence[FileMatches], stopped: Callable[[], bool]) -> None:
        for match in matches:
            if stopped():
                self.cut = "time"
                return
            try:
                content = self._content(match.path)
            except (StaleFile, OSError):
                continue  # it was a file when it was listed; now it is gone, or leads somewhere else
            if is_binary(content):
                self.binary += 1
                continue
            if not holds(content, match.lines):
                continue  # a matcher goes by names, and has read another file
            if self._room == 0:
                self.cut = "matches" if self._is_content else "files"
                return
            taken = _first_matches(match, self._room) if self._is_content else match
            self.files.append(taken)
            self._room -= taken.count if self._is_content else 1
            if taken.count < match.count:
                self.cut = "matches"
                return

    def _content(self, path: str) -> bytes:
        text = self._unsaved.texts.get(path)
        return text.encode("utf-8", "replace") if text is not None else read_pinned(path)


def _first_matches(match: FileMatches, most: int) -> FileMatches:
    if match.count <= most:
        return match
    places = [place for place, line in enumerate(match.lines) if line.start is not None]
    return FileMatches(match.path, most, match.lines[: places[most - 1] + 1])


def read_pinned(path: str) -> bytes:
    """The bytes of a file that matches, none of which is huge. StaleFile if a symbolic link leads to it by now."""
    with open(open_pinned(path), "rb") as file:
        return file.read()


def open_pinned(path: str) -> int:
    return open_resolved(ResolvedPath(path), os.O_RDONLY | os.O_NONBLOCK)


def is_binary(content: bytes) -> bool:
    """Whether there are null bytes where text has none."""
    if content.startswith(_UTF16_MARKS):
        return "\0" in content.decode("utf-16", "replace")
    return b"\0" in content


def holds(content: bytes, lines: Sequence[Line]) -> bool:
    """Whether these are lines of this very file."""
    if not lines:
        return True
    if content.startswith(_UTF16_MARKS):
        content = content.decode("utf-16", "replace").encode("utf-8", "replace")
    last = max(line.number for line in lines)
    there = content.removeprefix(b"\xef\xbb\xbf").split(b"\n", last)[:last]
    return len(there) == last and all(_text_of(there[line.number - 1]) == line.text for line in lines)


# --- a matcher's answer: ripgrep's, or that of the one that speaks its words


class _Bytes(msgspec.Struct):
    """A path or a line; what is no UTF-8 comes in base64."""

    text: str | None = None
    encoded: str = msgspec.field(name="bytes", default="")

    def raw(self) -> bytes:
        return base64.b64decode(self.encoded) if self.text is None else self.text.encode()


class _Submatch(msgspec.Struct):
    start: int


class _Data(msgspec.Struct):
    path: _Bytes | None = None
    lines: _Bytes | None = None
    line_number: int | None = None
    submatches: tuple[_Submatch, ...] = ()


class _Message(msgspec.Struct):
    type: str
    data: _Data


_decoder = msgspec.json.Decoder(_Message)


def read_output(output: bytes, mode: str, order: Mapping[str, int]) -> list[FileMatches]:
    """What a matcher wrote, in the order of the files that it was given."""
    matches = _read_lines(output) if mode == "content" else _read_counts(output)
    return sorted(matches, key=lambda match: order[match.path])


def _read_lines(output: bytes) -> list[FileMatches]:
    """What a matcher wrote, one JSON object a line. The last line may be torn, if it was stopped."""
    found: dict[str, list[Line]] = {}
    for written in output.split(b"\n")[:-1]:
        message = _decoder.decode(written)
        data = message.data
        if message.type not in ("match", "context") or data.path is None or data.lines is None:
            continue
        found.setdefault(os.fsdecode(data.path.raw()), []).append(_line(data.lines.raw(), data))
    return [FileMatches(path, sum(line.start is not None for line in lines), lines) for path, lines in found.items()]


def _line(raw: bytes, data: _Data) -> Line:
    start = len(raw[: data.submatches[0].start].decode("utf-8", "replace")) if data.submatches else None
    return Line(data.line_number or 0, _text_of(raw), start)


def _text_of(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\n").removesuffix("\r")


def _read_counts(output: bytes) -> list[FileMatches]:
    """`path, null, number`, one a line; a path may contain anything but a null."""
    return [FileMatches(os.fsdecode(path), int(count), []) for path, count in _COUNT.findall(output)]


_COUNT = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
