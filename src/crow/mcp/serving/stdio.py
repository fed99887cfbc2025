"""A client on standard input and output: one client, for as long as the input is open."""

import anyio
from mcp.server.stdio import stdio_server

from crow.mcp.serving.server import CrowServer


async def serve_stdio(server: CrowServer, reader: int, writer: int) -> None:
    """`reader` and `writer` are the real descriptors, which nothing else in the process can reach."""
    incoming, outgoing = _files(reader, writer)
    async with stdio_server(incoming, outgoing) as (read, write):
        await server.protocol.run(read, write, server.protocol.create_initialization_options())


def _files(reader: int, writer: int) -> tuple[anyio.AsyncFile[str], anyio.AsyncFile[str]]:
    """They stay open until the process ends: a thread may be waiting in one of them by then."""
    incoming = open(reader, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
    outgoing = open(writer, "w", encoding="utf-8", newline="\n", closefd=False)  # noqa: SIM115
    return anyio.wrap_file(incoming), anyio.wrap_file(outgoing)
