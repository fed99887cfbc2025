"""Watches every connection that this process tries to make, whatever library makes it: Python itself reports them.

Only connections to the loopback get through. So a test can use public addresses, and nothing leaves the machine.
"""

import contextlib
import socket
import sys
from collections.abc import Iterator
from typing import Any

_watchers: list[list[str]] = []
_installed: list[bool] = []


@contextlib.contextmanager
def watched() -> Iterator[list[str]]:
    """The addresses that were connected to, or would have been."""
    if not _installed:
        sys.addaudithook(_hook)  # cannot be taken away again; without a watcher it does nothing
        _installed.append(True)
    seen: list[str] = []
    _watchers.append(seen)
    try:
        yield seen
    finally:
        _watchers.remove(seen)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watchers or event != "socket.connect":
        return
    connection, address = arguments
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    for seen in _watchers:
        seen.append(address[0])
    if not address[0].startswith("127.") and address[0] != "::1":
        raise ConnectionRefusedError(address[0])
