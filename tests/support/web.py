"""A real `crow web` for tests, and clients of it that write every byte themselves: requests over raw sockets, and a
WebSocket whose frames are made here.
"""

import base64
import contextlib
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.editor import CONFIG, ErrorAnswer, clean_environment
from tests.support.patience import DEADLINE
from tests.support.ports import free_port
from tests.support.scripts import quick_to_read
from tests.support.warm import CROW, warm

Json = dict[str, Any]

PAGE = '<!doctype html><meta name="crow-nonce" content="@NONCE@"><script type="module" src="/page.js"></script>'
FILES = {"index.html": PAGE, "page.js": "export {}\n", "page.css": "body {}\n", "notes.txt": "not for the page\n"}


def crow_with_page(folder: Path, changes: str = "") -> list[str]:
    """The program with a small page in the place of the built one, so that these tests need no build. `changes` is code
    that alters limits."""
    built = folder / "built"
    if not built.exists():
        built.mkdir()
        for name, text in FILES.items():
            (built / name).write_text(text)
    code = (
        "import pathlib, sys, crow.web_server.built_files as files\n"
        f"files.built_folder = lambda: pathlib.Path({str(built)!r})\n"
        f"{changes}\n"
        "from crow.__main__ import main\nsys.exit(main())\n"
    )
    return [sys.executable, "-c", code]


class Web:
    """A `crow web` process. Its home is `folder`/home, like that of the editors of `tests.support.editor`."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        script: str | None = None,
        config: str = "",
        program: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        if script is not None:
            (self.home / "script.toml").write_text(quick_to_read(script))
            (self.home / "config.toml").write_text(CONFIG.format(images="false", more=config))
        self.environment = clean_environment(self.home, folder) | dict(environment or {})
        given = arguments if "--port" in arguments else ("--port", str(free_port()), *arguments)
        self.process = subprocess.Popen(
            [*(program or crow_with_page(folder)), "web", *given],
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self.said = self._first_line()
            found = re.search(r"(?:http|ws)(s?://[^/:\s]+(?::\d+)?)", self.said)
            assert found, f"no address in {self.said!r}: {self.errors()}"
        except BaseException:
            self.close()
            raise
        self.origin = f"http{found[1]}"
        self.port = int(given[given.index("--port") + 1])

    def _first_line(self) -> str:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE)
        assert ready, "crow web printed nothing"
        return self.process.stdout.readline().strip()

    def errors(self) -> str:
        """What it has printed besides, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read() if self.process.poll() is not None else ""

    @property
    def link(self) -> str:
        """The link that it printed, without the address."""
        return self.said.partition("#link=")[2]

    def beside(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A second `crow web` with the same home, until it ends."""
        return subprocess.run(
            [*warm(CROW), "web", *arguments],
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )

    def command(self, *arguments: str) -> str:
        """What another command of Crow prints, with the same home."""
        done = subprocess.run(
            [*warm(CROW), *arguments],
            cwd=self.workspace,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def token(self) -> str:
        done = self.beside("--token")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def connect(self, token: str = "", **more: Any) -> "WebSocket":
        """A client that has not said anything yet. Without a token it comes by the printed link, as the page does."""
        if token:
            return WebSocket(self.port, [f"Authorization: Bearer {token}"], **more)
        offered = f"Sec-WebSocket-Protocol: acp.v1, crow.link.{self.link}"
        return WebSocket(self.port, [f"Origin: {self.origin}", offered], **more)

    def end(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(DEADLINE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def serving(folder: Path, *arguments: str, **more: Any) -> Generator[Web]:
    web = Web(folder, *arguments, **more)
    try:
        yield web
    finally:
        web.close()


# --- requests, byte by byte


class Response:
    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        self.headers = [(name.lower(), value) for name, _, value in (line.partition(": ") for line in lines)]

    def header(self, name: str) -> str:
        return next((value for found, value in self.headers if found == name), "")


def ask(port: int, *lines: str, request: str = "GET / HTTP/1.1", host: str | None = None) -> Response:
    """The answer to a request with exactly these header lines. Without a `host`, that of the server."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as peer:
        peer.settimeout(DEADLINE)
        peer.sendall(head(port, *lines, request=request, host=host))
        return Response(b"".join(iter(lambda: peer.recv(65536), b"")))


def head(port: int, *lines: str, request: str = "GET / HTTP/1.1", host: str | None = None) -> bytes:
    hosts = [f"Host: 127.0.0.1:{port}"] if host is None else [f"Host: {host}"] if host else []
    return "\r\n".join([request, *hosts, *lines, "", ""]).encode("latin-1")


def upgrade(*lines: str) -> tuple[str, ...]:
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {key}",
        *lines,
    )


def handshake(port: int, *lines: str, path: str = "/acp", host: str | None = None) -> Response:
    """The answer to an upgrade, after which the connection is given up."""
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as peer:
        peer.settimeout(DEADLINE)
        peer.sendall(head(port, *upgrade(*lines), request=f"GET {path} HTTP/1.1", host=host))
        return _response_head(peer)


def _response_head(peer: socket.socket) -> Response:
    received = b""
    while b"\r\n\r\n" not in received:
        more = peer.recv(1)
        if not more:
            break
        received += more
    return Response(received)


