"""Makes a tool's result of what an MCP server's call returned: text and pictures for the model, blocks for the person,
within limits.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from crow.mcp.display import Display, decode
from crow.messages import Image, encoded_media_type, without_middle
from crow.results import DiffBlock, DisplayBlock, ImageBlock, TextBlock, ToolResult
from crow.visible import one_line

LONGEST_TEXT = 40_000
"""Characters for the model: the beginning and the end of what is longer."""
MOST_IMAGES = 8
LARGEST_IMAGE = 5 * 1024 * 1024
"""Bytes of the largest picture that the model gets, counted in base64."""
_DONE = re.compile(r"[A-Z][a-z]{2,11} (?P<name>\S+) \((?P<lines>[^()\n]+)\)\.")
"""`Edited src/a.py (+1 -1).`"""
Content = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
WRAPPED = {"result"}
"""The key under which the protocol's libraries put a value that is no object."""


def result_of(given: CallToolResult, roots: Sequence[str], meant: Sequence[DiffBlock] = ()) -> ToolResult:
    """`roots` are the folders of the session: a diff is shown of what lies in them. `meant` are the changes that the
    call asked for: they stay to be seen where the server did them and shows none of its own."""
    texts, images = read_content(given.content)
    texts += unsaid(given.structured_content, texts)
    text = without_middle("\n\n".join(texts), LONGEST_TEXT)
    told = text or ("It gave no text." if not given.is_error else "It failed, and said nothing more.")
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
    if _is_shown(text, shown):
        return shown.blocks
    others = (block for block in shown.blocks if not (isinstance(block, TextBlock) and block.text.strip() in text))
    return (*others, TextBlock(text)) if text else tuple(others)


def _is_shown(text: str, shown: Display) -> bool:
    """Whether a text says no more of a change than its diff and the title of the call do."""
    said = _DONE.fullmatch(text)
    if said is None or said["lines"] != shown.message:
        return False
    paths = (block.path for block in shown.blocks if isinstance(block, DiffBlock))
    return any(path.endswith(f"/{said['name']}") for path in paths)


def read_content(content: Iterable[Content]) -> tuple[list[str], list[Image]]:
    """Texts in their order, in which what is no text is named; and pictures that a model can see."""
    texts: list[str] = []
    images: list[Image] = []
    for block in content:
        match block:
            case TextContent():
                texts.append(block.text)
            case ImageContent():
                texts += _image(block.data, block.mime_type, images)
            case AudioContent():
                texts.append(f"(a sound, {one_line(block.mime_type, 60)}, which cannot be heard here)")
            case ResourceLink():
                texts.append(_link(block))
            case EmbeddedResource():
                texts += read_resource(block.resource, images)
    return [text for text in texts if text], images


def read_resource(resource: TextResourceContents | BlobResourceContents, images: list[Image]) -> list[str]:
    uri, kind = one_line(resource.uri, 300), one_line(resource.mime_type or "unknown type", 60)
    if isinstance(resource, TextResourceContents):
        return [f"{uri}:\n{resource.text}"]
    if encoded_media_type(resource.blob):
        return [f"{uri}:", *_image(resource.blob, kind, images)]
    return [f"({uri}: binary data, {kind}, about {len(resource.blob) * 3 // 4:,} bytes, not shown)"]


def _image(data: str, claimed: str, images: list[Image]) -> list[str]:
    kind = encoded_media_type(data) if len(data) <= LARGEST_IMAGE else None
    if kind is None or not kind.startswith("image/"):
        return [f"(a picture, {one_line(claimed, 60)}, not shown: it is damaged, too large or of no known kind)"]
    if len(images) >= MOST_IMAGES:
        return ["(one more picture, left out)"]
    images.append(Image(data, kind))
    return []


def _link(link: ResourceLink) -> str:
    described = f": {one_line(link.description, 300)}" if link.description else ""
    return f"{one_line(link.title or link.name, 100)} <{one_line(link.uri, 500)}>{described}"


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
