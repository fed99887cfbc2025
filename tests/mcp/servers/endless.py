"""An MCP server over HTTP whose answer to a call does not end. The path says how: plain, packed, events."""

import json
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEGABYTE = 1 << 20
TOOLS = {"tools": [{"name": "go", "description": "Bakes \ud83d bread.", "inputSchema": {"type": "object"}}]}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "endless", "version": "1"},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *about: Any) -> None:
        pass

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_DELETE(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match message["method"]:
            case "initialize":
                self.answer(message["id"], HELLO)
            case "tools/list":
                self.answer(message["id"], TOOLS)
            case "tools/call":
                self.never_end(message["id"])
            case _:
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()

    def answer(self, id: Any, result: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def never_end(self, id: Any) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if self.path == "/events" else "application/json")
        if self.path == "/packed":
            self.send_header("content-encoding", "gzip")
        self.send_header("connection", "close")
        self.end_headers()
        packer = zlib.compressobj(wbits=31)
        begin = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"result":{{"content":[{{"type":"text","text":"'
        data = ("data: " if self.path == "/events" else "").encode() + begin.encode()
        try:
            while True:
                self.wfile.write(packer.compress(data) if self.path == "/packed" else data)
                data = b"x" * MEGABYTE
        except OSError:
            return


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
