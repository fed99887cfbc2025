"""Hosts for tests: the protocol package's own client, with the installed `crow mcp` on real pipes or over real HTTP."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx2
import mcp_types as types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from mcp import Client, StdioServerParameters
from tests.support.editor import clean_environment
from tests.support.patience import DEADLINE
from tests.support.terminals import is_alive
from tests.support.warm import CROW, warm

Era = Literal["legacy", "auto"]
"""`legacy`: with a handshake; `auto`: the protocol since 2026-07-28, in which each request stands for itself."""
ERAS: tuple[Era, ...] = ("legacy", "auto")


class AnyRoot(types.Root):
    uri: str  # pyright: ignore[reportIncompatibleVariableOverride] -- hosts name other things than files, too


class AnyRoots(types.ListRootsResult):
    roots: list[AnyRoot]  # pyright: ignore[reportIncompatibleVariableOverride]


class Roots:
    """The folders that a host offers; it keeps how often it was asked."""

    def __init__(self, *folders: Path | str) -> None:
        self.uris = [folder if isinstance(folder, str) else folder.as_uri() for folder in folders]
        self.asked = 0

    async def __call__(self, context: Any) -> types.ListRootsResult:
        self.asked += 1
        return AnyRoots.model_validate({"roots": [{"uri": uri} for uri in self.uris]})


def surroundings(folder: Path, config: str = "") -> dict[str, str]:
    """The environment of a server that is started in a folder; Crow's home lies beside it."""
    home = folder.with_name(f"{folder.name}-home")
    home.mkdir(exist_ok=True)
    if config:
        (home / "config.toml").write_text(config)
    return clean_environment(home, folder.parent) | {"TMPDIR": str(home)}


def crow_with(module: str, **limits: float) -> list[str]:
    """The program with other limits than its own, so that a test need not wait for those."""
    changes = "".join(f"module.{name} = {value}; " for name, value in limits.items())
    code = f"import importlib, sys; module = importlib.import_module({module!r}); {changes}"
    return [sys.executable, "-c", f"{code}from crow.__main__ import main; sys.exit(main())"]


@asynccontextmanager
async def on_pipes(
    folder: Path, *arguments: str, era: Era = "legacy", roots: Roots | None = None, config: str = "", cwd: str = ""
) -> AsyncGenerator[Client]:
    """A host that starts `crow mcp` in the folder. Not a word may come on standard error."""
    log = folder.with_name(f"{folder.name}-stderr")
    command, *words = warm(CROW)
    parameters = StdioServerParameters(
        command=command, args=[*words, "mcp", *arguments], env=surroundings(folder, config), cwd=cwd or str(folder)
    )
    with log.open("w") as errors:
        transport = stdio_client(parameters, errlog=errors)
        async with Client(transport, mode=era, list_roots_callback=roots, read_timeout_seconds=30) as client:
            yield client
    assert log.read_text() == ""


class RawServer:
    """`crow mcp` on pipes, line by line."""

    def __init__(
        self, folder: Path, *arguments: str, program: Sequence[str] = (), config: str = "", **environ: str
    ) -> None:
        self.process = subprocess.Popen(
            [*(program or warm(CROW)), "mcp", *arguments],
            cwd=folder,
            env=surroundings(folder, config) | environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send(self, line: str | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        text = line if isinstance(line, str) else json.dumps({"jsonrpc": "2.0", **line})
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def next_message(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it left without an answer"
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def answer(self, id: int) -> dict[str, Any]:
        while (message := self.next_message()).get("id") != id:
            pass
        return message

    def begin(self, **capabilities: Any) -> None:
        client = {"name": "test", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client}
        self.send({"id": 1, "method": "initialize", "params": hello})
        assert self.answer(1)["result"]["serverInfo"]["name"] == "crow"
        self.send({"method": "notifications/initialized"})

    def call(self, id: int, tool: str, **arguments: Any) -> None:
        self.send({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})


class HttpServer(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    token: str

    @asynccontextmanager
    async def connect(self, era: Era = "legacy", roots: Roots | None = None) -> AsyncGenerator[Client]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, list_roots_callback=roots, read_timeout_seconds=30) as client:
                yield client


@contextmanager
def serving_http(
    folder: Path, *arguments: str, program: Sequence[str] = (), config: str = "", **environ: str
) -> Generator[HttpServer]:
    """`crow mcp --http` in the folder. It is told to go in the end, and goes."""
    process = subprocess.Popen(
        [*(program or warm(CROW)), "mcp", "--http", *arguments],
        cwd=folder,
        env=surroundings(folder, config) | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        url = process.stderr.readline().removeprefix("crow mcp: ").strip()
        given = "CROW_MCP_TOKEN" in environ or "--token-file" in arguments
        token = (
            environ.get("CROW_MCP_TOKEN", "") if given else process.stderr.readline().removeprefix("token: ").strip()
        )
        yield HttpServer(process, url, token)
    finally:
        process.send_signal(signal.SIGTERM)
        said, complained = process.communicate(timeout=DEADLINE)
    assert (process.returncode, said, complained) == (128 + signal.SIGTERM, "", "")


def text_of(result: types.CallToolResult) -> str:
    """What the model is told."""
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


async def edit(client: Client, command: str, path: Path | str, **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("file_editor", {"command": command, "path": str(path), **arguments})


async def done(client: Client, command: str, path: Path | str, **arguments: Any) -> str:
    """What the model is told of a call that must succeed."""
    result = await edit(client, command, path, **arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(client: Client, command: str, path: Path | str, **arguments: Any) -> str:
    """The same of one that must not."""
    result = await edit(client, command, path, **arguments)
    assert result.is_error, text_of(result)
    return text_of(result)


# --- the web, on this machine


@contextmanager
def small_web() -> Generator[str]:
    """A page at `/page`, and searches as SearXNG answers them; its address."""
    results = {"results": [{"title": "A crow", "url": "https://example.com/crow", "content": "It caws."}]}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = b"<html><body><main><h1>Crows</h1><p>They caw.</p></main></body></html>"
            is_search = self.path.startswith("/search")
            body = json.dumps(results).encode() if is_search else page
            self.send_response(200)
            self.send_header("Content-Type", "application/json" if is_search else "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def web_config(address: str) -> str:
    return f'[web]\nsearch = "searxng"\nurl = "{address}"\nallow_private = ["127.0.0.1"]\n'


def alive(pids: Sequence[int]) -> list[int]:
    return [pid for pid in pids if is_alive(pid)]


def pid_in(path: Path) -> int:
    return int(path.read_text()) if os.path.exists(path) and path.read_text().strip() else 0
