"""The input history of `crow chat`: what was typed in a project before, in a file below CROW_HOME that several chats
may add to at once.
"""

import contextlib
import os
from collections.abc import Iterable
from functools import cached_property

import msgspec
from prompt_toolkit.history import History

from crow.config.home import LOG_FLAGS, create_folder, read_file, write_file
from crow.errors import ConfigError

MOST_ENTRIES = 1000
LARGEST_FILE = 4 * 1024 * 1024
LONGEST_ENTRY = 256 * 1024


class ProjectHistory(History):
    """The newest entries, each a JSON string on a line of its own. What cannot be stored is known until the end."""

    def __init__(self, home: str, folder: str) -> None:
        super().__init__()
        self._home = home
        self._folder = folder

    @cached_property
    def _path(self) -> str:
        import hashlib  # loads a library of cryptography: not before the first input line is there

        digest = hashlib.sha256(os.fsencode(os.path.realpath(self._folder))).hexdigest()[:16]
        return os.path.join(self._home, "history", f"{digest}.jsonl")

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        try:
            content = read_file(self._path)
        except OSError:
            return
        lines = content.splitlines()
        if len(content) > LARGEST_FILE or len(lines) > 2 * MOST_ENTRIES:
            lines = _newest(lines)
            with contextlib.suppress(ConfigError):
                write_file(self._path, b"".join(line + b"\n" for line in lines))
        for line in reversed(lines[-MOST_ENTRIES:]):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                yield msgspec.json.decode(line, type=str)

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST_ENTRY:
            return
        with contextlib.suppress(OSError, ConfigError):
            create_folder(os.path.dirname(self._path))
            descriptor = os.open(self._path, LOG_FLAGS | os.O_NOFOLLOW, 0o600)
            try:
                os.write(descriptor, msgspec.json.encode(string) + b"\n")
            finally:
                os.close(descriptor)


def _newest(lines: list[bytes]) -> list[bytes]:
    """As many of the last lines as there may be, and half as many bytes."""
    kept: list[bytes] = []
    room = LARGEST_FILE // 2
    for line in reversed(lines[-MOST_ENTRIES:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
