"""What happened before, as a client is shown it when a session is loaded: each thing once, as it ended up. Pure.

What a tool printed is capped, what was said never is.
"""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from crow import events
from crow.acp import wire
from crow.acp.translate import (
    block_content,
    compaction,
    is_never_shown,
    locations,
    message,
    quoted,
    raw_input,
    raw_output,
    result_content,
    title_at_end,
    updates,
)
from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.results import DisplayBlock, HiddenOutput, TerminalBlock, TextBlock, ToolResult
from crow.session.replay import PastCall, PastItem, PastMessage, PastPrompt, PastRemark, PastThought

LARGEST_REPLAYED = 64 * 1024
"""Characters of what a tool printed."""


def past_updates(item: PastItem) -> Iterator[wire.Update]:
    """What a client is shown of a thing that is over: once, and as it ended up."""
    match item:
        case PastPrompt():
            for block in item.sent:
                yield wire.UserMessageChunk(content=_content(block), message_id=item.message_id)
        case PastMessage():
            yield from message(wire.AgentMessageChunk, item.message_id, item.text)
        case PastThought():
            yield from message(wire.AgentThoughtChunk, item.message_id, item.text)
        case PastRemark():
            text = item.text.lstrip("\n")
            before = item.text[: -len(text)]
            yield from message(wire.AgentMessageChunk, item.message_id, before + quoted(text))
        case PastCall():
            yield from _past_call(item)
        case events.PlanChanged():
            yield from updates(item)
        case events.CompactionEnded():
            yield compaction(item)
        case _:
            assert_never(item)


def _past_call(call: PastCall) -> Iterator[wire.Update]:
    """The call, and what came of it: some clients show content that comes with an update, and no other."""
    result = call.result or ToolResult(ok=False, text="", display=call.display)
    if is_never_shown(quiet=call.quiet, requested=call.arguments is not None, result=result):
        return
    status = "completed" if result.ok else "failed"
    yield wire.ToolCall(
        tool_call_id=call.call_id,
        title=title_at_end(call.title, result),
        name=call.tool[:200],
        kind=call.kind,
        status=status,
        locations=locations(result.locations or call.locations),
        raw_input=None if call.arguments is None else raw_input(call.arguments),
    )
    yield wire.ToolCallUpdate(
        tool_call_id=call.call_id,
        status=status,
        content=result_content(result, _past_block),
        raw_output=raw_output(result),
    )


def _past_block(block: DisplayBlock) -> wire.ToolContent | None:
    """A terminal is gone by now: the text that it showed stands for it."""
    match block:
        case TerminalBlock():
            return None
        case HiddenOutput():
            return block_content(_capped(TextBlock(block.text))) if block.text else None
        case TextBlock():
            return block_content(_capped(block))
        case _:
            return block_content(block)


def _capped(block: TextBlock) -> TextBlock:
    size = len(block.text)
    if size <= LARGEST_REPLAYED:
        return block
    shown = f"{block.text[:LARGEST_REPLAYED]}\n… ({size:,} characters; the rest is not shown again)"
    return msgspec.structs.replace(block, text=shown)


def _content(block: Sent) -> wire.ContentBlock:
    """A block of a prompt as it came."""
    match block:
        case SentText():
            return wire.TextContent(text=block.text)
        case SentMedia(kind="image"):
            return wire.ImageContent(data=block.data, mime_type=block.mime_type, uri=block.uri or None)
        case SentMedia():
            return wire.AudioContent(data=block.data, mime_type=block.mime_type)
        case SentLink():
            return wire.ResourceLink(
                uri=block.uri,
                name=block.name,
                mime_type=block.mime_type or None,
                title=block.title or None,
                description=block.description or None,
                size=block.size,
            )
        case SentResource():
            contents = wire.ResourceContents(
                uri=block.uri, text=block.text, blob=block.blob, mime_type=block.mime_type or None
            )
            return wire.EmbeddedResource(resource=contents)
