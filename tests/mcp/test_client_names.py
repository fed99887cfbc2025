"""Servers whose names look the same to a model: they share neither tools, nor rules, nor what was allowed."""

from crow.mcp.client.configured import server_names, tool_name
from tests.mcp.guests import PATIENT, bad, calling, configured, editing, notice_about, offered
from tests.support.editor import chose

SECOND = server_names(["my docs", "my_docs"])["my_docs"]


def test_the_second_gets_a_name_that_is_always_the_same():
    assert server_names(["my docs", "other", "my_docs"]) == {"my docs": "my_docs", "other": "other", "my_docs": SECOND}
    assert SECOND.startswith("my_docs_")
    assert len(SECOND) == len("my_docs_") + 8
    assert tool_name(SECOND, "go") == f"mcp__{SECOND}__go"


def test_nobody_can_take_that_name_before_it():
    names = server_names(["my docs", SECOND, "my_docs", "my.docs"])
    assert names[SECOND] == SECOND
    assert len(set(names.values())) == 4


def test_neither_a_rule_nor_a_grant_for_one_covers_the_other_and_the_person_is_told(tmp_path):
    rule = '[[permission.rules]]\ntool = "mcp__my_docs__*"\ndecision = "allow"\n'
    config = PATIENT + configured(bad("plain", name="my_docs")) + rule
    script = calling(("mcp__my_docs__go", {}), (f"mcp__{SECOND}__go", {}), (f"mcp__{SECOND}__go", {}))
    editor = editing(tmp_path, script, config=config, permit=lambda request: chose("session"))
    editor.new_session(mcpServers=[bad("plain", name="my docs")])
    editor.prompt("Go.")
    tools = {name for name in offered(editor.model_requests()[0]) if name.startswith("mcp__")}
    assert tools == {"mcp__my_docs__go", f"mcp__{SECOND}__go"}
    assert [one["status"] for one in editor.tool_calls().values()] == ["completed"] * 3
    [asked] = editor.permissions
    assert asked["toolCall"]["title"] == "my_docs: go"
    assert notice_about(editor, "the same name") == (
        "The MCP servers `my docs` and `my_docs` would have the same name for the model and in rules. `my_docs` (from "
        f"your configuration) is `{SECOND}` there: a rule for its tools is `mcp__{SECOND}__*`."
    )
    editor.prompt("/mcp")
    assert f"Its tools are `mcp__{SECOND}__…`, for the model and in rules." in editor.text()
    assert "Its tools are `mcp__my_docs__…`, for the model and in rules." in editor.text()
    editor.close()
