"""An HTTP server that gives something else than MCP's answers, as the path says; it prints its port.

/status/500   this status, for everything
/redirect     leads to another server
/circle       leads to itself
/page         a web page
/nothing      an answer without a type
/forgets      well, but it forgets its first session before the call
/call/WHAT    well, but for a call: `500`, `page`, or `garbage` for JSON that is none
"""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

TOOLS = {"tools": [{"name": "go", "description": "Goes.", "inputSchema": {"type": "object"}}]}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "wrong", "version": "1"},
}

SESSIONS = count(1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *about: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.finish_as(self.path[1:].split("/")) if self.path.startswith("/old") else self.finish_with(405)

    def do_DELETE(self) -> None:
        self.finish_with(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        _, kind, *rest = self.path.split("/")
        if kind == "forgets":
            self.answer_in_session(message)
        elif kind != "call":
            self.finish_as([kind, *rest])
        elif "id" not in message:
            self.finish_with(202)
        elif message["method"] == "tools/call":
            self.finish_as(["status", "500"] if rest == ["500"] else rest)
        else:
            result = HELLO if message["method"] == "initialize" else TOOLS
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            self.finish_with(200, body, "application/json")

    def answer_in_session(self, message: dict[str, Any]) -> None:
        method, session = message["method"], self.headers.get("mcp-session-id")
        if method == "initialize":
            session = str(next(SESSIONS))
        if method == "tools/call" and session == "1":
            error = {"jsonrpc": "2.0", "id": "server-error", "error": {"code": -32600, "message": "Session not found"}}
            self.finish_with(404, json.dumps(error).encode(), "application/json")
        elif "id" not in message:
            self.finish_with(202)
        else:
            called = {"content": [{"type": "text", "text": f"in session {session}"}]}
            result = {"initialize": HELLO, "tools/call": called}.get(method, TOOLS)
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            self.finish_with(200, body, "application/json", session=session or "")

    def finish_as(self, what: list[str]) -> None:
        match what:
            case ["old", *rest]:
                self.finish_as(rest)
            case ["status", status]:
                self.finish_with(int(status), b'{"error": "flour"}', "application/json")
            case ["redirect"]:
                self.finish_with(307, location="https://me:secret@elsewhere.example/mcp?key=secret")
            case ["circle"]:
                self.finish_with(307, location="/circle")
            case ["page"]:
                self.finish_with(200, b"<html>Bread!</html>", "text/html; charset=utf-8")
            case ["garbage"]:
                self.finish_with(200, b"{not json", "application/json")
            case _:
                self.finish_with(200)

    def finish_with(
        self, status: int, body: bytes = b"", kind: str = "", location: str = "", session: str = ""
    ) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in (("content-type", kind), ("location", location), ("mcp-session-id", session)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
