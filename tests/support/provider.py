"""A real HTTP server on the loopback that plays a model's provider, all dialects at once.

    with Provider() as provider:
        provider.openai.answer("Let me look.", Call("read", {"path": "a.py"}))
        provider.openai.fail(503, "overloaded")
        settings = provider.openai.settings()     # for a configuration; `provider.openai.url` is its base_url
        ...
        provider.openai.requests[0].body["messages"]

Answers are used in order, one for each request. Requests are checked the way the real ones do it, and refused with
400 if a real one would refuse them. It runs in threads of its own, so it serves tests and child processes alike.
"""

import contextlib
import json
import os
import socket
import ssl
import tempfile
import threading
from typing import Any, Self

import trustme

from crow.model.wires.http_model import LEARNED
from tests.support.provider_anthropic import AnthropicDialect
from tests.support.provider_dialect import Answer, Cut, Dialect, Gate, Pause, Request, Stall
from tests.support.provider_openai import OpenAIDialect
from tests.support.provider_responses import ResponsesDialect

__all__ = ["Answer", "Cut", "Gate", "Pause", "Provider", "Request", "Stall"]

TLS_HANDSHAKE = b"\x16"


class Provider:
    def __init__(self, *, key: str = "", tls: bool = False) -> None:
        """With `key`, requests without it are refused. With `tls`, `ca_file` certifies the server."""
        self.key = key
        self.ca_file = ""
        self.connections = 0
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._tls = self._certify() if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        forget(self.url)
        self.openai = OpenAIDialect(f"{self.url}/v1", key)
        self.responses = ResponsesDialect(f"{self.url}/v1", key)
        self.anthropic = AnthropicDialect(self.url, key)

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        if self.ca_file:
            os.unlink(self.ca_file)

    def _certify(self) -> ssl.SSLContext:
        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        handle, self.ca_file = tempfile.mkstemp(suffix=".pem")
        os.write(handle, authority.cert_pem.bytes())
        os.close(handle)
        return context

    def _spawn(self, work: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            with connection.makefile("rb") as lines:
                if not self._tls and lines.peek(1)[:1] == TLS_HANDSHAKE:
                    connection.sendall(b"HTTP/1.1 400 This is no TLS port\r\n\r\n")
                    return
                while not self._stopping.is_set() and (request := read_request(lines)):
                    answer = self._dialect(request).respond(request)
                    if not send_answer(connection, answer, self._stopping):
                        return
        except OSError:
            pass  # the client left, or did not trust us
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _dialect(self, request: Request) -> Dialect:
        if "anthropic-version" in request.headers:
            return self.anthropic
        return self.responses if request.path == self.responses.path else self.openai


def forget(url: str) -> None:
    """What another server taught that had this port in an earlier test of the same process."""
    for known in [place for place in LEARNED if place[0].startswith(url)]:
        del LEARNED[known]


def read_request(lines: Any) -> Request | None:
    start = lines.readline().split()
    if len(start) != 3:
        return None
    headers: dict[str, str] = {}
    while line := lines.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    body = lines.read(int(headers.get("content-length", 0)))
    return Request(start[0].decode(), start[1].decode(), headers, json.loads(body) if body else None)


def send_answer(connection: socket.socket, answer: Answer, stopping: threading.Event) -> bool:
    """False if the connection is of no further use."""
    streamed = answer.status == 200
    headers = {"content-type": "text/event-stream" if streamed else "application/json", **answer.headers}
    if streamed:
        headers["transfer-encoding"] = "chunked"
    else:
        headers["content-length"] = str(sum(len(step) for step in answer.steps if isinstance(step, bytes)))
    lines = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    if answer.headless:
        lines = []
    connection.sendall("\r\n".join(lines).encode())
    for step in answer.steps:
        match step:
            case bytes():
                connection.sendall(b"%x\r\n%b\r\n" % (len(step), step) if streamed else step)
            case Cut():
                return False
            case Stall():
                stopping.wait(60)
                return False
            case Pause(seconds):
                stopping.wait(seconds)
            case Gate(opened):
                while not opened.wait(0.02):
                    if stopping.is_set():
                        return False
    if streamed:
        connection.sendall(b"0\r\n\r\n")
    return True
