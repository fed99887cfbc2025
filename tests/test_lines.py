"""Lines however they are cut, and writes that the peer takes piece by piece."""

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from crow.rpc.lines import LONGEST_LINE, LineReader, LineStream, Writer
from tests.support.patience import DEADLINE

LINES = "one\r\n\n  \ntwö 🐦\nthree".encode()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        with contextlib.suppress(OSError):
            os.close(end)


def lines_of(*pieces: bytes, longest: int = LONGEST_LINE) -> list[bytes | None]:
    """What a reader makes of input that comes in these pieces."""
    received: list[bytes | None] = []

    async def run() -> None:
        reader = LineReader(0, received.append, lambda: None, longest)
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


@pytest.mark.rule("R1", "R9")
@pytest.mark.parametrize("piece", [1, 2, 3, 100])
def test_a_byte_order_mark_is_no_part_of_a_line(piece):
    """PowerShell puts one before what it writes to a pipe first."""
    data = "\ufeffone\n\ufeff\n\ufeff two\nthr\ufeffee".encode()
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    assert lines_of(*pieces) == [b"one", b" two", "thr\ufeffee".encode()]


@pytest.mark.rule("R9")
@pytest.mark.parametrize("piece", [1, 3, 10, 100])
def test_a_line_that_is_too_long_is_skipped_up_to_its_end(piece):
    data = b"a" * 10 + b"\n" + b"b" * 35 + b"\n" + b"c" * 11 + b"\nshort\n" + b"d" * 12
    pieces = [data[start : start + piece] for start in range(0, len(data), piece)]
    assert lines_of(*pieces, longest=10) == [b"a" * 10, None, None, b"short", None]


@pytest.mark.parametrize("is_file", [False, True])
def test_a_stream_gives_the_same_lines_and_then_ends(pipe, tmp_path, is_file):
    reader_end, writer_end = pipe
    (tmp_path / "lines").write_bytes(LINES)
    os.write(writer_end, LINES)
    os.close(writer_end)

    async def run(descriptor: int) -> list[bytes | None]:
        stream = LineStream(descriptor, longest=8)
        lines = [line async for line in stream]
        stream.close()
        return lines

    with open(tmp_path / "lines", "rb") as file:
        lines = asyncio.run(run(file.fileno() if is_file else reader_end))
    assert lines == [b"one\r", None, b"three"]


def test_a_stream_reads_no_more_while_lines_wait(pipe):
    reader_end, writer_end = pipe

    async def run() -> None:
        stream = LineStream(reader_end)
        os.write(writer_end, b"first\n")
        assert await anext(stream) == b"first"
        os.write(writer_end, b"second\n")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert os.read(reader_end, 100) == b"second\n", "it was left in the pipe"
        stream.close()

    asyncio.run(run())


def test_what_the_peer_has_not_taken_yet_is_not_flushed(pipe):
    reader_end, writer_end = pipe

    async def run() -> None:
        writer = Writer(writer_end, lambda: None)
        writer.send(b"x" * 100_000)
        flushed = asyncio.create_task(writer.flushed())
        await asyncio.sleep(0)
        assert not flushed.done()
        os.read(reader_end, 100_000)
        async with asyncio.timeout(DEADLINE):
            await flushed
        writer.stop()

    asyncio.run(run())


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


def test_a_terminal_that_has_gone_is_a_reader_that_has_left():
    """Writing to it is an error of input and output, like that of a disk that fails, which is something to tell."""

    async def write() -> OSError | None:
        ours, theirs = os.openpty()
        writer = Writer(theirs, lambda: None)
        os.close(ours)
        writer.send(b"{}\n")
        os.close(theirs)
        return writer.failure

    assert asyncio.run(write()) is None
