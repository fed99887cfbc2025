"""Reads JSON that is nearly JSON (wrong quotes, comments, missing braces), with one meaning or not at all.

Libraries that repair JSON close a string that was cut off and drop what
they cannot place; half a file would be written, half a command run. Here a string without its end, an unfinished
number or name, two different objects and a name that stands twice with two values are refused.
"""

import contextlib
import json
import re
from typing import Any

import msgspec

from crow.messages import MOST_VALUES, has_too_many_values
from crow.visible import join_surrogates

DEEPEST = 64

_SPACE = re.compile(r"(?:[\s\ufeff\u200b\0]+|\\\r?\n|//[^\n]*|/\*.*?\*/|#[^\n]*)*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w.])")
_NAME = re.compile(r"[^\W\d][\w$-]*")
_COLON = re.compile(r"[:：]|=>?")  # noqa: RUF001 -- the full-width one is meant
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nil": None}

_WIDE = str.maketrans("｛｝［］，、；", "{}[],,;")  # noqa: RUF001 -- the full-width ones are meant
_CLOSERS = {'"': '"', "'": "'", "`": "`", "“": "“”", "”": "”", "„": "“”", "‘": "’", "’": "’", "＂": "＂"}  # noqa: RUF001
"""By the quote that opens a string: those that may close it."""

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'"}
_NO_ESCAPE = re.compile(r"\\(?:[^nrtbfu/\\\"'\n]|u(?![0-9a-fA-F]{4}))")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")

_AFTER = re.compile(r"[\s\]})>;,.`\0]+|<[^<>\s]{1,40}>|<\|[^<>\s|]{1,40}\|>")
_MORE_MEMBERS = re.compile(r"[\"'”’]\s*[:：]")  # noqa: RUF001


class Unreadable(Exception):
    """What was written has no meaning as JSON; the message says why."""


class Ambiguous(Unreadable):
    """What was written has more than one meaning."""


class TruncatedJson(Unreadable):
    """What was written ends in the middle."""


class TooManyValues(Unreadable):
    """What was written would take long to read, whatever it means."""


def read_json(text: str) -> Any:
    """The value that the text stands for: Unreadable if there is none, or more than one."""
    if has_too_many_values(text):
        raise TooManyValues(f"more than {MOST_VALUES:,} values are in it")
    try:
        value = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return read_nearly(text)
    if (name := doubled_name(text)) is not None:
        raise _doubled(name)
    return value


def doubled_name(text: str) -> str | None:
    """A name that stands twice in an object of well-formed JSON, with two values; None if there is none."""
    doubled: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found and found[name] != value:
                doubled.append(name)
            found[name] = value
        return found

    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text or "{}", object_pairs_hook=members)
    return doubled[0] if doubled else None


def _doubled(name: str) -> "Ambiguous":
    return Ambiguous(f"`{name[:60]}` appears twice with different values")


def json_in(text: str, *openers: str) -> Any:
    """The value of JSON that was written as a string; None if it does not begin like that, or is no JSON."""
    if not text.lstrip().startswith(openers):
        return None
    try:
        return read_json(text)
    except (Unreadable, RecursionError):
        return None


def read_nearly(text: str) -> Any:
    """The value that was meant; Unreadable if that is not certain."""
    text = text.strip().strip("\ufeff\u200b\0").strip()
    if not text:
        return {}
    fence = re.match(r"`{3,}[\w-]*\s*", text)
    parser = _Parser(text, fence.end() if fence else 0)
    if parser.peek() not in ("{", "["):
        brace = _first_brace(text, parser.at)
        if _MORE_MEMBERS.search(text, parser.at, brace):
            raise Ambiguous("there are members before the first brace")
        parser = _Parser(text, brace)
    value = parser.value("")
    return _checked_rest(value, text, parser.at)


def _first_brace(text: str, start: int) -> int:
    """Where the object begins, after what a model said before it."""
    braces = [place for brace in "{｛" if (place := text.find(brace, start)) >= 0]  # noqa: RUF001
    if not braces:
        raise Unreadable("there is no object in it")
    return min(braces)


def _checked_rest(value: Any, text: str, at: int) -> Any:
    """What follows the value may be words, or the same value again: then it was meant once."""
    while True:
        while (skipped := _AFTER.match(text, at)) is not None:
            at = skipped.end()
        brace = text.find("{", at)
        if brace < 0:
            if _MORE_MEMBERS.search(text, at):
                raise Ambiguous("the object is closed before its last members")
            return value
        parser = _Parser(text, brace)
        other = parser.value("")
        if other != value and value != {}:
            raise Ambiguous("there are two different objects: make a call of each")
        value, at = other, parser.at


