"""What each edit of a file replaced, so that `undo_edit` can take the edits back, the last one first."""

from collections.abc import Iterator
from itertools import pairwise

import msgspec

from crow.tools.changing import digest_of, worked_out
from crow.workspace.base import Document

MOST_KEPT = 32 * 2**20
"""Characters of former texts that are kept for a client; beyond that the oldest edits cannot be taken back."""
WEIGHT_OF_AN_EDIT = 200
"""What an edit counts for there, apart from the text."""


class PastEdit(msgspec.Struct, frozen=True):
    path: str
    before: Document | None
    """None if the edit made the file."""
    digest: str
    """Of the text that it left there, by which the file is known again."""
    encoding: str
    mark: bool
    follows: bool
    """Whether it found the file as the edit before it had left it; else somebody else was there in between."""
    folders: tuple[str, ...] = ()
    """Those that it made for the file, the innermost first."""

    async def left(self, now: Document) -> bool:
        """Whether the file is as this edit left it."""
        if (now.encoding, now.mark) != (self.encoding, self.mark):
            return False
        return await _digest(now) == self.digest


class PastEdits:
    def __init__(self) -> None:
        self._edits: list[PastEdit] = []
        self._size = 0

    async def add(self, before: Document | None, after: Document, folders: tuple[str, ...] = ()) -> None:
        previous = self.last(after.path)
        follows = previous is not None and before is not None and await previous.left(before)
        edit = PastEdit(after.path, before, await _digest(after), after.encoding, after.mark, follows, folders)
        self._edits.append(edit)
        self._size += _weight(edit)
        while self._size > MOST_KEPT:
            self._size -= _weight(self._edits.pop(0))

    def last(self, path: str) -> PastEdit | None:
        return next(self._of(path), None)

    def earlier(self, path: str) -> int:
        """How many edits of a file can be taken back after the last one."""
        count = 0
        for later, _ in pairwise(self._of(path)):
            if not later.follows:
                break
            count += 1
        return count

    def forget(self, edit: PastEdit) -> None:
        """It was taken back. Another edit may look just the same: this very one goes."""
        for place in reversed(range(len(self._edits))):
            if self._edits[place] is edit:
                del self._edits[place]
                self._size -= _weight(edit)
                return

    def _of(self, path: str) -> Iterator[PastEdit]:
        """The last one first."""
        return (edit for edit in reversed(self._edits) if edit.path == path)


async def _digest(document: Document) -> str:
    return await worked_out(len(document.text), lambda: digest_of(document.text))


def _weight(edit: PastEdit) -> int:
    return WEIGHT_OF_AN_EDIT + (len(edit.before.text) if edit.before is not None else 0)
