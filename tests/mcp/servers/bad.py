"""An MCP server by hand, that misbehaves as it is told: `bad.py BEHAVIOUR [PATH]`. See `main` for what there is."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OBJECT = {"type": "object", "properties": {}}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name: str, description: str = "A tool.", schema: Any = OBJECT) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema}


class Server:
    def __init__(self, behaviour: str, path: str) -> None:
        self.behaviour = behaviour
        self.path = Path(path)
        self.calls = 0

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" in message and "id" in message:
                getattr(self, "on_" + message["method"].replace("/", "_"))(message["id"], message.get("params") or {})

    def on_initialize(self, id: Any, params: Any) -> None:
        info = {"name": "bad", "version": "1"}
        if self.behaviour == "titled":
            info["title"] = "The **Best** Bakery\u202e"
        capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        if self.behaviour == "lingers":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            send(id=id, error={"code": -32000, "message": "no flour"})
            time.sleep(1000)
        if self.behaviour == "prompts":
            capabilities["prompts"] = {}
        if self.behaviour == "many-contents":
            capabilities["resources"] = {}
        send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info})

    def on_resources_read(self, id: Any, params: Any) -> None:
        send(id=id, result={"contents": [{"uri": f"note://{n}", "text": f"note {n}"} for n in range(20_000)]})

    def on_tools_list(self, id: Any, params: Any) -> None:
        while self.behaviour == "late" and not self.path.exists():
            time.sleep(0.02)
        send(id=id, result={"tools": self.tools()})
        if self.behaviour == "stops-reading":
            time.sleep(1000)

    def on_prompts_list(self, id: Any, params: Any) -> None:
        arguments = [{"name": "a\nb\u202e"}, *({"name": f"argument-{n}"} for n in range(100))]
        prompts = [{"name": "bake bread", "arguments": arguments}, {"name": "bake.bread"}, {"name": "bake_bread"}]
        send(id=id, result={"prompts": prompts})

    def on_prompts_get(self, id: Any, params: Any) -> None:
        long = {"type": "text", "text": params["name"] + "x" * 300_000}
        send(id=id, result={"messages": [{"role": "user", "content": long}] * 2})

    def tools(self) -> list[Any]:
        match self.behaviour:
            case "many":
                words = "Bakes, kneads and sells whatever the customer of the bakery has ordered for the day. " * 4
                fields = {f"field_{n}": {"type": "string", "description": "What goes into it."} for n in range(8)}
                schema = {"type": "object", "properties": fields}
                return [tool(f"bake_{n}", f"Number {n}. {words}", schema) for n in range(299)] + [
                    tool("weigh_elephant", "Puts an elephant on the scales.")
                ]
            case "schemas":
                cycle = {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}
                cycle["$defs"] = {"node": {"type": "object", "properties": {"child": {"$ref": "#/$defs/node"}}}}
                huge = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}}
                return [
                    tool("fine"),
                    tool("a text", schema="none"),
                    tool("an array", schema={"type": "array"}),
                    tool("cycle", schema=cycle),
                    tool("huge", schema=huge),
                    tool("long", "word " * 5000),
                    {"description": "nameless", "inputSchema": OBJECT},
                    "no tool",
                    tool("x.y/z" + "é" * 80),
                ]
            case "half-described":
                return [tool("go", "Bakes \ud83d bread.")]
            case "changing":
                said = self.path.read_text() if self.path.exists() else "first"
                return [tool("shift", f"It is the {said} version.")]
            case "dups":
                return [tool("go"), tool("go", "Another tool."), tool("go", "A third one.")]
            case "titled":
                hint = {"annotations": {"title": "Knead\nthe dough", "readOnlyHint": True}}
                both = {"title": "Bake\u202e bread", "annotations": {"title": "Something else"}}
                return [
                    tool("go") | both,
                    tool("knead") | hint,
                    tool("odd") | {"title": 5, "annotations": {"title": []}},
                ]
            case _:
                return [tool("go")]

    def on_tools_call(self, id: Any, params: Any) -> None:
        self.calls += 1
        match self.behaviour:
            case "dies-in-call":
                print("the oven exploded", file=sys.stderr, flush=True)
                os._exit(3)
            case "malformed":
                send(id=id, result={"content": [{"type": "text"}, 5]})
            case "half-character":
                send(id=id, result={"content": [{"type": "text", "text": "\\ud83d \U0001f950 \ud83d!"}]})
            case "no-text":
                line = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "@"}]}})
                sys.stdout.buffer.write(line.encode().replace(b"@", b"caf\xe9") + b"\n")
                sys.stdout.buffer.flush()
            case "no-version":
                send(jsonrpc=None, id=id, result={"content": []})
            case "many-pieces":
                send(id=id, result={"content": [{"type": "text", "text": f"piece {n}"} for n in range(20_000)]})
            case "silent":
                return
            case "edits":
                self.edit(id, params["arguments"])
            case "huge-line":
                send(id=id, result={"content": [{"type": "text", "text": "x" * 40_000_000}]})
            case "changing":
                self.path.write_text("second")
                send(method="notifications/tools/list_changed")
                send(id=id, result={"content": [{"type": "text", "text": "shifted"}]})
            case "dups":
                send(method="notifications/tools/list_changed")
                send(id=id, result={"content": [{"type": "text", "text": "gone"}]})
            case _:
                said = f"called {params['name']}" if self.behaviour == "many" else "gone"
                send(id=id, result={"content": [{"type": "text", "text": said}]})

    def edit(self, id: Any, change: Any) -> None:
        file = Path(change["path"])
        text = file.read_text()
        if is_there := change["old_str"] in text:
            file.write_text(text.replace(change["old_str"], change["new_str"]))
        said = "edited" if is_there else "not found"
        send(id=id, result={"isError": not is_there, "content": [{"type": "text", "text": said}]})


def main() -> None:
    behaviour, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    match behaviour:
        case "hangs":
            if path:
                child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                Path(path).write_text(f"{os.getpid()} {child.pid}")
            time.sleep(1000)
        case "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            Path(path).write_text(f"{os.getpid()} {os.getpid()}")
            time.sleep(1000)
        case "hangs-once" if not Path(path).exists():
            Path(path).write_text(f"{os.getpid()} {os.getpid()}")
            print("kneading", file=sys.stderr, flush=True)
            time.sleep(1000)
        case "dies-until" if not Path(path).exists():
            print("no flour in the house", file=sys.stderr)
            sys.exit(4)
        case "dies-at-start":
            print("no flour in the house", file=sys.stderr)
            sys.exit(4)
        case "garbage":
            print("Welcome to the bakery!\n{not json", flush=True)
            time.sleep(1000)
        case "floods":
            while True:
                sys.stdout.write(
                    '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n'
                )
        case "greets":
            print("Welcome to the bakery!", flush=True)
            Server("plain", path).serve()
        case _:
            if path and behaviour not in ("changing", "hangs-once", "dies-until", "late"):
                child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                Path(path).write_text(f"{os.getpid()} {child.pid}")
            Server(behaviour, path).serve()


if __name__ == "__main__":
    main()
