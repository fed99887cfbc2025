"""Tells from the arguments of an MCP call what it is about and which file it changes; remembers changes for an undo.

Servers name their arguments in a few usual ways. What they do with them is their business: the diff in a question shows
what the model asks for, beside the arguments themselves.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from crow import diff
from crow.disk import Disk
from crow.errors import CrowError
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.paths import shown
from crow.results import DiffBlock, DisplayBlock, TextBlock
from crow.tools.editing.replacements import replacement_after
from crow.tools.file_changes import off_loop_if_large
from crow.tools.read import count_lines
from crow.visible import language_of

PATHS = ("path", "file_path", "filepath", "filename", "file")
TARGETS = (*PATHS, "uri", "url", "query", "pattern", "command", "name", "title", "id")
REPLACEMENTS = (
    ("old_str", "new_str"),
    ("old_string", "new_string"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old", "new"),
)
WHOLE = ("file_text", "content", "contents", "new_content")
INSERT_LINE = "insert_line"
INSERTED = ("new_str", "insert_text", "text")
UNDO = "undo_edit"
FILE_COMMANDS = frozenset({"view", "create", "str_replace", "insert", UNDO})
"""What the usual file editors call their commands, and the arguments of one that inserts lines."""
_WORD = re.compile(r"[A-Za-z_]{1,30}")
LARGEST_DIFF = 64 * 1024
"""Characters of all that a diff shows; a larger change is shown by its arguments alone."""
MOST_KEPT = 4 * 1024 * 1024
"""Characters of former texts that are kept of one server's changes."""


# --- what a call is about


def target_of(arguments: Mapping[str, Any]) -> str:
    """What a title names; empty if no argument is known to be it."""
    said = (arguments.get(name) for name in TARGETS if name != "command" or not command_of(arguments))
    return next((value for value in said if isinstance(value, str) and value.strip()), "")


def command_of(arguments: Mapping[str, Any]) -> str:
    """What is done with a file by a tool that does several things, such as `view`; empty if none of them is named."""
    command = arguments.get("command")
    if not isinstance(command, str) or not _WORD.fullmatch(command):
        return ""
    return command if command in FILE_COMMANDS or _path(arguments) else ""


