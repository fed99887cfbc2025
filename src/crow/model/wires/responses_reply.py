"""Reads the stream of a reply of the Responses API into our events: text, reasoning, calls, usage."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from crow.messages import StopReason
from crow.model.base import (
    CallBegan,
    CallGrew,
    Done,
    ModelEvent,
    Noticed,
    Said,
    TextData,
    Thinking,
    ThoughtData,
    Usage,
)
from crow.model.provider_errors import ReplyErrors
from crow.model.sse import WHOLE, ServerEvent
from crow.model.wires.stream_parsing import ReplyReader, convert_loosely, read_usage

INCOMPLETE = {"max_output_tokens": StopReason.MAX_TOKENS, "content_filter": StopReason.REFUSAL}

PARAGRAPH = "\n\n"

FIELD = "summary"
"""Where thoughts came, for no other wire to give them back: what is shown of them is not what the model thought."""


# --- the wire; one struct for all events, since unknown types have to pass


class StreamEvent(msgspec.Struct):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    summary_index: int | None = None
    item_id: str | None = None
    item: Any = None
    response: msgspec.Raw = msgspec.Raw()
    """Left as it is until it matters: the first events repeat the whole request in it."""


class Part(msgspec.Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct):
    type: str = ""
    id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    content: list[Part] | None = None
    summary: list[Part] | None = None
    phase: str | None = None
    encrypted_content: str | None = None


class Details(msgspec.Struct):
    reason: str | None = None


class Response(msgspec.Struct):
    status: str | None = None
    output: list[Any] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: Details | None = None


event_decoder = msgspec.json.Decoder(StreamEvent)


@dataclass
class OpenItem:
    """An item of the reply that has begun."""

    shown: bool = False
    """Some of its text or arguments came in deltas: what the whole item repeats was shown already."""
    call: int | None = None
    """Our index, if it is a call."""
    pieces: list[str] = field(default_factory=list[str])
    """Of its arguments."""


class ResponsesReader(ReplyReader[StreamEvent]):
    def __init__(self, errors: ReplyErrors) -> None:
        super().__init__(errors, event_decoder)
        self._response: Response | None = None
        self._refused = False
        self._anything = False
        self._items: dict[int | str, OpenItem] = {}
        """By place in the reply, or by id where the server tells no place."""
        self._calls = 0
        self._speaking: OpenItem | None = None
        """The message whose text came last, if nothing else came since."""
        self._paragraph: tuple[int | str, int | None] | None = None
        """Where the last piece of thought belongs to, if nothing else came since."""
        self._unsealed: int | str | None = None
        """The last reasoning that was shown, if it came without the seal that it goes back with."""

    def _end(self) -> list[ModelEvent]:
        response = self._response
        if response is None and not self.done:
            raise self._errors.cut_off() if self._anything else self._errors.unreadable("an empty reply")
        if not self._anything and not (response and response.incomplete_details):
            raise self._errors.unreadable("an empty reply")
        if response is None or response.status != "incomplete":
            return [Done(StopReason.REFUSAL if self._refused else StopReason.END_TURN)]
        reason = (response.incomplete_details and response.incomplete_details.reason) or "no reason given"
        if reason in INCOMPLETE:
            return [Done(INCOMPLETE[reason])]
        return [Noticed(self._errors.ended_oddly(reason)), Done(StopReason.MAX_TOKENS)]

    def counted(self) -> Usage | None:
        return read_usage(self._response.usage) if self._response else None

    def _read_event(self, event: StreamEvent, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        match event.type:
            case "response.output_text.delta":
                self._say(event, events)
            case "response.function_call_arguments.delta":
                self._grow(event, events)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(event, events)
            case "response.refusal.delta":
                self._refused = True
                self._say(event, events)
            case "response.output_item.added":
                self._open(self._key(event), self._item(event.item), events)
            case "response.output_item.done":
                self._close(self._key(event), self._item(event.item), events)
            case "response.completed" | "response.incomplete" | "response.failed" | "response.done":
                self._read_response(event.response, event.type, events)
            case _ if arrived.name == WHOLE:
                self._read_whole(arrived, events)
            case "error":
                raise self._errors.complained(arrived.data)
            case _:
                pass  # a step on the way, a ping, or something newer than this code

    # --- pieces

    def _say(self, event: StreamEvent, events: list[ModelEvent]) -> None:
        if not isinstance(event.delta, str) or not event.delta:
            return
        item = self._find(event)
        if item is not self._speaking:
            self._begin_text(item, events)
        events.append(Said(event.delta))

    def _begin_text(self, item: OpenItem, events: list[ModelEvent]) -> None:
        if self._speaking is not None:
            events.append(Said(PARAGRAPH))  # two messages without anything between them
        self._anything = item.shown = True
        self._speaking, self._paragraph = item, None

    def _think(self, event: StreamEvent, events: list[ModelEvent]) -> None:
        if not isinstance(event.delta, str) or not event.delta:
            return
        self._find(event).shown = self._anything = True
        self._add_thought((self._key(event), event.summary_index), event.delta, events)

    def _add_thought(self, place: tuple[int | str, int | None], text: str, events: list[ModelEvent]) -> None:
        if self._paragraph is not None and self._paragraph != place:
            text = PARAGRAPH + text
        self._paragraph, self._speaking = place, None
        events.append(Thinking(text, FIELD))

    def _grow(self, event: StreamEvent, events: list[ModelEvent]) -> None:
        item = self._find(event)
        if isinstance(event.delta, str) and event.delta and item.call is not None:
            item.pieces.append(event.delta)
            events.append(CallGrew(item.call, event.delta))

    # --- whole items

    def _open(self, key: int | str, item: Item, events: list[ModelEvent]) -> OpenItem:
        opened = self._items.setdefault(key, OpenItem())
        if item.id:
            self._items.setdefault(item.id, opened)
        if item.type == "function_call" and opened.call is None:
            if not item.name:
                raise self._errors.unreadable("a tool call without a name")
            opened.call = self._calls
            self._calls += 1
            self._anything = True
            self._speaking = self._paragraph = None
            events.append(CallBegan(opened.call, item.name))
        return opened

    def _close(self, key: int | str, item: Item, events: list[ModelEvent]) -> None:
        """What of the item was not shown in pieces, and what the provider wants back with it."""
        opened = self._open(key, item, events)
        match item.type:
            case "function_call":
                self._close_call(opened, item, events)
            case "message":
                self._close_message(opened, item, events)
            case "reasoning":
                self._close_reasoning(key, opened, item, events)
            case _:
                pass
        opened.shown = True

    def _close_call(self, opened: OpenItem, item: Item, events: list[ModelEvent]) -> None:
        """The whole arguments count: of the pieces some may have been lost."""
        arguments = item.arguments or ""
        if not isinstance(arguments, str):
            arguments = msgspec.json.encode(arguments).decode()
        arrived = "".join(opened.pieces)
        if opened.call is None or opened.shown or not arguments or arguments == arrived:
            return
        if arguments.startswith(arrived):
            events.append(CallGrew(opened.call, arguments[len(arrived) :]))
        else:
            events.append(CallGrew(opened.call, arguments, anew=True))

    def _close_message(self, opened: OpenItem, item: Item, events: list[ModelEvent]) -> None:
        for part in item.content or []:
            self._refused = self._refused or part.type == "refusal"
            if (text := part.text or part.refusal) and not opened.shown:
                self._begin_text(opened, events)
                opened.shown = False  # there may be further parts
                events.append(Said(text))
        if item.phase and self._speaking is opened:
            events.append(TextData(msgspec.json.encode({"phase": item.phase}).decode()))

    def _close_reasoning(self, key: int | str, opened: OpenItem, item: Item, events: list[ModelEvent]) -> None:
        parts = item.summary or item.content or []
        for number, part in enumerate(() if opened.shown else parts):
            if part.text:
                self._anything = True
                self._add_thought((key, number), part.text, events)
        if item.encrypted_content:
            self._seal(item, item.encrypted_content, events)
        elif parts:
            self._unsealed = key

    def _seal(self, item: Item, encrypted: str, events: list[ModelEvent]) -> None:
        """All of the item that goes back: with nothing stored, its id means nothing."""
        summary = [{"type": part.type, "text": part.text or ""} for part in item.summary or []]
        kept = {"type": "reasoning", "summary": summary, "encrypted_content": encrypted}
        events.append(ThoughtData(msgspec.json.encode(kept).decode()))
        self._anything = True
        self._paragraph = self._speaking = self._unsealed = None

    # --- the end

    def _read_response(self, written: msgspec.Raw, kind: str, events: list[ModelEvent]) -> None:
        try:
            response = msgspec.json.decode(written, type=Response)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            response = Response()  # that it ended is known, and its bill is not worth the reply
        self._complete(response, kind, events)

    def _complete(self, response: Response, kind: str, events: list[ModelEvent]) -> None:
        self._response = response
        if kind == "response.failed" or response.status == "failed" or response.error:
            raise self._errors.complained(msgspec.json.encode({"error": response.error or "no reason given"}))
        if kind == "response.incomplete":
            response.status = "incomplete"
        if not self._items:  # nothing came in pieces
            for place, item in enumerate(response.output or []):
                self._close(place, self._item(item), events)
        elif isinstance(self._unsealed, int):  # some of Azure's deployments seal reasoning only here
            for written in (response.output or [])[self._unsealed : self._unsealed + 1]:
                item = self._item(written)
                if item.type == "reasoning" and item.encrypted_content:
                    self._seal(item, item.encrypted_content, events)
        self.done = True

    def _read_whole(self, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        """A reply at once, from a server that does not stream."""
        try:
            response = msgspec.convert(json.loads(arrived.data), Response)
        except (ValueError, RecursionError) as error:
            raise self._errors.no_reply(arrived.data) from error
        if response.output is None and not response.error:
            raise self._errors.no_reply(arrived.data)
        self._complete(response, "", events)

    # --- reading

    def _key(self, event: StreamEvent) -> int | str:
        return event.output_index if event.output_index is not None else event.item_id or ""

    def _find(self, event: StreamEvent) -> OpenItem:
        key = self._key(event)
        if (item := self._items.get(key)) is None:
            item = self._items[key] = OpenItem()
        return item

    def _item(self, written: Any) -> Item:
        try:
            return msgspec.convert(written, Item)
        except msgspec.ValidationError:
            return convert_loosely(written, Item)
