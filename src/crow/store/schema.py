"""The tables of the store, and how an older file becomes a file of today."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

APPLICATION_ID = 0x43726F77
"""Marks the file as ours: the letters of Crow."""


FILE_NAME = "sessions.db"
"""Below Crow's home."""


class LayoutOutdated(Exception):
    """An older Crow wrote the file: it must be brought up to date before it can be read."""


class Layout(msgspec.Struct, frozen=True):
    version: int
    create: str
    """The statements that make a new file."""
    upgrades: Mapping[int, str] = MappingProxyType({})
    """By version: the statements that make the next version of a file of this one."""


_VERSION_1 = """
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    roots TEXT NOT NULL,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    running INTEGER NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL
);
CREATE INDEX sessions_by_time ON sessions (updated DESC, id DESC) WHERE listed = 1;
CREATE INDEX sessions_by_folder ON sessions (cwd, updated DESC, id DESC) WHERE listed = 1;
CREATE TABLE records (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tag TEXT NOT NULL,
    optional INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
CREATE TABLE former_texts (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tag TEXT NOT NULL,
    optional INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
"""

LAYOUT = Layout(version=1, create=_VERSION_1)
