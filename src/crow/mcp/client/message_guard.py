"""Checks every message of an MCP server before the library sees it: slows down a flood, takes out odd entries, cuts
what is far too long.

What nobody uses is thrown away before it is read, and what is sent unasked may cost a small part of a core: a server
that floods is read more slowly, and in the end stopped. The library rejects a whole answer for one thing in it that it
does not know: so what is odd is taken out of lists of tools, and of what a call gave. Of far too much only the
beginning is kept.
"""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCResponse
from msgspec import UNSET, Raw, UnsetType

from crow.mcp.client.raw_messages import MOST_LISTED, MOST_PIECES
from crow.mcp.client.server_errors import ServerFailed
from crow.visible import one_line

MOST_A_SECOND = 2000
"""Messages that a server may send: far more than a busy one does."""
BETWEEN_SHOWN = 0.1
"""Seconds between two signs of progress that are shown, and between two announcements of one change that are heard."""
BURST = 2.0
PART = 0.05
"""Seconds of work for what a server sends unasked: so much at once, and after that this part of the time."""
SHORTEST_REST = 0.1
PASSED_ON, THROWN_AWAY, BLANK, BYTE = 500e-6, 20e-6, 2e-6, 10e-9
"""Seconds that it takes at most, on a slow machine: a message for the library, one that nobody uses, a line, a byte."""
PROGRESS = "notifications/progress"
_HEARD_AT_TIMES = frozenset({PROGRESS, "notifications/tools/list_changed", "notifications/prompts/list_changed"})
_HEARD = frozenset(
    {
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/subscriptions/acknowledged",
    }
)
"""The notifications that are of use here: what a server logs, for example, nobody sees."""
MOST_CALLS = 1000
"""Whose progress is told apart."""
LONGEST_NAME = 300
_LISTS = ("tools", "prompts", "resources", "resourceTemplates")
_KINDS = {
    "text": (("text",), ()),
    "image": (("data", "mimeType"), ()),
    "audio": (("data", "mimeType"), ()),
    "resource_link": (("uri", "name"), ("title", "description", "mimeType")),
    "resource": (("uri",), ("mimeType", "text", "blob")),
}
"""The kinds of content: texts that each must have, and those that it may have and that are of use here."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")

Fields = dict[str, Any]


class UnaskedPace:
    """How fast it is read what a server sends unasked. `on_slow` is told, once, that it has become too much."""

    def __init__(self, clock: Callable[[], float], on_slow: Callable[[], None]) -> None:
        self._clock = clock
        self._on_slow = on_slow
        self._left = BURST
        self._looked = clock()
        self._is_told = False

    def spend(self, seconds: float) -> None:
        self._left -= seconds

    def due(self) -> float:
        """The seconds in which no more should be read; 0 while it is little."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._looked) * PART)
        self._looked = now
        if self._left > -SHORTEST_REST * PART:
            return 0.0
        if not self._is_told:
            self._is_told = True
            self._on_slow()
        return -self._left / PART

    async def rest(self) -> None:
        if seconds := self.due():
            await asyncio.sleep(seconds)


class _Beginning(msgspec.Struct):
    """What shows of a message whether it is of use."""

    method: str = ""
    id: Raw | UnsetType = UNSET
    params: Raw = Raw(b"{}")


class _ProgressOf(msgspec.Struct):
    progress_token: int | str = msgspec.field(name="progressToken", default="")


_beginning = msgspec.json.Decoder(_Beginning)


