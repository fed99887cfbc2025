"""What the stream readers share: fields of any type, torn characters, thoughts between tags, counts of tokens.

Thoughts between tags such as `<think>` are told from the answer. Every vendor of OpenAI's two APIs reports tokens and
cost a little differently.
"""

import json
import math
from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec.structs import replace

from crow.model.base import MOST_TOKENS, CallBegan, CallGrew, ModelEvent, Said, Thinking, Usage
from crow.model.provider_errors import ReplyErrors
from crow.model.sse import ServerEvent
from crow.visible import join_surrogates

EventT = TypeVar("EventT", bound=msgspec.Struct)


class ReplyReader(ABC, Generic[EventT]):
    """Reads one reply. `done` is set when the server has said that it is complete."""

    end_mark = b"[DONE]"
    """The data of an event that ends the stream and is no JSON."""

    def __init__(self, errors: ReplyErrors, decoder: msgspec.json.Decoder[EventT]) -> None:
        self._errors = errors
        self._decoder = decoder
        self._decode = decoder.decode
        self.done = False
        self.finished = False
        """The reply arrived whole."""
        self._joiner: SurrogateJoiner | None = None
        self._as_it_is = True
        """Nothing has to be looked for in the text: it goes straight through."""

    def read(self, arrived: ServerEvent) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        if self.done or arrived.data == self.end_mark:
            self.done = True
            return events
        try:
            event = self._decode(arrived.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            event = self._decode_torn(arrived, error)
        if arrived.name == b"error":
            raise self._errors.complained(arrived.data)
        self._read_event(event, arrived, events)
        return events if self._as_it_is else self._adjusted(events)

    def finish(self) -> list[ModelEvent]:
        """The events that only the end of the stream can tell; a ModelError if the reply is not whole."""
        end = self._end()
        self.finished = True
        usage = self.counted()
        return self._adjusted([*self._attached(), *([usage] if usage else []), *end])

    @abstractmethod
    def counted(self) -> Usage | None:
        """What the server has told so far of the tokens; asked at the end, also of a reply that breaks off."""

    @abstractmethod
    def _read_event(self, event: EventT, arrived: ServerEvent, events: list[ModelEvent]) -> None:
        """Adds what the event means to `events`."""

    @abstractmethod
    def _end(self) -> list[ModelEvent]:
        """The last events, without the usage; a ModelError if the reply is not whole."""

    def _attached(self) -> list[ModelEvent]:
        """What the vendor wants back with parts of this reply, where only its end tells."""
        return []

    def _adjusted(self, events: list[ModelEvent]) -> list[ModelEvent]:
        """The events as they can be shown, with what a piece of text alone does not tell."""
        return events if self._joiner is None else self._joiner.take(events)

    def _decode_torn(self, arrived: ServerEvent, error: Exception) -> EventT:
        """The decoder takes no half of a character and no value of another type, as some servers send them."""
        try:
            event = convert_loosely(json.loads(arrived.data), self._decoder.type)
        except (ValueError, RecursionError):
            raise self._errors.no_event(arrived) from error
        if not isinstance(error, msgspec.ValidationError):
            self._joiner = self._joiner or SurrogateJoiner()
            self._as_it_is = False
        return event


# --- text in pieces: both classes take the events of a reply as they come, and give back what can be shown by now


class SurrogateJoiner:
    """Joins the halves of characters that were torn apart, as escaped surrogates in two deltas.

    A piece that ends with the first half waits for the next one of its kind; a half that stays alone becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._spoken: Said | Thinking | None = None
        """The half that ended the last piece of text or thought."""
        self._calls: dict[int, str] = {}

    def take(self, events: list[ModelEvent]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        for event in events:
            match event:
                case Said() | Thinking():
                    self._speak(event, out)
                case CallGrew():
                    before = self._calls.pop(event.index, "")
                    text, half = _split(event.fragment if event.anew else before + event.fragment)
                    if half:
                        self._calls[event.index] = half
                    if text:
                        out.append(CallGrew(event.index, text, event.anew))
                case CallBegan():
                    self._end_text(out)
                    out.append(CallBegan(event.index, join_surrogates(event.name)))
                case _:
                    self._end_text(out)
                    out.append(event)
        return out

    def _speak(self, event: Said | Thinking, out: list[ModelEvent]) -> None:
        text = event.text
        if self._spoken is not None and type(self._spoken) is type(event):
            text = self._spoken.text + text
            self._spoken = None
        else:
            self._end_text(out)
        text, half = _split(text)
        if text:
            out.append(replace(event, text=text))
        if half:
            self._spoken = replace(event, text=half)

    def _end_text(self, out: list[ModelEvent]) -> None:
        if self._spoken is not None:
            out.append(replace(self._spoken, text=join_surrogates(self._spoken.text)))
            self._spoken = None


def _split(text: str) -> tuple[str, str]:
    """The text, mended, and the first half of a character that it ends with, if it does."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return join_surrogates(text.removesuffix(half) if half else text), half


THOUGHT_TAGS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning", "seed:think")},
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
}
"""What models begin their thoughts with, and what ends them."""


