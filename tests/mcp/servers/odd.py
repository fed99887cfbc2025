"""An MCP server by hand, whose tools and resources are unusual: `odd.py BEHAVIOUR [PATH]`."""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

OBJECT = {"type": "object", "properties": {}}
HUGE = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(5000)}}
_writing = threading.Lock()


def send(**message: Any) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def tool(name: str, description: str = "A tool.", schema: Any = OBJECT) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": schema}


class Server:
    """One behaviour each: what it does otherwise than this."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listings = 0

    def serve(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self.on_answer(message["id"])
            elif "id" in message:
                getattr(self, "on_" + message["method"].replace("/", "_"))(message["id"], message.get("params") or {})

    def on_initialize(self, id: Any, params: Any) -> None:
        capabilities = {"tools": {"listChanged": True}, **({"resources": {}} if self.has_resources else {})}
        info = {"name": "odd", "version": "1"}
        send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info})

    has_resources = False

    def on_tools_list(self, id: Any, params: Any) -> None:
        self.listings += 1
        send(id=id, result={"tools": self.tools()})

    def tools(self) -> list[Any]:
        return [tool("go")]

    def on_tools_call(self, id: Any, params: Any) -> None:
        send(id=id, result={"content": self.content(params)})

    def content(self, params: Any) -> list[Any]:
        return [{"type": "text", "text": f"called {params['name']} with {json.dumps(params['arguments'])}"}]

    def on_answer(self, id: Any) -> None:
        pass


class Watching(Server):
    """Its tools are as somebody writes it to the file: `none`, `unfit`, `twins`, or any word. It says so at once.

    The word `dying` ends it.
    """

    def serve(self) -> None:
        threading.Thread(target=self.watch, daemon=True).start()
        super().serve()

    def watch(self) -> None:
        said = self.said()
        while True:
            time.sleep(0.02)
            if said != self.said():
                said = self.said()
                if said == "dying":
                    os._exit(1)
                send(method="notifications/tools/list_changed")

    def said(self) -> str:
        return self.path.read_text() if self.path.exists() else "first"

    def tools(self) -> list[Any]:
        versions = {"none": [], "unfit": [tool("go", schema=HUGE)], "twins": [tool("g.o"), tool("g_o")]}
        versions["twin"] = versions["twins"][1:]
        return versions.get(self.said(), [tool("go", f"It is the {self.said()} version.")])

    def on_tools_list(self, id: Any, params: Any) -> None:
        said = self.said()
        super().on_tools_list(id, params)
        send(id=f"1 {said}", method="ping")

    def on_answer(self, id: Any) -> None:
        """Whoever answers the last of these questions has long taken in the list that was sent before the first."""
        number, _, said = id.partition(" ")
        if number == "5":
            self.path.with_suffix(".taken").write_text(said)
        else:
            send(id=f"{int(number) + 1} {said}", method="ping")


class Restless(Server):
    """It says all the time that its tools changed, which is true. It counts in the file how often they were listed."""

    def serve(self) -> None:
        threading.Thread(target=self.announce, daemon=True).start()
        super().serve()

    def announce(self) -> None:
        while True:
            time.sleep(0.02)
            send(method="notifications/tools/list_changed")

    def tools(self) -> list[Any]:
        self.path.write_text(str(self.listings))
        usable = [tool(f"usable_{n}", f"It is version {self.listings}.") for n in range(100)]
        return usable + [tool(f"unusable_{n}", schema="none") for n in range(100)]


class Crowd(Server):
    def tools(self) -> list[Any]:
        return [tool(f"go_{n}", "", {"type": "object"}) for n in range(10_000)]


class Library(Server):
    """It has resources on pages without end, no templates, and a tool that is called like reading."""

    has_resources = True

    def tools(self) -> list[Any]:
        return [tool("read_resource")]

    def on_resources_list(self, id: Any, params: Any) -> None:
        page = int(params.get("cursor") or 0)
        resources = [{"uri": f"note://{page}/{n}", "name": "a note"} for n in range(30)]
        send(id=id, result={"resources": resources, "nextCursor": str(page + 1)})

    def on_resources_templates_list(self, id: Any, params: Any) -> None:
        send(id=id, error={"code": -32601, "message": "there is no such method"})

    def on_resources_read(self, id: Any, params: Any) -> None:
        send(id=id, result={"contents": [{"uri": params["uri"], "text": "bake bread"}]})


class Unions(Server):
    def tools(self) -> list[Any]:
        schema = {"type": "object", "properties": {"a": {}, "b": {}, "user id": {}}, "required": ["user id"]}
        return [tool("go", schema={**schema, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})]


class Hints(Server):
    def tools(self) -> list[Any]:
        hints = [{"readOnlyHint": "maybe"}, {"title": 5, "readOnlyHint": True}, "none"]
        return [{**tool(f"go_{number}"), "annotations": said} for number, said in enumerate(hints)]


class Video(Server):
    def content(self, params: Any) -> list[Any]:
        return [{"type": "text", "text": "before"}, {"type": "video", "data": "x"}, {"type": "text", "text": "after"}]


class Large(Server):
    """Each of its tools is larger than the room that there is in a small window; two of them exceed an answer."""

    def tools(self) -> list[Any]:
        fields = {f"field_{n}": {"type": "string", "description": "What to look for."} for n in range(300)}
        large = {"type": "object", "properties": fields, "required": ["field_3"]}
        return [tool(f"query_{name}", "Asks the database.", large) for name in ("birds", "trees", "stones")] + [
            tool("query_small", "Asks the small database.")
        ]


BEHAVIOURS = {one.__name__.lower(): one for one in Server.__subclasses__()}

if __name__ == "__main__":
    BEHAVIOURS[sys.argv[1]](Path(sys.argv[2] if len(sys.argv) > 2 else "")).serve()
