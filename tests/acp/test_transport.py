"""The bottom of the edge: lines however they are cut, and writes that the peer takes piece by piece."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

import pytest

from crow.acp import jsonrpc, transport
from crow.acp.agent import Agent
from crow.acp.jsonrpc import Unreadable
from crow.acp.transport import LineReader, Writer
from tests.support.patience import DEADLINE

LINES = "one\r\n\n  \ntwö 🐦\nthree".encode()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(end)


def lines_of(*pieces: bytes) -> list[bytes | str]:
    """What a reader makes of input that comes in these pieces."""
    received: list[bytes | str] = []

    async def run() -> None:
        reader = LineReader(
            0, lambda line: received.append(str(line) if isinstance(line, Unreadable) else line), lambda: None
        )
        for piece in pieces:
            reader._feed(piece)
        reader._finish()

    asyncio.run(run())
    return received


@pytest.mark.rule("R1", "R9")
def test_lines_are_the_same_wherever_the_input_is_cut():
    expected = [b"one\r", "twö 🐦".encode(), b"three"]
    assert lines_of(LINES) == expected
    for first in range(len(LINES)):
        for second in range(first, len(LINES), 3):
            assert lines_of(LINES[:first], LINES[first:second], LINES[second:]) == expected


@pytest.mark.rule("R9")
@pytest.mark.parametrize("piece", [1, 3, 10, 100])
def test_a_line_that_is_too_long_is_skipped_up_to_its_end(monkeypatch, piece):
    monkeypatch.setattr(transport, "LONGEST_LINE", 10)
    data = b"a" * 10 + b"\n" + b"b" * 35 + b"\n" + b"c" * 11 + b"\nshort\n" + b"d" * 12
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    refused = "Invalid request: a line over 0 MiB was skipped"
    assert lines_of(*pieces) == [b"a" * 10, refused, refused, b"short", refused]


@pytest.mark.rule("R1", "R12")
def test_writes_keep_their_order_when_the_peer_is_slow(pipe):
    reader_end, writer_end = pipe
    messages = [b"%d:" % number + b"x" * (number * 997 % 70_000) + b"\n" for number in range(100)]

    async def run() -> bytes:
        writer = Writer(writer_end, lambda: None, LineReader(0, lambda line: None, lambda: None))
        for message in messages:
            writer.send(message)
        assert not writer.has_room
        received = b""
        while len(received) < sum(map(len, messages)):
            received += os.read(reader_end, 10_000)
            await asyncio.sleep(0)
        await writer.room()
        assert writer.has_room
        writer.stop()
        return received

    assert asyncio.run(run()) == b"".join(messages)


@pytest.mark.rule("R11")
def test_a_peer_that_is_gone_is_noticed_and_frees_whoever_waits_for_room(pipe):
    reader_end, writer_end = pipe
    gone: list[bool] = []

    async def run() -> None:
        writer = Writer(writer_end, lambda: gone.append(True), LineReader(0, lambda line: None, lambda: None))
        writer.send(b"x" * 1_000_000)
        waiting = asyncio.create_task(writer.room())
        await asyncio.sleep(0)
        os.close(reader_end)
        async with asyncio.timeout(DEADLINE):
            await waiting
        writer.send(b"nobody hears this")

    asyncio.run(run())
    assert gone == [True]


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
                connection = Agent(str(tmp_path), {}).connect(theirs.fileno(), theirs.fileno())
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