def partial_change(arguments: Mapping[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
    """What has arrived of a change to a file, its path as the model wrote it; None if it does not look like one."""
    path = _path(arguments)
    if not path or list(arguments)[-1] in PATHS:  # the last argument may be half of what it will be
        return None
    if replaced := _replacements(arguments):
        return tuple(DiffBlock(path, "modify", old, new) for old, new in replaced)
    text = _text(arguments, WHOLE)
    if text is None and "old_str" not in arguments:
        text = _text(arguments, INSERTED)
    return TextBlock(text, language=language_of(path)) if text is not None else None


# --- the change to a file that is asked for


class PastChange(msgspec.Struct, frozen=True):
    """A file before and after a call; None where it is not there."""

    path: str
    before: str | None
    after: str | None


class PastChanges:
    """What a server has changed since it was started: its own undo is shown before it happens."""

    def __init__(self) -> None:
        self._changes: list[PastChange] = []

    def last(self, path: str) -> PastChange | None:
        return next((change for change in reversed(self._changes) if change.path == path), None)

    def add(self, change: PastChange) -> None:
        if change.before != change.after:
            self._changes.append(change)
        while sum(len(one.before or "") + len(one.after or "") for one in self._changes) > MOST_KEPT:
            del self._changes[0]

    def forget(self, change: PastChange) -> None:
        """It was taken back. Another one may look just the same: this very one goes."""
        self._changes = [one for one in self._changes if one is not change]

    def clear(self) -> None:
        self._changes.clear()


class ChangeMeant(msgspec.Struct, frozen=True):
    """The change to a file of the session's folders that is asked for."""

    path: str = ""
    """Empty if it cannot be told."""
    diffs: tuple[DiffBlock, ...] = ()
    undoes: PastChange | None = None
    """The former change that it takes back."""
    disk: LocalWorkspace | None = None


def removes(display: Sequence[DisplayBlock]) -> bool:
    """Whether what is shown is that files are taken away, and no other change."""
    changes = [block.operation for block in display if isinstance(block, DiffBlock)]
    return bool(changes) and set(changes) == {"delete"}


async def change_meant(arguments: Mapping[str, Any], tool: str, past: PastChanges, roots: Sequence[str]) -> ChangeMeant:
    """`tool` is the server's own name for it, which says what is done where no argument does.

    Files are looked at as the server sees them, which knows nothing of an editor.
    """
    given = _path(arguments)
    if not given:
        return ChangeMeant()
    try:
        disk = await Disk(roots[0]).run(lambda: LocalWorkspace(roots))
        path = await disk.resolve(given)
        if not disk.contains(path.real):
            return ChangeMeant()
        undone = past.last(path.real) if (command_of(arguments) or tool) == UNDO else None
        if undone is not None:
            diffs = await _undo(undone, await _text_of(path, disk))
        else:
            diffs = await _diffs(path, arguments, disk)
    except CrowError:
        return ChangeMeant()
    if not diffs or sum(len(block.old_text) + len(block.new_text) for block in diffs) > LARGEST_DIFF:
        return ChangeMeant()
    return ChangeMeant(path.real, diffs, undone, disk)


async def text_now(meant: ChangeMeant) -> str | UnsetType | None:
    """The text that is there now, whatever was there before; UNSET if it cannot be read, or no change is meant."""
    if meant.disk is None:
        return UNSET
    try:
        return await _text_of(await meant.disk.resolve(meant.path), meant.disk)
    except CrowError:
        return UNSET


async def _text_of(path: ResolvedPath, disk: LocalWorkspace) -> str | None:
    document = await disk.read_document(path)
    return None if document is None else document.text


async def _diffs(path: ResolvedPath, arguments: Mapping[str, Any], disk: LocalWorkspace) -> tuple[DiffBlock, ...]:
    if replaced := _replacements(arguments):
        return tuple(DiffBlock(path.real, "modify", old, new) for old, new in replaced)
    if isinstance(line := arguments.get(INSERT_LINE), int):
        return await _insertion(path, line, _text(arguments, INSERTED), disk)
    text = _text(arguments, WHOLE)
    if text is None or len(text) > LARGEST_DIFF:
        return ()
    before = await _text_of(path, disk)
    return (DiffBlock(path.real, "add" if before is None else "modify", before or "", text),)


async def _undo(change: PastChange, now: str | None) -> tuple[DiffBlock, ...]:
    """Nothing where somebody else has changed the file since: the server decides what becomes of it."""
    return await _between(change.path, now, change.before) if now == change.after else ()


async def _insertion(path: ResolvedPath, line: int, text: str | None, disk: LocalWorkspace) -> tuple[DiffBlock, ...]:
    before = await _text_of(path, disk) if text is not None else None
    if text is None or before is None or not 0 <= line <= count_lines(before):
        return ()
    added = replacement_after(before, line, text)
    return await _between(path.real, before, before[: added.start] + added.new + before[added.start :])


async def _between(path: str, old: str | None, new: str | None) -> tuple[DiffBlock, ...]:
    return await off_loop_if_large(len(old or "") + len(new or ""), lambda: diff.display(shown(path), old, new))


# --- arguments, as servers name them


def _path(arguments: Mapping[str, Any]) -> str:
    return next((value for name in PATHS if isinstance(value := arguments.get(name), str) and value), "")


def _text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := arguments.get(name), str)), None)


def _replacements(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [pair for part in (arguments, *_edits(arguments)) if (pair := _replacement(part)) is not None]


def _edits(arguments: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    edits = arguments.get("edits")
    return [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []  # pyright: ignore[reportUnknownVariableType] -- JSON


def _replacement(part: Mapping[str, Any]) -> tuple[str, str] | None:
    for names in REPLACEMENTS:
        old, new = (part.get(name) for name in names)
        if isinstance(old, str) and isinstance(new, str):
            return old, new
    return None