class _Parser:
    """Reads one value, by the rules of JSON and by those of the languages that models mix it up with."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at: int = at
        self._open: list[str] = []
        """The brackets that are open."""

    def peek(self) -> str:
        """The next character that means something, full-width brackets as plain ones; empty at the end."""
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1].translate(_WIDE)

    def value(self, name: str) -> Any:
        """`name`: of the member that it is the value of."""
        match self.peek():
            case "{":
                self.at += 1
                return self.members()
            case "[":
                self.at += 1
                return self._items()
            case "":
                raise TruncatedJson(f"there is no value for `{name[:60]}`" if name else "a value is missing")
            case quote if quote in _CLOSERS:
                return self._strings(name)
            case _:
                return self._number_or_word()

    def _strings(self, name: str) -> str:
        """A string, or several that are joined by plus signs, as programs do it; with nothing else among them."""
        written = self.string(name)
        while self.peek() == "+":
            self.at += 1
            if self.peek() not in _CLOSERS:
                raise _calculated(name)
            written += self.string(name)
        return written

    def members(self) -> dict[str, Any]:
        """The members of an object, up to its end."""
        self._enter("{")
        members: dict[str, Any] = {}
        is_complete = False
        while not self._ends("}", is_complete=is_complete):
            if self.peek() == ",":
                self.at += 1
                is_complete = False
                continue
            if is_complete and self.peek() not in _CLOSERS:
                raise self._unexpected("a comma")
            name = self._name()
            value = self.value(name)
            if name in members and members[name] != value:
                raise _doubled(name)
            members[name] = value
            is_complete = True
        return members

    def _name(self) -> str:
        if self.peek() in _CLOSERS:
            name = self.string("")
        else:
            found = _NAME.match(self.text, self.at)
            if found is None:
                raise self._unexpected("the name of an argument")
            name = found[0]
            self.at = found.end()
        self.peek()
        colon = _COLON.match(self.text, self.at)
        if colon is None:
            if self.at >= len(self.text):
                raise TruncatedJson(f"there is no value for `{name[:60]}`")
            raise self._unexpected(f"a colon after `{name[:60]}`")
        self.at = colon.end()
        return name

    def _items(self) -> list[Any]:
        self._enter("[")
        items: list[Any] = []
        is_complete = False
        while not self._ends("]", is_complete=is_complete):
            if self.peek() == ",":
                self.at += 1
                is_complete = False
                continue
            if is_complete and not (self.peek() == "{" and isinstance(items[-1], dict)):
                raise self._unexpected("a comma")
            items.append(self.value(""))
            is_complete = True
        return items

    def _enter(self, bracket: str) -> None:
        self._open.append(bracket)
        if len(self._open) > DEEPEST:
            raise Unreadable("it is nested too deeply")

    def _ends(self, closer: str, *, is_complete: bool) -> bool:
        """Whether the innermost bracket is closed here, be it by the one around it, or by the end of the text."""
        found = self.peek()
        if found == "" and not is_complete:
            raise TruncatedJson("it ends where more was to come")
        if found not in ("", "]", "}"):
            return False
        self._open.pop()
        opener = "[" if found == "]" else "{"
        if found == closer or (found and opener not in self._open):
            if found != closer and closer == "]":
                raise self._unexpected("a `]`")
            self.at += 1
        return True

    def _number_or_word(self) -> Any:
        if (number := _NUMBER.match(self.text, self.at)) is not None:
            self.at = number.end()
            if self.at >= len(self.text):
                raise TruncatedJson("it ends with a number that may go on")
            return _number(number[0])
        word = _NAME.match(self.text, self.at)
        if word is None or word[0].lower() not in _WORDS:
            if word is not None and word.end() >= len(self.text):
                raise TruncatedJson("it ends with a word that may go on")
            raise self._unexpected("a value in quotes")
        self.at = word.end()
        return _WORDS[word[0].lower()]

    def string(self, name: str) -> str:
        quote = self.text[self.at]
        closers = tuple(_CLOSERS[quote])
        begin = at = self.at + len(quote)
        end_or_escape = re.compile("|".join([r"\\.", *map(re.escape, closers)]), re.DOTALL)
        while (found := end_or_escape.search(self.text, at)) is not None:
            at = found.end()
            if found[0][0] != "\\":
                self.at = at
                return _unescaped(self.text[begin : found.start()], closers)
        raise TruncatedJson(
            f"the text of `{name[:60]}` has no closing quote" if name else "a text has no closing quote"
        )

    def _unexpected(self, wanted: str) -> Unreadable:
        seen = self.text[self.at : self.at + 20]
        return Unreadable(f"at character {self.at + 1} there should be {wanted}, not {seen!r}")


def _calculated(name: str) -> Ambiguous:
    where = f"`{name[:60]}`" if name else "a value"
    return Ambiguous(f"{where} is not a text but an expression, which nobody works out: write the whole text in quotes")


def _number(written: str) -> int | float:
    try:
        return float(written) if any(mark in written for mark in ".eE") else int(written)
    except ValueError:
        raise Unreadable("a number in it is too long") from None


def _unescaped(raw: str, closers: tuple[str, ...]) -> str:
    """What the characters between two quotes stand for. A backslash that escapes nothing is one that was meant."""
    if "\\" not in raw:
        return _with_joined_surrogates(raw)
    is_wrong = _NO_ESCAPE.search(raw) is not None

    def meant(found: re.Match[str]) -> str:
        escaped = found[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped in closers:
            return escaped
        if escaped == "b" and is_wrong:  # among `\d` and `\w` it is the edge of a word
            return found[0]
        return _ESCAPES.get(escaped, found[0])

    return _with_joined_surrogates(_ESCAPE.sub(meant, raw))


def _with_joined_surrogates(text: str) -> str:
    """The text with each pair of surrogates as its one character. Unreadable if half of a pair is alone."""
    if _HALF.search(text) is None:
        return text
    text = _PAIR.sub(lambda pair: join_surrogates(pair[0]), text)
    if _HALF.search(text) is not None:
        raise Unreadable("there is half a character in it")
    return text
