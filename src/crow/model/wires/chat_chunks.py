"""The fields of one chunk of a chat completions stream, read tolerantly: each may be missing or of another type."""

from typing import Any, cast

import msgspec


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


# --- chunks with values of other types than they should have


def read_loosely(value: Any) -> Chunk:
    """A chunk that the decoder would not take, with what can be made of it: nothing if it is no object at all."""
    if not isinstance(value, dict):
        return Chunk()
    fields = cast("dict[str, Any]", value)
    choices = [_choice(choice) for choice in _objects(fields.get("choices"))]
    return Chunk(choices, fields.get("usage"), fields.get("error"))


def _choice(fields: dict[str, Any]) -> Choice:
    delta, message = fields.get("delta"), fields.get("message")
    return Choice(
        index=_number(fields.get("index")),
        delta=_delta(cast("dict[str, Any]", delta)) if isinstance(delta, dict) else None,
        finish_reason=text_of(fields.get("finish_reason")),
        message=_delta(cast("dict[str, Any]", message)) if isinstance(message, dict) else None,
        usage=fields.get("usage"),
    )


def _delta(fields: dict[str, Any]) -> Delta:
    content, details = fields.get("content"), fields.get("reasoning_details")
    return Delta(
        content=cast("list[Any]", content) if isinstance(content, list) else text_of(content),
        reasoning_content=text_of(fields.get("reasoning_content")),
        reasoning=text_of(fields.get("reasoning")),
        reasoning_details=_objects(details),
        refusal=text_of(fields.get("refusal")),
        tool_calls=[_call(call) for call in _objects(fields.get("tool_calls"))],
        function_call=_function(fields.get("function_call")),
        extra_content=_raw(fields.get("extra_content")),
    )


def _call(fields: dict[str, Any]) -> CallDelta:
    return CallDelta(
        index=_number(fields.get("index")),
        id=text_of(fields.get("id")),
        function=_function(fields.get("function")),
        extra_content=_raw(fields.get("extra_content")),
    )


def _function(value: Any) -> FunctionDelta | None:
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    name, arguments = text_of(fields.get("name")), fields.get("arguments")
    return FunctionDelta(name, cast("Any", arguments) if isinstance(arguments, dict) else text_of(arguments))


def _objects(value: Any) -> list[dict[str, Any]]:
    """Of a list, or of what should be one: its objects."""
    several = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", one) for one in several if isinstance(one, dict)]


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


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value)) if value else msgspec.Raw()


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
