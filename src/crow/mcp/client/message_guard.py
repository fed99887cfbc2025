"""Checks each message of an MCP server before the library sees it: what is odd costs itself alone, far too much is cut,
and a flood is read slowly.

The library rejects a whole answer for one thing in it that it does not know, and decoding cannot be interrupted.
"""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, JSONRPCError, JSONRPCNotification, JSONRPCResponse, methods
from pydantic import ValidationError

from crow.mcp.client.server_errors import TOO_MANY_VALUES
from crow.visible import one_line, replace_lone_surrogates

BURST, PART, SHORTEST_REST = 2.0, 0.05, 0.1
"""Seconds of work for what a server sends unasked: so much at once, and after that this part of the time."""
PASSED_ON, THROWN_AWAY, BLANK, BYTE = 500e-6, 20e-6, 2e-6, 10e-9
"""Seconds that it takes at most, on a slow machine: a message for the library, one that nobody uses, a line, a byte."""
BETWEEN_SHOWN = 0.1
"""Seconds between two signs of progress that are shown, and between two announcements of one change that are heard."""
MOST_CALLS = 1000
"""Calls whose progress is told apart."""
MOST_VALUES = 100_000
"""JSON values of one message: decoded, each takes up to thirty times its bytes, and holds up everybody meanwhile."""
MOST_PIECES = 1000
"""Pieces of content in one result."""
MOST_LISTED = 2000
"""Tools, prompts or resources that one server may list."""
_HEARD = ("notifications/cancelled", "notifications/elicitation/complete", "notifications/subscriptions/acknowledged")
_HEARD_AT_TIMES = (
    "notifications/progress",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
)
"""Notifications that are of use: what a server logs, for example, nobody sees."""
_KINDS = ("text", "image", "audio", "resource_link", "resource")
_USED = {"name": str, "title": str, "description": str, "inputSchema": object, "annotations": dict}
"""The fields of a tool that are of use, and their types."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A text, or the beginning of one that never ends: without that, each quote would look for an end of its own."""

Fields = dict[str, Any]


# --- bytes


class _Answer(msgspec.Struct):
    id: int | str
    method: msgspec.Raw | None = None


def readable(message: bytes | bytearray) -> bytes:
    """A message with U+FFFD for what cannot be read in it; an error in place of an answer with too many values."""
    try:
        message.decode()
    except UnicodeDecodeError:
        message = message.decode("utf-8", "replace").encode()
    message = replace_lone_surrogates(bytes(message))
    if _values(message) <= MOST_VALUES or _values(_STRING.sub(b"", message)) <= MOST_VALUES:
        return message
    return failed_answer(message, TOO_MANY_VALUES)


def _values(message: bytes) -> int:
    return sum(map(message.count, (b",", b"[", b"{")))


