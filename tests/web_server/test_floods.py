"""Floods against `crow web`: whoever opens, dribbles, guesses or does not read, others are served meanwhile."""

import contextlib
import json
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.editor import Editor
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, reply, say
from tests.support.web import TEXT, Refused, Web, WebSocket, ask, crow_with_page, frame, handshake, head, serving


@contextlib.contextmanager
def in_background(work: Callable[[], None]) -> Iterator[None]:
    """Does the work again and again, until the block ends."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def repeat() -> None:
        try:
            while not ended.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 -- raised below, in the test's own thread
            failures.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(DEADLINE)
    assert failures == []


def is_closed(peer: socket.socket) -> bool:
    """Whether the other side has ended the connection; nothing is to be read otherwise."""
    peer.settimeout(DEADLINE)
    try:
        return peer.recv(1) == b""
    except ConnectionError:
        return True


def is_served(web: Web, token: str) -> None:
    with web.connect(token) as client:
        assert client.initialize()["agentInfo"]["name"] == "crow"
    assert ask(web.port).status == 200


# --- connections


def flood(web: Web, number: int) -> None:
    """Opens that many connections that say nothing, while a client works and others come."""
    token = web.token()
    with contextlib.ExitStack() as stack, web.connect(token) as client:
        client.initialize()
        opened: list[socket.socket] = []
        for count in range(number):
            peer = socket.create_connection(("127.0.0.1", web.port), DEADLINE)
            opened.append(stack.enter_context(peer))
            if len(opened) > 400:  # this process has descriptors for so many only
                opened.pop(0).close()
            if count % (number // 4) == number // 8:
                assert client.request("session/list", {}) == {"sessions": []}
                is_served(web, token)
        assert is_closed(opened[0]), "the oldest had to go"
        is_served(web, token)
        assert client.request("session/list", {}) == {"sessions": []}


def test_many_connections_push_out_their_own_kind(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        flood(web, 400)


@pytest.mark.slow
def test_ten_thousand_connections(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        flood(web, 10_000)


def test_a_head_that_never_ends_is_not_waited_for(tmp_path: Path):
    changes = "import crow.web_server.connections as c; c.STRANGER_LIFETIME = 1.0"
    with serving(tmp_path, script=DONE, program=crow_with_page(tmp_path, changes)) as web:
        token = web.token()
        with socket.create_connection(("127.0.0.1", web.port), DEADLINE) as slow:
            slow.sendall(head(web.port)[:-2])

            def dribble() -> None:
                with contextlib.suppress(OSError):
                    slow.sendall(b"X-More: 1\r\n")
                is_served(web, token)

            with in_background(dribble):
                eventually(lambda: is_closed(slow))


def test_a_head_that_is_too_long_is_refused(tmp_path: Path):
    with serving(tmp_path) as web:
        with socket.create_connection(("127.0.0.1", web.port), DEADLINE) as peer, contextlib.suppress(ConnectionError):
            peer.sendall(head(web.port)[:-2] + b"X-More: 1\r\n" * 20_000)
            assert peer.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert ask(web.port).status == 200


# --- guesses


def guess(web: Web, number: int, statuses: "Counter[int]") -> None:
    for count in range(number):
        line = f"Sec-WebSocket-Protocol: acp.v1, crow.token.{count}" if count % 2 else f"Authorization: Bearer {count}"
        lines = [line, f"Origin: {web.origin}"] if count % 2 else [line]
        statuses[handshake(web.port, *lines).status] += 1


def test_who_guesses_tokens_is_slowed_down_and_keeps_nobody_out(tmp_path: Path):
    changes = "import crow.web_server.tokens as t; t.PENALTY = 0.05"
    with serving(tmp_path, script=DONE, program=crow_with_page(tmp_path, changes)) as web:
        token, statuses = web.token(), Counter[int]()
        with in_background(lambda: guess(web, 40, statuses)), in_background(lambda: guess(web, 40, statuses)):
            for _ in range(5):
                is_served(web, token)
        assert set(statuses) == {401}


def test_guesses_at_the_same_time_are_refused_without_waiting(tmp_path: Path):
    changes = "import crow.web_server.tokens as t; t.PENALTY = 60.0; t.MOST_WAITING = 2"
    with serving(tmp_path, script=DONE, program=crow_with_page(tmp_path, changes)) as web:
        token, statuses = web.token(), Counter[int]()
        guess(web, 10, statuses)
        assert statuses == {401: 10}
        with contextlib.ExitStack() as stack:
            for _ in range(2):  # these wait for their answers
                peer = stack.enter_context(socket.create_connection(("127.0.0.1", web.port), DEADLINE))
                wrong = "Authorization: Bearer wrong"
                upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
                key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
                peer.sendall(head(web.port, *upgrade, key, wrong, request="GET /acp HTTP/1.1"))
            eventually(lambda: handshake(web.port, "Authorization: Bearer 1").status == 429)
            is_served(web, token)


@pytest.mark.slow
def test_thousands_of_guesses(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        token, statuses = web.token(), Counter[int]()
        with contextlib.ExitStack() as stack:
            for _ in range(32):
                stack.enter_context(in_background(lambda: guess(web, 4, statuses)))
            for _ in range(50):
                is_served(web, token)
            eventually(lambda: statuses.total() > 3000)
        assert set(statuses) == {401, 429}


# --- peers that do not read


LONG = reply(say("w" * 2_000_000)) + DONE


def test_a_client_that_does_not_read_is_given_up(tmp_path: Path):
    changes = "import crow.web_server.connections as w; w.READ_TIMEOUT = 0.5; w.POLL_INTERVAL = 0.1"
    with serving(tmp_path, script=LONG, program=crow_with_page(tmp_path, changes)) as web:
        token = web.token()
        with web.connect(token) as client, web.connect(token, room=4096) as sleeper:
            client.initialize()
            session = client.new_session(web.workspace)
            client.answer(client.start_prompt("talk"))
            sleeper.initialize()
            for _ in range(3):
                sleeper.start("session/load", {"sessionId": session, "cwd": str(web.workspace), "mcpServers": []})

            def clients() -> list[str]:
                return client.request("session/status", {"sessionId": session})["_meta"]["crow"]["clients"]

            eventually(lambda: len(clients()) == 2)
            eventually(lambda: len(clients()) == 1, every=0.1)


def test_a_client_that_answers_no_ping_is_dead(tmp_path: Path):
    changes = "import crow.web_server.app as a; a.PING_EVERY = 0.2"
    with serving(tmp_path, script=DONE, program=crow_with_page(tmp_path, changes)) as web:
        client = web.connect()
        with client:
            client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}})
            assert is_ended(client), "pings are not answered here"


def is_ended(client: WebSocket) -> bool:
    """Reads until there is nothing more, and answers nothing."""
    with contextlib.suppress(ConnectionError):
        while client.peer.recv(65536):
            pass
    return True


@pytest.mark.slow
def test_a_message_of_nearly_64_mebibytes_is_read(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, web.connect() as page:
        page.initialize()
        long = json.dumps({"jsonrpc": "2.0", "id": 9, "method": "x", "params": {"y": "z" * (63 * 2**20)}}).encode()
        page.peer.sendall(frame(TEXT, long))
        assert page.wait_for(lambda message: message.get("id") == 9)["error"]["code"] == -32601


def test_frames_before_the_handshake_is_answered_are_not_kept(tmp_path: Path):
    """Whoever is refused may have sent megabytes along."""
    changes = "import crow.web_server.tokens as t; t.FREE_MISTAKES = 0; t.PENALTY = 0.5"
    with serving(tmp_path, script=DONE, program=crow_with_page(tmp_path, changes)) as web:
        with socket.create_connection(("127.0.0.1", web.port), DEADLINE) as peer:
            upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
            key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="
            wrong = "Authorization: Bearer wrong"
            peer.sendall(head(web.port, *upgrade, key, wrong, request="GET /acp HTTP/1.1"))
            peer.settimeout(0.2)
            sent = 0
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    sent += peer.send(frame(TEXT, b"x" * 60_000))
        assert sent < 60_000 * 1000, "the server did not read it all"
        with pytest.raises(Refused):
            web.connect("wrong")


# --- an editor beside it


def test_an_editor_is_not_disturbed(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        editor = Editor(tmp_path, script=DONE)
        try:
            editor.new_session()
            flood(web, 200)
            assert editor.prompt("hello")["stopReason"] == "end_turn"
        finally:
            editor.close()
