"""What each change to a file replaced, so that `undo_edit` can take the changes back, the last one first."""

from collections.abc import Iterator

import msgspec

from crow.tools.changing import digest_of, worked_out
from crow.workspace.base import Document

MOST_KEPT = 32 * 2**20
"""Characters of former texts that are kept for a client; beyond that the oldest changes cannot be taken back."""
WEIGHT_OF_A_CHANGE = 200
"""What a change counts for there, apart from the text."""


class Change(msgspec.Struct, frozen=True):
    path: str
    before: Document | None
    """None if the change made the file."""
    digest: str
    """Of the text that it left there, by which the file is known again."""
    encoding: str
    mark: bool

    async def left(self, now: Document) -> bool:
        """Whether the file is as this change left it."""
        if (now.encoding, now.mark) != (self.encoding, self.mark):
            return False
        return await _digest(now) == self.digest


class History:
    def __init__(self) -> None:
        self._changes: list[Change] = []
        self._size = 0

    async def add(self, before: Document | None, after: Document) -> None:
        self._changes.append(Change(after.path, before, await _digest(after), after.encoding, after.mark))
        self._size += _weight(self._changes[-1])
        while self._size > MOST_KEPT:
            self._size -= _weight(self._changes.pop(0))

    def last(self, path: str) -> Change | None:
        return next(self._of(path), None)

    def forget(self, change: Change) -> None:
        """It was taken back. Another change may look just the same: this very one goes."""
        for place in reversed(range(len(self._changes))):
            if self._changes[place] is change:
                del self._changes[place]
                self._size -= _weight(change)
                return

    def count(self, path: str) -> int:
        return sum(1 for _ in self._of(path))

    def _of(self, path: str) -> Iterator[Change]:
        return (change for change in reversed(self._changes) if change.path == path)


async def _digest(document: Document) -> str:
    return await worked_out(len(document.text), lambda: digest_of(document.text))


def _weight(change: Change) -> int:
    return WEIGHT_OF_A_CHANGE + (len(change.before.text) if change.before is not None else 0)
