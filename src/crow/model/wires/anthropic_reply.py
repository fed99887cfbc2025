"""Reads the stream of a messages reply (Anthropic) into our events: text, thoughts, calls, usage, stop reasons."""

import json
from typing import Any

import msgspec

from crow.messages import StopReason
from crow.model.base import (
    MOST_TOKENS,
    CallBegan,
    CallGrew,
    Done,
    ModelEvent,
    Noticed,
    Said,
    Thinking,
    ThinkingSealed,
    Usage,
)
from crow.model.provider_errors import ReplyErrors
from crow.model.sse import WHOLE, ServerEvent
from crow.model.wires.stream_parsing import ReplyReader

STOP_REASONS = {
    "end_turn": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "tool_use": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,  # cut short like by max_tokens, by the window itself
    "refusal": StopReason.REFUSAL,
    "pause_turn": StopReason.END_TURN,  # see PAUSED
}
PAUSED = "pause_turn"
"""Of a reply in which a tool runs at the provider, as a gateway may offer it: the reply is to be sent back."""


# --- the wire; one struct for all events, since unknown types have to pass


class OutputDetails(msgspec.Struct):
    thinking_tokens: int | None = None


class TokenCounts(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


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
    stop_details: Any = None


class StreamEvent(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: Start | None = None
    content_block: Block | None = None
    delta: Delta | None = None
    usage: Any = None


class Whole(msgspec.Struct):
    """A message at once, from a server that does not stream."""

    content: list[Block]
    stop_reason: str | None = None
    stop_details: Any = None
    usage: Any = None


event_decoder = msgspec.json.Decoder(StreamEvent)


class MessagesReader(ReplyReader[StreamEvent]):
    end_mark = b""  # this wire has none: `message_stop` ends a reply

    def __init__(self, errors: ReplyErrors) -> None:
        super().__init__(errors, event_decoder)
        self._stop_reason = ""
        self._stop_details: Any = None
        self._anything = False
        self._tokens: dict[str, int] = {}
        self._calls: dict[int, int] = {}
        """Our index of a call by the index of its block."""
        self._signatures: dict[int, str] = {}
        """The signatures of the thoughts that are still open, by block."""

    def _end(self) -> list[ModelEvent]:
        if not self._stop_reason:
            raise self._errors.cut_off() if self._anything else self._errors.unreadable("an empty reply")
        stop_reason = STOP_REASONS.get(self._stop_reason)
        if stop_reason is None and not self._anything:
            raise self._errors.unreadable("an empty reply that ended for an unknown reason", repr(self._stop_reason))
        notice = self._about_the_end(stop_reason)
        done = Done(stop_reason or StopReason.END_TURN, paused=self._stop_reason == PAUSED)
        return [Noticed(notice), done] if notice else [done]

    def counted(self) -> Usage | None:
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
            reasoning_tokens=self._tokens.get("thinking_tokens", 0),
        )

    def _about_the_end(self, stop_reason: StopReason | None) -> str:
        if stop_reason is None:
            return self._errors.ended_oddly(self._stop_reason)
        match self._stop_details:
            case {"explanation": str(why)} if stop_reason is StopReason.REFUSAL and why.strip():
                return f"{self._errors.endpoint.provider} gave a reason for refusing: {self._errors.quoted(why)}"
            case _:
                return ""

    def _read_event(self, event: StreamEvent, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        match event:
            case StreamEvent(type="content_block_delta", delta=Delta() as delta):
                self._read_delta(event.index, delta, events)
            case StreamEvent(type="content_block_start", content_block=Block() as block):
                self._open_block(event.index, block, events)
            case StreamEvent(type="content_block_stop"):
                self._close_block(event.index, events)
            case StreamEvent(type="message_start", message=Start() as start):
                self._count(start.usage)
            case StreamEvent(type="message_delta"):
                self._count(event.usage)
                if event.delta and event.delta.stop_reason:
                    self._stop_reason, self._stop_details = event.delta.stop_reason, event.delta.stop_details
            case StreamEvent(type="message_stop"):
                self.done = True
            case StreamEvent(type="error"):
                raise self._errors.complained(arrived.data)
            case _ if event.type == "message" or arrived.name == WHOLE:
                self._read_whole(arrived, events)
            case _:
                pass  # a ping, or something newer than this code

    def _read_whole(self, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        try:
            whole = msgspec.convert(json.loads(arrived.data), Whole)
        except (ValueError, RecursionError) as error:
            raise self._errors.no_reply(arrived.data) from error
        self._count(whole.usage)
        for index, block in enumerate(whole.content):
            self._open_block(index, block, events)
            self._close_block(index, events)
        self._stop_reason, self._stop_details = whole.stop_reason or "end_turn", whole.stop_details
        self.done = True

    def _open_block(self, index: int, block: Block, events: list[ModelEvent]) -> None:
        self._anything = True
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
                    raise self._errors.unreadable("a tool call without a name")
                call = self._calls[index] = len(self._calls)
                events.append(CallBegan(call, block.name))
                if block.input:  # the whole of it at once: no fragments will follow
                    events.append(CallGrew(call, msgspec.json.encode(block.input).decode()))
            case _:
                pass

    def _close_block(self, index: int, events: list[ModelEvent]) -> None:
        if signature := self._signatures.pop(index, ""):
            events.append(ThinkingSealed(signature))

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
            tokens = msgspec.convert(usage or {}, TokenCounts)
        except msgspec.ValidationError:
            return  # a reply is not worth less because its bill is unreadable
        details = tokens.output_tokens_details
        said = {**msgspec.structs.asdict(tokens), "thinking_tokens": details.thinking_tokens if details else None}
        self._tokens |= {
            name: count for name, count in said.items() if isinstance(count, int) and 0 <= count <= MOST_TOKENS
        }
