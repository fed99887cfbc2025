"""What a server's call is about, as far as its arguments say so: its target, and the change to a file.

Servers name such arguments in a few usual ways. What they do with them is their business: the diff in a question shows
what the model asks for, beside the arguments themselves, and what was really done comes with the result.
"""

import re
from collections.abc import Mapping
from typing import Any

from crow.errors import CrowError
from crow.markdown import language_of
from crow.results import DiffBlock, TextBlock
from crow.workspace.base import Workspace
from crow.workspace.place import ResolvedPath

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
_WORD = re.compile(r"[A-Za-z_]{1,30}")
LARGEST = 64 * 1024
"""Characters of all that a diff shows; a larger change is shown by its arguments alone."""


def target_of(arguments: Mapping[str, Any]) -> str:
    """What a title names; empty if no argument is known to be it."""
    return next((value for name in TARGETS if isinstance(value := arguments.get(name), str) and value.strip()), "")


def command_of(arguments: Mapping[str, Any]) -> str:
    """What is done with a file by a tool that does several things, such as `view`; empty if none of them is named."""
    command = arguments.get("command")
    return command if _path(arguments) and isinstance(command, str) and _WORD.fullmatch(command) else ""


def growing_change(arguments: Mapping[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
    """What has arrived of a change to a file, its path as the model wrote it; None if it does not look like one."""
    path = _path(arguments)
    if not path or list(arguments)[-1] in PATHS:  # the last argument may be half of what it will be
        return None
    if replaced := _replacements(arguments):
        return tuple(DiffBlock(path, "modify", old, new) for old, new in replaced)
    text = _whole_text(arguments)
    return TextBlock(text, language=language_of(path)) if text is not None else None


async def changes_of(arguments: Mapping[str, Any], workspace: Workspace) -> tuple[DiffBlock, ...]:
    """The changes to a file of the workspace that are asked for; none if that cannot be told."""
    resolved = await _resolved(arguments, workspace)
    if resolved is None:
        return ()
    path = resolved.real
    if replaced := _replacements(arguments):
        diffs = tuple(DiffBlock(path, "modify", old, new) for old, new in replaced)
    else:
        diffs = await _whole(resolved, arguments, workspace)
    return diffs if sum(len(diff.old_text) + len(diff.new_text) for diff in diffs) <= LARGEST else ()


async def _resolved(arguments: Mapping[str, Any], workspace: Workspace) -> ResolvedPath | None:
    """The file that is to be changed; None if none is named, or one that is not the workspace's."""
    given = _path(arguments)
    if not given:
        return None
    try:
        path = await workspace.resolve(given)
    except CrowError:
        return None
    return path if workspace.contains(path.real) else None


def _path(arguments: Mapping[str, Any]) -> str:
    return next((value for name in PATHS if isinstance(value := arguments.get(name), str) and value), "")


def _whole_text(arguments: Mapping[str, Any]) -> str | None:
    return next((value for name in WHOLE if isinstance(value := arguments.get(name), str)), None)


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


async def _whole(path: ResolvedPath, arguments: Mapping[str, Any], workspace: Workspace) -> tuple[DiffBlock, ...]:
    text = _whole_text(arguments)
    if text is None or len(text) > LARGEST:
        return ()
    try:
        before = await workspace.read_document(path)
    except CrowError:
        return ()
    if before is None:
        return (DiffBlock(path.real, "add", "", text),)
    return (DiffBlock(path.real, "modify", before.text, text),)
