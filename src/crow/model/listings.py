"""The vendors' own lists of models, kept below Crow's home for a day: `models.json`. Light: nobody is asked here."""

import os.path
import time

import msgspec

from crow.config.hosts import is_nearby
from crow.config.locking import locked
from crow.config.versioned_json import Versioned, read_versioned, write_versioned
from crow.errors import ConfigError
from crow.model.facts import Facts

FILE_NAME = "models.json"
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
        return read_versioned(os.path.join(home, FILE_NAME), _Listings(), "").addresses
    except ConfigError:
        return {}


def keep_listing(home: str, base_url: str, models: dict[str, Facts]) -> None:
    """Not that of a server nearby, which has another list as soon as it loads another model. ConfigError."""
    if is_nearby(base_url) or "@" in base_url or not models:
        return
    path = os.path.join(home, FILE_NAME)
    with locked(path):
        kept = {url: listed for url, listed in read_listings(home).items() if listed.is_fresh}
        write_versioned(path, _Listings(addresses={**kept, base_url: ListedModels(time.time(), models)}))
