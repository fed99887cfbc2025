"""What is known of a model without asking anyone: from packaged tables, and from what servers told before.

The catalogue, `facts.json`, is made by `scripts/catalogue.py` and read with the first question; `families.json` has
what a name suggests. A wrong fact costs an error from the provider, so a price counts only where the vendor itself is
asked, and the window of a model that anyone can run only where it does not run on this machine or next to it.

Below Crow's home are stored the vendors' lists, for a day, and windows, as reported or as refusals show, for a week.
"""

import functools
import logging
import os.path
import re
import time
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from crow.config.home import Versioned, locked, read_versioned, write_versioned
from crow.config.hosts import host_of, is_nearby
from crow.errors import ConfigError, CrowError
from crow.model.base import ModelInfo, Price

Source = Literal["", "name", "catalogue", "list", "server", "config"]

_CLOSED = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "api.x.ai")
"""Vendors whose models run nowhere else: their names mean the same behind every gateway."""
_OPEN = (
    "api.mistral.ai",
    "api.deepseek.com",
    "api.moonshot.ai",
    "api.z.ai",
    "api.minimax.io",
    "dashscope-intl.aliyuncs.com",
)

_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one source knows of a model. None: it does not say."""

    window: int | None = None
    """Tokens of a request, with its reply unless that is `apart`."""
    output: int | None = None
    apart: bool = False
    """The reply has room of its own beside the window."""
    images: bool | None = None
    audio: bool | None = None
    thinks: bool | None = None
    levels: tuple[str, ...] | None = None
    price: Price | None = None
    responses_only: bool = False
    """It answers on the Responses wire and on no other."""
    source: Source = ""
    """Where the window is from; without one, the first that knows anything."""

    def over(self, other: "Facts") -> "Facts":
        """These facts, completed by what the other source knows."""
        # A list that counts the reply's room in says nothing against the limit of a request.
        window = other if self.window is None or (other.apart and self.source == "list") else self
        return Facts(
            window=window.window,
            output=self.output or other.output,
            apart=window.apart,
            images=other.images if self.images is None else self.images,
            audio=other.audio if self.audio is None else self.audio,
            thinks=other.thinks if self.thinks is None else self.thinks,
            levels=other.levels if self.levels is None else self.levels,
            price=self.price or other.price,
            responses_only=self.responses_only or other.responses_only,
            source=window.source or self.source or other.source,
        )


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A model in the catalogue; its header says what the cells are."""

    window: int | None
    output: int | None
    abilities: str
    levels: str
    price: tuple[float, ...] = ()
    long: tuple[float, ...] = ()

    def facts(self, source: Source = "catalogue", *, priced: bool = False) -> Facts:
        return Facts(
            window=self.window,
            output=self.output,
            apart="a" in self.abilities,
            images="s" in self.abilities,
            audio="h" in self.abilities,
            thinks="t" in self.abilities,
            levels=tuple(self.levels.split()),
            price=self._price() if priced else None,
            responses_only="r" in self.abilities,
            source=source,
        )

    def _price(self) -> Price | None:
        if not self.price:
            return None
        read, written, cached, cache_write = self.price
        long = Price(*self.long[1:5], currency="USD") if self.long else None  # pyright: ignore[reportCallIssue] -- four
        above = int(self.long[0]) if self.long else 0
        return Price(read, written, cached, cache_write, "USD", above, long)


class _Table(msgspec.Struct, frozen=True):
    vendors: dict[str, dict[str, _Row]] = {}
    families: dict[str, _Row] = {}


def known_facts(model: str, base_url: str) -> Facts:
    """What the catalogue has of a model at this address, else what its name suggests."""
    return _in_catalogue(model, base_url) or _suggested(model)


def _in_catalogue(model: str, base_url: str) -> Facts | None:
    vendor = _table().get(host_of(base_url), {})
    for name in (model, _DATE.sub("", model), f"{_DATE.sub('', model)}-latest"):
        if name in vendor:
            return vendor[name].facts(priced=True)
    found = _by_name(_CLOSED).get(_plain(model))
    if found is None and not is_nearby(base_url):
        found = _by_name(_OPEN).get(_plain(model))
    return found.facts() if found else None


LONGEST_NAME = 200
"""Characters of a model's name that tell its family."""


def _suggested(model: str) -> Facts:
    for pattern, row in families().items():
        # Names come as `gpt-4o`, `openai/gpt-4o`, `us.anthropic.claude-…`: a family may begin after any separator.
        if re.search(rf"(?:^|[/.:_-]){pattern}", model[:LONGEST_NAME], re.IGNORECASE):
            return row.facts("name")
    return Facts()


@functools.cache
def families() -> dict[str, _Row]:
    """By what their names are like; `families.json` says more."""
    return _read_table("families.json").families


@functools.cache
def _table() -> dict[str, dict[str, _Row]]:
    return _read_table("facts.json").vendors


def _read_table(name: str) -> "_Table":
    with open(os.path.join(os.path.dirname(__file__), name), "rb") as file:
        return msgspec.json.decode(file.read(), type=_Table)


@functools.cache
def _by_name(vendors: tuple[str, ...]) -> dict[str, _Row]:
    return {_plain(name): row for name, row in _rows(vendors)}


def _rows(vendors: tuple[str, ...]) -> Iterator[tuple[str, _Row]]:
    """The vendor of the first ones wins, as it is the one that made the model."""
    for vendor in reversed(vendors):
        yield from _table()[vendor].items()


def _plain(model: str) -> str:
    """A model's name as every gateway has it: `anthropic/claude-sonnet-4.5:beta` is `claude-sonnet-4-5`."""
    name = re.sub(r"(-v\d+)?(:.*)?$", "", model.rsplit("/", 1)[-1].lower(), count=1)
    return _DATE.sub("", re.sub(r"^([a-z]+\.)+(?=claude)", "", name)).replace(".", "-")


# --- what servers told, stored for other processes

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

    def bound(self, info: ModelInfo, tokens: int, window: int | None) -> int | None:
        """An upper bound for a window that nobody tells, after about so many tokens did not fit; None if the window is
        known. `window` is the bound that counted until now."""
        known = self._known.get(_key(info))
        if window is not None and not (known and known.is_bound):
            return None
        # The estimate is high, by a third or so; and a bound that a request kept was too high itself.
        bound = min(tokens, window or tokens) * 3 // 4
        self._learn(info, LearnedWindow(bound, time.time(), is_bound=True))
        return bound

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
