"""Parses and writes TOML: errors that name the line or the key that is wrong, quoting of keys and strings, and the
nearest known word.
"""

import re
import types
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from crow.errors import ConfigError


def parse_toml(text: str, path: str) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        _expect_quotes(str(error), text, path)
        said = re.sub(r"\s*\(at [^)]*\)$", "", str(error))
        raise ConfigError(f"{path}, {_place(str(error), text)}: {said[:1].lower()}{said[1:]}.") from None
    except RecursionError:
        raise ConfigError(f"{path}: values are nested too deeply.") from None


_BARE_TEXT = re.compile(r"\s*([\w.-]+)\s*=\s*[^\W\d]")


def _expect_quotes(said: str, text: str, path: str) -> None:
    """The most frequent mistake of all. The text itself is not repeated: it may be a key."""
    found = re.match(r"Invalid value \(at line (\d+), ", said)
    bare = _BARE_TEXT.match(text.splitlines()[int(found[1]) - 1]) if found else None
    if found and bare:
        name = bare[1]
        raise ConfigError(f'{path}, line {found[1]}: {name}: put text in quotes, as in {name} = "…".') from None


def _place(said: str, text: str) -> str:
    found = re.search(r"\(at line (\d+), column (\d+)\)$", said)
    if found:
        return f"line {found[1]}, column {found[2]}"
    return f"line {len(text.rstrip().splitlines()) or 1}"


def toml_key(name: str) -> str:
    """A key as it is written in TOML: bare if it can be, else quoted."""
    if re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return toml_string(name)


def toml_string(value: str) -> str:
    """JSON's escapes are TOML's, but for the delete character, which TOML wants escaped too."""
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")


_WORDS = {
    "str": "a string in quotes",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list in [ ]",
    "object": "a table",
}


def explain(value: object, expected: Any, key: str = "") -> str:
    """The first mistake in `value`, as `key: expected …, found …`; empty if there is none.

    Values are never quoted back but where a fixed word was expected: what stands there by mistake may be a secret.
    """
    expected = _without_none(expected)
    if isinstance(expected, type) and issubclass(expected, msgspec.Struct):
        return _explain_struct(value, expected, key)
    if get_origin(expected) is dict:
        return _explain_table(value, get_args(expected)[1], key)
    if get_origin(expected) is list:
        return _explain_list(value, get_args(expected)[0], key)
    return _explain_leaf(value, expected, key)


def _explain_struct(value: object, expected: type[msgspec.Struct], key: str) -> str:
    if not isinstance(value, dict):
        return _mistake(key, "a table", value)
    table = cast("dict[str, object]", value)
    fields = {field.encode_name: field for field in msgspec.structs.fields(expected)}
    for name in table:
        if name not in fields:
            hint = did_you_mean(name, fields) or f" (known here: {', '.join(fields)})"
            return f"{_join(key, name)}: unknown key{hint}"
    for name, field in fields.items():
        if name in table:
            if mistake := explain(table[name], field.type, _join(key, name)):
                return mistake
        elif field.required:
            return f"{_join(key, name)}: expected {_words(field.type)}, found nothing"
    return ""


def _explain_table(value: object, expected: Any, key: str) -> str:
    if not isinstance(value, dict):
        return _mistake(key, "a table", value)
    mistakes = (explain(item, expected, _join(key, name)) for name, item in cast("dict[str, object]", value).items())
    return next(filter(None, mistakes), "")


def _explain_list(value: object, expected: Any, key: str) -> str:
    if not isinstance(value, list):
        return _mistake(key, "a list in [ ]", value)
    mistakes = (explain(item, expected, f"{key}[{index}]") for index, item in enumerate(cast("list[object]", value)))
    return next(filter(None, mistakes), "")


def _explain_leaf(value: object, expected: Any, key: str) -> str:
    try:
        msgspec.convert(value, expected)
    except msgspec.ValidationError:
        if get_origin(expected) is Literal and isinstance(value, str):
            choices = [choice for choice in get_args(expected) if choice]
            return f'{key}: expected {_words(expected)}, found "{value}"{did_you_mean(value, choices)}'
        return _mistake(key, _words(expected), value)
    return ""


def _mistake(key: str, expected: str, found: object) -> str:
    return f"{key}: expected {expected}, found {_kind(found)}"


def _kind(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"


def _words(expected: Any) -> str:
    expected = _without_none(expected)
    if get_origin(expected) is Literal:
        *others, last = [f'"{choice}"' for choice in get_args(expected) if choice]
        return f"{', '.join(others)} or {last}" if others else last
    if get_origin(expected) is Annotated:
        base, limit = get_args(expected)
        bound = f"of at least {limit.ge}" if limit.ge is not None else f"above {limit.gt}"
        return f"{_WORDS[base.__name__]} {bound}"
    return _WORDS.get(getattr(expected, "__name__", ""), "a table")


def _without_none(expected: Any) -> Any:
    """TOML has no null, so of `X | None` only X can be written."""
    if get_origin(expected) in (Union, types.UnionType):
        return next(choice for choice in get_args(expected) if choice is not type(None))
    return expected


def _join(key: str, name: str) -> str:
    return f"{key}.{toml_key(name)}" if key else toml_key(name)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant, in brackets; empty if none is near."""
    meant = nearest(word, known)
    return f' (did you mean "{meant}"?)' if meant else ""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that is most like this one; empty if none is near."""
    import difflib

    by_lower = {candidate.lower(): candidate for candidate in known}
    wanted = word.lower()
    swapped = [candidate for candidate in by_lower if sorted(candidate) == sorted(wanted)]
    close = swapped or difflib.get_close_matches(wanted, by_lower, n=1, cutoff=cutoff)
    return by_lower[close[0]] if close else ""
