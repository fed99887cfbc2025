"""Reads the stream of a chat completions reply into our events: text, thoughts, calls, usage, stop reasons."""

import re
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from crow.messages import StopReason
from crow.model.base import (
    CallBegan,
    CallData,
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
from crow.model.wires.encoding import to_json
from crow.model.wires.stream_parsing import ReplyReader, TaggedThoughts, read_usage, text_of

# --- the fields of a chunk: each may be missing


class FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    extra_content: msgspec.Raw = msgspec.Raw()


class Delta(msgspec.Struct):
    content: str | list[Any] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    tool_calls: list[CallDelta] | None = None
    function_call: FunctionDelta | None = None
    extra_content: msgspec.Raw = msgspec.Raw()


class Choice(msgspec.Struct):
    index: int | None = None
    delta: Delta | None = None
    finish_reason: str | None = None
    message: Delta | None = None
    """The whole of it at once, from a server that does not stream."""
    usage: Any = None  # Moonshot


class Chunk(msgspec.Struct):
    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None


chunk_decoder = msgspec.json.Decoder(Chunk)


STOP_REASONS = {
    "stop": StopReason.END_TURN,
    "tool_calls": StopReason.END_TURN,
    "function_call": StopReason.END_TURN,
    "eos": StopReason.END_TURN,  # some local servers
    "end_turn": StopReason.END_TURN,  # gateways that pass on another API's
    "tool_use": StopReason.END_TURN,
    "stop_sequence": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_length": StopReason.MAX_TOKENS,  # Mistral: the window is full
    "model_context_window_exceeded": StopReason.MAX_TOKENS,  # Z.AI
    "content_filter": StopReason.REFUSAL,
    "refusal": StopReason.REFUSAL,
    "sensitive": StopReason.REFUSAL,  # Z.AI
    "safety": StopReason.REFUSAL,  # Google's own names
    "recitation": StopReason.REFUSAL,
    "prohibited_content": StopReason.REFUSAL,
}

# The vendor failed in the middle, or its model wrote a call that was no call: another attempt may succeed.
FAILED = re.compile(r"insufficient_system_resource|network_error|error|.*malformed_function_call", re.IGNORECASE)


@dataclass
class OpenCall:
    index: int
    id: str
    name: str = ""
    pieces: list[str] = field(default_factory=list[str])
    extra_content: msgspec.Raw = field(default_factory=msgspec.Raw)


class ChatReader(ReplyReader[Chunk]):
    def __init__(self, errors: ReplyErrors) -> None:
        super().__init__(errors, chunk_decoder)
        self._finish_reason = ""
        self._refused = False
        self._anything = False
        self._spoke = False
        self._usage: Any = None
        self._calls: list[OpenCall] = []
        self._by_index: dict[int, OpenCall] = {}
        self._details = ReasoningDetails()
        self._extra_content = msgspec.Raw()
        self._tagged = TaggedThoughts()
        self._as_it_is = False

    def _read_event(self, event: Chunk, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        if event.error and _says_something(event.error):
            raise self._errors.complained(arrived.data)
        if event.usage:
            self._usage = event.usage
        if event.choices:
            choice = event.choices[0]
            if choice.index:  # more than one is never asked for
                choice = next((other for other in event.choices if not other.index), Choice())
            self._read_choice(choice, arrived.name, events)
        elif arrived.name == WHOLE:
            raise self._errors.no_reply(arrived.data)

    def counted(self) -> Usage | None:
        return read_usage(self._usage)

    def _end(self) -> list[ModelEvent]:
        if not self._anything and not self._finish_reason:
            raise self._errors.unreadable("an empty reply")
        if not self._finish_reason and not self.done:
            raise self._errors.cut_off()
        reason = self._finish_reason or "stop"
        stop_reason = STOP_REASONS.get(reason.lower())
        if FAILED.fullmatch(reason):
            raise self._errors.cut_off(f"a reply that the server could not finish: {reason!r}")
        if stop_reason is None and not self._anything:
            raise self._errors.unreadable("an empty reply that ended for an unknown reason", repr(reason))
        if stop_reason in (None, StopReason.END_TURN) and not all(call.name for call in self._calls):
            raise self._errors.unreadable("a tool call without a name")
        if self._refused:
            return [Done(StopReason.REFUSAL)]
        if stop_reason is None:
            return [Noticed(self._errors.ended_oddly(reason)), Done(StopReason.END_TURN)]
        return [Done(stop_reason)]

    def _read_choice(self, choice: Choice, name: bytes, events: list[ModelEvent]) -> None:
        """Once for each token: what is rare is looked for together."""
        delta = choice.delta
        if choice.finish_reason or delta is None or choice.message is not None:
            delta = self._read_end(choice, name)
            if delta is None:
                return
        if delta.reasoning_content:
            events.append(Thinking(delta.reasoning_content, "reasoning_content"))
        elif delta.reasoning:
            events.append(Thinking(delta.reasoning, "reasoning"))
        content = delta.content
        if content:
            if isinstance(content, str):
                self._spoke = True
                events.append(Said(content))
            else:
                events.extend(_read_parts(content))
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._read_call(call, events)
        if delta.reasoning_details or delta.extra_content or delta.refusal or delta.function_call:
            self._read_rarities(delta, events)
        if events:
            self._anything = True

    def _read_end(self, choice: Choice, name: bytes) -> Delta | None:
        """Notes how the reply ended, if it did. The delta, or the whole reply where it comes at once."""
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        if choice.usage:
            self._usage = choice.usage
        if choice.message is not None and (choice.delta is None or name == WHOLE):
            # Perplexity sends an empty delta beside a whole message, and in a stream the text so far beside each delta.
            self.done = True
            return choice.message
        return choice.delta

    def _read_rarities(self, delta: Delta, events: list[ModelEvent]) -> None:
        if delta.reasoning_details:
            events[:0] = self._read_details(delta)
        if delta.extra_content:
            self._extra_content = delta.extra_content
        if delta.refusal:
            self._refused = True
            events.append(Said(delta.refusal))
        function = delta.function_call
        if function and not delta.tool_calls and (function.name or function.arguments):
            self._read_call(CallDelta(index=0, function=function), events)  # before there were tools

    def _read_details(self, delta: Delta) -> list[Thinking]:
        """A gateway's list of thoughts, with seals that want to go back; their texts, unless they came beside it."""
        thoughts: list[Thinking] = []
        for entry in delta.reasoning_details or ():
            if isinstance(entry, dict):
                details = cast("dict[str, Any]", entry)
                text = details.get("text") or details.get("summary")
                if isinstance(text, str) and text and not (delta.reasoning or delta.reasoning_content):
                    thoughts.append(Thinking(text, "reasoning_details"))
                self._anything = True
                self._details.add(details)
        return thoughts

    def _attached(self) -> list[ModelEvent]:
        attached: list[ModelEvent] = []
        if details := self._details.joined():
            attached.append(ThoughtData(_json({"reasoning_details": details})))
        if self._spoke and _is_signature(self._extra_content):
            attached.append(TextData(_json({"extra_content": self._extra_content})))
        named = {entry.get("id") for entry in details}
        for call in self._calls:
            fields: dict[str, Any] = {"extra_content": call.extra_content} if call.extra_content else {}
            if call.id and call.id in named:
                fields["id"] = call.id
            if fields and call.name:
                attached.append(CallData(call.index, _json(fields)))
        return attached

    def _read_call(self, delta: CallDelta, events: list[ModelEvent]) -> None:
        if delta.index is None and not delta.id and delta.function is None:
            return  # an empty object is no call
        self._anything = True
        function = delta.function or FunctionDelta()
        call = self._find_call(delta, function)
        if delta.extra_content and bytes(delta.extra_content) != b"null":
            call.extra_content = delta.extra_content
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

    def _adjusted(self, events: list[ModelEvent]) -> list[ModelEvent]:
        events = self._tagged.take(super()._adjusted(events))
        self._as_it_is = self._tagged.settled and self._joiner is None
        return events


def _says_something(error: Any) -> bool:
    """False for an error whose every field is empty, as some servers send it with a good reply."""
    return any(cast("dict[str, Any]", error).values()) if isinstance(error, dict) else True


def _is_signature(extra: msgspec.Raw) -> bool:
    """Whether it is Gemini's signature of a text. Of thoughts it is none: they are not sent back as text."""
    match msgspec.json.decode(extra) if extra else None:
        case {"google": {"thought_signature": str(), "thought": True}}:
            return False
        case {"google": {"thought_signature": str()}}:
            return True
        case _:
            return False


def _json(fields: dict[str, Any]) -> str:
    return to_json(fields).decode()


def _read_parts(parts: list[Any]) -> list[ModelEvent]:
    """Mistral's reasoning models send a list of typed parts where others send text."""
    events: list[ModelEvent] = []
    for part in parts:
        match part:
            case {"type": "thinking", "thinking": str(text)} if text:
                events.append(Thinking(text, "content"))
            case {"type": "thinking", "thinking": [*thoughts]}:
                texts = [text_of(thought) for thought in thoughts]
                events.extend(Thinking(text, "content") for text in texts if text)
            case {"type": str(kind)} if kind != "text":
                pass
            case _:
                if text := text_of(part):
                    events.append(Said(text))
    return events


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


# --- a list that comes in pieces


class ReasoningDetails:
    """The `reasoning_details` of a reply. Pieces of one entry have its index and its type: their texts are one text,
    everything else comes in one piece."""

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self._texts: dict[int, dict[str, list[str]]] = {}
        """By the entry's place in the list, and by the name of the field."""
        self._places: dict[tuple[Any, Any], int] = {}

    def add(self, piece: dict[str, Any]) -> None:
        key = (piece.get("index"), piece.get("type"))
        known = self._places.get(key) if key[0] is not None else None
        if known is None:
            known = len(self._entries)
            self._entries.append({})
            self._texts[known] = {}
            if isinstance(key[0], int) and isinstance(key[1], str):
                self._places[key] = known
        entry, texts = self._entries[known], self._texts[known]
        for name, value in piece.items():
            if name in ("text", "summary") and isinstance(value, str):
                entry.setdefault(name, "")  # keeps its place
                texts.setdefault(name, []).append(value)
            elif value is not None or name not in entry:
                entry[name] = value

    def joined(self) -> list[dict[str, Any]]:
        return [
            entry | {name: "".join(pieces) for name, pieces in self._texts[place].items()}
            for place, entry in enumerate(self._entries)
        ]
