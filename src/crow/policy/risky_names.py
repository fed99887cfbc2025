"""Looks a path up in `risky_names.toml`: names of files that run by themselves, and of files that hold credentials.

Each has a sentence on what it triggers or holds. How names are written is said in the file. Paths are absolute, and
come folded.
"""

import os
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import msgspec

_FILE = os.path.join(os.path.dirname(__file__), "risky_names.toml")
_WILD = re.compile(r"[*?]")


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names for which one sentence holds: `why` they are protected, or `what` they hold."""

    title: str
    names: str
    why: str = ""
    what: str = ""
    below: str = ""
    """The folders in which each of the names is meant; empty if they lie anywhere."""

    def spelled(self) -> list[str]:
        names = self.names.casefold().split()
        folders = self.below.casefold().split()
        return [f"{folder}/{name}" for folder, name in product(folders, names)] if folders else names


class _Harmless(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    names: str


class RiskyNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file, as it is written."""

    protected: tuple[Group, ...]
    secret: tuple[Group, ...]
    harmless: _Harmless


@cache
def risky_names() -> RiskyNames:
    import tomllib  # not before a path is judged

    with open(_FILE, "rb") as file:
        return msgspec.convert(tomllib.load(file), RiskyNames)


def why_protected_name(path: str) -> str:
    """What a file of this name triggers by itself; empty if nothing."""
    return _protected().find(path)


def what_secret_name(path: str) -> str:
    """What a file of this name may hold that nobody else should see; empty if nothing."""
    what = _secret().find(path)
    return "" if what and _harmless().find(path) else what


@cache
def _protected() -> "_Table":
    return _Table((name, group.why) for group in risky_names().protected for name in group.spelled())


@cache
def _secret() -> "_Table":
    return _Table((name, group.what) for group in risky_names().secret for name in group.spelled())


@cache
def _harmless() -> "_Table":
    return _Table((name, "harmless") for name in risky_names().harmless.names.casefold().split())


class _RiskyName(NamedTuple):
    """A name in the file: `text` is what a path is, or ends with; or, in `wild`, an expression for such an end."""

    text: str
    is_folder: bool
    said: str
    wild: re.Pattern[str] | None = None

    def fits(self, path: str) -> bool:
        if self.wild is not None:
            return self.wild.search(path) is not None
        return path == self.text or (not self.is_absolute and path.endswith(f"/{self.text}"))

    @property
    def is_absolute(self) -> bool:
        return self.text.startswith("/")


class _Table:
    """Names with what is said of each; made once, and asked for every word of a command, so that each folder is looked
    at once. Of several names for a path the innermost counts.
    """

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        self._exact: dict[str, list[_RiskyName]] = {}
        """By the last component."""
        self._wild: list[_RiskyName] = []
        for name, said in entries:
            is_folder, text = name.endswith("/"), name.removesuffix("/")
            if _WILD.search(text):
                self._wild.append(_RiskyName(text, is_folder, said, re.compile(_expression(text))))
            else:
                last = text.rpartition("/")[2]
                self._exact.setdefault(last, []).append(_RiskyName(text, is_folder, said))
        # Most paths are none of these, which one look at their name and one at the whole of them shows.
        self._wild_names, self._wild_ways = (
            re.compile("|".join(_expression(text) for text in texts) or "(?!)")
            for texts in (
                [known.text for known in self._wild if "/" not in known.text],
                [known.text for known in self._wild if "/" in known.text],
            )
        )
        self._around = lru_cache(4096)(self._folder)

    def find(self, path: str) -> str:
        return self._at(path, is_folder=False) or self._around(path)

    def _folder(self, path: str) -> str:
        """What is said of the path as a folder, or of one that it lies in."""
        above = os.path.dirname(path)
        return self._at(path, is_folder=True) or (self._around(above) if above != path else "")

    def _at(self, path: str, *, is_folder: bool) -> str:
        name = path[path.rfind("/") :]
        patterns = self._exact.get(name[1:], ())
        if self._wild_names.match(name) or self._wild_ways.search(path):
            patterns = (*patterns, *self._wild)
        return next((known.said for known in patterns if known.is_folder is is_folder and known.fits(path)), "")


def _expression(text: str) -> str:
    """Of the end of a path: what stands for any characters stands for none of another component's."""
    escaped = re.escape(text).replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return rf"\A{escaped}\Z" if text.startswith("/") else rf"/{escaped}\Z"
