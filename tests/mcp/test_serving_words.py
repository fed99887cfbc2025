"""What `crow mcp` tells a model names nothing that the model does not have, although its tools are a session's."""

import asyncio
import re
from pathlib import Path
from typing import Any

import mcp_types as types

from mcp import Client
from tests.mcp.hosts import edit, on_pipes, small_web, text_of, web_config
from tests.mcp.test_serving_editor import WRONG
from tests.support.website import Website, answer

COMMANDS = {"view", "create", "str_replace", "insert", "undo_edit"}
KINDS = {"str", "int", "float", "bool", "null", "array", "object"}
"""Of values, which are named in the same way."""
NAME = re.compile(r"`([a-z_]+)`")
FOREIGN_VERB = re.compile(r"\bread (it|the file|the whole)\b", re.IGNORECASE)
"""Here files are viewed."""


def names_of(tools: list[types.Tool]) -> set[str]:
    """The tools, their arguments, and the commands of one of them."""
    arguments = {name for tool in tools for name in tool.input_schema["properties"]}
    return {tool.name for tool in tools} | arguments | COMMANDS | KINDS


async def wrong_calls(client: Client, folder: Path) -> list[str]:
    """What is told of calls that fail, as many different ones as there are."""
    path, missing, long, secret = (folder / name for name in ("file.txt", "none.txt", "long.txt", "unread.txt"))
    path.write_text("one\none\n")
    long.write_text("x" * 5000)
    secret.write_text("two\n")
    told: list[str] = []

    async def fail(command: str, where: Path, **arguments: Any) -> None:
        result = await edit(client, command, where, **arguments)
        assert result.is_error, (command, arguments, text_of(result))
        told.append(text_of(result))

    await fail("str_replace", secret, old_str="three", new_str="3")
    await fail("create", secret, file_text="3")
    await fail("str_replace", missing, old_str="three", new_str="3")
    await fail("insert", missing, insert_line=0, new_str="3")
    await edit(client, "view", path)
    await fail("str_replace", path, old_str="one", new_str="1")
    await fail("str_replace", path, old_str="quite another thing", new_str="3")
    await fail("str_replace", path, old_str="     1\tthree", new_str="3")
    await fail("str_replace", path, old_str="one\none", new_str="# ... existing code ...")
    await fail("str_replace", path, old_str="one\none", new_str="```\ntwo\n```")
    await fail("create", folder / "new.py", file_text="     1\timport os\n")
    await fail("create", path, file_text="# rest of the file unchanged\n")
    path.write_text("two\n")
    await fail("str_replace", path, old_str="one", new_str="1")
    await fail("insert", path, insert_line=0, new_str="1")
    await fail("create", path, file_text="3")
    await edit(client, "view", long)
    await fail("create", long, file_text="3")
    more: list[tuple[str, dict[str, Any]]] = [
        *(("file_editor", arguments) for arguments in WRONG),
        ("web_fetch", {"url": "no address"}),
        ("web_fetch", {"url": "http://10.0.0.1/"}),
        ("web_fetch", {"address": "http://10.0.0.1/"}),
        ("web_search", {}),
        ("terminal", {"command": ""}),
        ("terminal", {"command": "true", "cwd": "/none"}),
        ("terminal_read", {"id": "b9"}),
        ("terminal_stop", {"id": "b9"}),
    ]
    return told + [text_of(await client.call_tool(name, arguments)) for name, arguments in more]


def test_no_description_and_no_error_names_a_tool_that_is_not_offered(tmp_path: Path):
    async def talk(address: str) -> tuple[list[types.Tool], list[str]]:
        async with on_pipes(tmp_path, "--terminal", config=web_config(address)) as client:
            listed = (await client.list_tools()).tools
            return listed, await wrong_calls(client, tmp_path)

    with small_web() as address:
        tools, told = asyncio.run(talk(address))
    known = names_of(tools)
    for text in [*(tool.description or "" for tool in tools), *told]:
        assert set(NAME.findall(text)) <= known, text
        assert not FOREIGN_VERB.search(text), text
    assert "To make a new file use `create`." in "\n".join(told), "there is advice, and it is ours"


def test_nobody_is_sent_to_commands_or_a_search_that_are_not_offered(tmp_path: Path):
    (tmp_path / "large.txt").write_text("one\n" * (5 * 2**20))

    async def talk(address: str) -> list[str]:
        async with on_pipes(tmp_path, config=web_config(address)) as client:
            large = await edit(client, "str_replace", "large.txt", old_str="two", new_str="2")
            return [text_of(large), text_of(await client.call_tool("web_fetch", {"url": f"{address}/data"}))]

    with Website() as site:
        site.pages["/data"] = answer(b"\x00\x01\x02", "application/octet-stream")
        large, data = asyncio.run(talk(site.url))
    assert "too large to edit" in large
    assert "is not text" in data
    assert "command" not in large + data


def test_a_terminal_does_not_tell_of_a_search_that_is_not_offered(tmp_path: Path):
    async def listed() -> dict[str, str]:
        async with on_pipes(tmp_path, "--terminal") as client:
            return {tool.name: tool.description or "" for tool in (await client.list_tools()).tools}

    description = asyncio.run(listed())["terminal"]
    assert "`file_editor`" in description
    assert "searching" not in description
