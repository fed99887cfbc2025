"""Watches files for changes by inotify: one descriptor and one thread for all sessions of the process.

There may be no inotify, its limits may be reached, and on a network file system it tells nothing of what other
machines do. A watch is then not complete, and whoever has it looks for changes from time to time.
"""

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from crow.disk import network_file_system
from crow.threads import start_thread

PAUSE = 0.2
"""Seconds between two readings: a folder in which files are written all the time costs little."""
_CHANGES = 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""Attributes, closed after writing, moved from and to, created, deleted, itself deleted, itself moved."""
_IGNORED = 0x8000
_OVERFLOW = 0x4000
_CLOSE_ON_EXEC = 0o2000000
_HEAD = struct.Struct("iIII")

Names = frozenset[str] | None
"""The names in a folder that matter; None for all of them."""
WatchList = Mapping[str, Names]
"""Folders and files to be watched, by path."""
PlaceT = TypeVar("PlaceT", str, int)


class Watch:
    """The paths of which one session learns the changes. `tell` is called on another thread, once for many changes."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.is_complete = False
        """Whether every change is reported."""
        self.tell = tell
        self.numbers: set[int] = set()
        """The kernel's numbers of the paths."""
        self._latest: object = None

    def follow(self, lists: Iterable[WatchList]) -> bool:
        """Watches these places and no others; a missing one by its nearest parent. A file system may hang in it.

        True if some were not watched before: nobody was told of what has changed in them by now.
        """
        places = _joined(entry for places in lists for entry in places.items())
        with _lock:
            self._latest = this = object()
        kernel = _kernel()
        if kernel is None:
            return False
        while True:
            removals = kernel.removals
            nearest = [_nearest(kernel, place, names) for place, names in places.items()]
            found = _joined(entry for entry in nearest if entry[0] >= 0)
            with _lock:
                if self._latest is not this:  # another one has come, or the end, while a file system hung
                    return False
                if kernel.removals == removals:  # else what was found may have been removed meanwhile
                    is_new = kernel.replace(self, found)
                    break
        is_complete = all(number >= 0 for number, _ in nearest)
        outermost = (place for place in places if os.path.dirname(place) not in places)
        if is_new:
            self.is_complete = is_complete and not any(map(network_file_system, outermost))
        else:
            self.is_complete = is_complete and self.is_complete
        return is_new

    def close(self) -> None:
        with _lock:
            self._latest = None
            if _shared is not None:
                _shared.replace(self, {})


def _nearest(kernel: "_Inotify", place: str, names: Names) -> tuple[int, Names]:
    """The number of a place, or of the first folder above it that is there, with the names in it that matter."""
    number = kernel.add(place)
    while number < 0 and not os.path.exists(place) and os.path.dirname(place) != place:
        place, names = os.path.dirname(place), frozenset({os.path.basename(place)})
        number = kernel.add(place)
    return number, names


def _joined(entries: Iterable[tuple[PlaceT, Names]]) -> dict[PlaceT, Names]:
    """A place that comes twice is watched for whatever counts for either."""
    joined: dict[PlaceT, Names] = {}
    for place, names in entries:
        before = joined.get(place, frozenset[str]())
        joined[place] = None if before is None or names is None else before | names
    return joined


# --- the kernel's side

_lock = threading.Lock()
"""Never held during a call that a file system may hang in."""
_shared: "_Inotify | None" = None


class _Inotify:
    """The kernel's watches, by number: one for a file, however it is named. All but `add` is called with the lock."""

    def __init__(self, call: Callable[[int, tuple[object, ...]], int], descriptor: int, add: int, remove: int) -> None:
        self.descriptor = descriptor
        self.removals = 0
        self._call = call
        self._add = add
        self._remove = remove
        self._watches: dict[int, dict[Watch, Names]] = {}

    def add(self, path: str) -> int:
        """The number of what is there, watched from now on; negative if it cannot be."""
        return self._call(self._add, (self.descriptor, os.fsencode(path), _CHANGES))

    def replace(self, watch: Watch, found: Mapping[int, Names]) -> bool:
        """Tells the watch about these from now on; whether some of them are new to it."""
        before, watch.numbers = watch.numbers, set(found)
        for number, names in found.items():
            self._watches.setdefault(number, {})[watch] = names
        for number in before - found.keys():
            del self._watches[number][watch]
            if not self._watches[number]:
                del self._watches[number]
                self.removals += 1
                self._call(self._remove, (self.descriptor, number))
        return not found.keys() <= before

    def told_of(self, events: bytes) -> set[Watch]:
        """The watches that some of these events are for."""
        told: set[Watch] = set()
        at = 0
        while at < len(events):
            number, kind, _, length = _HEAD.unpack_from(events, at)
            name = os.fsdecode(events[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0"))
            at += _HEAD.size + length
            if kind & _OVERFLOW:
                told.update(*self._watches.values())
            watches = self._watches.get(number, {})
            told.update(watch for watch, names in watches.items() if not name or names is None or name in names)
            if kind & _IGNORED:
                for watch in self._watches.pop(number, {}):
                    watch.numbers.discard(number)
        return told


def _kernel() -> _Inotify | None:
    global _shared
    with _lock:
        if _shared is None:
            with contextlib.suppress(ImportError, OSError, AttributeError):
                _shared = _opened()
        return _shared


def _opened() -> _Inotify | None:
    import _ctypes  # all of ctypes would take long to load, and a first prompt may be waiting

    library = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType] -- None: ourselves
    begin, add, remove = (_ctypes.dlsym(library, f"inotify_{name}") for name in ("init1", "add_watch", "rm_watch"))
    descriptor = _ctypes.call_function(begin, (_CLOSE_ON_EXEC,))
    if descriptor < 0:
        return None
    kernel = _Inotify(_ctypes.call_function, descriptor, add, remove)
    if start_thread(partial(_read, kernel), "crow-watch") is None:
        os.close(descriptor)
        return None
    return kernel


def _read(kernel: _Inotify) -> None:
    while True:
        events = os.read(kernel.descriptor, 1 << 16)
        with _lock:
            told = kernel.told_of(events)
        for watch in told:
            watch.tell()
        time.sleep(PAUSE)
