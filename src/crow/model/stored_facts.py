"""Stores below Crow's home what servers told of models: the vendors' lists, for a day, and windows, as reported or as
refusals show, for a week. Nobody is asked here.
"""

import logging
import os.path
import time
from typing import Annotated

import msgspec

from crow.config.home import Versioned, locked, read_versioned, write_versioned
from crow.config.hosts import is_nearby
from crow.errors import ConfigError, CrowError
from crow.model.base import ModelInfo
from crow.model.facts import Facts

logger = logging.getLogger(__name__)

LISTINGS_FILE = "models.json"
FRESH_FOR = 24 * 60 * 60
"""Seconds."""


class ListedModels(msgspec.Struct, frozen=True):
    asked: float
    """Seconds since 1970."""
    models: dict[str, Facts]

    @property
    def is_fresh(self) -> bool:
        return 0 <= time.time() - self.asked < FRESH_FOR


class _Listings(Versioned, frozen=True):
    version: int = 1
    addresses: dict[str, ListedModels] = msgspec.field(default_factory=dict[str, ListedModels])


def read_listings(home: str) -> dict[str, ListedModels]:
    """By the address that was asked. What cannot be read is asked for anew."""
    try:
        return read_versioned(os.path.join(home, LISTINGS_FILE), _Listings(), "").addresses
    except ConfigError:
        return {}


def keep_listing(home: str, base_url: str, models: dict[str, Facts]) -> None:
    """Not that of a server nearby, which has another list as soon as it loads another model. ConfigError."""
    if is_nearby(base_url) or "@" in base_url or not models:
        return
    path = os.path.join(home, LISTINGS_FILE)
    with locked(path):
        kept = {url: listed for url, listed in read_listings(home).items() if listed.is_fresh}
        write_versioned(path, _Listings(addresses={**kept, base_url: ListedModels(time.time(), models)}))


# --- windows: stored so that no other process runs into the same refusal

WINDOWS_FILE = "windows.json"
KEPT_FOR = 7 * 24 * 60 * 60
"""Seconds: a server that was started anew with a larger window, and does not report it, is tried again after that."""
RENEWED_AFTER = 24 * 60 * 60
MOST_KEPT = 200
SILENT_AFTER = 3.0
"""Seconds that the disk gets: the turn waits for it."""

TokenCount = Annotated[int, msgspec.Meta(ge=1)]


class LearnedWindow(msgspec.Struct, frozen=True, omit_defaults=True):
    tokens: TokenCount
    learned: float
    """Seconds since 1970."""
    disproved: TokenCount | None = None
    """What the server said of its window before a refusal showed that it is another one."""
    is_bound: bool = False
    """Nobody named it: it is an upper bound, from what did not fit."""

    @property
    def age(self) -> float:
        return time.time() - self.learned


class _Stored(Versioned, frozen=True):
    version: int = 1
    windows: dict[str, LearnedWindow] = msgspec.field(default_factory=dict[str, LearnedWindow])


class Windows:
    """The windows that this process and others have learned of; each is known by provider, model and host."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._path = os.path.join(home, WINDOWS_FILE)
        self._known: dict[str, LearnedWindow] = {}
        self._unsaved: set[str] = set()

    def get(self, info: ModelInfo) -> int | None:
        known = self._known.get(_key(info))
        return known.tokens if known else None

    def is_bound(self, info: ModelInfo) -> bool:
        """Whether all that is known is what did not fit."""
        known = self._known.get(_key(info))
        return known is not None and known.is_bound

    def report(self, info: ModelInfo, tokens: int) -> None:
        """What the server says of itself. A refusal knows better, until the server says something else."""
        known = self._known.get(_key(info))
        if known is not None and known.disproved == tokens:
            return
        if known is None or known.is_bound or known.tokens != tokens or known.age > RENEWED_AFTER:
            self._learn(info, LearnedWindow(tokens, time.time()))

    def refuse(self, info: ModelInfo, tokens: int, reported: int | None) -> None:
        """The window that a refusal named, beside what the server had said of it."""
        known = self._known.get(_key(info))
        disproved = reported or (known.disproved if known else None)
        self._learn(info, LearnedWindow(tokens, time.time(), disproved if disproved != tokens else None))

    def bound(self, info: ModelInfo, tokens: int) -> None:
        self._learn(info, LearnedWindow(tokens, time.time(), is_bound=True))

    def _learn(self, info: ModelInfo, window: LearnedWindow) -> None:
        self._known[_key(info)] = window
        if info.host:  # a script has none
            self._unsaved.add(_key(info))

    def read(self) -> None:
        """Adds what other processes have learned. To be called beside the event loop."""
        self._known = _newest(self._stored(), self._known)

    async def save(self) -> None:
        """Stores what was learned since the last time; what cannot be stored counts in this process all the same."""
        if not self._unsaved:
            return
        from crow.disk import Disk  # needed by sessions only: `initialize` is answered before

        learned = {key: self._known[key] for key in self._unsaved}
        self._unsaved.clear()
        try:
            await Disk(self._home).run(lambda: self._write(learned), SILENT_AFTER)
        except CrowError as error:
            logger.info("the windows of models are not kept: %s", error)

    def _write(self, learned: dict[str, LearnedWindow]) -> None:
        with locked(self._path):
            windows = _newest(self._stored(), learned)
            newest = sorted(windows.items(), key=lambda item: item[1].learned)[-MOST_KEPT:]
            write_versioned(self._path, _Stored(windows=dict(newest)))

    def _stored(self) -> dict[str, LearnedWindow]:
        """A file that cannot be read counts as none, and is replaced."""
        try:
            stored = read_versioned(self._path, _Stored(), "").windows
        except ConfigError:
            return {}
        return {key: window for key, window in stored.items() if 0 <= window.age < KEPT_FOR}


def _newest(stored: dict[str, LearnedWindow], known: dict[str, LearnedWindow]) -> dict[str, LearnedWindow]:
    newer = {key: window for key, window in known.items() if key not in stored or window.learned >= stored[key].learned}
    return {**stored, **newer}


def _key(info: ModelInfo) -> str:
    """Without the path of the address, which may hold a key."""
    return f"{info.name} {info.host}"
