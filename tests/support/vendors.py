"""Stand-ins for vendors that refuse what the real ones are known to refuse, at the real ones' addresses.

    with Vendors(Gemini()) as vendors:
        environment = {"GEMINI_API_KEY": "k", **vendors.environment}
        ...
        vendors["gemini"].requests[0].body

Nothing of Crow is set up for them: they are reached through a proxy (HTTPS_PROXY) that takes every host for itself,
with certificates of an authority that SSL_CERT_FILE names. To each prompt a vendor's model thinks, reads a file, and
after the result thinks again and says that it is done.
"""

import contextlib
import json
import os
import re
import socket
import ssl
import tempfile
import threading
from typing import Any, Self

import trustme

from tests.support.provider import read_request, send_answer
from tests.support.provider_dialect import Answer, Refused, Request, event, insist

Json = dict[str, Any]

PATH = "notes.txt"
ARGUMENTS = json.dumps({"path": PATH})
DONE = "That is all."


class Vendor:
    """One vendor. Subclasses say where it is, what it refuses and how its model answers."""

    name: str
    host: str
    path: str
    key = "k-1"

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.refusals: list[str] = []
        """What was said to requests that were not taken."""
        self.replies = 0

    def respond(self, request: Request) -> Answer:
        if request.method == "GET":
            return self.refuse(404, "There is no list here.")
        self.requests.append(request)
        try:
            insist(self.key in request.headers.get(self.key_header, ""), "Incorrect API key provided.")
            insist(request.path.partition("?")[0] == self.path, f"There is nothing at {request.path}.")
            self.check(request.body)
        except Refused as refusal:
            self.refusals.append(str(refusal))
            return self.refuse(self.refused_status, str(refusal))
        self.replies += 1
        return Answer([*self.reply(request.body)])

    key_header = "authorization"
    refused_status = 400

    def refuse(self, status: int, said: str) -> Answer:
        return Answer([json.dumps(self.complaint(said)).encode()], status)

    def complaint(self, said: str) -> Any:
        return {"error": {"message": said, "type": "invalid_request_error", "param": None, "code": None}}

    def check(self, body: Json) -> None:
        """Raises Refused for what the vendor would not take."""
        raise NotImplementedError

    def reply(self, body: Json) -> list[bytes]:
        """The events of the stream that answers a request that was taken."""
        raise NotImplementedError


class ChatVendor(Vendor):
    """A vendor of chat completions: strict about what all of them are strict about, and each about its own rules."""

    default_model: str
    fields = frozenset(
        {"model", "messages", "stream", "stream_options", "tools", "tool_choice", "max_tokens", "max_completion_tokens"}
        | {"reasoning_effort", "temperature"}
    )
    """What a request may have; `more_fields` are the vendor's own."""
    more_fields: frozenset[str] = frozenset()
    message_fields = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
    more_message_fields: frozenset[str] = frozenset()
    call_fields = frozenset({"id", "type", "function", "index"})
    more_call_fields: frozenset[str] = frozenset()
    usage: Json = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}  # noqa: RUF012

    def check(self, body: Json) -> None:
        insist(body["model"] == self.default_model, f"The model {body['model']} does not exist.")
        insist(body.get("stream") is True, "stream is not true.")
        self.expect_only(body, self.fields | self.more_fields, "")
        messages: list[Json] = body["messages"]
        replies = 0
        for place, message in enumerate(messages):
            self.expect_only(message, self.message_fields | self.more_message_fields, f"messages.{place}.")
            for call in message.get("tool_calls", []):
                self.expect_only(call, self.call_fields | self.more_call_fields, f"messages.{place}.tool_calls.")
            if message["role"] == "assistant":
                replies += 1
                self.check_reply(message, replies, is_current=not _prompts(messages[place:]))
        self.check_order(messages)
        self.check_more(body)

    def expect_only(self, fields: Json, allowed: frozenset[str], where: str) -> None:
        for name in fields:
            insist(name in allowed, self.extra(where, name))

    def extra(self, where: str, name: str) -> str:
        return f"Unknown parameter: '{where}{name}'."

    def check_order(self, messages: list[Json]) -> None:
        open_ids: list[str] = []
        for message in messages:
            if message["role"] == "tool":
                insist(message["tool_call_id"] in open_ids, "A result without its call.")
                open_ids.remove(message["tool_call_id"])
            else:
                insist(not open_ids, "A call without its result.")
                open_ids = [call["id"] for call in message.get("tool_calls", [])]
        insist(not open_ids, "A call without its result.")

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        """Raises Refused for a reply, counted from one, that does not come back as the vendor wants it."""

    def check_more(self, body: Json) -> None:
        pass

    # --- answers

    def reply(self, body: Json) -> list[bytes]:
        finish = "stop" if body["messages"][-1]["role"] == "tool" else "tool_calls"
        last = body["messages"][-1]
        deltas = self.thought(thought_of(self.replies))
        if last["role"] == "tool":
            deltas.append({"content": DONE})
        else:
            deltas.append({"tool_calls": [self.call(f"call_{self.replies}")]})
        chunks = [self.chunk(delta) for delta in deltas] + [self.chunk({}, finish)]
        usage = [event({"choices": [], "usage": self.usage})] if "stream_options" in body else []
        return [event(chunk) for chunk in chunks] + usage + [event("[DONE]")]

    def chunk(self, delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}

    def thought(self, text: str) -> list[Json]:
        return [{"reasoning_content": text}]

    def call(self, call_id: str) -> Json:
        return {"index": 0, "id": call_id, "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}}


def thought_of(reply: int) -> str:
    """What a model thinks before its reply of that number."""
    return f"Thought {reply}."


def _prompts(messages: list[Json]) -> list[Json]:
    return [message for message in messages if message["role"] == "user"]


class Vendors:
    """The proxy and who is behind it."""

    def __init__(self, *vendors: Vendor) -> None:
        self._vendors = {vendor.name: vendor for vendor in vendors}
        self._hosts = {vendor.host: vendor for vendor in vendors}
        self._authority = trustme.CA()
        handle, self._ca_file = tempfile.mkstemp(suffix=".pem")
        os.write(handle, self._authority.cert_pem.bytes())
        os.close(handle)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        proxy = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.environment = {"HTTPS_PROXY": proxy, "SSL_CERT_FILE": self._ca_file}

    def __getitem__(self, name: str) -> Vendor:
        return self._vendors[name]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        os.unlink(self._ca_file)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with self._lock:
                self._open.add(connection)
            host = _asked_for(connection)
            vendor = self._hosts.get(host)
            if vendor is None:
                connection.sendall(b"HTTP/1.1 502 Nobody is there\r\n\r\n")
                return
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._authority.issue_cert(host).configure_cert(context)
            with self._lock:
                self._open.discard(connection)
            connection = context.wrap_socket(connection, server_side=True)
            with self._lock:
                self._open.add(connection)
            with connection.makefile("rb") as lines:
                while not self._stopping.is_set() and (request := read_request(lines)):
                    if not send_answer(connection, vendor.respond(request), self._stopping):
                        return
        except OSError:
            pass  # the client left
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()


def _asked_for(connection: socket.socket) -> str:
    """The host of a CONNECT request, read byte by byte: what follows it is the handshake."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = connection.recv(1)
        if not byte:
            return ""
        head += byte
    found = re.match(rb"CONNECT ([^:\s]+):", head)
    return found[1].decode() if found else ""
