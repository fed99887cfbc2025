"""Ten thousand lines that no client should send: the same process answers correctly afterwards."""

import copy
import json
import os
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

SEED = int(os.environ.get("CROW_HOSTILE_SEED", "20260901"))
LINES = int(os.environ.get("CROW_HOSTILE_LINES", "10000"))
MEBIBYTE = 2**20

SCRIPT = """
[[reply]]
when = "still there?"
events = [{ text = "Still here." }]
[[reply]]
repeat = true
events = [{ text = "?" }]
"""

PARAMS: dict[str, Any] = {
    "initialize": {
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": {"readTextFile": False, "writeTextFile": False},
            "terminal": False,
            "auth": {"terminal": False},
            "elicitation": {"form": {}, "url": {}},
            "session": {"configOptions": {"boolean": {}}, "notices": {}},
        },
        "clientInfo": {"name": "x", "title": "X", "version": "1"},
    },
    "authenticate": {"methodId": "nobody"},
    "session/new": {
        "cwd": "/nowhere",
        "mcpServers": [{"name": "a", "command": "/b", "args": ["c"], "env": [{"name": "d", "value": "e"}]}],
        "additionalDirectories": ["/nowhere"],
    },
    "session/prompt": {
        "sessionId": "unknown",
        "prompt": [
            {"type": "text", "text": "t", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "aa", "mimeType": "image/png", "uri": "file:///x"},
            {"type": "audio", "data": "aa", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///x", "name": "x", "size": 1},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "t", "mimeType": "text/plain"}},
        ],
    },
    "session/close": {"sessionId": "unknown"},
    "session/cancel": {"sessionId": "unknown"},
    "$/cancel_request": {"requestId": 1},
    "session/load": {"sessionId": "unknown", "cwd": "/", "mcpServers": []},
    "_vendor/x": {"a": [1, 2, {"b": None}]},
}
ODD_VALUES = [None, True, False, 0, -1, 1.5, 1e308, 2**70, "", "x", "\0", "\ud800", "é" * 50, [], [[]], {}, {"a": 1}]
EVIL = {"sessionId": "EVIL", "session_id": "EVIL", "method": "EVIL", "id": "EVIL", "cwd": "EVIL", "prompt": "EVIL"}
BARE = [
    b"null",
    b"42",
    b'"x"',
    b"true",
    b"[]",
    b"{}",
    b"[1,2]",
    b'[{"jsonrpc":"2.0","id":1,"method":"initialize"}]',
    b"\xef\xbb\xbf{}",
]
BYTES = [
    b"\xff\xfe\x00",
    b"\xc3\x28",
    b"\x00",
    b"\x00" * 40,
    b'{"jsonrpc":"2.0","id":1,"method":"a\x00b"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
    b'{"jsonrpc":"2.0","id":1,"method":"x"',
    b'{"jsonrpc":"2.0","id":1,"method":"x"}}',
    b"Content-Length: 20",
    b"GET / HTTP/1.1",
    b"{'jsonrpc': '2.0'}",
    b"NaN",
    b'{"jsonrpc":"2.0","id":NaN,"method":"x"}',
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself among them."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = replaced(value[path[0]], path[1:], new)
    return value


def with_evil_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: with_evil_meta(inner) for key, inner in value.items()} | {"_meta": EVIL}
    return [with_evil_meta(inner) for inner in value] if isinstance(value, list) else value


class Hostility:
    """Lines, and how many answers each well-formed request among them must get."""

    def __init__(self) -> None:
        self.random = random.Random(SEED)
        self.lines: list[bytes] = []
        self.requests: list[str] = []
        self._places = [(method, place) for method, params in PARAMS.items() for place in places(params)]

    def generate(self) -> None:
        for method, place in self._places:  # a wrong value at every place of every method, once each
            for value in (None, 7, "x", [], {}):
                self.call(method, replaced(PARAMS[method], place, value))
        makers = [
            self.wrong_type,
            self.evil_meta,
            self.garbage,
            self.cut_line,
            self.answer_to_nothing,
            self.odd_envelope,
        ]
        while len(self.lines) < LINES - 20:
            self.random.choice(makers)()
        self.lines += BARE
        self.random.shuffle(self.lines)

    def call(self, method: str, params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if self.random.random() < 0.8:
            message["id"] = f"h{len(self.requests)}"
            self.requests.append(message["id"])
        self.lines.append(json.dumps(message).encode() + self.random.choice([b"", b"", b"\r", b"  "]))

    def wrong_type(self) -> None:
        method, place = self.random.choice(self._places)
        self.call(method, replaced(PARAMS[method], place, self.random.choice(ODD_VALUES)))

    def evil_meta(self) -> None:
        method = self.random.choice(list(PARAMS))
        self.call(method, with_evil_meta(PARAMS[method]))

    def garbage(self) -> None:
        self.lines.append(self.random.choice([*BYTES, *BARE, b"", b"\r", b"   ", self.random.randbytes(30)]))
        self.lines[-1] = self.lines[-1].replace(b"\n", b"?")

    def cut_line(self) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": PARAMS["session/prompt"]})
        self.lines.append(line.encode()[: self.random.randrange(1, len(line))])

    def answer_to_nothing(self) -> None:
        body = self.random.choice(
            [{"result": {}}, {"error": {"code": 1, "message": "x"}}, {"error": 5}, {"result": None}]
        )
        id = self.random.choice([1, 2, 3, "1", None, -1, 1.0, "never"])
        self.lines.append(json.dumps({"jsonrpc": "2.0", "id": id} | body).encode())

    def odd_envelope(self) -> None:
        id = f"h{len(self.requests)}"
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {}}
        key = self.random.choice(list(message))
        if key == "id":
            message["id"] = self.random.choice([True, False, [], {}, [1], {"a": 1}])
        else:
            message[key] = self.random.choice(ODD_VALUES)
            self.requests.append(id)
        self.lines.append(json.dumps(message).encode())


