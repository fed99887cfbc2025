"""Small JSON files below Crow's home that carry their version: read with care, as a person or another Crow may have
written them, and replaced as a whole."""

from typing import TypeVar

import msgspec

from crow.config.home import read_file, reason, write_file
from crow.errors import ConfigError

LARGEST = 4 * 1024 * 1024


class Versioned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int


Content = TypeVar("Content", bound=Versioned)


def read_versioned(path: str, empty: Content, consequence: str) -> Content:
    """What is in the file; `empty`, which has the version that is wanted, if there is none.

    ConfigError if it cannot be read or is not of that version. `consequence` says what that means for the person.
    """
    try:
        content = read_file(path, LARGEST + 1)
    except FileNotFoundError:
        return empty
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {reason(error)}.", remedy=f"Until it can, {consequence}.") from error
    try:
        found = msgspec.json.decode(content[:LARGEST], type=type(empty))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        remedy = f"Mend it or delete it; until then {consequence}."
        raise ConfigError(f"{path} is damaged: {error}.", remedy=remedy) from error
    if found.version != empty.version:
        remedy = f"Update Crow, or move the file away; until then {consequence}."
        raise ConfigError(f"{path} was written by another version of Crow.", remedy=remedy)
    return found


def write_versioned(path: str, content: Versioned) -> None:
    """ConfigError if it cannot be kept."""
    try:
        encoded = msgspec.json.encode(content, order="sorted")
    except UnicodeEncodeError:
        raise ConfigError("A path that is no UTF-8 cannot be kept.") from None
    write_file(path, msgspec.json.format(encoded, indent=1) + b"\n")
