"""What is answered to a line that is no message of the protocol, so that nobody waits for an answer in vain."""

import json
import math
from typing import Any, cast

from mcp_types import INVALID_REQUEST, PARSE_ERROR

Id = str | int | float | None


def refusal(line: str) -> str:
    """An error, as a line, with the id that the line has, where that can be told; empty if none is expected."""
    if not line.strip():
        return ""
    try:
        raw = json.loads(line)  # which also reads halves of characters: the id may still be found
    except (ValueError, RecursionError):
        return _error(None, PARSE_ERROR, "This line is no JSON.")
    match raw:
        case {"result": _} | {"error": _} if "method" not in raw:
            return ""  # an answer to us: its id is one of ours
        case {"method": str()} if "id" not in raw:
            return ""  # a notification
        case dict():
            return _about_a_request(cast("dict[str, Any]", raw))
        case list():
            return _error(None, INVALID_REQUEST, "Several messages in one line are not supported.")
        case _:
            return _error(None, INVALID_REQUEST, "This line is no message of JSON-RPC.")


def _about_a_request(raw: dict[str, Any]) -> str:
    id = _usable(raw.get("id"))
    if _holds_half_a_character(raw):
        return _error(id, PARSE_ERROR, "This line holds half a character: a surrogate (\\uD800 to \\uDFFF) by itself.")
    what = "its id is neither a string nor a whole number" if isinstance(id, float) else "its form is wrong"
    return _error(id, INVALID_REQUEST, f"This line is no request of JSON-RPC: {what}.")


def _holds_half_a_character(raw: dict[str, Any]) -> bool:
    try:
        json.dumps(raw, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except RecursionError:
        pass  # then it is the depth that is wrong with it
    return False


def _usable(id: object) -> Id:
    """As it came, so that whoever waits for it knows it again."""
    if (
        isinstance(id, bool)
        or not isinstance(id, str | int | float)
        or (isinstance(id, float) and not math.isfinite(id))
    ):
        return None
    return id


def _error(id: Id, code: int, message: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
