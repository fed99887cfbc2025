"""A web server on the loopback that sends exactly the bytes a test wants, and listeners that must not be reached.

with Website() as site:
    site.pages["/"] = answer("<p>Hello</p>")
    site.pages["/slow"] = lambda connection: …      # anything else: it has the socket
    ...
    site.requests[0].headers["host"]
"""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Self

Page = bytes | Callable[[socket.socket], None]


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


def answer(
    body: bytes | str, content_type: str = "text/html; charset=utf-8", status: str = "200 OK", **more: str
) -> bytes:
    body = body.encode() if isinstance(body, str) else body
    headers = {"content-type": content_type, "content-length": str(len(body)), **more}
    return head(status, headers) + body


def head(status: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items() if value)]
    return "\r\n".join([*lines, "connection: close", "", ""]).encode()


def redirect(location: str, status: str = "302 Found") -> bytes:
    return answer("", status=status, location=location)


class Website:
    def __init__(self, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.pages: dict[str, Page] = {}
        """By path, without the query."""
        self.requests: list[Request] = []
        self.accepted = 0
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._spawn(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)

    def _spawn(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                self._open.append(connection)
                self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            request = _read_request(connection)
            self.requests.append(request)
            page = self.pages.get(request.path.partition("?")[0], answer("no", status="404 Not Found"))
            if isinstance(page, bytes):
                connection.sendall(page)
            else:
                page(connection)


def _read_request(connection: socket.socket) -> Request:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionAbortedError
        data += piece
    top, _, body = data.partition(b"\r\n\r\n")
    first, *lines = top.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    method, path, _ = first.split(" ")
    return Request(method, path, headers, body)


@contextlib.contextmanager
def forbidden_listeners() -> Iterator[tuple[int, list[Website]]]:
    """One port on which every address of this machine, IPv4 and IPv6, would take a connection."""
    with Website(host="0.0.0.0") as four, Website(host="::1", port=four.port) as six:
        yield four.port, [four, six]
