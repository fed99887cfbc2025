"""Parses JSON with comments and trailing commas, as editors keep their settings, with positions: a member is added
without touching another byte.
"""

import json
import re
from typing import cast

import msgspec

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+)
      | (?P<comment>//[^\r\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<literal>-?\d[\d.eE+-]*|true|false|null)
      | (?P<mark>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)


class NotJson(ValueError):
    """Says where the text stops being JSON with comments."""


class Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    start: int
    end: int


class Node(msgspec.Struct):
    """A value and where it stands; of an object also its members, and whether a comma follows the last one."""

    value: object
    start: int
    end: int
    members: dict[str, "Node"] = {}
    last_comma: int | None = None


def parse(text: str) -> Node:
    """The whole text as one value. Raises NotJson."""
    try:
        return _Parser(text).whole()
    except RecursionError:
        raise NotJson("it is nested too deeply") from None


def add_member(text: str, container: Node, key: str, value: object) -> str:
    """The text with one more member at the end of the object `container`, in the manner of its other members."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent_at(text, container.start)
    inner = _member_indent(text, container) or outer + ("\t" if outer.startswith("\t") else "  ")
    step = inner[len(outer) :] if inner.startswith(outer) else "  "
    rendered = json.dumps(value, indent=step or 2, ensure_ascii=False).replace("\n", newline + inner)
    closing = container.end - 1
    filled = len(text[container.start + 1 : closing].rstrip()) + container.start + 1
    before = text[:filled]
    if container.members and container.last_comma is None:
        end = max(member.end for member in container.members.values())
        before = f"{text[:end]},{text[end:filled]}"
    added = f"{newline}{inner}{json.dumps(key)}: {rendered}"
    if container.last_comma is not None:
        added += ","
    rest = text[filled:]
    if "\n" not in text[filled:closing]:
        rest = newline + outer + text[closing:]
    return before + added + rest


def _indent_at(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _member_indent(text: str, container: Node) -> str:
    """How the object's first member is indented; empty if it does not stand on a line of its own."""
    if not container.members:
        return ""
    first = min(member.start for member in container.members.values())
    line = text[text.rfind("\n", 0, first) + 1 : first]
    stripped = line.lstrip(" \t")
    return line[: len(line) - len(stripped)] if stripped.startswith('"') else ""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.token = self._next()

    def whole(self) -> Node:
        node = self._value()
        if self.token.kind != "end":
            raise self._unexpected("the end")
        return node

    def _value(self) -> Node:
        match self.token:
            case Token(text="{"):
                return self._object()
            case Token(text="["):
                return self._array()
            case Token(kind="string" | "literal") as token:
                self.token = self._next()
                return Node(self._decode(token), token.start, token.end)
            case _:
                raise self._unexpected("a value")

    def _object(self) -> Node:
        node = Node({}, self._take("{").start, 0)
        value = cast("dict[str, object]", node.value)
        node.members = {}
        while self.token.text != "}":
            if self.token.kind != "string":
                raise self._unexpected("a key in quotes")
            key = str(self._decode(self._take(self.token.text)))
            self._take(":")
            node.members[key] = self._value()
            value[key] = node.members[key].value
            node.last_comma = self._comma("}")
        node.end = self._take("}").end
        return node

    def _array(self) -> Node:
        items: list[object] = []
        start = self._take("[").start
        while self.token.text != "]":
            items.append(self._value().value)
            self._comma("]")
        return Node(items, start, self._take("]").end)

    def _comma(self, closing: str) -> int | None:
        if self.token.text == ",":
            return self._take(",").start
        if self.token.text != closing:
            raise self._unexpected(f'"," or "{closing}"')
        return None

    def _decode(self, token: Token) -> object:
        try:
            return json.loads(token.text)
        except ValueError:
            raise self._unexpected("a value", token) from None

    def _take(self, text: str) -> Token:
        if self.token.text != text:
            raise self._unexpected(f'"{text}"')
        taken, self.token = self.token, self._next()
        return taken

    def _next(self) -> Token:
        while found := _TOKEN.match(self.text, self.position):
            self.position = found.end()
            kind = str(found.lastgroup)
            if kind not in ("space", "comment"):
                return Token(kind, found[0], found.start(), found.end())
        if self.position < len(self.text):
            raise self._unexpected("a value", Token("", "", self.position, self.position))
        return Token("end", "", self.position, self.position)

    def _unexpected(self, expected: str, token: Token | None = None) -> NotJson:
        line = self.text.count("\n", 0, (token or self.token).start) + 1
        return NotJson(f"line {line}: expected {expected}")
