"""Decodes server-sent events out of raw bytes, a network chunk at a time.

Works on lines that `bytes.splitlines` finds in C: no byte is searched twice, and the pieces of a line that arrives
in many chunks are joined once. Data stays bytes: the adapters decode it straight into their structs.
"""

from typing import NamedTuple

MAX_EVENT = 32 * 1024 * 1024
"""No provider sends an event near this; something that does is not sending events."""

WHOLE = b"whole body"
"""The name of the one event that stands for an answer which is a JSON document and no stream."""

BOM = b"\xef\xbb\xbf"
LF, CR = b"\n"[0], b"\r"[0]


class ServerEvent(NamedTuple):
    name: bytes
    """Empty if the server gave none."""
    data: bytes


class EventTooLong(Exception):
    pass


class EventDecoder:
    def __init__(self) -> None:
        self._begun = False
        self._after_cr = False
        """The last chunk ended in CR: an LF at the start of the next one belongs to the same line break."""
        self._unfinished: list[bytes] = []
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that this chunk completed."""
        if self._after_cr:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        self._size += len(chunk)
        last = chunk[-1]
        self._after_cr = last == CR
        lines = chunk.splitlines()
        tail = None if last in (LF, CR) else lines.pop()
        if self._unfinished and lines:
            self._unfinished.append(lines[0])
            lines[0] = b"".join(self._unfinished)
            self._unfinished.clear()
        if tail:
            self._unfinished.append(tail)
        events = self._read(lines)
        if self._size > MAX_EVENT:
            raise EventTooLong
        return events

    def end(self) -> list[ServerEvent]:
        """What is left at the end of the stream: some servers leave out the last blank line."""
        return self.feed(b"\n\n")

    def _read(self, lines: list[bytes]) -> list[ServerEvent]:
        events: list[ServerEvent] = []
        for line in lines:
            if not self._begun:
                self._begun = True
                line = line.removeprefix(BOM)  # noqa: PLW2901 -- the same line, without its mark
            if not line:
                if self._data:
                    data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    events.append(ServerEvent(self._name, data))
                    self._data = []
                self._name = b""
                self._size = 0
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif line.startswith(b"error:"):  # no field of the format, but how older llama.cpp servers complain
                self._name, self._data = b"error", [line[6:].strip()]
        return events
