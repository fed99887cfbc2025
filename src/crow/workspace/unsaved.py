"""What an editor holds of the files that are searched and has not saved: it is what the person sees of them.

No editor says which files it has open, and each text has to be asked for. So a search asks about the files that were
read or written in this session, and about those that match on disk; about few of them, and not for long.
"""

import asyncio
from collections.abc import Iterator, Sequence

from crow.errors import EditorRefused, WorkspaceError
from crow.timeouts import timeout
from crow.workspace.base import Workspace
from crow.workspace.place import ResolvedPath

MOST_KNOWN = 32
"""Files that are asked about because the session had to do with them, the last ones first."""
MOST_MATCHED = 32
"""Files that are asked about because something matches in them."""
AT_A_TIME = 4
PATIENCE = 2
"""Seconds in which an editor answers all of it; after that, what is on disk counts."""


class UnsavedTexts:
    """The texts that one search has been given."""

    def __init__(self, editor: Workspace | None) -> None:
        self._editor = editor
        self._asked: set[str] = set()
        self._matched_left = MOST_MATCHED
        self._seconds_left: float = PATIENCE
        self.texts: dict[str, str] = {}
        self.refused: set[str] = set()
        """Files that are not to be shown from the disk either."""

    def is_saved(self, path: str) -> bool:
        """Whether the disk has what counts, as far as is known."""
        return path not in self.texts and path not in self.refused

    async def ask_about_known(self, searched: Sequence[str]) -> None:
        known = self._editor.known_buffers() if self._editor is not None else ()
        if known:
            chosen = set(searched)
            await self._ask([path for path in known if path in chosen][:MOST_KNOWN])

    async def ask_about_matched(self, paths: Sequence[str]) -> None:
        new = [path for path in paths if path not in self._asked][: self._matched_left]
        self._matched_left -= len(new)
        await self._ask(new)
        if self.refused:  # what could not be asked about might be refused too
            self.refused.update(path for path in paths if path not in self._asked)

    async def _ask(self, paths: Sequence[str]) -> None:
        if self._editor is None or not paths or self._seconds_left <= 0:
            return
        self._asked.update(paths)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        waiting = iter(paths)
        try:
            async with timeout(self._seconds_left), asyncio.TaskGroup() as group:
                for _ in range(min(AT_A_TIME, len(paths))):
                    group.create_task(self._ask_one_by_one(self._editor, waiting))
        except TimeoutError:
            self._seconds_left = 0
        else:
            self._seconds_left -= loop.time() - begin

    async def _ask_one_by_one(self, editor: Workspace, waiting: Iterator[str]) -> None:
        for path in waiting:
            try:
                text = await editor.unsaved_text(ResolvedPath(path))
            except EditorRefused:
                self.refused.add(path)
            except WorkspaceError:
                continue  # no text, or gone by now: whoever reads it from disk will see
            else:
                if text is not None:
                    self.texts[path] = text
