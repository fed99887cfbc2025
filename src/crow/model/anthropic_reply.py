"""The stream of a messages reply, turned into our events."""

from typing import Any

import msgspec

from crow.messages import StopReason
from crow.model import complaint
from crow.model.base import CallBegan, CallGrew, Done, ModelEvent, Said, Thinking, ThinkingSealed, Usage
from crow.model.http import Http
from crow.model.sse import ServerEvent

STOP_REASONS = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,  # cut short like by max_tokens, by the window itself
    "refusal": StopReason.REFUSAL,
    # `pause_turn` belongs to tools that run at the provider, which Crow does not use: it counts as unknown.
}


# --- the wire; one struct for all events, since unknown types have to pass


class Tokens(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Start(msgspec.Struct):
    usage: Any = None


class Block(msgspec.Struct):
    type: str = ""
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: dict[str, Any] | None = None


class Delta(msgspec.Struct):
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class StreamEvent(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: Start | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: Any = None


event_decoder = msgspec.json.Decoder(StreamEvent)


class ReplyReader:
    """Reads one reply. `done` is set when the server has said that it is complete."""

    def __init__(self, connection: Http) -> None:
        self._http = connection
        self.done = False
        self._stop_reason = ""
        self._anything = False
        self._tokens: dict[str, int] = {}
        self._calls: dict[int, int] = {}
        """Our index of a call by the index of its block."""
        self._signatures: dict[int, str] = {}
        """The signatures of the thoughts that are still open, by block."""

    def read(self, arrived: ServerEvent) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if self.done:
            return events
        try:
            event = event_decoder.decode(arrived.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            start = arrived.data[:80].decode("utf-8", "replace")
            raise self._http.unreadable(f"something that is no part of a reply: {start}") from error
        if event.type == "error" or arrived.name == b"error":
            raise self._http.complained(complaint.read(arrived.data))
        self._read_event(event, events)
        return events

    def finish(self) -> list[ModelEvent]:
        """The events that only the end of the stream can tell."""
        if not self._anything and not self._stop_reason:
            raise self._http.unreadable("an empty reply")
        if not self._stop_reason:
            raise self._http.unreadable("a reply that stops in the middle")
        stop_reason = STOP_REASONS.get(self._stop_reason)
        if stop_reason is None:
            raise self._http.unreadable(f"a reply that ended for a reason unknown to Crow ({self._stop_reason!r})")
        usage = self._usage()
        return [*([usage] if usage else []), Done(stop_reason)]

    def _read_event(self, event: StreamEvent, events: list[ModelEvent]) -> None:
        match event:
            case StreamEvent(type="content_block_delta", delta=Delta() as delta):
                self._read_delta(event.index, delta, events)
            case StreamEvent(type="content_block_start", content_block=Block() as block):
                self._anything = True
                self._open_block(event.index, block, events)
            case StreamEvent(type="content_block_stop"):
                if signature := self._signatures.pop(event.index, ""):
                    events.append(ThinkingSealed(signature))
            case StreamEvent(type="message_start", message=Start() as start):
                self._count(start.usage)
            case StreamEvent(type="message_delta"):
                self._count(event.usage)
                if event.delta and event.delta.stop_reason:
                    self._stop_reason = event.delta.stop_reason
            case StreamEvent(type="message_stop"):
                self.done = True
            case _:
                pass  # a ping, or something newer than this code

    def _open_block(self, index: int, block: Block, events: list[ModelEvent]) -> None:
        match block.type:
            case "text" if block.text:
                events.append(Said(block.text))
            case "thinking":
                if block.thinking:
                    events.append(Thinking(block.thinking))
                self._signatures[index] = block.signature or ""
            case "redacted_thinking" if block.data:
                events.append(ThinkingSealed(block.data, redacted=True))
            case "tool_use":
                if not block.name:
                    raise self._http.unreadable("a tool call without a name")
                call = self._calls[index] = len(self._calls)
                events.append(CallBegan(call, block.name))
                if block.input:  # the whole of it at once: no fragments will follow
                    events.append(CallGrew(call, msgspec.json.encode(block.input).decode()))
            case _:
                pass

    def _read_delta(self, index: int, delta: Delta, events: list[ModelEvent]) -> None:
        if delta.text:
            events.append(Said(delta.text))
        elif delta.partial_json:
            if index in self._calls:
                events.append(CallGrew(self._calls[index], delta.partial_json))
        elif delta.thinking:
            events.append(Thinking(delta.thinking))
        elif delta.signature:
            self._signatures[index] = self._signatures.get(index, "") + delta.signature

    def _count(self, usage: Any) -> None:
        """Counts come at the start and, cumulative, at the end: the later ones replace the earlier."""
        try:
            said = msgspec.structs.asdict(msgspec.convert(usage or {}, Tokens))
        except msgspec.ValidationError:
            return  # a reply is not worth less because its bill is unreadable
        self._tokens |= {name: count for name, count in said.items() if count is not None}

    def _usage(self) -> Usage | None:
        if not self._tokens:
            return None
        cached = self._tokens.get("cache_read_input_tokens", 0)
        written = self._tokens.get("cache_creation_input_tokens", 0)
        return Usage(
            # The API's own input_tokens are only those that no cache had to do with.
            input_tokens=self._tokens.get("input_tokens", 0) + cached + written,
            output_tokens=self._tokens.get("output_tokens", 0),
            cached_tokens=cached,
            cache_written_tokens=written,
        )
