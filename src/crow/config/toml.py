"""TOML in and out: reading with errors that name the line, and keys and strings as they are written."""

import re

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
        raise ConfigError(f"{path}: its values are nested too deeply.") from None


_BARE_TEXT = re.compile(r"\s*([\w.-]+)\s*=\s*[^\W\d]")


def _expect_quotes(said: str, text: str, path: str) -> None:
    """The most frequent mistake of all. The text itself is not repeated: it may be a key."""
    found = re.match(r"Invalid value \(at line (\d+), ", said)
    bare = _BARE_TEXT.match(text.splitlines()[int(found[1]) - 1]) if found else None
    if found and bare:
        name = bare[1]
        raise ConfigError(f'{path}, line {found[1]}: {name}: text stands in quotes, as in {name} = "…".') from None


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
