"""A small MCP server by hand, which says the same in every run: for conversations that are kept in files."""

import base64
import json
import sys
from typing import Any

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 8).decode()
LOAF = {"type": "object", "properties": {"loaves": {"type": "integer"}}, "required": ["loaves"]}
TOOLS = [
    {"name": "bake", "description": "Bakes bread.", "inputSchema": LOAF},
    {"name": "sell", "description": "Sells bread.", "inputSchema": LOAF, "annotations": {"destructiveHint": True}},
]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(id: Any, params: dict[str, Any]) -> None:
    loaves = params["arguments"]["loaves"]
    if params["name"] == "sell":
        send(id=id, result={"content": [{"type": "text", "text": "nobody wants to buy"}], "isError": True})
        return
    token = params["_meta"]["progressToken"]
    progress = {"progressToken": token, "progress": 1, "total": loaves, "message": "kneading"}
    send(method="notifications/progress", params=progress)
    send(id="are you there", method="ping")
    sys.stdin.readline()  # its answer: the progress has been heard by now
    content = [
        {"type": "text", "text": f"{loaves} loaves are ready"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
    ]
    send(id=id, result={"content": content, "structuredContent": {"loaves": loaves, "ready": True}})


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                info = {"name": "bakery", "version": "1"}
                capabilities = {"tools": {}}
                result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
                send(id=message["id"], result=result)
            case "tools/list":
                send(id=message["id"], result={"tools": TOOLS})
            case "tools/call":
                call(message["id"], message["params"])
            case _ if "id" in message:
                send(id=message["id"], error={"code": -32601, "message": "there is no such method"})
            case _:
                pass


if __name__ == "__main__":
    main()
