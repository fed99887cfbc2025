"""How the text of a turn flows to a client: how many chunks of it a second, and what keeps its messages apart."""

CHUNKS_PER_SECOND = 66.0
SAVED_CHUNKS = 6.6
"""What may be sent in a burst: the chunks of a tenth of a second. No second has more than the sum of the two."""

LONGEST_END = 100
"""Characters of a text in which its last line ends are looked for."""
_BLANKS = dict.fromkeys(map(ord, " \t\r"))


class TextPace:
    """A token bucket: a budget of chunks that refills evenly.

    A delta that finds the budget spent waits for the next delta instead of the moment when a chunk is earned: so a
    stream that is a little too fast has some of its deltas joined in pairs and all others sent without delay, where
    even spacing would delay each of them.
    """

    def __init__(self, now: float) -> None:
        self._saved = SAVED_CHUNKS
        self._counted_at = now

    def may_send(self, now: float) -> bool:
        self._saved = min(SAVED_CHUNKS, self._saved + (now - self._counted_at) * CHUNKS_PER_SECOND)
        self._counted_at = now
        return self._saved >= 1

    def spend(self) -> None:
        self._saved = max(0.0, self._saved - 1)


class Paragraphs:
    """What keeps the messages of a turn apart: many clients join all its text, whichever message it is of, and Markdown
    joins lines that have no blank one between them."""

    def __init__(self) -> None:
        self._end = ""
        """The last line ends of the turn's text so far, and what stands before them."""

    def forget(self) -> None:
        self._end = ""

    def follow(self, text: str) -> None:
        """`text` is what came of it."""
        end = text[-LONGEST_END:].translate(_BLANKS)
        self._end = (self._end + end)[-2:]

    def gap(self) -> str:
        """What stands before the next message."""
        if not self._end:
            return ""
        return "\n" * (2 - (len(self._end) - len(self._end.rstrip("\n"))))
