"""The first exchange: versions, capabilities, and what is refused before it."""

import json
from typing import Any

import pytest

from tests.support.editor import EVERYTHING, FILES, NOTHING, ErrorAnswer

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'


@pytest.mark.rule("R16")
@pytest.mark.parametrize("version", [0, 1, 2, 99, -1, 65535, 2**64])
def test_every_whole_version_is_answered_with_the_one_we_speak(open_editor, version):
    crow = open_editor(initialize=False)
    assert crow.initialize(version=version)["protocolVersion"] == 1


@pytest.mark.rule("R16")
@pytest.mark.parametrize("version", ["1", 1.5, None, True, [], {}, "v1"])
def test_a_version_that_is_no_whole_number_is_refused_and_can_be_mended(open_editor, version):
    crow = open_editor(initialize=False)
    with pytest.raises(ErrorAnswer) as refused:
        crow.initialize(version=version)
    assert refused.value.code == -32602
    assert crow.initialize(version=1)["protocolVersion"] == 1


@pytest.mark.rule("R17", "R18", "R19", "R22", "R150")
def test_the_answer_says_who_we_are_and_offers_only_what_works(open_editor):
    answer = open_editor(script=HELLO).initialized
    steering = {"steering": {"supported": True, "idleBehavior": "promptRequired"}}
    assert answer["agentInfo"]["name"] == "crow"
    assert answer["agentInfo"]["version"]
    assert answer["agentCapabilities"] == {
        "loadSession": True,
        "promptCapabilities": {"embeddedContext": True},
        "sessionCapabilities": {
            name: {} for name in ("list", "resume", "fork", "close", "delete", "status", "additionalDirectories")
        },
        "mcpCapabilities": {"http": True, "sse": True},
        "auth": {"logout": {}},
        "_meta": steering,
    }
    assert answer["_meta"] == steering
    assert set(answer) == {"protocolVersion", "agentCapabilities", "authMethods", "agentInfo", "_meta"}


@pytest.mark.rule("R19")
def test_pictures_are_welcome_if_the_model_sees(open_editor):
    answer = open_editor(script=HELLO, images=True).initialized
    assert answer["agentCapabilities"]["promptCapabilities"] == {"embeddedContext": True, "image": True}


CAPABILITIES = {
    "nothing": NOTHING,
    "null": None,
    "files": FILES,
    "everything": EVERYTHING,
    "nulls inside": {"fs": None, "terminal": None, "auth": None, "elicitation": None, "session": None},
    "nulls deeper": {"fs": {"readTextFile": None}, "auth": {"terminal": None}, "session": {"notices": None}},
    "unknown keys": {"hologram": True, "_meta": {"fs": {"readTextFile": True}}, "fs": {"smell": 1}},
}


@pytest.mark.rule("R14", "R20")
@pytest.mark.parametrize("capabilities", CAPABILITIES.values(), ids=CAPABILITIES)
def test_a_prompt_works_with_every_set_of_capabilities(open_editor, capabilities):
    crow = open_editor(script=HELLO, capabilities=capabilities)
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.text() == "Hello there."


@pytest.mark.rule("R14")
def test_capabilities_may_be_left_out_altogether(open_editor):
    crow = open_editor(script=HELLO, initialize=False)
    crow.request("initialize", {"protocolVersion": 1})
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}


@pytest.mark.rule("R14")
@pytest.mark.parametrize("wrong", ["all", [], 7, {"fs": "yes"}, {"terminal": {"a": 1}}, {"session": []}])
def test_capabilities_of_a_wrong_type_are_refused_by_name(open_editor, wrong: Any):
    crow = open_editor(initialize=False)
    error = crow.start("initialize", {"protocolVersion": 1, "clientCapabilities": wrong}).error()
    assert error.code == -32602
    assert "clientCapabilities" in error.message


