"""`find_tools`: what was found can be called, also if no request has room for it."""

from typing import Any

from tests.mcp.guests import PATIENT, bad, editing, odd, offered, shown, told_model
from tests.support.scripts import DONE, call, reply

SMALL = "context_window = 20000\n" + PATIENT
LARGE = ["mcp__large__query_birds", "mcp__large__query_trees", "mcp__large__query_stones"]


def described(request: dict[str, Any]) -> str:
    [tool] = [tool for tool in request["tools"] if tool["name"] == "find_tools"]
    return tool["description"]


def test_what_has_no_room_is_told_with_its_arguments_and_can_be_called(tmp_path):
    script = reply(call("find_tools", query="query database")) + reply(call(LARGE[0], field_3="crow")) + DONE
    editor = editing(tmp_path, script, config=SMALL)
    editor.new_session(mcpServers=[odd("large")])
    editor.prompt("Go.")
    before, after, _ = editor.model_requests()
    assert described(before).startswith("Find tools of MCP servers: there are 4 more than are listed here, of large. ")
    assert described(after).startswith("Find tools of MCP servers: there are 3 more than are listed here, of large. ")
    assert [name for name in offered(after) if name.startswith("mcp__")] == ["mcp__large__query_small"]
    [told] = [message["text"] for message in after["messages"] if message["role"] == "tool"]
    assert f"\n{LARGE[0]} takes these arguments: field_3 (required): string; field_0: string; " in told
    assert f"\n{LARGE[2]}: its arguments are too long for this answer. Look for its name alone." in told
    assert len(told) < 15_000
    found, called = editor.tool_calls().values()
    assert f"no room for them: {', '.join(LARGE)}" in shown(found)
    assert shown(called) == '```text\ncalled query_birds with {"field_3": "crow"}\n```'
    editor.prompt("/mcp")
    assert "4 tools from MCP servers, which would add about" in editor.text()
    editor.close()


def test_a_tool_that_fits_the_answer_is_told_with_its_whole_schema(tmp_path):
    config = SMALL.replace("20000", "40000")
    editor = editing(tmp_path, reply(call("find_tools", query=LARGE[0])) + DONE, config=config)
    editor.new_session(mcpServers=[odd("large")])
    editor.prompt("Go.")
    told = told_model(editor)
    assert f'\n{LARGE[0]} takes arguments of this JSON schema: {{"type":"object","properties":{{"field_0":' in told
    editor.close()


def test_a_name_finds_that_tool_alone_with_all_its_arguments(tmp_path):
    editor = editing(tmp_path, reply(call("find_tools", query=LARGE[2])) + DONE, config=SMALL)
    editor.new_session(mcpServers=[odd("large")])
    editor.prompt("Go.")
    told = told_model(editor)
    assert told.count("mcp__large__") == 2
    assert "field_299: string" in told
    editor.close()


def test_as_many_are_listed_as_there_is_room_for_and_the_best_of_them_first(tmp_path):
    editor = editing(tmp_path, reply(call("find_tools", query="bake_7 weigh number")) + DONE, config=SMALL)
    editor.new_session(mcpServers=[bad("many")])
    editor.prompt("Go.")
    before, after = editor.model_requests()
    listed = [name for name in offered(after) if name.startswith("mcp__")]
    found = [line.partition(":")[0] for line in told_model(editor).partition("\n\n")[0].splitlines()]
    assert len(found) == 8
    assert 1 < len(listed) < 8
    assert set(listed) <= set(found)
    assert found[0] in listed
    assert "there are 300 more" in described(before)
    assert f"there are {300 - len(listed)} more" in described(after)
    for name in found:
        assert (f"{name} takes arguments of this JSON schema" in told_model(editor)) == (name not in listed)
    editor.close()
