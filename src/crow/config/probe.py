"""Asks the servers on this machine which models they have.

It runs while an editor waits for its session, so it costs next to nothing: one plain HTTP/1.1 request per port on
asyncio's own streams, all at once. Whatever answers there and is no model server is passed over in silence.
"""

import asyncio
import re

import msgspec

TIME_LIMIT = 0.2
"""Seconds, for all servers together."""
SIZE_LIMIT = 256 * 1024


class _Entry(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Entry]


class _NoModelServer(Exception):
    pass


async def probe(servers: dict[str, int]) -> dict[str, list[str]]:
    """The models of each server (name to port) that answered in time, in the given order."""
    tasks = {name: asyncio.create_task(_list_models(port)) for name, port in servers.items()}
    try:
        await asyncio.wait(tasks.values(), timeout=TIME_LIMIT)
    finally:
        for task in tasks.values():
            task.cancel()
        answers = await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {name: answer for name, answer in zip(tasks, answers, strict=True) if isinstance(answer, list)}


async def _list_models(port: int) -> list[str] | None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=SIZE_LIMIT)
    except OSError:
        return None
    try:
        writer.write(
            f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Accept: application/json\r\nConnection: close\r\n\r\n".encode()
        )
        body = await _read_body(reader)
        return [entry.id for entry in msgspec.json.decode(body, type=_ModelList).data]
    except (_NoModelServer, OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return None
    finally:
        writer.close()


async def _read_body(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if not re.match(r"http/1\.[01] 200\b", head):
        raise _NoModelServer
    if re.search(r"\r\ntransfer-encoding:[^\r]*\bchunked\b", head):
        return await _read_chunks(reader)
    if length := re.search(r"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n", head):
        return await _read_exactly(reader, int(length[1]))
    return await _read_to_end(reader)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await _read_exactly(reader, size, already=len(body))
        await reader.readexactly(2)
    return body


async def _read_exactly(reader: asyncio.StreamReader, size: int, *, already: int = 0) -> bytes:
    if not 0 <= size <= SIZE_LIMIT - already:
        raise _NoModelServer
    return await reader.readexactly(size)


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while piece := await reader.read(64 * 1024):
        body += piece
        if len(body) > SIZE_LIMIT:
            raise _NoModelServer
    return body
