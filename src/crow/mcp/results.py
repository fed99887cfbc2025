"""Results of tools on their way between Crow and other programs over MCP, in both directions.

What is for the person lies in a result's `_meta`, under the key `dev.crow/display`, where hosts that do not know it
overlook it: a Crow on the other side shows a real diff. docs/mcp.md describes the format for other programs:

    {"version": 1, "message": "+1 -1", "blocks": [
        {"type": "diff", "path": "/absolute", "operation": "modify", "oldText": "…", "newText": "…"},
        {"type": "text", "text": "…"}]}
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import mcp_types as types
import msgspec

from crow.messages import Image, encoded_media_type, without_middle
from crow.paths import LONGEST, is_inside
from crow.results import DiffBlock, DisplayBlock, ImageBlock, TextBlock, ToolResult
from crow.visible import HIDES_SOMETHING, hidden_in, is_plainly_seen, one_line

KEY = "dev.crow/display"
VERSION = 1
LARGEST = 1024 * 1024
"""Characters of all diffs together; a larger change is told in words alone."""
SHORT = 2000
"""Characters of a text block that is worth sending: what is longer is mostly what the model was told anyway."""
LONGEST_MESSAGE = 500
MOST_BLOCKS = 100
LONGEST_TEXT = 40_000
"""Characters for the model: the beginning and the end of what is longer."""
MOST_IMAGES = 8
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes of the largest picture that the model gets, counted in base64."""
WRAPPED = {"result"}
"""The key under which the protocol's libraries put a value that is no object."""


# --- sent: what one of our tools gave


def call_result(result: ToolResult) -> types.CallToolResult:
    """Without structured content: several hosts show the model that instead of the text, which says more."""
    content: list[types.ContentBlock] = [types.TextContent(text=result.text)]
    content += [types.ImageContent(data=image.data, mime_type=image.mime_type) for image in result.images]
    shown = encode(result)
    meta = {KEY: shown} if shown is not None else None
    return types.CallToolResult(content=content, is_error=not result.ok, _meta=meta)


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
    texts = [
        block
        for block in result.display
        if isinstance(block, TextBlock) and len(block.text) <= SHORT and block.text != result.text
    ]
    blocks = (
        *(_Diff(diff.path, diff.operation, diff.old_text, diff.new_text) for diff in diffs),
        *(_Text(text.text) for text in texts),
    )
    if not blocks and (not result.ok or not result.message or result.message == result.text):
        return None  # a failure is told in the text, to both
    message = result.message[:LONGEST_MESSAGE]
    return msgspec.to_builtins(_Sent(VERSION, message, blocks))


# --- received: what a server's call gave


def result_of(given: types.CallToolResult, roots: Sequence[str], meant: Sequence[DiffBlock] = ()) -> ToolResult:
    """`roots` are the folders of the session: a diff is shown of what lies in them. `meant` are the changes that the
    call asked for: they stay to be seen where the server did them and shows none of its own."""
    texts, images = read_content(given.content)
    texts += unsaid(given.structured_content, texts)
    text = without_middle("\n\n".join(texts), LONGEST_TEXT)
    told = text or ("It gave no text." if not given.is_error else "It failed without a message.")
    shown = decode(given.meta, roots)
    display = _displayed(shown or Display(), text)
    if not given.is_error and not any(isinstance(block, DiffBlock) for block in display):
        display = (*meant, *display)
    changed = shown is not None and any(isinstance(block, DiffBlock) for block in shown.blocks)
    return ToolResult(
        ok=not given.is_error,
        text=told,
        message=(shown.message if shown is not None else "") or one_line(told, 200),
        display=(*display, *(ImageBlock(image) for image in images)),
        images=tuple(images),
        brief=shown.message if shown is not None and changed else "",
    )


def _displayed(shown: Display, text: str) -> tuple[DisplayBlock, ...]:
    """What a server wants to be shown, and beside it what the model is told, whatever that is: nothing twice."""
    others = (block for block in shown.blocks if not (isinstance(block, TextBlock) and block.text.strip() in text))
    return (*others, TextBlock(text)) if text else tuple(others)


def read_content(content: Iterable[types.ContentBlock]) -> tuple[list[str], list[Image]]:
    """Texts in their order, in which what is no text is named; and pictures that a model can see."""
    texts: list[str] = []
    images: list[Image] = []
    for block in content:
        match block:
            case types.TextContent():
                texts.append(block.text)
            case types.ImageContent():
                texts += _image(block.data, block.mime_type, images)
            case types.AudioContent():
                texts.append(f"(audio, {one_line(block.mime_type, 60)}, not played)")
            case types.ResourceLink():
                texts.append(_link(block))
            case types.EmbeddedResource():
                texts += read_resource(block.resource, images)
    return [text for text in texts if text], images


def read_resource(resource: types.TextResourceContents | types.BlobResourceContents, images: list[Image]) -> list[str]:
    uri, kind = one_line(resource.uri, 300), one_line(resource.mime_type or "unknown type", 60)
    if isinstance(resource, types.TextResourceContents):
        return [f"{uri}:\n{resource.text}"]
    if encoded_media_type(resource.blob):
        return [f"{uri}:", *_image(resource.blob, kind, images)]
    return [f"({uri}: binary data, {kind}, about {len(resource.blob) * 3 // 4:,} bytes, not shown)"]


def _image(data: str, claimed: str, images: list[Image]) -> list[str]:
    kind = encoded_media_type(data) if len(data) <= LARGEST_IMAGE else None
    if kind is None or not kind.startswith("image/"):
        return [f"(an image, {one_line(claimed, 60)}, not shown: damaged, too large or of an unknown type)"]
    if len(images) >= MOST_IMAGES:
        return ["(one more image, left out)"]
    images.append(Image(data, kind))
    return []


def _link(link: types.ResourceLink) -> str:
    described = f": {one_line(link.description, 300)}" if link.description else ""
    return f"{one_line(link.title or link.name, 100)} <{one_line(link.uri, 500)}>{described}"


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


# --- structured content: told where a server's texts do not say it already, as most do


def unsaid(structured: dict[str, Any] | None, texts: Sequence[str]) -> list[str]:
    """Structured content as JSON; empty if the texts, one of them or all together, say the same."""
    if structured is None:
        return []
    values = [structured, structured["result"]] if set(structured) == WRAPPED else [structured]
    read = [_decoded(text) for text in texts]
    known = [*texts, *read, list(texts), read]
    if any(value in known for value in values):
        return []
    return [msgspec.json.format(msgspec.json.encode(structured)).decode()]


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
