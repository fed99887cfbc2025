"""Files that appear in a folder, as the kernel tells of them: one that is there for a moment only is not missed."""

import ctypes
import os
import select
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.support.patience import DEADLINE

_CREATED = 0x100
_LIBC = ctypes.CDLL(None, use_errno=True)


class NewFiles:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def wait_for(self, suffix: str) -> None:
        """Returns when a file with this suffix has appeared, which may be gone again."""
        while select.select([self._descriptor], [], [], DEADLINE)[0]:
            if f"{suffix}\0".encode() in os.read(self._descriptor, 65536):
                return
        raise AssertionError(f"no file {suffix} appeared")


@contextmanager
def watched(folder: Path) -> Generator[NewFiles]:
    descriptor = _LIBC.inotify_init1(os.O_CLOEXEC)
    assert _LIBC.inotify_add_watch(descriptor, os.fsencode(folder), _CREATED) >= 0
    try:
        yield NewFiles(descriptor)
    finally:
        os.close(descriptor)
