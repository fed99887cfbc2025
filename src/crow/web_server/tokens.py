"""One-time links, and the tokens that pages and clients of `crow web` have: made, verified, stored as hashes,
forgotten; and wrong ones, counted.
"""

import asyncio
import hashlib
import hmac
import logging
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from crow.acp.wire import Wire
from crow.config.home import Versioned, read_versioned, write_versioned
from crow.errors import ConfigError
from crow.visible import one_line

logger = logging.getLogger(__name__)

FILE_NAME = "web-tokens.json"
LINK_LIFETIME = 600.0
"""Seconds in which a link can be opened."""
MOST_LINKS = 32
"""Links that are open at a time: the oldest goes when one more is made."""
UNUSED_LIFETIME = 30 * 24 * 3600
"""Seconds after which a token that nobody used ends."""
TOUCHED_EVERY = 3600
"""Seconds between two notes in the file that a token is in use."""
MOST_TOKENS = 256
"""The one that was unused for longest goes when one more is made."""
LONGEST_NAME = 100


class StoredToken(msgspec.Struct):
    """All that is kept of a token."""

    hash: str
    name: str
    """Which program it was made for, as that says."""
    made: int
    used: int
    """Both in seconds since 1970."""

    @property
    def id(self) -> str:
        """How a person names it."""
        return self.hash[:8]


class TokenFile(Versioned, frozen=True):
    version: int = 1
    tokens: tuple[StoredToken, ...] = ()


def tokens_path(home: str) -> str:
    return os.path.join(home, FILE_NAME)


class Tokens:
    """Those of one home. One process at a time has them: see `crow.store.web_owner`."""

    def __init__(self, home: str, now: Callable[[], float] = time.time) -> None:
        """ConfigError if the file cannot be read."""
        self._path = tokens_path(home)
        self._now = now
        stored = read_versioned(self._path, TokenFile(), "crow web does not start")
        self._tokens = {token.hash: token for token in stored.tokens}
        self._stored = {token.hash: token.used for token in stored.tokens}
        """When each was used, as the file has it."""
        self._writing = asyncio.Lock()

    @property
    def all(self) -> Sequence[StoredToken]:
        """Those that are good, the one that was used last first."""
        self._drop_unused()
        return sorted(self._tokens.values(), key=lambda token: token.used, reverse=True)

    async def make(self, name: str) -> tuple[str, StoredToken]:
        """A new token, which is known to nobody but the caller, and what is kept of it."""
        secret, now = secrets.token_urlsafe(32), int(self._now())
        while len(self.all) >= MOST_TOKENS:
            del self._tokens[self.all[-1].hash]
        stored = StoredToken(_hash(secret), one_line(name, LONGEST_NAME - 1) or "a client", now, now)
        self._tokens[stored.hash] = stored
        await self._try_to_store()
        return secret, stored

    def knows(self, token: StoredToken) -> bool:
        """Whether it is good: it may have been forgotten since it was found."""
        return token.hash in self._tokens

    def use(self, tokens: Iterable[StoredToken]) -> None:
        """They are in use, and do not end."""
        for token in tokens:
            token.used = int(self._now())

    async def find(self, secret: str) -> StoredToken | None:
        """The token, which counts as used; None if it is not known, or no longer."""
        self._drop_unused()
        # By its hash: how long this takes says nothing of a token that nobody has.
        token = self._tokens.get(_hash(secret))
        if token is not None:
            self.use([token])
            if token.used - self._stored.get(token.hash, 0) > TOUCHED_EVERY:
                await self._try_to_store()
        return token

    def prove(self, id: str, challenge: str) -> str:
        """What only a server that has the token's hash can say of a challenge; it lets nobody in. Empty if there is no
        such token, or no longer."""
        self._drop_unused()
        found = next((token for token in self._tokens.values() if token.id == id), None)
        return "" if found is None else hmac.new(bytes.fromhex(found.hash), challenge.encode(), "sha256").hexdigest()

    def forget(self, ids: Sequence[str]) -> Sequence[StoredToken]:
        """Those with these ids, which are good no longer in this process. `store` makes it so for the next one."""
        gone = [token for token in self._tokens.values() if token.id in ids]
        for token in gone:
            del self._tokens[token.hash]
        return gone

    def _drop_unused(self) -> None:
        oldest = self._now() - UNUSED_LIFETIME
        for token in [token for token in self._tokens.values() if token.used < oldest]:
            del self._tokens[token.hash]

    async def _try_to_store(self) -> None:
        """What cannot be stored is good until the process ends."""
        try:
            await self.store()
        except ConfigError as error:
            logger.warning("tokens of pages are not stored: %s", error)

    async def store(self) -> None:
        """ConfigError if that cannot be done: then those that the file still has are good again in the next process."""
        async with self._writing:
            content = TokenFile(tokens=tuple(msgspec.structs.replace(token) for token in self._tokens.values()))
            await asyncio.to_thread(write_versioned, self._path, content)
            self._stored = {token.hash: token.used for token in content.tokens}


