"""A reply that has no end: it is stopped at a length that no answer has, or when it only repeats itself.

Small models fall into repeating a passage, and a server on this machine lets them until its window is full. The tail of
the reply is looked at from time to time, so that a token costs next to nothing.
"""

from crow.model.base import CallGrew, ModelEvent, Said, Thinking

STEP = 2048
"""Characters after which the tail is looked at again."""
TAIL = 8192
"""Characters that must repeat. What a tool writes into a file may repeat by intention: twice as many there."""
FEWEST = 8
"""Times that the passage must stand in the tail."""
PROBE = 48
TRIES = 8


class ReplyGuard:
    """For one reply. `repeats`: whether repetition is looked for."""

    def __init__(self, most: int, *, repeats: bool) -> None:
        self._left = most
        self._most = most
        self._repeats = repeats
        self._pieces: list[str] = []
        self._tail = ""
        self._fresh = 0
        self._in_call = False

    def objection(self, event: ModelEvent) -> str:
        """Why the reply is to be stopped after this event; empty if it may go on."""
        match event:
            case Said(text=text) | Thinking(text=text):
                in_call = False
            case CallGrew(fragment=text):
                in_call = True
            case _:
                return ""
        self._left -= len(text)
        if self._left < 0:
            return f"The reply was stopped: it is longer than {self._most / 2**20:g} MiB (`reply` in [limits])."
        if not self._repeats:
            return ""
        if in_call is not self._in_call:
            self._in_call, self._tail, self._fresh, self._pieces = in_call, "", 0, []
        self._pieces.append(text)
        self._fresh += len(text)
        if self._fresh < STEP:
            return ""
        wanted = TAIL * 2 if in_call else TAIL
        self._tail = (self._tail + "".join(self._pieces))[-wanted:]
        self._fresh, self._pieces = 0, []
        passage = repeated_passage(self._tail) if len(self._tail) == wanted else ""
        if not passage:
            return ""
        shown = " ".join(passage.split())[:60]
        return f"The reply was stopped: it repeated the same passage without end (“{shown}…”)."


def repeated_passage(tail: str) -> str:
    """What all of the text repeats, at least `FEWEST` times; empty if it does not."""
    probe, end = tail[-PROBE:], len(tail) - 1
    for _ in range(TRIES):
        found = tail.rfind(probe, 0, end)
        period = len(tail) - PROBE - found
        if found < 0 or period * FEWEST > len(tail):
            return ""
        if tail[period:] == tail[:-period]:
            return tail[-period:]
        end = found + PROBE - 1
    return ""