class TaggedThoughts:
    """Local models write their thoughts into the text, between tags; only at the very beginning are these believed.

    `settled` is set once nothing is left to look for: from then on every event would pass as it is.
    """

    def __init__(self) -> None:
        self.settled = False
        self._tag = ""
        """The one that the thought began with."""
        self._inside = False
        self._blank = True
        """Nothing but space so far, which the tags and the text behind them are set apart with."""
        self._closed = False
        self._held = ""

    def take(self, events: list[ModelEvent]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        for event in events:
            if self.settled:
                out.append(event)
            elif isinstance(event, Said):
                self._read(event.text, out)
            else:
                self._settle(out)
                out.append(event)
        return out

    def _read(self, text: str, out: list[ModelEvent]) -> None:
        self._held += text
        if not self._inside and not self._closed:
            start = self._held.lstrip()
            self._tag = next((tag for tag in THOUGHT_TAGS if start.startswith(tag)), "")
            if self._tag:
                self._inside, self._held = True, start.removeprefix(self._tag)
            elif not any(tag.startswith(start) for tag in THOUGHT_TAGS):
                self._settle(out)
                return
            else:
                return
        if self._inside:
            self._read_thought(out)
        if self._closed:
            self._held = self._held.lstrip()
            if self._held:
                self._settle(out)

    def _read_thought(self, out: list[ModelEvent]) -> None:
        if self._blank:
            self._held = self._held.lstrip()
        thought, tag, rest = self._held.partition(THOUGHT_TAGS[self._tag])
        if tag:
            self._inside, self._closed, self._held = False, True, rest
        else:
            kept = _possible_start(thought, THOUGHT_TAGS[self._tag])
            thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
        if thought:
            self._blank = False
            out.append(Thinking(thought, self._tag))

    def _settle(self, out: list[ModelEvent]) -> None:
        """What was held back is shown as what it turned out to be."""
        if self._held and not (self._closed and self._held.isspace()):
            out.append(Thinking(self._held, self._tag) if self._inside else Said(self._held))
        self._held = ""
        self.settled = True


def _possible_start(text: str, closing: str) -> int:
    """How many characters at the end of the text may be the beginning of the closing tag."""
    return next((size for size in range(len(closing) - 1, 0, -1) if text.endswith(closing[:size])), 0)


# --- events whose fields have other types than they should: what can be used of them is

StructT = TypeVar("StructT", bound=msgspec.Struct)


def convert_loosely(value: Any, kind: type[StructT]) -> StructT:
    """The struct with those of its fields that can be read. What is no object has none, and is an empty struct."""
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind) if isinstance(value, dict) else ():
        written = cast("dict[str, Any]", value).get(field.encode_name)
        if written is not None and (read := _read(written, field.type)) is not None:
            found[field.name] = read
    return kind(**found)