@pytest.mark.rule("R1", "R2", "R7", "R9", "R10", "R150")
def test_ten_thousand_hostile_lines_leave_the_agent_answering(open_editor):
    crow = open_editor(script=SCRIPT)
    crow.new_session()
    hostility = Hostility()
    hostility.generate()
    assert len(hostility.lines) > LINES - 20
    answers = [crow.expect("hostile", id) for id in hostility.requests]
    for line in hostility.lines:
        crow.send_line(line)
    for answer in answers:
        assert is_initialized(answer.wait()) or answer.error().code in (-32600, -32601, -32602, -32002)
    with_error = [message["error"] for message in crow.received if message.get("id", ...) is None]
    assert {error["code"] for error in with_error} == {-32700, -32600}
    assert not any("EVIL" in error["message"] for error in with_error)
    crow.initialize()
    crow.new_session()
    assert crow.prompt("still there?") == {"stopReason": "end_turn"}
    assert crow.text() == "Still here."
    assert crow.memory() < 150 * MEBIBYTE


def is_initialized(message: dict[str, Any]) -> bool:
    """Some of the generated handshakes are right by chance."""
    message["method of the request"] = "initialize"
    return message.get("result", {}).get("protocolVersion") == 1


@pytest.mark.rule("R9", "R12")
def test_each_unreadable_line_gets_its_own_answer(open_editor):
    crow = open_editor(initialize=False)
    unreadable = [*BARE, *BYTES]
    for line in unreadable:
        crow.send_line(line)
    crow.initialize()
    codes = [message["error"]["code"] for message in crow.received[:-1]]
    assert codes[: len(BARE)] == [-32600] * len(BARE)
    assert codes[len(BARE) :] == [-32700] * len(BYTES)