def failed_answer(message: bytes, why: str) -> bytes:
    """An error for the request that a bad answer belongs to; empty if it belongs to none."""
    try:
        answer = msgspec.json.decode(message, type=_Answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return b""
    if answer.method is not None:
        return b""
    error = {"code": PARSE_ERROR, "message": why}
    return json.dumps({"jsonrpc": "2.0", "id": answer.id, "error": error}).encode() + b"\n"


# --- messages


class Pace:
    """How fast a server's unasked messages are read. `on_slow` is called once, when they have become too much."""

    def __init__(self, clock: Callable[[], float], on_slow: Callable[[], None]) -> None:
        self._clock = clock
        self._on_slow = on_slow
        self._left = BURST
        self._looked = clock()
        self._is_slow = False

    def spend(self, seconds: float) -> None:
        self._left -= seconds

    def due(self) -> float:
        """The seconds in which no more should be read; 0 while it is little."""
        now = self._clock()
        self._left = min(BURST, self._left + (now - self._looked) * PART)
        self._looked = now
        if self._left > -SHORTEST_REST * PART:
            return 0.0
        if not self._is_slow:
            self._is_slow = True
            self._on_slow()
        return -self._left / PART

    async def rest(self) -> None:
        if seconds := self.due():
            await asyncio.sleep(seconds)


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
        self.pace = Pace(clock, on_slow)
        self._unanswered = 0
        self._next: dict[str, float] = {}
        """When more notifications are of use, by call or by what has changed."""

    def asks(self) -> None:
        """Counts a question to the server: its answer may be as long as it likes."""
        self._unanswered += 1

    def take(self, message: SessionMessage | Exception, size: int = 0) -> bool:
        """Whether a message is passed on. What nobody waits for is counted, and what is odd in a result taken out."""
        said = message.message if isinstance(message, SessionMessage) else None
        if isinstance(said, JSONRPCNotification) and not self._is_heard(said):
            self.pace.spend(THROWN_AWAY + size * BYTE)
            return False
        if self._unanswered and isinstance(said, JSONRPCResponse | JSONRPCError):
            self._unanswered -= 1
        else:
            self.pace.spend(PASSED_ON + size * BYTE)
        if isinstance(said, JSONRPCResponse):
            self._repair(said.result)
        return True

    def _is_heard(self, said: JSONRPCNotification) -> bool:
        """Of the progress of a call as much as can be shown, and of changes as much as can be followed."""
        if said.method in _HEARD:
            return True
        matter, now = f"{said.method} {(said.params or {}).get('progressToken')}", self._clock()
        if said.method not in _HEARD_AT_TIMES or now < self._next.get(matter, 0.0):
            return False
        if len(self._next) >= MOST_CALLS:
            self._next.clear()
        self._next[matter] = now + BETWEEN_SHOWN
        return True

    def _repair(self, result: Fields) -> None:
        _cut(result, "content", lambda note: note)
        _cut(result, "messages", lambda note: {"role": "user", "content": note})
        _cut(result, "contents", lambda note: {"uri": "…", "text": note["text"]})
        result.update(
            {name: pieces[: MOST_LISTED + 1] for name in _LISTS if isinstance(pieces := result.get(name), list)}
        )
        if isinstance(content := result.get("content"), list):
            result["content"] = [_known(piece) for piece in cast("list[Any]", content)]
        if isinstance(messages := result.get("messages"), list):
            for message in cast("list[Any]", messages):
                if isinstance(message, dict) and "content" in message:
                    message["content"] = _known(message["content"])
        if isinstance(tools := result.get("tools"), list):
            result["tools"] = [used for tool in cast("list[Any]", tools) if (used := self._usable(tool)) is not None]

    def _usable(self, tool: Any) -> Fields | None:
        """What is used of a tool; None if the library would reject it, and all others with it."""
        given = cast("Fields", tool) if isinstance(tool, dict) else {}
        used = {
            field: given[field] for field, kind in _USED.items() if field in given and isinstance(given[field], kind)
        }
        if isinstance(used.get("inputSchema"), dict):
            used["inputSchema"] = {"type": "object", **used["inputSchema"]}
        if "annotations" in used:
            used["annotations"] = {name: said for name, said in used["annotations"].items() if _is_hint(name, said)}
        try:
            methods.validate_server_result("tools/list", "2025-11-25", {"tools": [used]})
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(step) for step in first["loc"][2:])
            name = one_line(str(used.get("name") or "a tool without a name"), 300)
            self._on_left_out(name, one_line(f"{place}: {first['msg']}", 200))
            return None
        return used


_LISTS = ("tools", "prompts", "resources", "resourceTemplates")


def _cut(result: Fields, field: str, piece: Callable[[dict[str, str]], Fields]) -> None:
    """Cuts a list of content that is far too long. The last piece then says how many are missing."""
    pieces: Any = result.get(field)
    if isinstance(pieces, list) and (left_out := len(cast("list[Any]", pieces)) - MOST_PIECES) > 0:
        pieces[MOST_PIECES:] = [piece({"type": "text", "text": f"({left_out:,} more pieces of content are left out)"})]


def _known(piece: Any) -> Any:
    """Content of a kind that came after us is named in its place."""
    kind: Any = cast("Fields", piece).get("type") if isinstance(piece, dict) else None
    if not isinstance(kind, str) or kind in _KINDS:
        return cast("Any", piece)
    return {"type": "text", "text": f"(content of an unknown kind, {one_line(kind, 60)}, left out)"}


def _is_hint(name: str, said: Any) -> bool:
    return isinstance(said, str) if name == "title" else name.endswith("Hint") and isinstance(said, bool)
