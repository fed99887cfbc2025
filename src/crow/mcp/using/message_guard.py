"""Checks every message of an MCP server before the library sees it: stops a flood, takes out odd entries, cuts what is
far too long.

A server that floods is stopped. The library rejects a whole answer for one thing in it that it does not know: so what
is odd is taken out of lists of tools, and of what a call gave. Of far too much only the beginning is kept.
"""

from collections.abc import Callable
from typing import Any, cast

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCResponse

from crow.mcp.using.raw_messages import MOST_LISTED, MOST_PIECES
from crow.mcp.using.server_errors import ServerFailed
from crow.visible import one_line

MOST_A_SECOND = 2000
"""Messages that a server may send: far more than a busy one does."""
BETWEEN_SHOWN = 0.1
"""Seconds between two signs of progress that are shown."""
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


class MessageGuard:
    """`on_left_out` is told the name of a tool and what is wrong with it."""

    def __init__(self, clock: Callable[[], float], on_left_out: Callable[[str, str], None]) -> None:
        self._clock = clock
        self._on_left_out = on_left_out
        self._second = 0
        self._count = 0
        self._next_progress: dict[str, float] = {}
        """By call: when more of its progress is of use."""

    def count(self) -> None:
        """One more message: ServerFailed if there are too many."""
        second = int(self._clock())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > MOST_A_SECOND:
            raise ServerFailed(f"it sends more than {MOST_A_SECOND:,} messages a second")

    def take(self, message: SessionMessage | Exception) -> bool:
        """Whether it is to be passed on. What is thrown away costs nothing, and is not counted."""
        if isinstance(message, SessionMessage) and not self._is_of_use(message.message):
            return False
        self.count()
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            self._repair(message.message.result)
        return True

    def _is_of_use(self, message: JSONRPCMessage) -> bool:
        """Of the progress of a call only as much as can be shown."""
        if not isinstance(message, JSONRPCNotification) or message.method != "notifications/progress":
            return True
        call, now = str((message.params or {}).get("progressToken")), self._clock()
        if now < self._next_progress.get(call, 0.0):
            return False
        if len(self._next_progress) >= MOST_CALLS:
            self._next_progress.clear()
        self._next_progress[call] = now + BETWEEN_SHOWN
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
