"""How a diff crosses from one Crow to another: the key `dev.crow/display` in the result of an MCP tool, written and
read with checks.

It lies in the `_meta` of a result, where hosts that do not know it overlook it. A Crow on the other side shows a real
diff of it. docs/mcp.md describes the format for other programs:

    {"version": 1, "message": "+1 -1", "blocks": [
        {"type": "diff", "path": "/absolute", "operation": "modify", "oldText": "…", "newText": "…"},
        {"type": "text", "text": "…"}]}
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from crow.paths import LONGEST, is_inside
from crow.results import DiffBlock, DisplayBlock, TextBlock, ToolResult
from crow.visible import HIDES_SOMETHING, hidden_in, is_plainly_seen, one_line

KEY = "dev.crow/display"
VERSION = 1
LARGEST = 1024 * 1024
"""Characters of all diffs together; a larger change is told in words alone."""
SHORT = 2000
"""Characters of a text block that is worth sending: what is longer is mostly what the model was told anyway."""
LONGEST_MESSAGE = 500
MOST_BLOCKS = 100


class Display(msgspec.Struct, frozen=True):
    """What is to be shown: a line, and blocks. The two fields of a `ToolResult` that are for the person."""

    message: str = ""
    blocks: tuple[DisplayBlock, ...] = ()


class _Diff(msgspec.Struct, frozen=True, tag="diff", tag_field="type", rename="camel"):
    path: str
    operation: Literal["add", "delete", "modify"]
    old_text: str
    new_text: str


class _Text(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    text: str


class _Sent(msgspec.Struct, frozen=True):
    version: Literal[1]
    message: str = ""
    blocks: tuple[_Diff | _Text, ...] = ()


def encode(result: ToolResult) -> dict[str, Any] | None:
    """The value for the key; None if there is nothing to show that the text does not say."""
    diffs = [block for block in result.display if isinstance(block, DiffBlock)]
    if sum(len(diff.old_text) + len(diff.new_text) for diff in diffs) > LARGEST:
        diffs = []
    texts = [block for block in result.display if isinstance(block, TextBlock) and _is_worth_sending(block, result)]
    blocks = (
        *(_Diff(diff.path, diff.operation, diff.old_text, diff.new_text) for diff in diffs),
        *(_Text(text.text) for text in texts),
    )
    if not blocks and (not result.ok or not result.message or result.message == result.text):
        return None  # a failure is told in the text, to both
    message = result.message[:LONGEST_MESSAGE]
    return msgspec.to_builtins(_Sent(VERSION, message, blocks))


def decode(meta: Mapping[str, Any] | None, roots: Sequence[str]) -> Display | None:
    """What a result's `_meta` has under the key; None if it has nothing, or nothing that can be trusted to be shown.

    Whoever sends it may be lying. A diff of what lies outside the session's folders is left out; one that holds
    characters which deceive the eye is shown as it is, and that is said.
    """
    if meta is None or KEY not in meta:
        return None
    try:
        sent = msgspec.convert(meta[KEY], _Sent)
    except msgspec.ValidationError:
        return None
    if len(sent.blocks) > MOST_BLOCKS:
        return None
    size = len(sent.message)
    blocks: list[DisplayBlock] = []
    for block in sent.blocks:
        match block:
            case _Diff():
                if not _is_plain(block.path) or (block.operation == "delete" and block.new_text):
                    return None
                size += len(block.old_text) + len(block.new_text)
                path = os.path.normpath(block.path)
                if _is_ours(path, roots):
                    blocks.append(DiffBlock(path, block.operation, block.old_text, block.new_text))
            case _Text():
                size += len(block.text)
                blocks.append(TextBlock(block.text))
    if size > 2 * LARGEST:
        return None
    if any(map(_hides_something, blocks)):
        blocks.append(TextBlock(HIDES_SOMETHING))
    return Display(one_line(sent.message, LONGEST_MESSAGE), tuple(blocks))


def _is_plain(path: str) -> bool:
    return os.path.isabs(path) and len(path) <= LONGEST and is_plainly_seen(path)


def _is_ours(path: str, roots: Sequence[str]) -> bool:
    """Links are followed: what only looks as if it lay in a folder of the session does not. A folder is no file."""
    real = os.path.realpath(path)
    return any(is_inside(real, folder) and real != folder for folder in map(os.path.realpath, roots))


def _hides_something(block: DisplayBlock) -> bool:
    match block:
        case DiffBlock():
            return hidden_in(block.old_text) or hidden_in(block.new_text)
        case TextBlock():
            return hidden_in(block.text)
        case _:
            return False


def _is_worth_sending(block: TextBlock, result: ToolResult) -> bool:
    return len(block.text) <= SHORT and block.text != result.text
