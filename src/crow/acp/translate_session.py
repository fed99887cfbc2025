"""Translates a whole session into ACP v1's types: its options and modes, its entry in a list, and the updates that
replay its past. Pure.

Of what happened before, what a tool printed is capped; what was said never is.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from crow import events
from crow.acp import wire
from crow.acp.translate import (
    call_seconds,
    compaction,
    is_never_shown,
    locations,
    message,
    quoted,
    raw_input,
    raw_output,
    result_content,
    title_at_end,
    tool_content,
    updates,
)
from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.results import DisplayBlock, HiddenOutput, TerminalBlock, TextBlock
from crow.session.replay import PastCall, PastItem, PastMessage, PastPrompt, PastRemark, PastThought
from crow.store.base import SessionEntry
from crow.visible import call_title


def modes(options: Iterable[events.SessionOption]) -> wire.SessionModes | None:
    """The option `mode` for clients that know modes alone."""
    for option in options:
        if option.id == "mode":
            available = [
                wire.SessionMode(id=choice.value, name=choice.name, description=choice.description or None)
                for choice in option.choices
            ]
            return wire.SessionModes(current_mode_id=option.value, available_modes=available)
    return None


def config_options(options: Iterable[events.SessionOption]) -> list[wire.ConfigOption]:
    return [
        wire.ConfigOption(
            id=option.id,
            name=option.name,
            description=option.description or None,
            category=option.id,
            current_value=option.value,
            options=_choices(option.choices),
        )
        for option in options
    ]


def _choices(choices: Sequence[events.Choice]) -> list[wire.ConfigChoice]:
    """As a list; or in groups, where there are any."""
    groups: dict[str, list[wire.ConfigChoice]] = {}
    for choice in choices:
        made = wire.ConfigChoice(value=choice.value, name=choice.name, description=choice.description or None)
        groups.setdefault(choice.group, []).append(made)
    if not any(groups):
        return groups.get("", [])
    return [
        wire.ConfigChoice(group=group or "other", name=group or "Other", options=made) for group, made in groups.items()
    ]


def title(event: events.TitleChanged, now: int) -> wire.Update:
    return wire.SessionInfoUpdate(title=event.title, updated_at=iso_time(now))


def stored_title(entry: SessionEntry) -> wire.Update:
    """What a client may head a session with that it has loaded."""
    return wire.SessionInfoUpdate(title=entry.title or None, updated_at=iso_time(entry.updated_at))


def session_info(entry: SessionEntry) -> wire.SessionInfo:
    return wire.SessionInfo(
        session_id=entry.id,
        cwd=entry.cwd,
        title=entry.title or None,
        updated_at=iso_time(entry.updated_at),
        additional_directories=list(entry.roots) or None,
    )


def iso_time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"


def state(session_id: str, event: events.StateChanged) -> wire.StateNotification:
    return wire.StateNotification(
        session_id=session_id,
        state=event.state,
        turn=event.turn_id or None,
        by=event.by or None,
        faces=list(event.faces),
        ended=_turn_end(event.ended, event.left_open) if event.ended is not None else None,
    )


def _turn_end(ended: events.TurnEnded, left_open: str) -> wire.TurnEnd:
    return wire.TurnEnd(
        turn=ended.turn_id,
        stop_reason=ended.stop_reason.value if ended.stop_reason is not None else None,
        error=ended.error or None,
        left_open=left_open or None,
    )


# --- what happened before

LARGEST_REPLAYED = 64 * 1024
"""Characters of what a tool printed."""


def past_updates(item: PastItem, *, with_changes: bool = False) -> Iterator[wire.Update]:
    """What a client is shown of a thing that is over: once, and as it ended up. `with_changes`: the client has asked
    which lines of a diff are changed."""
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
            yield from _past_call(item, with_changes=with_changes)
        case events.PlanChanged():
            yield from updates(item)
        case events.CompactionEnded():
            yield compaction(item)
        case _:
            assert_never(item)


def _past_call(call: PastCall, *, with_changes: bool) -> Iterator[wire.Update]:
    """The call, and what came of it: some clients show content that comes with an update, and no other."""
    if call.result is None:
        yield from _open_call(call, with_changes=with_changes)
        return
    result = call.result
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
        content=result_content(result, _past_block, with_changes=with_changes),
        raw_output=raw_output(result),
        meta=call_seconds(call.seconds) if with_changes else None,
    )


def _open_call(call: PastCall, *, with_changes: bool) -> Iterator[wire.Update]:
    """A call that is still open, for a client that joins: it goes on from here."""
    if not call.quiet:
        content = tool_content(filter(None, map(_past_block, call.display)), with_changes=with_changes)
        yield wire.ToolCall(
            tool_call_id=call.call_id,
            title=call_title(call.title),
            name=call.tool[:200],
            kind=call.kind,
            status="in_progress" if call.is_started else "pending",
            content=content or None,
            locations=locations(call.locations),
            raw_input=None if call.arguments is None else raw_input(call.arguments),
        )


def _past_block(block: DisplayBlock) -> DisplayBlock | None:
    """A terminal is gone by now: the text that it showed stands for it."""
    match block:
        case TerminalBlock():
            return None
        case HiddenOutput():
            return _capped(TextBlock(block.text)) if block.text else None
        case TextBlock():
            return _capped(block)
        case _:
            return block


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
