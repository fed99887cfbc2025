"""A server's message with far too much in it: whoever waits for it is told, and a long text is no such message."""

import json
from typing import Any

from crow.mcp.client.message_guard import readable
from crow.mcp.client.remote import _readable_events

MANY = 1_000_001


def answer(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}).encode()


def test_an_answer_with_too_many_values_becomes_an_error_for_whoever_waits():
    left = json.loads(readable(answer({"content": [], "structuredContent": {"rows": [[]] * MANY}})))
    assert (left["id"], left["error"]["message"]) == (7, "its answer holds too many values")


def test_nobody_waits_for_a_notification_with_too_many_values():
    assert readable(json.dumps({"jsonrpc": "2.0", "method": "notifications/x", "params": [[]] * MANY}).encode()) == b""


def test_a_long_text_is_left_as_it_is():
    message = answer({"content": [{"type": "text", "text": 'a, b [c] {"d"} \\ ' * (MANY // 3)}]})
    assert readable(message) == message


def test_it_is_the_same_in_an_event():
    left = _readable_events(b"event: message\ndata: " + answer({"content": [[]] * MANY}) + b"\n\n")
    first, data, *_ = left.split(b"\n")
    assert first == b"event: message"
    assert json.loads(data.removeprefix(b"data:"))["id"] == 7