# --- a client

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"the handshake was answered with {status}")
        self.status = status


class Closed(Exception):
    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"closed with {code} {reason}")
        self.code = code


def frame(kind: int, payload: bytes, *, fin: bool = True) -> bytes:
    """A frame of a client's, masked with zeros."""
    size = len(payload)
    first = bytes([kind | (0x80 if fin else 0)])
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65536:
        length = bytes([0x80 | 126]) + struct.pack("!H", size)
    else:
        length = bytes([0x80 | 127]) + struct.pack("!Q", size)
    return first + length + bytes(4) + payload


class WebSocket:
    """A client of the protocol on a WebSocket: requests are answered by `request`, what else comes is kept in order."""

    def __init__(self, port: int, lines: Sequence[str], *, path: str = "/acp", room: int = 0) -> None:
        """`room`: bytes that the system keeps for a client that does not read."""
        self.peer = socket.socket()
        if room:
            self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.peer.settimeout(DEADLINE)
        self.peer.connect(("127.0.0.1", port))
        self.peer.sendall(head(port, *upgrade(*lines), request=f"GET {path} HTTP/1.1"))
        self.response = _response_head(self.peer)
        if self.response.status != 101:
            self.peer.close()
            raise Refused(self.response.status)
        self._buffer = b""
        self._last_id = 0
        self.received: list[Json] = []
        self.session_id = ""
        self.asked: list[Json] = []
        """Requests of Crow's that this client has not answered yet."""
        self._sending = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.peer.close()

    # --- frames

    def send_frame(self, kind: int, payload: bytes, *, fin: bool = True) -> None:
        with self._sending:
            self.peer.sendall(frame(kind, payload, fin=fin))

    def send(self, message: Json) -> None:
        self.send_frame(TEXT, json.dumps(message).encode())

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            more = self.peer.recv(65536)
            if not more:
                raise Closed(1006)
            self._buffer += more
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def next_frame(self) -> tuple[int, bytes]:
        first, second = self._read(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._read(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._read(8))
        return first & 0x0F, self._read(size)

    def next_message(self) -> Json:
        """The next message of Crow's; Closed if there is none."""
        while True:
            kind, payload = self.next_frame()
            if kind == PING:
                self.send_frame(PONG, payload)
            elif kind == CLOSE:
                code = struct.unpack("!H", payload[:2])[0] if payload else 1005
                raise Closed(code, payload[2:].decode())
            elif kind == TEXT:
                message = json.loads(payload)
                self.received.append(message)
                if "method" in message and "id" in message:
                    self.asked.append(message)
                return message

    def until_closed(self) -> int:
        """The code with which Crow closes it."""
        try:
            while True:
                self.next_message()
        except Closed as closed:
            return closed.code

    # --- the protocol

    def initialize(self, **more: Any) -> Json:
        client = {"name": "crow-page", "title": "Browser", "version": "1"}
        capabilities = {"session": {"notices": {}}, "_meta": {"terminal_output": True}}
        params = {"protocolVersion": 1, "clientInfo": client, "clientCapabilities": capabilities}
        return self.request("initialize", {**params, "_meta": {"crow": {"state": True}}, **more})

    def start(self, method: str, params: Json) -> int:
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def request(self, method: str, params: Json) -> Any:
        return self.answer(self.start(method, params))

    def answer(self, id: int) -> Any:
        """The result; an error is raised."""
        message = self.wait_for(lambda message: message.get("id") == id and "method" not in message)
        if "error" in message:
            error = message["error"]
            raise ErrorAnswer(error["code"], error["message"], error.get("data"))
        return message["result"]

    def wait_for(self, wanted: Any) -> Json:
        """The first message that was received, or comes, that is wanted."""
        for message in self.received:
            if wanted(message):
                return message
        while not wanted(message := self.next_message()):
            pass
        return message

    def wait_for_question(self) -> Json:
        """The next request for permission that is still to be answered."""
        while True:
            for message in self.asked:
                if message["method"] == "session/request_permission":
                    return message
            self.next_message()

    def reply(self, question: Json, result: Any) -> None:
        self.asked.remove(question)
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": result})

    def new_session(self, cwd: Path) -> str:
        self.session_id = self.request("session/new", {"cwd": str(cwd), "mcpServers": []})["sessionId"]
        return self.session_id

    def load(self, session: str, cwd: Path, method: str = "session/load") -> Any:
        self.session_id = session
        return self.request(method, {"sessionId": session, "cwd": str(cwd), "mcpServers": []})

    def start_prompt(self, text: str) -> int:
        prompt = [{"type": "text", "text": text}]
        return self.start("session/prompt", {"sessionId": self.session_id, "prompt": prompt})

    def updates(self) -> list[Json]:
        messages = [message["params"] for message in self.received if message.get("method") == "session/update"]
        return [params["update"] for params in messages if params["sessionId"] == self.session_id]

    def text(self) -> str:
        chunks = [update for update in self.updates() if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    def states(self) -> list[Json]:
        return [message["params"] for message in self.received if message.get("method") == "_crow/state"]

    def close(self) -> None:
        """Leaves without a word, as a browser does whose machine sleeps."""
        self.peer.close()
