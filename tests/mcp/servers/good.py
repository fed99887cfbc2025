"""A well-behaved MCP server, made with the protocol package's own: `good.py stdio`, `good.py http`, `good.py sse`.

Over HTTP it prints the port that it listens on.
"""

import asyncio
import base64
import os
import socket
import sys
from pathlib import Path
from typing import Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 32).decode()

server = MCPServer("good")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"the sum is {a + b}"


@server.tool(annotations=ToolAnnotations(destructive_hint=True))
def environment() -> str:
    """Gives the names of the variables in the server's environment."""
    return " ".join(sorted(os.environ))


@server.tool()
async def slow(ctx: Context, path: str) -> str:
    """Reports progress, then waits; if it is cancelled, it writes that to the path."""
    await ctx.report_progress(3, 10, "kneading")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        Path(path).write_text("cancelled")
        raise
    return "done"


@server.tool()
def everything() -> CallToolResult:
    """Gives content of every kind."""
    return CallToolResult(
        content=[
            TextContent(text="some text"),
            ImageContent(data=PNG, mime_type="image/png"),
            ImageContent(data="bm8gcGljdHVyZQ==", mime_type="image/png"),
            AudioContent(data="AAAA", mime_type="audio/wav"),
            ResourceLink(uri="file:///a/link", name="a link"),
            EmbeddedResource(resource=TextResourceContents(uri="note://1", text="an embedded text")),
        ]
    )


@server.tool()
def structured() -> CallToolResult:
    """Gives structured content alone."""
    return CallToolResult(content=[], structured_content={"answer": 42})


@server.tool()
def long() -> str:
    """Gives a very long text."""
    return "begin" + "x" * 500_000 + "end"


@server.tool()
def failing() -> CallToolResult:
    """Fails."""
    return CallToolResult(content=[TextContent(text="the flour is gone")], is_error=True)


@server.tool()
def diff(path: str) -> CallToolResult:
    """Says that it changed a file."""
    block = {"type": "diff", "path": path, "operation": "modify", "oldText": "a\n", "newText": "b\n"}
    return CallToolResult(
        content=[TextContent(text="changed")], _meta={"dev.crow/display": {"version": 1, "blocks": [block]}}
    )


class Order(BaseModel):
    flavour: str
    amount: int


@server.tool()
async def order(ctx: Context) -> str:
    """Asks the person what they want."""
    answer = await ctx.elicit("What shall it be?", Order)
    return f"{answer.action} {getattr(answer, 'data', None)!r}"


class Flavour(BaseModel):
    flavour: Literal["rye", "wheat"]


@server.tool()
async def choose(ctx: Context) -> str:
    """Asks the person for one of a few things."""
    answer = await ctx.elicit("Which one?", Flavour)
    return f"{answer.action} {getattr(answer, 'data', None)!r}"


@server.tool()
async def nonsense(ctx: Context) -> str:
    """Asks the person with a form that is none."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "enum": [1, None, {}]}}}
    answer = await ctx.session.elicit_form("Well?", schema, ctx.request_id)
    return answer.action


@server.tool()
async def roots(ctx: Context) -> str:
    """Gives the host's roots."""
    found = await ctx.session.list_roots()
    return " ".join(str(root.uri) for root in found.roots)


@server.resource("note://today")
def today() -> str:
    """What is on today."""
    return "bake bread"


@server.prompt()
def recipe(dish: str, people: str = "2") -> str:
    """Asks for a recipe."""
    return f"Give me a recipe of {dish} for {people}."


def main() -> None:
    if sys.argv[1] == "stdio":
        server.run("stdio")
        return
    app = server.streamable_http_app() if sys.argv[1] == "http" else server.sse_app()
    listener = socket.create_server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    main()