class Links:
    """Links that were printed and not opened yet. They are kept nowhere but here."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._open: dict[str, float] = {}
        """Until when each is good, by its hash."""
        self._spent: dict[str, float] = {}
        """The same of those whose clients have not been told their tokens yet."""

    def make(self) -> str:
        while len(self._open) >= MOST_LINKS:
            del self._open[next(iter(self._open))]
        link = secrets.token_urlsafe(32)
        self._open[_hash(link)] = self._now() + LINK_LIFETIME
        return link

    def forget(self) -> None:
        """None of them can be opened any longer."""
        self._open.clear()
        self._spent.clear()

    def spend(self, link: str) -> bool:
        """Whether it is good; it no longer is, unless it is given back."""
        until = self._open.pop(_hash(link), 0.0)
        if until <= self._now():
            return False
        self._spent[_hash(link)] = until
        return True

    def settle(self, link: str, *, is_used: bool) -> None:
        """Whoever spent it was told a token, or left before that: then nobody has one, and the link is good again."""
        until = self._spent.pop(_hash(link), None)
        if until is not None and not is_used:
            self._open[_hash(link)] = until


def _hash(secret: str) -> str:
    """Nothing slower is needed: what is hashed has 256 bits of chance."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


# --- wrong ones

FREE_MISTAKES = 10
"""Wrong tokens within `MISTAKES_WINDOW` that are answered at once: a page that was forgotten tries a few times."""
MISTAKES_WINDOW = 60.0
PENALTY = 1.0
"""Seconds that each further one waits for its answer."""
MOST_WAITING = 16
"""Those that wait at a time; all others are answered at once that they are too many."""


class Mistakes:
    """Counts wrong links and tokens, whoever shows them: all come from this machine.

    It does not keep out a right one, which nobody can guess: else whoever guesses could lock a person out.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._recent: deque[float] = deque(maxlen=FREE_MISTAKES + 1)
        self._waiting = 0
        self._logged = float("-inf")
        self.count = 0

    async def add(self) -> bool:
        """Returns when the mistake may be answered; False if there are too many."""
        now = self._now()
        self.count += 1
        self._recent.append(now)
        if len(self._recent) <= FREE_MISTAKES or self._recent[0] < now - MISTAKES_WINDOW:
            return True
        if self._logged < now - MISTAKES_WINDOW:
            self._logged = now
            logger.warning("%d wrong links or tokens were shown so far, the last ones in quick succession", self.count)
        if self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        try:
            await asyncio.sleep(PENALTY)
        finally:
            self._waiting -= 1
        return True


# --- what a second `crow web` asks of the one that runs, on that one's unix socket and nowhere else
#
# Who asks may be a command that a Crow runs. Once there can be one, links and tokens are shown in the terminal of the
# `crow web` that runs, and nowhere else: the answers leave them out.


class GivenLink(Wire, frozen=True, omit_defaults=False):
    link: str
    """The one-time link that a person opens. Empty if there is no page, or if it was shown elsewhere."""
    origin: str
    has_page: bool
    is_behind: bool
    """Whether a proxy offers the page to other machines."""


class GivenToken(Wire, frozen=True):
    origin: str
    token: str = ""
    """Empty if it was shown elsewhere."""
    id: str = ""


class Forget(Wire, frozen=True):
    ids: list[str]
    links: bool = False
    """Links that nobody has opened yet are forgotten too."""


class KnownTokens(Wire, frozen=True, omit_defaults=False):
    tokens: list[StoredToken]
