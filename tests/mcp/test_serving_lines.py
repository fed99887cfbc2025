"""`crow mcp` on pipes: whoever sends a line that cannot be read is told, and need not wait for an answer in vain."""

import json
from pathlib import Path
from typing import Any

import pytest

from crow.mcp.server.stdio import refusal
from tests.mcp.hosts import RawServer
from tests.support.patience import DEADLINE

CREATE = '"method":"tools/call","params":{"name":"file_editor","arguments":{"command":"create","path":"half.txt"'

ANSWERED = [
    ("garbage", None, -32700),
    ("{", None, -32700),
    ("[" * 5000, None, -32700),
    ("\x00\x01", None, -32700),
    ("[]", None, -32600),
    ('[{"jsonrpc":"2.0","id":5,"method":"ping"}]', None, -32600),
    ("null", None, -32600),
    ("1", None, -32600),
    ("{}", None, -32600),
    ('{"id":7}', 7, -32600),
    ('{"jsonrpc":"1.0","id":7,"method":"ping"}', 7, -32600),
    ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, -32600),
    ('{"jsonrpc":"2.0","id":1e999,"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', None, -32600),
    ('{"jsonrpc":"2.0","id":"a","method":5}', "a", -32600),
    ('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":[1]}', "a", -32600),
    ('{"jsonrpc":"2.0","id":"a","method":"ping","params":{"deep":' + "[" * 500 + "]" * 500 + "}}", "a", -32600),
    ('{"jsonrpc":"2.0","id":50,' + CREATE + ',"file_text":"hi \\ud83d"}}}', 50, -32700),
    ('{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', "\ud800", -32700),
]

UNANSWERED = [
    "",
    "   ",
    '{"jsonrpc":"2.0","method":"notifications/zzz","params":[1]}',
    '{"jsonrpc":"2.0","method":"notifications/zzz","params":{"half":"\\ud83d"}}',
    '{"jsonrpc":"2.0","id":null,"method":"notifications/zzz"}',
    '{"jsonrpc":"2.0","id":5,"result":null}',
    '{"jsonrpc":"2.0","id":5,"result":{"half":"\\ud83d"}}',
    '{"jsonrpc":"2.0","id":5,"error":"no"}',
]
"""Notifications, which have no answer, and answers, whose ids are the server's."""


@pytest.fixture
def server(tmp_path: Path) -> RawServer:
    server = RawServer(tmp_path)
    server.begin()
    return server


def test_a_line_that_cannot_be_read_is_answered_with_its_id_where_it_can_be_told(server: RawServer, tmp_path: Path):
    told: list[tuple[Any, int]] = []
    for line, _, _ in ANSWERED:
        server.send(line)
        message = server.next_message()
        told.append((message["id"], message["error"]["code"]))
    assert told == [(id, code) for _, id, code in ANSWERED]
    assert not (tmp_path / "half.txt").exists()
    out, complained = server.process.communicate(timeout=DEADLINE)
    assert (out, complained) == (b"", b"")


def test_what_expects_no_answer_gets_none(server: RawServer):
    for line in UNANSWERED:
        server.send(line)
    server.send({"id": 9, "method": "ping"})
    assert server.next_message() == {"jsonrpc": "2.0", "id": 9, "result": {}}
    server.process.communicate(timeout=DEADLINE)


def test_a_line_that_cannot_be_read_may_come_first(tmp_path: Path):
    server = RawServer(tmp_path)
    server.send("garbage")
    assert server.next_message()["error"]["code"] == -32700
    server.begin()
    server.process.communicate(timeout=DEADLINE)


def test_calls_that_a_host_does_not_wait_for_are_made_in_its_order(server: RawServer, tmp_path: Path):
    rounds = 20
    for number in range(rounds):
        server.call(3 * number + 10, "file_editor", command="create", path="a.txt", file_text=f"one {number}\r\n")
        server.call(3 * number + 11, "file_editor", command="str_replace", path="a.txt", old_str="one", new_str="two")
        server.call(3 * number + 12, "file_editor", command="undo_edit", path="a.txt")
    answers = [server.next_message() for _ in range(3 * rounds)]
    assert [message["id"] for message in answers] == list(range(10, 10 + 3 * rounds))
    assert not any(message["result"]["isError"] for message in answers)
    assert (tmp_path / "a.txt").read_bytes() == b"one 19\r\n"
    server.process.communicate(timeout=DEADLINE)


def test_a_line_that_was_skipped_for_its_length_is_answered_without_an_id():
    answered = json.loads(refusal(None))
    assert (answered["id"], answered["error"]["code"]) == (None, -32600)
    assert "64 MiB" in answered["error"]["message"]
