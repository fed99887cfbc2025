"""Every message of a server passes here before the library sees it, whatever it comes through.

A server that floods is stopped. From a list of tools those are taken out that the library would reject, which would
reject the whole list with them. From a result with far too many pieces only the first ones are kept.
"""

from collections.abc import Callable
from typing import Any, cast

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from crow.mcp.using.failures import ServerFailed

MOST_A_SECOND = 2000
"""Messages that a server may send: far more than a busy one does."""
LONGEST_NAME = 200
MOST_PIECES = 1000
"""Of content in one result: each costs far more than its bytes."""


class Tap:
    """`on_left_out` is told the name of a tool and what is wrong with it."""

    def __init__(self, clock: Callable[[], float], on_left_out: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._on_left_out = on_left_out
        self._second = 0
        self._count = 0

    def count(self) -> None:
        """One more message: ServerFailed if there are too many."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > MOST_A_SECOND:
            raise ServerFailed(f"it sends more than {MOST_A_SECOND:,} messages a second")

    def take(self, message: SessionMessage | Exception) -> None:
        self.count()
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            self._mend(message.message.result)

    def _mend(self, result: dict[str, Any]) -> None:
        without_too_much(result)
        tools = result.get("tools")
        if isinstance(tools, list):
            result["tools"] = [tool for tool in cast("list[Any]", tools) if self._is_usable(tool)]

    def _is_usable(self, tool: Any) -> bool:
        fault = _fault_of(tool)
        if fault:
            name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
            self._on_left_out(name[:LONGEST_NAME] if isinstance(name, str) else "without a name", fault)
            return False
        # What a result looks like is not promised to anybody here, and checking it could cost any amount of time.
        tool.pop("outputSchema", None)
        for optional, kind in (("description", str), ("title", str), ("annotations", dict), ("_meta", dict)):
            if optional in tool and not isinstance(tool[optional], kind):
                del tool[optional]
        for unused in ("icons", "execution"):
            tool.pop(unused, None)
        return True


def without_too_much(result: Any) -> None:
    """Cuts what a call gave, a prompt or a resource, where it has far too many pieces."""
    if isinstance(result, dict):
        fields = cast("dict[str, Any]", result)
        _cut(fields, "content", lambda note: note)
        _cut(fields, "messages", lambda note: {"role": "user", "content": note})
        _cut(fields, "contents", lambda note: {"uri": "…", "text": note["text"]})


def _cut(result: dict[str, Any], field: str, piece: Callable[[dict[str, str]], dict[str, Any]]) -> None:
    """The last piece then says how many are missing."""
    pieces: Any = result.get(field)
    if not isinstance(pieces, list):
        return
    left_out = len(cast("list[Any]", pieces)) - MOST_PIECES
    if left_out > 1:  # what was cut before has one piece more: the note
        pieces[MOST_PIECES:] = [piece({"type": "text", "text": f"({left_out:,} more pieces of content are left out)"})]


def _fault_of(tool: Any) -> str:
    if not isinstance(tool, dict):
        return "it is not described"
    fields = cast("dict[str, Any]", tool)
    if not isinstance(fields.get("name"), str) or not fields["name"]:
        return "it has no name"
    schema: Any = fields.get("inputSchema")
    if not isinstance(schema, dict):
        return "its schema is not an object"
    described = cast("dict[str, Any]", schema)
    if described.setdefault("type", "object") != "object":
        return "its schema is not that of an object"
    properties: Any = described.get("properties", {})
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in cast("dict[str, Any]", properties).values()
    ):
        return "the properties in its schema are malformed"
    required: Any = described.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast("list[Any]", required)):
        del described["required"]
    if not isinstance(described.get("$schema", ""), str):
        del described["$schema"]
    return ""
