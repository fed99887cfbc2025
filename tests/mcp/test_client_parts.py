"""Small parts of the client side: names, finding tools, what a session without servers loads."""

from pathlib import Path

import pytest
from mcp_types import Tool

from crow.config.settings import McpServerSettings
from crow.mcp.client.configured import Origin, tool_name
from crow.mcp.client.forms import validated_form
from crow.mcp.client.stdio import environment_for
from crow.mcp.client.tool import resources_digest, tool_digest
from crow.messages import ToolSpec
from crow.session.servers import configured_servers
from tests.mcp.guests import bad, editing, offered
from tests.support.scripts import DONE, call, reply, say


def test_names_are_made_plain_and_kept_apart():
    assert tool_name("my docs", "find.it") == "mcp__my_docs__find_it"
    first = tool_name("a", "x.y")
    second = tool_name("a", "x_y", {first})
    assert first == "mcp__a__x_y"
    assert second.startswith("mcp__a__x_y_")
    long = tool_name("a", "b" * 100)
    assert len(long) == 64
    assert long != tool_name("a", "b" * 101)


@pytest.mark.parametrize("other", ["docs__evil", "docs_", "docs__", "docs." + "x" * 80, "_docs", "docs___" + "x" * 60])
def test_a_rule_for_one_servers_tools_is_not_about_another_server(other):
    name = tool_name(other, "go")
    assert not name.startswith("mcp__docs__")
    assert name.removeprefix("mcp__").count("__") == 1
    assert len(name) <= 64


def test_a_long_name_keeps_its_server_whole():
    first = tool_name("a" * 39 + "_" + "b" * 20, "c" * 50)
    server, _, tool = first.removeprefix("mcp__").partition("__")
    assert len(server) <= 40
    assert tool.startswith("c")
    assert tool_name("a" * 39, "d").rpartition("__")[0] != f"mcp__{server}"
    assert len({tool_name("a", "b__c"), tool_name("a__b", "c")}) == 2


def test_another_program_under_the_same_name_makes_another_tool():
    definition = Tool(name="go", input_schema={"type": "object"})
    spec = ToolSpec("mcp__docs__go", "Goes.", {"type": "object"})

    def both(server: McpServerSettings) -> tuple[str, str]:
        return tool_digest(definition, spec, server), resources_digest(server)

    def one(command: str = "docs", speed: str = "--fast", key: str = "1") -> tuple[str, str]:
        return both(McpServerSettings(command=command, args=[speed], env={"KEY": key}))

    def web(url: str, key: str) -> tuple[str, str]:
        return both(McpServerSettings(url=url, headers={"Authorization": key}))

    assert one(key="1") == one(key="2")
    assert web("https://docs.example", "1") == web("https://docs.example", "2")
    all_of_them = [*one(), *one(command="other"), *one(speed="--slow"), *web("https://docs.example", "1")]
    all_of_them += web("https://evil.example", "1")
    assert len(set(all_of_them)) == len(all_of_them)


def test_a_tool_that_is_listed_more_than_once_is_one_tool(tmp_path):
    go = reply(call("mcp__dups__go"))
    editor = editing(tmp_path, go + reply(say("So far.")) + go + DONE)
    editor.new_session(mcpServers=[bad("dups")])
    editor.prompt("Go.")  # the server says that its list changed, which it did not
    editor.prompt("Again.")
    for request in editor.model_requests():
        assert [name for name in offered(request) if name.startswith("mcp__")] == ["mcp__dups__go"]
    told = "The MCP server `dups` (from your editor): Tools listed more than once, of which only the first is used: go."
    assert editor.notices == [told]
    assert [one["status"] for one in editor.tool_calls().values()] == ["completed", "completed"]
    editor.close()


def test_the_editors_servers_come_first_and_a_projects_last():
    one, two, three = (McpServerSettings(command=name) for name in "123")
    wanted = configured_servers({"a": one}, {"a": two, "b": two}, {"a": three, "b": three, "c": three})
    assert {name: (server.origin, server.settings) for name, server in wanted.items()} == {
        "a": (Origin.EDITOR, one),
        "b": (Origin.CONFIG, two),
        "c": (Origin.PROJECT, three),
    }


@pytest.mark.parametrize(
    "schema",
    [None, {}, {"properties": {}}, {"properties": {"a": {"type": "object"}}}, {"properties": {"a": 5}}],
)
def test_what_is_no_form_is_not_shown_as_one(schema):
    assert validated_form(schema) is None


def test_a_session_without_servers_never_loads_the_library(tmp_path):
    editor = editing(tmp_path, DONE, cold=True)
    editor.new_session()
    editor.prompt("Hi.")
    editor.prompt("/mcp")
    try:
        maps = Path(f"/proc/{editor.process.pid}/maps").read_text()
    except PermissionError:
        pytest.skip("only root may look into the agent")
    assert "msgspec" in maps
    assert "pydantic_core" not in maps
    editor.close()


def test_a_server_finds_no_program_in_the_folder_it_runs_in():
    """`npx` starts `node` by its name: with `.` in PATH that would be a file of the project."""
    settings = McpServerSettings(command="npx")
    for path in (".:/bin", ":/bin", "/bin:", "x/y:/bin"):
        assert environment_for(settings, {"PATH": path})["PATH"] == "/bin"
    assert environment_for(settings, {"PATH": "."})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
