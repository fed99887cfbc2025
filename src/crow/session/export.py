"""Writes a stored session as a document: Markdown to read, JSON to work with. docs/sessions.md describes both."""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from crow import diff
from crow.events import (
    CallOpened,
    CompactionEnded,
    CrowSaid,
    Event,
    HistoryCleared,
    PlanChanged,
    Sent,
    SentLink,
    SentMedia,
    SentResource,
    SentText,
    SubagentDid,
    TurnUndone,
)
from crow.messages import without_middle
from crow.paths import relative_to
from crow.results import DiffBlock, DisplayBlock, HiddenOutput, ImageBlock, TerminalBlock, TextBlock
from crow.session.replay import PastCall, PastItem, PastMessage, PastPrompt, PastRemark, PastThought, replayed
from crow.store.base import RECORD_VERSION, SessionEntry
from crow.turn.spending import Spending
from crow.visible import code, fence, language_of, one_line

FORMAT = "crow-session"
LONGEST_OUTPUT = 4000
"""Characters of an output or an attachment that go into the Markdown."""
LONGEST_DIFF = 64 * 1024

PLAN_SIGNS = {"pending": " ", "in_progress": "~", "completed": "x"}


# --- JSON


def as_json(entry: SessionEntry, events: Sequence[Event]) -> str:
    """Everything that is stored of it, thoughts included; only the former texts of changed files are left out."""
    whole = {"format": FORMAT, "version": RECORD_VERSION, "session": entry, "events": events}
    try:
        encoded = msgspec.json.encode(whole)
    except UnicodeEncodeError:
        # A file name that is no UTF-8: only an escape sequence can carry it.
        import json

        return json.dumps(msgspec.to_builtins(whole), indent=2) + "\n"
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


# --- Markdown


def markdown(entry: SessionEntry, events: Sequence[Event]) -> str:
    """What the person saw, without the model's thoughts; long outputs cut, pictures named."""
    return "\n\n".join([*_head(entry, events), *_body(entry.cwd, events)]) + "\n"


def _head(entry: SessionEntry, events: Iterable[Event]) -> Iterator[str]:
    yield f"# {entry.shown_title}"
    facts = [f"- Folder: {code(entry.cwd)}", *(f"- Also: {code(root)}" for root in entry.roots)]
    facts.append(f"- Begun: {moment(entry.created_at)}; last used: {moment(entry.updated_at)}")
    facts.append(f"- Session: {code(entry.id)}")
    spending = Spending()
    for event in events:
        spending.apply(event)
    if spent := spending.in_words():
        facts.append(f"- Spent: {spent}")
    yield "\n".join(facts)


def moment(milliseconds: int) -> str:
    """In this machine's time zone."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))


def _body(folder: str, events: Iterable[Event]) -> Iterator[str]:
    """Piece by piece, with what became of the model's history between the pieces."""
    writer = _Writer(folder)
    piece: list[Event] = []
    for event in events:
        piece.append(event)
        if note := _note(event):
            yield from writer.write(piece)
            yield f"> {note}"
            piece = []
    yield from writer.write(piece)


def _note(event: Event) -> str:
    match event:
        case TurnUndone():
            return "The turn before was taken back."
        case HistoryCleared():
            return "From here on the model knew nothing of what is above."
        case _:
            return ""