class MessageGuard:
    """`on_left_out` is told the name of a tool and what is wrong with it; `on_slow`, that the server is slowed down."""

    def __init__(
        self,
        clock: Callable[[], float],
        on_left_out: Callable[[str, str], None],
        on_slow: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._on_left_out = on_left_out
        self.pace = UnaskedPace(clock, on_slow)
        self._asked = 0
        """Questions that have not been answered."""
        self._second = 0
        self._count = 0
        self._next: dict[str, float] = {}
        """By call, or by what has changed: when more of its notifications are of use."""

    def asks(self) -> None:
        """The server is asked something: its answer may be as long as it likes."""
        self._asked += 1

    def count(self) -> None:
        """One more message: ServerFailed if there are too many."""
        self.pace.spend(PASSED_ON)
        second = int(self._clock())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > MOST_A_SECOND:
            raise ServerFailed(f"it sends more than {MOST_A_SECOND:,} messages a second")

    def wants(self, line: bytes) -> bool:
        """Whether a line should be read at all. What is thrown away is not counted."""
        try:
            seen = _beginning.decode(line)
            if not seen.method or seen.id is not UNSET:
                return True
            token = msgspec.json.decode(seen.params, type=_ProgressOf).progress_token if seen.method == PROGRESS else ""
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return True
        return self._is_heard(seen.method, token, len(line))

    def wants_message(self, message: SessionMessage | Exception) -> bool:
        """The same for one that was read already."""
        notice = message.message if isinstance(message, SessionMessage) else None
        if not isinstance(notice, JSONRPCNotification):
            return True
        return self._is_heard(notice.method, (notice.params or {}).get("progressToken"))

    def take(self, message: SessionMessage | Exception) -> None:
        """A message is about to be passed on: it is counted, unless somebody waits for it, and repaired."""
        said: JSONRPCMessage | None = message.message if isinstance(message, SessionMessage) else None
        if self._asked and isinstance(said, JSONRPCResponse | JSONRPCError):
            self._asked -= 1
        else:
            self.count()
        if isinstance(said, JSONRPCResponse):
            self._repair(said.result)

    def _is_heard(self, method: str, token: object, length: int = 0) -> bool:
        """Of the progress of a call as much as can be shown, and of changes as much as can be followed."""
        if method in _HEARD:
            return True
        matter, now = f"{method} {token}", self._clock()
        if method not in _HEARD_AT_TIMES or now < self._next.get(matter, 0.0):
            self.pace.spend(THROWN_AWAY + length * BYTE)
            return False
        if len(self._next) >= MOST_CALLS:
            self._next.clear()
        self._next[matter] = now + BETWEEN_SHOWN
        return True

    def _repair(self, result: Fields) -> None:
        without_too_much(result)
        _name_unknown(result)
        tools = result.get("tools")
        if isinstance(tools, list):
            result["tools"] = [tool for tool in cast("list[Any]", tools) if self._is_usable(tool)]

    def _is_usable(self, tool: Any) -> bool:
        fault = _fault_of(tool)
        if fault:
            name = cast("Fields", tool).get("name") if isinstance(tool, dict) else None
            self._on_left_out(name[:LONGEST_NAME] if isinstance(name, str) and name else "without a name", fault)
            return False
        # What a result looks like is not promised to anybody here, and checking it could cost any amount of time.
        tool.pop("outputSchema", None)
        for optional, kind in (("description", str), ("title", str), ("annotations", dict), ("_meta", dict)):
            if optional in tool and not isinstance(tool[optional], kind):
                del tool[optional]
        for unused in ("icons", "execution"):
            tool.pop(unused, None)
        if "annotations" in tool:
            tool["annotations"] = _well_formed_hints(tool["annotations"])
        return True


def _well_formed_hints(annotations: Fields) -> Fields:
    hints = {name: said for name in _HINTS if isinstance(said := annotations.get(name), bool)}
    title = annotations.get("title")
    return hints | ({"title": title} if isinstance(title, str) else {})


# --- far too much


def without_too_much(result: Any) -> None:
    """Cuts what a call gave, a prompt or a resource, where it has far too many pieces, and lists that are too long."""
    if isinstance(result, dict):
        fields = cast("Fields", result)
        _cut(fields, "content", lambda note: note)
        _cut(fields, "messages", lambda note: {"role": "user", "content": note})
        _cut(fields, "contents", lambda note: {"uri": "…", "text": note["text"]})
        for name in _LISTS:
            if isinstance(fields.get(name), list):
                del fields[name][MOST_LISTED + 1 :]  # one more than are used shows that there are more


def _cut(result: Fields, field: str, piece: Callable[[dict[str, str]], Fields]) -> None:
    """The last piece then says how many are missing."""
    pieces: Any = result.get(field)
    if not isinstance(pieces, list):
        return
    left_out = len(cast("list[Any]", pieces)) - MOST_PIECES
    if left_out > 1:  # what was cut before has one piece more: the note
        pieces[MOST_PIECES:] = [piece({"type": "text", "text": f"({left_out:,} more pieces of content are left out)"})]


# --- what is not known


def _name_unknown(result: Fields) -> None:
    """Content of a kind that came after us: named in its place."""
    content, messages = result.get("content"), result.get("messages")
    if isinstance(content, list):
        result["content"] = _all_known(cast("list[Any]", content))
    for message in cast("list[Any]", messages) if isinstance(messages, list) else ():
        if isinstance(message, dict) and "content" in message:
            message["content"] = _known(message["content"])


def _all_known(pieces: list[Any]) -> list[Any]:
    known: list[Any] = []
    for piece in pieces:
        known.append(_known(piece))
        if known[-1] is piece:  # malformed: the library rejects the whole for it, and takes its time over each
            return [piece]
    return known


def _known(piece: Any) -> Any:
    """The piece with nothing but what is of use; the very same if it is malformed."""
    if not isinstance(piece, dict):
        return piece
    piece = cast("Fields", piece)
    kind: Any = piece.get("type")
    if not isinstance(kind, str):
        return piece
    if kind not in _KINDS:
        said = f"(something of the kind {one_line(kind, 60)}, which is not known here, left out)"
        return {"type": "text", "text": said}
    needed, optional = _KINDS[kind]
    fields: Any = piece.get("resource") if kind == "resource" else piece
    given: Fields = cast("Fields", fields) if isinstance(fields, dict) else {}
    if not all(isinstance(given.get(name), str) for name in needed):
        return piece
    kept = {name: given[name] for name in (*needed, *optional) if isinstance(given.get(name), str)}
    if kind != "resource":
        return {"type": kind, **kept}
    return {"type": kind, "resource": kept} if "text" in kept or "blob" in kept else piece


# --- tools


def _fault_of(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "it is not described"
    fields = cast("Fields", tool)
    name: Any = fields.get("name")
    if not isinstance(name, str) or not name:
        return "it has no name"
    if len(name) > LONGEST_NAME:
        return f"its name has more than {LONGEST_NAME} characters"
    schema: Any = fields.get("inputSchema")
    if not isinstance(schema, dict):
        return "its schema is not an object"
    described = cast("Fields", schema)
    kind: Any = described.setdefault("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        return "its schema is not that of an object"
    described["type"] = "object"
    properties: Any = described.get("properties", {})
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in cast("Fields", properties).values()
    ):
        return "the properties in its schema are malformed"
    required: Any = described.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        del described["required"]
    if not isinstance(described.get("$schema", ""), str):
        del described["$schema"]
    return ""
