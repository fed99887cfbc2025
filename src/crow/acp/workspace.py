"""The workspace as the editor has it: its unsaved buffers before the disk."""

import asyncio
from collections.abc import Sequence

from crow.acp import wire
from crow.acp.connection import Connection, ConnectionLost
from crow.acp.jsonrpc import RpcError
from crow.workspace.local import LocalWorkspace

PATIENCE = 10
"""Seconds that an editor gets to hand over a file before the disk is read instead."""


class ClientWorkspace(LocalWorkspace):
    """Text is read through the client, everything else on this machine, which the two share."""

    def __init__(self, roots: Sequence[str], connection: Connection, session_id: str) -> None:
        super().__init__(roots)
        self._connection = connection
        self._session_id = session_id

    async def read_text(self, path: str) -> str:
        # Editors answer only for their project's folders, and with text: a binary file would come garbled.
        if not self.contains(path) or b"\0" in await self.read_bytes(path, 8192):
            return await super().read_text(path)
        request = wire.ReadTextFileRequest(session_id=self._session_id, path=path)
        try:
            async with asyncio.timeout(PATIENCE):
                answer = await self._connection.request("fs/read_text_file", request, wire.ReadTextFileResponse)
        except (RpcError, ConnectionLost, TimeoutError):
            return await super().read_text(path)
        return answer.content