class _Writer:
    """Keeps in mind who spoke last: a heading comes where that changes, and after calls, which have their own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._speaker = ""
        self._after_call = False

    def write(self, events: Sequence[Event]) -> Iterator[str]:
        own = {event.message_id for event in events if isinstance(event, CrowSaid)}
        own |= {event.call_id for event in events if isinstance(event, CallOpened) and event.own}
        for item, below in _with_calls_below(events):
            if isinstance(item, PastRemark):
                yield _quoted(item.text)
                continue
            text = "\n\n".join([*_item(item, self._folder), *_calls_below(below, self._folder)])
            if not text:
                continue
            speaker = _speaker(item, own)
            follows_call = self._after_call and not isinstance(item, PastCall)
            if speaker != self._speaker or follows_call or isinstance(item, PastPrompt):
                yield f"## {speaker}"
            yield text
            self._speaker = speaker
            self._after_call = isinstance(item, PastCall)


def _with_calls_below(events: Sequence[Event]) -> Iterator[tuple[PastItem, list[PastCall]]]:
    """What is to be shown; with the call of a subagent those of its own calls that the person was asked about."""
    parents = {
        event.what.call_id: event.call_id
        for event in events
        if isinstance(event, SubagentDid) and isinstance(event.what, CallOpened)
    }
    items: list[PastItem] = []
    below: dict[str, list[PastCall]] = {}
    for item in replayed(events):
        if isinstance(item, PastCall) and item.call_id in parents:
            below.setdefault(parents[item.call_id], []).append(item)
        else:
            items.append(item)
    for item in items:
        yield item, below.get(item.call_id, []) if isinstance(item, PastCall) else []


def _calls_below(calls: list[PastCall], folder: str) -> Iterator[str]:
    for call in calls:
        yield from _call(call, folder, "####")


def _speaker(item: PastItem, own: set[str]) -> str:
    """`own` are the ids of what Crow said and did by itself."""
    match item:
        case PastPrompt():
            return "You"
        case PastMessage() | PastThought():
            return "Crow" if item.message_id in own else "Model"
        case PastCall():
            return "Crow" if item.call_id in own else "Model"
        case PlanChanged():
            return "Model"
        case CompactionEnded() | PastRemark():
            return "Crow"
        case _:
            assert_never(item)


def _item(item: PastItem, folder: str) -> Iterator[str]:
    match item:
        case PastPrompt():
            yield from map(_sent, item.sent)
        case PastMessage():
            yield item.text.strip()
        case PastThought():
            return
        case PastRemark():
            yield _quoted(item.text)
        case PastCall():
            yield from _call(item, folder)
        case PlanChanged():
            yield "\n".join(f"- [{PLAN_SIGNS[entry.status]}] {one_line(entry.content)}" for entry in item.entries)
        case CompactionEnded(status="completed"):
            yield "The conversation up to here was summed up for the model:"
            yield fence(item.summary, "text")
        case CompactionEnded():
            yield "The conversation could not be summed up for the model."
        case _:
            assert_never(item)


def _sent(block: Sent) -> str:
    match block:
        case SentText():
            return block.text.strip()
        case SentMedia():
            name = f" {code(block.uri)}" if block.uri else ""
            return f"*Attached: {block.kind} ({one_line(block.mime_type)}){name}*"
        case SentLink():
            return f"*Attached: {code(block.uri)}*"
        case SentResource():
            text = None if block.text is None else without_middle(block.text, LONGEST_OUTPUT)
            content = "" if text is None else f"\n\n{fence(text, language_of(block.uri) or 'text')}"
            return f"*Attached: {code(block.uri)}*{content}"
        case _:
            assert_never(block)


def _call(call: PastCall, folder: str, level: str = "###") -> Iterator[str]:
    result = call.result
    status = "cut off" if result is None else "done" if result.ok else "failed"
    yield f"{level} {one_line(call.title)} ({status})"
    blocks = result.display if result is not None else call.display
    shown = [text for block in blocks if (text := _block(block, folder))]
    if result is not None and result.message and (not shown or not result.ok):
        message = one_line(result.message, LONGEST_OUTPUT)
        if not any(message in text for text in shown):
            yield message
    yield from shown


def _block(block: DisplayBlock, folder: str) -> str:
    match block:
        case TextBlock(prose=True):
            return _quoted(without_middle(block.text, LONGEST_OUTPUT))
        case TextBlock() | HiddenOutput():
            language = block.language if isinstance(block, TextBlock) else ""
            return fence(without_middle(block.text, LONGEST_OUTPUT), language or "text") if block.text else ""
        case DiffBlock():
            name = one_line(relative_to(block.path, folder).lstrip("/"))
            return fence(diff.unified(block.old_text, block.new_text, name, LONGEST_DIFF), "diff")
        case ImageBlock():
            return f"*Image ({one_line(block.image.mime_type)})*"
        case TerminalBlock():
            return ""
        case _:
            assert_never(block)


def _quoted(markdown: str) -> str:
    """Somebody's Markdown within ours: its headings are none of this document."""
    return "\n".join(f"> {line}".rstrip() for line in markdown.strip().splitlines())
