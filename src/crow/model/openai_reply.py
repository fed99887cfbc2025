"""The stream of a chat completions reply, turned into our events."""

import json
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from crow.errors import ModelError
from crow.messages import StopReason
from crow.model.arriving_text import Halves, TaggedThoughts
from crow.model.base import CallBegan, CallGrew, Done, ModelEvent, Said, Thinking, Usage
from crow.model.http import WHOLE, Http
from crow.model.sse import ServerEvent

STOP_REASONS = {
    "stop": StopReason.END_TURN,
    "tool_calls": StopReason.END_TURN,
    "function_call": StopReason.END_TURN,
    "eos": StopReason.END_TURN,  # some local servers
    "length": StopReason.MAX_TOKENS,
    "model_length": StopReason.MAX_TOKENS,  # Mistral: the window is full
    "content_filter": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
}


# --- the wire, as tolerant as its speakers are inventive: everything may be missing or null


class FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: FunctionDelta | None = None


class Choice(msgspec.Struct):
    delta: Delta | None = None
    finish_reason: str | None = None
    message: Delta | None = None
    """The whole of it at once, from a server that does not stream."""


class Chunk(msgspec.Struct):
    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None


class TokenDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek


chunk_decoder = msgspec.json.Decoder(Chunk)


@dataclass
class OpenCall:
    index: int
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])