@pytest.mark.rule("R9")
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"jsonrpc":"2.0","id":1,"method":"\\ud800","params":[['])
def test_nesting_a_hundred_thousand_deep(open_editor, opening):
    crow = open_editor(initialize=False)
    crow.send_line(opening * 100_000)
    assert crow.wait_for(lambda message: True)["error"]["code"] in (-32700, -32600)
    crow.initialize()


@pytest.mark.rule("R9")
@pytest.mark.parametrize("depth", [300, 600, 900, 980, 1200])
def test_deep_but_readable_nesting_with_half_a_character_costs_no_other_line(open_editor, depth):
    """A request that has to be mended first, in one write with the next: both are answered."""
    crow = open_editor(initialize=False)
    deep = b'{"jsonrpc":"2.0","id":"deep","method":"x","params":{"a":"\\ud83d","b":%b}}' % (b"[" * depth + b"]" * depth)
    initialized = crow.expect("initialize")
    next_line = {"jsonrpc": "2.0", "id": initialized.id, "method": "initialize", "params": {"protocolVersion": 1}}
    crow.expect("x", "deep")
    crow._unreadable += 1
    crow.send_bytes(deep + b"\n" + json.dumps(next_line).encode() + b"\n")
    assert initialized.answer()["protocolVersion"] == 1
    assert crow.received[0]["error"]["code"] in (-32601, -32700)


@pytest.mark.rule("R79")
def test_half_a_character_in_a_prompt_is_mended(open_editor):
    crow = open_editor(script=SCRIPT)
    crow.new_session()
    answer = crow.expect("session/prompt", 2**60)
    params = json.dumps(crow.prompt_params("a\ud83db \\ud83d 😀")).encode()
    crow.send_bytes(b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":%b}\n' % (2**60, params))
    assert answer.answer() == {"stopReason": "end_turn"}
    assert crow.last_prompt() == [{"part": "text", "text": "a�b \\ud83d 😀"}]


@pytest.mark.rule("R9")
def test_a_line_over_64_mebibytes_is_skipped_and_its_memory_given_back(open_editor):
    crow = open_editor(script=SCRIPT, cold=True)
    start = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"'
    crow._unreadable += 1
    crow.send_bytes(start)
    for _ in range(65):
        crow.send_bytes(b"a" * MEBIBYTE)
    answer = crow.wait_for(lambda message: "error" in message)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "64 MiB" in answer["error"]["message"]
    for _ in range(20):
        crow.send_bytes(b"a" * MEBIBYTE)
    crow.send_bytes(b'"}}\n')
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.memory() < 150 * MEBIBYTE
    assert sum("error" in message for message in crow.received) == 1


@pytest.mark.rule("R1", "R9")
def test_a_byte_order_mark_before_the_first_message(open_editor):
    crow = open_editor(script=SCRIPT, initialize=False)
    crow.send_bytes("\ufeff".encode())
    assert crow.initialize()["protocolVersion"] == 1


@pytest.mark.rule("R9", "R66")
def test_a_prompt_of_20_megabytes_is_read(open_editor):
    crow = open_editor(script=SCRIPT, config="context_window = 100_000_000")
    crow.new_session()
    assert crow.prompt("é" * 10_000_000) == {"stopReason": "end_turn"}
    assert len(crow.last_prompt()[0]["text"]) == 10_000_000


@pytest.mark.rule("R7", "R10")
def test_two_requests_with_one_id_get_one_answer_each(open_editor):
    crow = open_editor(initialize=False)
    line = b'{"jsonrpc":"2.0","id":null,"method":"initialize","params":{"protocolVersion":1}}'
    for _ in range(3):
        crow.send_line(line)
    crow.start("nonsense").error()
    assert [message["id"] for message in crow.received[:3]] == [None] * 3
    for message in crow.received[:3]:
        message["method of the request"] = "initialize"


@pytest.mark.rule("R150")
def test_meta_is_never_read_as_a_parameter(open_editor, tmp_path):
    crow = open_editor(script=SCRIPT)
    evil = {"_meta": EVIL | {"stopReason": "EVIL"}}
    params = {"cwd": str(crow.workspace), "mcpServers": [], **evil}
    crow.session_id = crow.request("session/new", params)["sessionId"]
    block = {"type": "text", "text": "still there?", **evil, "annotations": evil}
    answer = crow.request("session/prompt", {"sessionId": crow.session_id, "prompt": [block], **evil})
    assert answer == {"stopReason": "end_turn"}
    assert crow.text() == "Still here."
    assert crow.last_prompt() == [{"part": "text", "text": "still there?"}]


@pytest.mark.rule("R9")
def test_line_ends_of_windows_blank_lines_and_a_last_line_without_an_end(open_editor):
    crow = open_editor(initialize=False)
    answer = crow.expect("initialize", 5)
    line = b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":1}}'
    crow.send_bytes(b"\r\n\n   \n\r\n" + line + b"\r\n\r\n")
    answer.answer()
    last = crow.expect("initialize", 6)
    crow.send_bytes(line.replace(b":5", b":6"))
    crow.hang_up()
    last.answer()
    assert len(crow.lines) == 2


@pytest.mark.rule("R9")
def test_a_line_that_comes_byte_by_byte(open_editor):
    crow = open_editor(initialize=False)
    answer = crow.expect("initialize", 5)
    for byte in b'{"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":1}}\n':
        crow.send_bytes(bytes([byte]))
    assert answer.answer()["protocolVersion"] == 1


@pytest.mark.rule("R9", "R7")
def test_a_client_that_asks_and_does_not_read_costs_bounded_memory(open_editor):
    """Its answers pile up to a limit; then Crow stops reading, and nothing is lost once the client reads again."""
    crow = open_editor(initialize=False, cold=True)
    crow.stop_reading()
    asked = 90_000
    answers = [crow.expect("x" * 199, f"q{number}") for number in range(asked)]
    lines = [json.dumps({"jsonrpc": "2.0", "id": a.id, "method": a.method}).encode() + b"\n" for a in answers]
    sender = threading.Thread(target=lambda: crow.send_bytes(b"".join(lines)))
    sender.start()
    crow.wait_until_it_rests()
    assert sender.is_alive(), "Crow took all of it"
    assert crow.memory() < 150 * MEBIBYTE
    crow.read_on()
    sender.join()
    assert {answer.wait()["error"]["code"] for answer in answers} == {-32601}
