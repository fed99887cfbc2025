"""An MCP server over HTTP that hangs, or dies, where the path says so; it prints its port.

/silent       accepts requests, and never answers one
/goodbye      is well, but for the end of the session (DELETE), which it never answers
/call         never answers a call, nor the end of the session
/drip-head    is well, but for a call, which it answers byte by byte, without ever coming to the end of the headers
/drip-body    the same, with the body of the answer
/drip-events  the same, with a stream of events that has no end
/sse-silent   the older kind: the stream of events is there, and nothing comes
/sse-start    the same, says where to send messages, and answers none
/sse-call     the same, and never answers a call
/sse-dies     the same, and ends itself in a call
"""

import contextlib
import json
import os
import queue
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOLS = {"tools": [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}]}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "hung", "version": "1"},
}
EVENTS: "queue.Queue[dict[str, Any]]" = queue.Queue()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *about: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/silent":
            hang()
        if not self.path.startswith("/sse"):
            self.finish_with(405)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        if self.path == "/sse-silent":
            self.wfile.flush()
            hang()
        self.event("endpoint", self.path)
        while True:
            self.event("message", json.dumps(EVENTS.get()))

    def drip(self) -> None:
        kind = "text/event-stream" if self.path == "/drip-events" else "application/json"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n"
        self.wfile.write(f"{head}x-more: ".encode() if self.path == "/drip-head" else f"{head}\r\n".encode())
        self.close_connection = True
        with contextlib.suppress(OSError):
            while True:
                self.wfile.write(b":\n" if self.path == "/drip-events" else b" ")
                self.wfile.flush()
                time.sleep(0.02)

    def event(self, kind: str, data: str) -> None:
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def do_DELETE(self) -> None:
        hang()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/silent":
            hang()
        if self.path.startswith("/drip") and message["method"] == "tools/call":
            self.drip()
        answer = self.answer_to(message)
        if self.path.startswith("/sse"):
            if answer is not None:
                EVENTS.put(answer)
            self.finish_with(202)
        elif answer is None:
            self.finish_with(202)
        else:
            self.finish_with(200, json.dumps(answer).encode())

    def answer_to(self, message: dict[str, Any]) -> dict[str, Any] | None:
        match message["method"]:
            case "initialize" if self.path != "/sse-start":
                result: dict[str, Any] = HELLO
            case "tools/list":
                result = TOOLS
            case "tools/call" if self.path == "/sse-dies":
                os._exit(1)
            case "tools/call" if self.path == "/call":
                hang()
            case "tools/call" if self.path == "/goodbye":
                result = {"content": [{"type": "text", "text": "gone"}]}
            case _:
                return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    def finish_with(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("mcp-session-id", "the-only-one")
        self.end_headers()
        self.wfile.write(body)


def hang() -> None:
    time.sleep(1000)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
