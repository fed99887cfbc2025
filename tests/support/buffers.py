"""Editors with buffers, as ClientWorkspace meets them: at the other end of a real connection.

Each flavour behaves as a known client does; see what its docstring says. They save to the real disk, so a test can
look at the bytes. `typed` is what the person does in them.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from crow.acp import wire
from crow.acp.workspace import ClientWorkspace
from crow.files.local import LocalWorkspace
from crow.files.text import CRLF, with_line_ends, with_line_feeds
from crow.rpc.connection import Connection, PendingRequest, Route
from crow.rpc.jsonrpc import ErrorCode, RpcError


class RawEditor:
    """Like acpx: no buffers of its own, the file's text as UTF-8, line ends and mark as they are."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unsaved: dict[str, str] = {}
        self.asked: list[str] = []
        """The methods that were called, in order."""

    # --- what the person does

    def typed(self, path: str, change: Callable[[str], str]) -> None:
        """Changes the text in the editor and does not save it."""
        self.unsaved[path] = change(self.text(path))

    # --- what the client answers

    def read(self, request: wire.ReadTextFileRequest, pending: PendingRequest) -> Any:
        self.asked.append("read")
        return wire.ReadTextFileResponse(content=self.text(request.path))

    def write(self, request: wire.WriteTextFileRequest, pending: PendingRequest) -> Any:
        self.asked.append("write")
        self.save(request.path, request.content)

    def text(self, path: str) -> str:
        if path in self.unsaved:
            return self.unsaved[path]
        try:
            return self.decode(Path(path).read_bytes())
        except FileNotFoundError:
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "not found") from None

    def save(self, path: str, text: str) -> None:
        Path(path).write_bytes(text.encode())
        self.unsaved.pop(path, None)

    def decode(self, content: bytes) -> str:
        return content.decode("utf-8", "replace")


class Toad(RawEditor):
    """Reads with universal line ends, drops what is no UTF-8, and takes a missing file for an empty one."""

    def text(self, path: str) -> str:
        try:
            return super().text(path)
        except RpcError:
            return ""

    def decode(self, content: bytes) -> str:
        return with_line_feeds(content.decode("utf-8", "ignore"))


class Zed(RawEditor):
    """Real buffers: line feeds inside, the first line's end restored on saving, no mark, formatted if it is so set.

    A buffer follows the disk while it is not modified. Outside the project everything is refused.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.format: Callable[[str], str] = lambda text: text
        self.reloads = True
        """Off: the file watcher has not noticed anything yet."""
        self._buffers: dict[str, str] = {}

    def text(self, path: str) -> str:
        if not Path(path).is_relative_to(self.root):
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "not in the project")
        if path in self.unsaved:
            return self.unsaved[path]
        if self.reloads or path not in self._buffers:
            self._buffers[path] = super().text(path)
        return self._buffers[path]

    def decode(self, content: bytes) -> str:
        return with_line_feeds(content.decode("utf-8", "replace").removeprefix("\ufeff"))

    def save(self, path: str, text: str) -> None:
        if not Path(path).is_relative_to(self.root):
            raise RpcError(ErrorCode.INVALID_PARAMS, "invalid path")
        on_disk = Path(path).read_bytes() if Path(path).exists() else b""
        end = CRLF if b"\r\n" in on_disk else "\n"
        saved = self.format(with_line_feeds(text))
        self._buffers[path] = saved
        super().save(path, with_line_ends(saved, end))


@asynccontextmanager
async def connected(
    root: Path, editor: RawEditor, *, reads: bool = True, writes: bool = True
) -> AsyncIterator[ClientWorkspace]:
    """A workspace whose client is this editor."""

    def answer_with(method: str) -> Callable[..., Any]:
        async def answer(request: Any, pending: PendingRequest) -> Any:
            given = getattr(editor, method)(request, pending)
            return await given if asyncio.iscoroutine(given) else given

        return answer

    methods = {
        "fs/read_text_file": Route(wire.ReadTextFileRequest, answer_with("read")),
        "fs/write_text_file": Route(wire.WriteTextFileRequest, answer_with("write")),
    }
    (agent_in, client_out), (client_in, agent_out) = os.pipe(), os.pipe()
    client = Connection(client_in, client_out, methods, {})
    agent = Connection(agent_in, agent_out, {}, {})
    serving = [asyncio.create_task(peer.run()) for peer in (client, agent)]
    try:
        workspace = ClientWorkspace([str(root)], agent, "session", reads=reads, writes=writes)
        workspace.editor = editor  # pyright: ignore[reportAttributeAccessIssue] -- for tests that play the person
        yield workspace
    finally:
        await agent.close()
        await client.close()
        await asyncio.gather(*serving)
        for fd in (agent_in, client_out, client_in, agent_out):
            os.close(fd)


FLAVOURS: dict[str, tuple[type[RawEditor] | None, dict[str, bool]]] = {
    "local": (None, {}),
    "raw": (RawEditor, {}),
    "zed": (Zed, {}),
    "toad": (Toad, {}),
    "zed, read only": (Zed, {"writes": False}),
    "raw, write only": (RawEditor, {"reads": False}),
}
"""Every kind of workspace that a session may have."""


@asynccontextmanager
async def opened(root: Path, flavour: str) -> AsyncIterator[LocalWorkspace]:
    kind, capabilities = FLAVOURS[flavour]
    if kind is None:
        yield LocalWorkspace([str(root)])
    else:
        async with connected(root, kind(root), **capabilities) as workspace:
            yield workspace
