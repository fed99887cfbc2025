"""Keeps the full-text index beside everything else: brings it up to date when somebody searches, rids it of what was
deleted.
"""

import asyncio
import contextlib
import logging
import os
import re
from collections.abc import Callable
from functools import partial

from crow.errors import BadCursor, IndexDamaged, StorageFailed, StoreSilent
from crow.store.base import FILE_NAME, SearchResult
from crow.store.database import ReadOnly
from crow.store.search_index import Behind, SearchIndex
from crow.store.worker import Worker

logger = logging.getLogger(__name__)

INDEXED_WITHIN = 1.0
"""Seconds that a search waits for what is not indexed yet, if that is not much."""
NOT_MUCH = 100
"""Sessions."""
TIDY_AFTER, TIDY_EVERY = 1.0, 0.05
"""Seconds from a deletion, and between two pieces of a large index that are rid of its words: nobody waits for that,
and whoever searches next goes on with it."""


class Indexing:
    def __init__(self, home: str, silence: Callable[[], StoreSilent]) -> None:
        self._worker = Worker("crow-store-index", silence)
        """Of its own, so that no turn waits for the index."""
        self._index = SearchIndex(home, ReadOnly(os.path.join(home, FILE_NAME)).reading)
        self._indexing: asyncio.Task[None] | None = None
        self._unread = self._all = 0
        """Sessions that are still to be indexed, and all there are."""
        self._tidying: asyncio.Task[None] | None = None

    def close(self) -> None:
        for task in (self._indexing, self._tidying):
            if task is not None:
                task.cancel()
        self._worker.stop()

    async def search(self, query: str, cursor: str, size: int) -> SearchResult:
        if not re.fullmatch(r"\d{0,9}", cursor, re.ASCII):
            raise BadCursor("This cursor does not belong to this search.", remedy="Search from the beginning.")
        first = int(cursor or 0)
        try:
            return await self._search(query, first, size)
        except IndexDamaged as damaged:
            logger.warning("the index is made anew: %s", damaged)
            return await self._search(query, first, size)

    async def _search(self, query: str, first: int, size: int) -> SearchResult:
        if self._indexing is None or self._indexing.done():
            behind = await self._worker.run(self._index.behind)
            self._unread, self._all = len(behind.ids), behind.sessions
            self._indexing = asyncio.ensure_future(self._bring_up_to_date(behind))
        if self._unread <= NOT_MUCH:
            await asyncio.wait([self._indexing], timeout=INDEXED_WITHIN)
        matches = await self._worker.run(lambda: self._index.search(query, first, size + 1))
        more = str(first + size) if len(matches) > size else ""
        return SearchResult(matches[:size], more, 0 if self._indexing.done() else self._unread, self._all)

    async def _bring_up_to_date(self, behind: Behind) -> None:
        """A few at a time, so that a search that comes meanwhile waits for these only."""
        ids, is_whole = behind.ids, True
        while ids:
            try:
                done = await self._worker.run(partial(self._index.add, ids))
            except StorageFailed as failed:
                logger.warning("some sessions are not indexed: %s", failed)
                done, is_whole = 1, False
            ids = ids[done:]
            self._unread = len(ids)
        if is_whole and behind.ids:
            await self._worker.run(partial(self._index.finish, behind))
        self._tidy_soon()

    async def delete(self, session_id: str) -> None:
        """No word of the session is left, though the last ones go a moment later."""
        with contextlib.suppress(IndexDamaged):  # then nothing is left at all
            if await self._worker.run(lambda: self._index.delete(session_id)):
                self._tidy_soon()

    def _tidy_soon(self) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        self._tidying = asyncio.ensure_future(self._tidy())

    async def _tidy(self) -> None:
        await asyncio.sleep(TIDY_AFTER)  # more may be deleted, which comes first
        with contextlib.suppress(StorageFailed):
            while await self._worker.run(self._index.tidy):  # noqa: ASYNC110 -- others get their turn
                await asyncio.sleep(TIDY_EVERY)