def _read(written: Any, kind: Any) -> Any:
    """The value as the type of its field; None if it cannot be."""
    if kind is msgspec.Raw:
        return msgspec.Raw(json.dumps(written).encode())
    for strict in (True, False):  # a number may be written as text
        try:
            return msgspec.convert(written, kind, strict=strict)
        except msgspec.ValidationError:
            continue
    for one in get_args(kind) or (kind,):
        if one is str:
            return text_of(written)
        if get_origin(one) is list:
            several = cast("list[Any]", written if isinstance(written, list) else [written])
            (inner,) = get_args(one)
            return (
                [convert_loosely(item, inner) for item in several if isinstance(item, dict)]
                if _is_struct(inner)
                else several
            )
        if _is_struct(one) and isinstance(written, dict):
            return convert_loosely(cast("Any", written), one)
    return None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def text_of(value: Any) -> str | None:
    """The text that something stands for; None if it is none."""
    match value:
        case str():
            return value
        case bool() | None:
            return None
        case int() | float():
            return str(value)
        case {"text": str(text)} | {"content": str(text)}:
            return text
        case [*several]:
            return "".join(filter(None, map(text_of, several))) or None
        case _:
            return None


# --- token counts and cost, in the words of OpenAI's two APIs

DOLLARS = "USD"
TICKS_PER_DOLLAR = 1e10
"""xAI's unit."""


def read_usage(value: Any) -> Usage | None:
    """None if there are no counts in it: a reply is not worth less because its bill is unreadable."""
    usage = _object(value)
    # Chat completions say prompt and completion where Responses say input and output.
    reading, writing = (
        ("prompt", "completion") if "prompt_tokens" in usage or "completion_tokens" in usage else ("input", "output")
    )
    prompt, completion = _count(usage.get(f"{reading}_tokens")), _count(usage.get(f"{writing}_tokens"))
    if prompt is None and completion is None:
        return None
    read, written = _object(usage.get(f"{reading}_tokens_details")), _object(usage.get(f"{writing}_tokens_details"))
    inputs, outputs = prompt or 0, completion or 0
    reasoning = _first_count(written.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if not (read.get("audio_tokens") or usage.get("prompt_audio_seconds")):  # which Mistral counts in the total alone
        # xAI and Google count a model's thoughts in the total alone.
        thoughts = (_count(usage.get("total_tokens")) or 0) - inputs - outputs
        if thoughts > 0:
            outputs, reasoning = outputs + thoughts, reasoning or thoughts
    cost = _cost(usage)
    return Usage(
        input_tokens=inputs,
        output_tokens=outputs,
        cached_tokens=_first_count(
            read.get("cached_tokens"),
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            usage.get("cached_tokens"),  # Moonshot, Together
            usage.get("num_cached_tokens"),  # Mistral
        ),
        cache_written_tokens=_first_count(read.get("cache_write_tokens"), usage.get("cache_creation_input_tokens")),
        reasoning_tokens=reasoning,
        cost=cost,
        currency=DOLLARS if cost is not None else "",
    )


def _cost(usage: dict[str, Any]) -> float | None:
    """In dollars, where the vendor says it."""
    match usage:
        case {"cost": {"total_cost": told}}:  # Perplexity
            return _money(told)
        case {"cost": told, "is_byok": True}:  # the gateway's share: the vendor behind it sends a bill of its own
            elsewhere = _money(_object(usage.get("cost_details")).get("upstream_inference_cost"))
            return None if (share := _money(told)) is None else share + (elsewhere or 0)
        case {"cost": told}:
            return _money(told)
        case {"cost_in_usd_ticks": ticks}:
            return None if (told := _money(ticks)) is None else told / TICKS_PER_DOLLAR
        case _:
            return None


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _first_count(*values: Any) -> int:
    return next((count for value in values if (count := _count(value))), 0)


def _count(value: Any) -> int | None:
    number = _money(value)
    return None if number is None or number > MOST_TOKENS else int(number)


def _money(value: Any) -> float | None:
    """A number, be it written as text; None if it is none, or below nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
