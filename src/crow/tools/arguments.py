"""The arguments of a tool call: the JSON schema that the model is given, made from a struct, and reading the model's
JSON into it.

The schema is made from the struct, so that the two cannot differ. It is in one piece and without titles: models read
references badly, and pay for every word. And it is plain enough for hosts that know little of JSON Schema: every value
has one type, and what is optional is simply not required.
"""

import contextlib
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, cast

import msgspec

from crow.messages import ToolCall, ToolSpec, has_too_many_values, json_object
from crow.tools.base import Tool
from crow.visible import one_line


@functools.cache
def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Made once for all sessions, and never changed: it takes a millisecond for each of a session's tools."""
    _, components = msgspec.json.schema_components([kind])
    return _plain(components[kind.__name__], components)


def _plain(schema: Any, components: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(reference)}:
            return _plain(components[reference.rpartition("/")[2]], components)
        case {"anyOf": [value, {"type": "null"}], **about}:
            return _plain({**value, **about}, components)
        case {"enum": [str(), *_]} if "type" not in schema:
            return _plain({"type": "string", **schema}, components)
        case dict():
            parts = cast("dict[str, Any]", schema)
            return {key: _plain(value, components) for key, value in parts.items() if not _says_nothing(key, value)}
        case list():
            return [_plain(item, components) for item in cast("list[Any]", schema)]
        case _:
            return schema


def _says_nothing(key: str, value: Any) -> bool:
    """A title repeats a name; a default that is empty is what everybody expects. A property may be called so too."""
    if key == "title" and isinstance(value, str):
        return True
    return key == "default" and value in (None, "")


# --- reading a call


class ReadCall(NamedTuple):
    """A call whose arguments are complete, read once for all that follows: what is judged and shown is what runs."""

    call: ToolCall
    arguments: dict[str, Any]
    """As they are in the call; empty if they cannot be read."""
    returned: str
    """The arguments that the model gets back as its own: what it wrote, if that was an object that can be read."""
    note: str = ""
    """What the model is told of how they were read."""


def read_call_of(call: ToolCall, tool: Tool) -> ReadCall:
    """The call as its tool can read it; of a tool that stands for several, as a call of the one that is meant."""
    if (meant := tool.meant(call)) is None:
        return read_call(call, tool.spec)
    one, its_call, remark = meant
    read = read_call(its_call, one.spec)
    # The model gets back a call that this tool knows, so that it makes the next one like that.
    return read._replace(returned=read.call.arguments, note=" ".join(filter(None, (remark, read.note))))


def read_call(call: ToolCall, spec: ToolSpec) -> ReadCall:
    """The call as its tool can read it. What cannot be read stays as it is: the tool says why."""
    if has_too_many_values(call.arguments):
        return ReadCall(call, {}, call.arguments_text())
    given = json_object(call.arguments)
    if given is not None and _has_one_meaning(given, call.arguments, spec.schema):
        return ReadCall(call, given, call.arguments)
    from crow.tools.lenient.call_parsing import read_leniently  # for those that are not as they should be

    read = read_leniently(call, spec)
    if read is None:
        return ReadCall(call, given or {}, call.arguments)
    returned = read.arguments if given is None else call.arguments
    run = msgspec.structs.replace(call, arguments=read.arguments)
    return ReadCall(run, json_object(read.arguments) or {}, returned, read.note)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def is_plain(given: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether arguments have the names and types that the schema asks for, so that nothing is left to be understood."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if any(name not in given for name in schema.get("required", ())):
        return False
    for name, value in given.items():
        about = properties.get(name)
        if about is None:
            if properties and not schema.get("additionalProperties"):
                return False
        elif not _is_plain_value(value, about):
            return False
    return True


def _is_plain_value(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = _TYPES.get(cast("str", schema.get("type"))) if isinstance(schema.get("type"), str) else None
    if kind is None:
        return True
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    if kind is dict:
        return is_plain(value, schema)
    if kind is list and isinstance(items := schema.get("items"), dict):
        about = cast("dict[str, Any]", items)
        return all(_is_plain_value(item, about) for item in cast("list[Any]", value))
    return True


def _has_one_meaning(given: Mapping[str, Any], text: str, schema: Mapping[str, Any]) -> bool:
    """Whether arguments that were read from a text are plain, and no name in it has two values, of which the decoder
    takes the last without a word."""
    if not is_plain(given, schema):
        return False
    import jiter  # only models that call tools need it

    try:
        # Less work than reading the text was: counting names in it takes several times as long.
        jiter.from_json((text or "{}").encode(), catch_duplicate_keys=True, cache_mode="none")
    except ValueError:  # a name that stands twice may have the same value both times
        from crow.tools.lenient.json_repair import doubled_name

        return doubled_name(text) is None
    return True


def arguments_for(call: ToolCall, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool whose schema is another's, such as a server's: BadArguments if some are missing, or if
    there is no reading them. Whether their values fit is for the other to say."""
    given = json_object(call.arguments)
    if given is not None and _has_one_meaning(given, call.arguments, schema):
        return given
    from crow.tools.lenient.call_parsing import fit_call

    return fit_call(call, schema, check_values=False).values


Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ArgumentReader(Generic[Arguments]):
    """Reads a model's arguments into a struct: strict about meaning, lenient about form (`"5"` is 5)."""

    def __init__(self, kind: type[Arguments]) -> None:
        self._kind = kind

    def schema(self) -> dict[str, Any]:
        """The JSON schema that the model is given."""
        return schema_of(self._kind)

    def read(self, call: ToolCall) -> tuple[Arguments, tuple[str, ...]]:
        """The arguments, and the names of those that the tool does not know."""
        given = json_object(call.arguments)
        if given is not None and _has_one_meaning(given, call.arguments, self.schema()):
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(given, self._kind), ()
        from crow.tools.lenient.call_parsing import fit_call, misfit

        fitted = fit_call(call, self.schema())
        try:
            return msgspec.convert(fitted.values, self._kind), tuple(fitted.unknown)
        except msgspec.ValidationError as error:
            raise misfit(call, self.schema(), str(error)) from None


def ignored_arguments(unknown: Sequence[str]) -> list[str]:
    """A line for the model that names the arguments its tool does not know; none if it knew all of them."""
    return [f"(ignored unknown arguments: {one_line(', '.join(unknown), 300)})"] if unknown else []
