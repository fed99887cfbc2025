"""`crow mcp`: the protocol package's own client lists and calls every tool, on pipes and over HTTP, in both eras."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from crow.mcp import results
from crow.results import DiffBlock
from mcp import Client
from tests.mcp.hosts import ERAS, Era, done, edit, on_pipes, serving_http, small_web, text_of, web_config

EVERY_TOOL = ["file_editor", "web_search", "web_fetch", "terminal", "terminal_read", "terminal_stop"]


@asynccontextmanager
async def connected(way: str, era: Era, folder: Path, config: str) -> AsyncGenerator[Client]:
    if way == "pipes":
        async with on_pipes(folder, "--terminal", era=era, config=config) as client:
            yield client
        return
    with serving_http(folder, "--terminal", config=config) as server:
        async with server.connect(era) as client:
            yield client


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["pipes", "http"])
def test_every_tool_is_listed_and_can_be_called(way: str, era: Era, tmp_path: Path):
    folder = tmp_path / "project"
    folder.mkdir()

    async def talk(address: str) -> None:
        async with connected(way, era, folder, web_config(address)) as client:
            listed = await client.list_tools()
            assert [tool.name for tool in listed.tools] == EVERY_TOOL
            await call_every_tool(client, folder, address)

    with small_web() as address:
        asyncio.run(talk(address))


async def call_every_tool(client: Client, folder: Path, address: str) -> None:
    notes = folder / "notes.txt"
    assert await done(client, "create", notes, file_text="one\ntwo\n") == "Created notes.txt (+2 \N{MINUS SIGN}0)."
    assert await done(client, "view", "notes.txt") == "     1\tone\n     2\ttwo"
    await done(client, "str_replace", notes, old_str="two", new_str="2")
    await done(client, "insert", notes, insert_line=1, new_str="and a half")
    assert notes.read_text() == "one\nand a half\n2\n"
    for text in ("one\n2\n", "one\ntwo\n"):
        await done(client, "undo_edit", notes)
        assert notes.read_text() == text
    await done(client, "undo_edit", notes)
    assert not notes.exists()

    found = await client.call_tool("web_search", {"query": "crows"})
    assert "https://example.com/crow" in text_of(found)
    page = await client.call_tool("web_fetch", {"url": f"{address}/page"})
    assert "They caw." in text_of(page)

    ran = await client.call_tool("terminal", {"command": "echo from $PWD"})
    assert (text_of(ran), ran.is_error) == (f"from {folder}\n[exit code 0]", False)
    begun = await client.call_tool("terminal", {"command": "echo on; sleep 1000", "background": True})
    assert "in the background as b1" in text_of(begun)
    assert "still running" in text_of(await client.call_tool("terminal_read", {"id": "b1"}))
    stopped = await client.call_tool("terminal_stop", {"id": "b1"})
    assert not stopped.is_error, text_of(stopped)


def test_a_terminal_is_there_only_if_it_was_asked_for(tmp_path: Path):
    async def talk() -> None:
        async with on_pipes(tmp_path) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == EVERY_TOOL[:3]
            with pytest.raises(MCPError, match="'terminal'"):
                await client.call_tool("terminal", {"command": "true"})

    asyncio.run(talk())


def test_annotations_say_what_a_tool_may_do(tmp_path: Path):
    async def talk() -> dict[str, types.ToolAnnotations | None]:
        async with on_pipes(tmp_path, "--terminal") as client:
            return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    told = asyncio.run(talk())
    reads = {name for name, hints in told.items() if hints and hints.read_only_hint}
    destroys = {name for name, hints in told.items() if hints and hints.destructive_hint}
    open_world = {name for name, hints in told.items() if hints and hints.open_world_hint}
    assert reads == {"web_search", "web_fetch", "terminal_read"}
    assert destroys == {"file_editor", "terminal", "terminal_stop"}
    assert open_world == {"web_search", "web_fetch", "terminal"}


def test_an_edit_carries_its_diff_for_a_host_that_shows_it(tmp_path: Path):
    notes = tmp_path / "notes.txt"
    notes.write_text("one\ntwo\n")

    async def talk() -> types.CallToolResult:
        async with on_pipes(tmp_path) as client:
            return await edit(client, "str_replace", notes, old_str="two", new_str="2")

    shown = results.decode(asyncio.run(talk()).meta, ["/"])
    assert shown == results.Display("+1 \N{MINUS SIGN}1", (DiffBlock(str(notes), "modify", "one\ntwo\n", "one\n2\n"),))


def test_an_image_is_an_image(tmp_path: Path):
    (tmp_path / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)

    async def talk() -> types.CallToolResult:
        async with on_pipes(tmp_path) as client:
            return await edit(client, "view", "dot.png")

    images = [block for block in asyncio.run(talk()).content if isinstance(block, types.ImageContent)]
    assert [image.mime_type for image in images] == ["image/png"]


@pytest.mark.parametrize("era", ERAS)
def test_what_a_command_prints_is_told_while_it_runs(era: Era, tmp_path: Path):
    heard: list[tuple[float, str | None]] = []
    go = tmp_path / "go"

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))
        go.touch()

    async def talk() -> str:
        async with on_pipes(tmp_path, "--terminal", era=era) as client:
            command = "echo first; until [ -e go ]; do sleep 0.01; done; echo last"
            return text_of(await client.call_tool("terminal", {"command": command}, progress_callback=hear))

    assert asyncio.run(talk()) == "first\nlast\n[exit code 0]"
    assert heard[0] == (1, "first\n")
    numbers = [number for number, _ in heard]
    assert numbers == sorted(set(numbers))