@pytest.mark.rule("R15")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/new", {"cwd": "/", "mcpServers": []}),
        ("session/prompt", {"sessionId": "x", "prompt": []}),
        ("session/close", {"sessionId": "x"}),
        ("session/load", {"sessionId": "x", "cwd": "/", "mcpServers": []}),
        ("session/resume", {"sessionId": "x", "cwd": "/"}),
        ("session/fork", {"sessionId": "x", "cwd": "/"}),
        ("session/list", {}),
        ("session/delete", {"sessionId": "x"}),
        ("session/set_mode", {"sessionId": "x", "modeId": "ask"}),
        ("session/set_config_option", {"sessionId": "x", "configId": "mode", "value": "ask"}),
        ("logout", {}),
        ("authenticate", {"methodId": "crow-demo"}),
    ],
)
def test_nothing_works_before_initialize(open_editor, method, params):
    crow = open_editor(initialize=False)
    error = crow.start(method, params).error()
    assert (error.code, error.message) == (-32600, "Invalid request: `initialize` must come first")
    crow.initialize()


@pytest.mark.rule("R8", "R152", "R162", "R163", "R164")
def test_methods_that_are_not_offered_are_not_found(open_editor):
    crow = open_editor()
    names = "session/set_model session/archive session/set_title providers/list auth/status _vendor/anything"
    for name in [*names.split(), "nonsense", ""]:
        error = crow.start(name).error()
        assert (error.code, error.data) == (-32601, {"method": name})


@pytest.mark.rule("R7", "R8", "R147", "R152")
def test_unknown_notifications_are_ignored_in_silence(open_editor):
    crow = open_editor()
    before = len(crow.lines)
    for method in ("session/unheard_of", "_vendor/note", "$/progress", "session/new", ""):
        crow.notify(method, {"sessionId": "x"})
    crow.notify("$/cancel_request", {"requestId": 999})
    crow.notify("$/cancel_request", {"wrong": True})
    crow.notify("session/cancel", ["wrong"])
    crow.start("nonsense").error()
    assert len(crow.lines) == before + 1


IDS = [1, 0, -5, 2**53 + 1, 10**40, "a", "", "1", "ключ 🐦", '"quoted"\n']


@pytest.mark.rule("R10")
@pytest.mark.parametrize("id", IDS)
def test_an_id_comes_back_as_it_was(open_editor, id):
    crow = open_editor(initialize=False)
    assert crow.start("nonsense", id=id).wait()["id"] == id


@pytest.mark.rule("R10")
@pytest.mark.parametrize(
    "raw", ["1.0", "1e2", "-0", "1E+2", '"\\u00e9"', '"\\/"', "null", "123456789012345678901234567890"]
)
def test_an_id_comes_back_to_the_letter(open_editor, raw):
    crow = open_editor(initialize=False)
    if raw != "null":
        crow.expect("nonsense", json.loads(raw))
    crow.send_line(b'{"jsonrpc":"2.0","id": %b ,"method":"nonsense"}' % raw.encode())
    crow.wait_until(lambda: len(crow.lines) == 1, "an answer")
    assert crow.lines[0].startswith(b'{"jsonrpc":"2.0","id":%b,"error":' % raw.encode())


@pytest.mark.rule("R9", "R10")
@pytest.mark.parametrize("raw", ["true", "[1]", '{"a":1}', "false"])
def test_what_cannot_be_an_id_is_refused(open_editor, raw):
    crow = open_editor(initialize=False)
    crow.send_line(b'{"jsonrpc":"2.0","id":%b,"method":"initialize","params":{"protocolVersion":1}}' % raw.encode())
    answer = crow.wait_for(lambda message: True)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.rule("R23")
def test_the_handshake_asks_nobody(open_editor, unreachable_server):
    """A provider that never answers does not hold up the first answer, nor the second."""
    environment = {"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": unreachable_server.url, "CROW_MODEL": "openai/gpt-x"}
    crow = open_editor(initialize=False, environment=environment)
    crow.initialize()
    crow.new_session()
    assert unreachable_server.connections() == 0


@pytest.fixture
def unreachable_server():
    import socket

    class Server:
        def __init__(self) -> None:
            self._socket = socket.create_server(("127.0.0.1", 0))
            self._socket.setblocking(False)
            self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

        def connections(self) -> int:
            try:
                self._socket.accept()
            except BlockingIOError:
                return 0
            return 1

        def close(self) -> None:
            self._socket.close()

    server = Server()
    yield server
    server.close()
