"""The names that mark the store's file, and its tables."""

APPLICATION_ID = 0x43726F77
"""Marks the file as ours: the letters of Crow."""


FILE_NAME = "sessions.db"
"""Below Crow's home."""


class LayoutOutdated(Exception):
    """An older Crow wrote the file: it must be brought up to date before it can be read."""


RECORDS = """
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
    packed INTEGER NOT NULL DEFAULT 0,
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
    packed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, seq)
);
"""
CONTENTS = """
CREATE TABLE contents (
    key INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    data BLOB NOT NULL
);
CREATE TABLE uses (
    session INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (session, content)
) WITHOUT ROWID;
CREATE INDEX uses_by_content ON uses (content, session);
"""
SPENDING = """
CREATE TABLE spending (
    day TEXT NOT NULL,
    unit TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (day, unit)
) WITHOUT ROWID;
"""
