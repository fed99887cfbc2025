import itertools

import pytest

from crow.model import sse
from crow.model.sse import EventDecoder, EventTooLong, ServerEvent

STREAM = (
    b"\xef\xbb\xbf: a comment\n"
    b"event: first\ndata: one\n\n"
    b"data: two\ndata:lines\nid: 7\n\n"
    b"retry: 10\n\n"
    b"data: \n\n"
    b"event: last\ndata:  gr\xc3\xbc\xc3\x9fe"
)
EVENTS = [
    ServerEvent(b"first", b"one"),
    ServerEvent(b"", b"two\nlines"),
    ServerEvent(b"", b""),
    ServerEvent(b"last", b" gr\xc3\xbc\xc3\x9fe"),
]


def decode(chunks: list[bytes]) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.end()


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("finished", [True, False])
def test_a_stream_cut_anywhere_gives_the_same_events(line_end: bytes, finished: bool) -> None:
    stream = (STREAM + (b"\n\n" if finished else b"")).replace(b"\n", line_end)
    for first, second in itertools.combinations(range(len(stream)), 2):
        assert decode([stream[:first], stream[first:second], stream[second:]]) == EVENTS
    assert decode([bytes([byte]) for byte in stream]) == EVENTS
    assert decode([b"", stream, b""]) == EVENTS


def test_a_line_in_many_chunks_is_joined_once() -> None:
    pieces = [b"x" * 1000] * 20_000
    assert decode([b"data: ", *pieces, b"\n\n"]) == [ServerEvent(b"", b"".join(pieces))]


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    decoder = EventDecoder()
    for _ in range(9):
        decoder.feed(b"data: " + b"x" * 100 + b"\n")
    with pytest.raises(EventTooLong):
        decoder.feed(b"x" * 100)


def test_many_events_are_no_long_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT", 1000)
    decoder = EventDecoder()
    assert sum(len(decoder.feed(b"data: " + b"x" * 100 + b"\n\n")) for _ in range(100)) == 100


@pytest.mark.parametrize("noise", [b"", b"\n\n\n", b"garbage\n\n", b"data\n\n:\n\n", b"\x00\xff\n\n"])
def test_noise_is_no_event(noise: bytes) -> None:
    assert decode([noise]) == []
