"""Looks at the folders that a request names for a session, within a time: each must be there, and be the session's."""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from crow.acp import wire
from crow.disk import Disk
from crow.errors import FileSystemSilent
from crow.files.output_folder import outputs_folder, remove_outputs
from crow.rpc.jsonrpc import invalid_params

DISK_TIMEOUT = 10.0
"""Seconds that the file system of a session's folder gets when the session is opened."""

T = TypeVar("T")


class SessionFolders:
    def __init__(self) -> None:
        self._disks: WeakValueDictionary[str, Disk] = WeakValueDictionary()
        """Those of sessions that are being opened, by folder: one that hangs is not given ever more threads."""

    async def run(self, folder: str, work: Callable[[], T]) -> T:
        """Does what looks at a folder beside the event loop. FileSystemSilent if its file system does not answer in
        time."""
        return await self._disks.setdefault(folder, Disk(folder)).run(work, DISK_TIMEOUT)

    async def roots(self, request: wire.NewSessionRequest) -> list[str]:
        """The folders of a session: its own, then the further ones. Each must be there."""
        folders = [("cwd", request.cwd)]
        folders += [("additionalDirectories", path) for path in request.additional_directories or []]
        for name, path in folders:
            whole = absolute(name, path)
            if not await self.run(whole, lambda folder=whole: os.path.isdir(folder)):
                if await self.run(whole, lambda folder=whole: os.path.exists(folder)):
                    raise invalid_params(f"`{name}`: {path[:200]!r} is a file, not a folder")
                raise invalid_params(f"`{name}`: there is no folder {path[:200]!r}{_how_to_read(request)}")
        return [path for _, path in folders]

    async def check_same(self, stored: str, given: str) -> None:
        """RpcError unless the folder that a request gives is the one that the session is stored with."""
        await self.run(given, lambda: _check_same(stored, given))

    async def remove_outputs(self, session_id: str) -> None:
        """Removes what a session's commands have written, unless the file system does not answer."""
        with suppress(FileSystemSilent):
            await self.run(outputs_folder(session_id), lambda: remove_outputs(session_id))


def _how_to_read(request: wire.NewSessionRequest) -> str:
    """What a person can still do whose stored session has lost its folder."""
    if not isinstance(request, wire.LoadSessionRequest):
        return ""
    return f". Make it anew to go on there; what was said is shown by: crow sessions show {request.session_id[:100]}"


def absolute(name: str, path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise invalid_params(f"`{name}` must be an absolute path, got {path[:200]!r}")
    return path


def _check_same(stored: str, given: str) -> None:
    if os.path.realpath(stored) != os.path.realpath(given):
        raise invalid_params(f"`cwd`: the session belongs to {stored[:200]!r}, not to {given[:200]!r}")
