"""A server's message with far too much in it: what is left of it, whatever it comes through."""

import asyncio
import json
from typing import Any

import pytest

from crow.mcp.client.raw_messages import is_costly, shortened
from crow.mcp.client.remote import _in_bounds

MANY = 30_000


def answer(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "result": result}).encode()


def left_of(result: Any) -> Any:
    message = answer(result)
    assert is_costly(message)
    read = json.loads(shortened(message))
    assert (read["jsonrpc"], read["id"]) == ("2.0", 7)
    return read["result"]


def test_of_many_pieces_the_first_are_left_and_a_note():
    content = left_of({"content": [{"type": "text", "text": str(n), "_meta": {"a": [1]}} for n in range(MANY)]})[
        "content"
    ]
    assert content[:2] == [{"type": "text", "text": "0"}, {"type": "text", "text": "1"}]
    assert len(content) == 1001
    assert "more than 1,000 pieces" in content[-1]["text"]


def test_structured_content_is_told_in_part_where_nothing_else_is_said():
    rows = {"rows": [[] for _ in range(MANY)]}
    [told] = left_of({"content": [], "structuredContent": rows})["content"]
    assert told["text"].startswith('{"rows": [[], [], []')
    said = {"content": [{"type": "text", "text": "all rows"}], "structuredContent": rows, "isError": False}
    assert left_of(said) == {"content": [{"type": "text", "text": "all rows"}], "isError": False}


def test_a_long_text_beside_it_is_left_whole():
    text = "a, b [c] " * MANY
    assert left_of({"content": [{"type": "text", "text": text}], "x": [[]] * MANY})["content"][0]["text"] == text


def test_numbers_that_are_none_do_not_make_it_unreadable():
    assert left_of({"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": [float("nan")] * MANY}})


@pytest.mark.parametrize("before", [b"", b"data: "])
def test_it_is_cut_in_a_body_and_in_an_event(before):
    message = before + answer({"content": [{}] * MANY})
    left = asyncio.run(_in_bounds([message, b"\n"]))
    assert left.startswith(before.strip())
    assert len(left) < len(message) / 20
