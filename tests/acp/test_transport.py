"""The bottom of the edge: messages that cannot be written as they are, and any pair of descriptors."""

import asyncio
import socket

import pytest

from crow.acp.agent import Agent, LazyHost
from crow.rpc import jsonrpc
from crow.rpc.connection import Connection, Route
from crow.rpc.jsonrpc import Response


@pytest.mark.rule("R79", "R1")
@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("plain", "plain"),
        ("a\ud83db", "a�b"),
        ("\ud83d\ude00", "😀"),
        ("two\nlines", "two\nlines"),
        ("\udfff🐦", "�🐦"),
    ],
)
def test_half_a_character_never_costs_a_message(text, sent):
    line = jsonrpc.write_notification("x", {"text": text, text: [text]})
    assert line.count(b"\n") == 1
    message = jsonrpc.read_line(line)
    assert isinstance(message, jsonrpc.Notification)
    import json

    assert json.loads(bytes(message.params)) == {"text": sent, sent: [sent]}


@pytest.mark.rule("R169", "R13")
def test_an_agent_serves_whatever_descriptors_it_is_given(tmp_path):
    """Two of them in one process, each on a socket of its own, know nothing of each other or of standard streams."""

    async def run() -> list[bytes]:
        loop = asyncio.get_running_loop()
        answers: list[bytes] = []
        for version in (1, 7):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.setblocking(False)
                connection = Agent(LazyHost(str(tmp_path), {})).connect(theirs.fileno(), theirs.fileno())
                serving = asyncio.create_task(connection.run())
                params = b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":%d}}\n'
                await loop.sock_sendall(ours, params % (version, version))
                answers.append(await loop.sock_recv(ours, 65536))
                ours.shutdown(socket.SHUT_WR)
                await serving
                await connection.close()
        return answers

    first, second = asyncio.run(run())
    assert first.startswith(b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1')
    assert second.startswith(b'{"jsonrpc":"2.0","id":7,"result":{"protocolVersion":1')


def test_what_a_peer_sent_before_it_left_is_read_also_if_it_takes_nothing_any_more():
    """Whoever cancels a turn and leaves may be gone before the cancel is read: writing to them fails first."""
    cancelled: list[object] = []
    asked: list[Response | None] = []

    async def run() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            connection = Connection(theirs.fileno(), theirs.fileno(), {}, {"leave": Route(dict, cancelled.append)})
            serving = asyncio.create_task(connection.run())
            await asyncio.sleep(0)
            connection.pass_on("ask", {}, asked.append)
            with ours:
                ours.sendall(b'{"jsonrpc":"2.0","method":"leave","params":{"of":"turn"}}\n' * 3)
                ours.sendall(b'{"jsonrpc":"2.0","id":1,"result":{"outcome":"yes"}}\n')
            connection.notify("news", {})
            await serving
            await connection.close()

    asyncio.run(run())
    assert cancelled == [{"of": "turn"}] * 3
    assert [response and bytes(response.result) for response in asked] == [b'{"outcome":"yes"}']
