"""Validates a form or a URL that an MCP server puts before the person: plain fields only, written anew, and nothing in
them can hide.

A form is read strictly and written anew, so a client gets what the protocol knows and nothing else.
"""

from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from crow.visible import every_line, hidden_in, one_line

MOST_FIELDS = 30
LONGEST_LABEL = 200
LONGEST_TEXT = 1000
LONGEST_ADDRESS = 4000
THIS_MACHINE = ("127.0.0.1", "::1", "localhost")

Count = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Value = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Values = Annotated[tuple[Value, ...], Meta(min_length=1, max_length=500)]


class _Choice(msgspec.Struct, frozen=True, omit_defaults=True):
    const: Value
    title: str | None = None
    description: str | None = None


Choices = Annotated[tuple[_Choice, ...], Meta(min_length=1, max_length=500)]


class _Field(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel", tag_field="type"):
    title: str | None = None
    description: str | None = None


class _Text(_Field, frozen=True, tag="string"):
    min_length: Count | None = None
    max_length: Count | None = None
    pattern: Value | None = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    enum: Values | None = None
    enum_names: Any = None
    """Titles for the values, as older servers write them."""
    one_of: Choices | None = None
    default: Value | None = None


class _Number(_Field, frozen=True, tag="number"):
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None


class _Integer(_Field, frozen=True, tag="integer"):
    minimum: int | None = None
    maximum: int | None = None
    default: int | None = None


class _Boolean(_Field, frozen=True, tag="boolean"):
    default: bool | None = None


class _Items(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    type: Literal["string"] | None = None
    enum: Values | None = None
    any_of: Choices | None = None


class _Several(_Field, frozen=True, tag="array"):
    items: _Items
    min_items: Count | None = None
    max_items: Count | None = None
    default: tuple[Value, ...] | None = None


_Fields = dict[
    Annotated[str, Meta(min_length=1, max_length=LONGEST_LABEL)], _Text | _Number | _Integer | _Boolean | _Several
]


class _Form(msgspec.Struct, frozen=True):
    properties: Annotated[_Fields, Meta(min_length=1, max_length=MOST_FIELDS)]
    required: tuple[str, ...] | None = None


def validated_form(schema: Any) -> dict[str, Any] | None:
    """A form that any client can show: an object of plain fields. None if it is something else."""
    try:
        form = msgspec.convert(schema, _Form)
    except msgspec.ValidationError:
        return None
    if not all(_can_be_answered(name, field) for name, field in form.properties.items()):
        return None
    properties = {name: _readable(msgspec.to_builtins(_titled(field))) for name, field in form.properties.items()}
    names = [name for name in form.required or () if name in properties]
    return {"type": "object", "properties": properties, **({"required": names} if names else {})}


def labels(schema: Any) -> str:
    """All titles and descriptions in a form that is one, as they came."""
    return _texts(msgspec.to_builtins(msgspec.convert(schema, _Form)))


def _texts(part: Any) -> str:
    if isinstance(part, list | tuple):
        return "".join(map(_texts, cast("list[Any]", part)))
    if not isinstance(part, dict):
        return ""
    given = cast("dict[str, Any]", part)
    own = [value for name in ("title", "description", "enumNames") if isinstance(value := given.get(name), str)]
    return "".join([*own, *map(_texts, given.values())])


def can_be_opened(address: str) -> bool:
    """Whether it leads where it seems to: to a host by https, or to this machine; without anybody's credentials."""
    if (
        len(address) > LONGEST_ADDRESS
        or not address.isascii()
        or not address.isprintable()
        or set(address) & set(" \\")
    ):
        return False
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in THIS_MACHINE)


def words(text: str, longest: int) -> str:
    """A server's text, with its line ends, in which everything can be seen."""
    return every_line(text[:longest].replace("\r\n", "\n")) + ("…" if len(text) > longest else "")


def _titled(field: _Field) -> _Field:
    """The same, in which each value that has a title is written together with it."""
    match field:
        case _Text(enum=(*values,), enum_names=[*names]) if len(names) == len(values) and all(
            isinstance(name, str) for name in names
        ):
            choices = tuple(_Choice(value, name) for value, name in zip(values, names, strict=True))
            return msgspec.structs.replace(field, enum=None, enum_names=None, one_of=choices)
        case _Text(one_of=choices):
            titled = choices and tuple(_Choice(one.const, one.title or one.const, one.description) for one in choices)
            return msgspec.structs.replace(field, enum_names=None, one_of=titled)
        case _:
            return field


def _can_be_answered(name: str, field: _Field) -> bool:
    """Names and values go back to the server as they are, so one that hides something cannot be shown honestly."""
    match field:
        case _Text():
            values = _values(field.enum, field.one_of)
            defaults = (field.default,) if field.default is not None else ()
        case _Several(items=items):
            values, defaults = _values(items.enum, items.any_of), field.default or ()
            if not values:
                return False
        case _:
            values, defaults = (), ()
    is_offered = not values or set(defaults) <= set(values)
    return is_offered and not any(map(hidden_in, (name, *values, *defaults)))


def _values(plain: tuple[str, ...] | None, titled: tuple[_Choice, ...] | None) -> tuple[str, ...]:
    return plain or tuple(choice.const for choice in titled or ())


def _readable(part: Any) -> Any:
    """The same, with its titles and descriptions fit to be shown."""
    match part:
        case dict():
            shown = {name: _readable(value) for name, value in cast("dict[str, Any]", part).items()}
            if "title" in shown:
                shown["title"] = one_line(shown["title"], LONGEST_LABEL)
            if "description" in shown:
                shown["description"] = words(shown["description"], LONGEST_TEXT)
            return shown
        case list() | tuple():
            return [_readable(each) for each in cast("list[Any]", part)]
        case _:
            return part