class ReplyReader:
    """Reads one reply. `done` is set when the server has said that it is complete."""

    def __init__(self, connection: Http) -> None:
        self._http = connection
        self.done = False
        self.thought_field = ""
        self._finish_reason = ""
        self._refused = False
        self._anything = False
        self._usage: Any = None
        self._calls: list[OpenCall] = []
        self._by_index: dict[int, OpenCall] = {}
        self._halves: Halves | None = None
        self._tagged = TaggedThoughts()
        self._as_it_is = False
        """Once there is nothing left to look for in the text: from then on it goes straight through."""

    def read(self, arrived: ServerEvent) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if self.done or arrived.data == b"[DONE]":
            self.done = True
            return events
        try:
            chunk = chunk_decoder.decode(arrived.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            chunk = self._decode_torn(arrived, error)
        if chunk.error or arrived.name == b"error":
            raise self._http.complained(arrived.data)
        if chunk.usage:
            self._usage = chunk.usage
        if chunk.choices:
            # More than one choice is never asked for.
            self._read_choice(chunk.choices[0], events)
        elif arrived.name == WHOLE:
            raise self._http.no_reply(arrived.data)
        return events if self._as_it_is else self._adjusted(events)

    def finish(self) -> list[ModelEvent]:
        """The events that only the end of the stream can tell."""
        if not self._anything and not self._finish_reason:
            raise self._http.unreadable("an empty reply")
        if not self._finish_reason and not self.done:
            raise self._http.unreadable("a reply that stops in the middle")
        stop_reason = STOP_REASONS.get((self._finish_reason or "stop").lower())
        if stop_reason is None:
            raise self._http.unreadable("a reply that ended for a reason unknown to Crow", repr(self._finish_reason))
        if stop_reason is StopReason.END_TURN and not all(call.name for call in self._calls):
            raise self._http.unreadable("a tool call without a name")
        usage = self._read_usage()
        end: list[ModelEvent] = [Done(StopReason.REFUSAL if self._refused else stop_reason)]
        return self._adjusted([usage, *end] if usage else end)

    def _read_choice(self, choice: Choice, events: list[ModelEvent]) -> None:
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        delta = choice.delta or self._whole(choice)
        if delta is None:
            return
        if delta.reasoning_content:
            self.thought_field = "reasoning_content"
            events.append(Thinking(delta.reasoning_content))
        elif delta.reasoning:
            self.thought_field = "reasoning"
            events.append(Thinking(delta.reasoning))
        if delta.content:
            if isinstance(delta.content, str):
                events.append(Said(delta.content))
            else:
                events.extend(_read_parts(delta.content))
        if delta.refusal:
            self._refused = True
            events.append(Said(delta.refusal))
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._read_call(call, events)
        elif delta.function_call:  # before there were tools
            self._read_call(CallDelta(index=0, function=delta.function_call), events)
        if events:
            self._anything = True

    def _whole(self, choice: Choice) -> Delta | None:
        self.done = choice.message is not None
        return choice.message

    def _read_call(self, delta: CallDelta, events: list[ModelEvent]) -> None:
        self._anything = True
        function = delta.function or FunctionDelta()
        call = self._find_call(delta, function)
        fragment = function.arguments or ""
        if not isinstance(fragment, str):  # the whole object at once, unquoted
            fragment = msgspec.json.encode(fragment).decode()
        if fragment:
            call.pieces.append(fragment)
        if call.name:
            if fragment:
                events.append(CallGrew(call.index, fragment))
        elif function.name:
            call.name = function.name
            events.append(CallBegan(call.index, call.name))
            if call.pieces:  # they came before the name did
                events.append(CallGrew(call.index, "".join(call.pieces)))

    def _find_call(self, delta: CallDelta, function: FunctionDelta) -> OpenCall:
        """Which call a fragment belongs to. By index; servers that leave it out or always say 0 need guessing."""
        if delta.index is not None:
            call = self._by_index.get(delta.index)
            another = call is not None and delta.id and delta.id != call.id and call.id and function.name
            if call is None or another:
                call = self._by_index[delta.index] = self._open_call(delta)
            call.id = call.id or delta.id or ""
            return call
        call = self._calls[-1] if self._calls else None
        if call is None or (delta.id and delta.id != call.id):
            return self._open_call(delta)
        # The name again, after arguments that are complete: a second call of the same tool.
        if function.name and call.name and _is_json("".join(call.pieces)):
            return self._open_call(delta)
        return call

    def _open_call(self, delta: CallDelta) -> OpenCall:
        call = OpenCall(len(self._calls), delta.id or "")
        self._calls.append(call)
        return call

    def _read_usage(self) -> Usage | None:
        if self._usage is None:
            return None
        try:
            tokens = msgspec.convert(self._usage, Tokens)
        except msgspec.ValidationError:
            return None  # a reply is not worth less because its bill is unreadable
        details = tokens.prompt_tokens_details
        cached = (details.cached_tokens if details else None) or tokens.prompt_cache_hit_tokens
        return Usage(
            input_tokens=tokens.prompt_tokens or 0,
            output_tokens=tokens.completion_tokens or 0,
            cached_tokens=cached or 0,
        )

    def _adjusted(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """The events as they can be shown, with what a piece of text alone does not tell."""
        if self._halves is not None:
            events = self._halves.take(events)
        events = self._tagged.take(events)
        self._as_it_is = self._tagged.settled and self._halves is None
        return events

    def _decode_torn(self, arrived: ServerEvent, error: Exception) -> Chunk:
        """The decoder takes no half of a character, as some servers send them; the standard library's does."""
        try:
            chunk = msgspec.convert(json.loads(arrived.data), Chunk)
        except (ValueError, RecursionError):
            raise self._unreadable(arrived) from error
        self._halves = self._halves or Halves()
        self._as_it_is = False
        return chunk

    def _unreadable(self, arrived: ServerEvent) -> ModelError:
        if arrived.name == b"error":
            return self._http.complained(arrived.data)
        if arrived.name == WHOLE:
            return self._http.no_reply(arrived.data)
        return self._http.unreadable("something that is no part of a reply", arrived.data)


def _read_parts(parts: list[Any]) -> list[ModelEvent]:
    """Mistral's reasoning models send a list of typed parts where others send text."""
    events: list[ModelEvent] = []
    for part in parts:
        match part:
            case {"type": "text", "text": str(text)} if text:
                events.append(Said(text))
            case {"type": "thinking", "thinking": [*thoughts]}:
                texts = [thought.get("text") for thought in cast("list[dict[str, Any]]", thoughts)]
                events.extend(Thinking(text) for text in texts if isinstance(text, str) and text)
            case _:
                pass
    return events


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
