"""What a server's tool gave, for the model and for the person; prompts and resources too."""

from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent

from crow.mcp.results import result_of
from crow.results import TextBlock
from tests.mcp.guests import PATIENT, bad, calling, editing, good, offered, one_call, shown, told_model
from tests.support.editor import Editor, chose
from tests.support.scripts import DONE

DIFF = {"type": "diff", "path": "/project/a.py", "operation": "modify", "oldText": "a\n", "newText": "b\n"}


def test_content_of_every_kind_reaches_both(tmp_path):
    call, editor = one_call(tmp_path, good(), "everything", {"images": True})
    text = told_model(editor)
    assert text.startswith("some text\n\n")
    assert "not shown: damaged" in text
    assert "audio, audio/wav" in text
    assert "a link <file:///a/link>" in text
    assert "note://1:\nan embedded text" in text
    [message] = [one for one in editor.model_requests()[-1]["messages"] if one["role"] == "tool"]
    assert [image["mime_type"] for image in message["images"]] == ["image/png"]
    kinds = [item["content"]["type"] for item in call["content"]]
    assert kinds == ["text", "image"]


def test_structured_content_alone_is_told_as_json(tmp_path):
    _, editor = one_call(tmp_path, good(), "structured")
    assert told_model(editor) == '{\n  "answer": 42\n}'


def test_a_long_text_is_cut_in_the_middle_and_says_so(tmp_path):
    _, editor = one_call(tmp_path, good(), "long")
    text = told_model(editor)
    assert len(text) < 41_000
    assert text.startswith("beginx")
    assert text.endswith("xend")
    assert "characters left out" in text


def test_of_far_too_many_pieces_the_first_are_told(tmp_path):
    _, editor = one_call(tmp_path, bad("many-pieces"), "go")
    text = told_model(editor)
    assert "piece 999\n" in text
    assert "19,000 more" in text.splitlines()[-1], "that others are left out is said"


def test_so_they_are_in_a_resource_and_the_memory_stays_small(tmp_path):
    editor = editing(tmp_path, calling(("mcp_resources", {"uri": "note://all"})), cold=True)
    editor.new_session(mcpServers=[bad("many-contents")])
    editor.prompt("Go.")
    text = told_model(editor)
    assert text.startswith("note://0:\nnote 0\n\nnote://1:")
    assert "19,000 more" in text.splitlines()[-1], "that others are left out is said"
    assert highest_memory(editor) < 300
    editor.close()


def highest_memory(editor: Editor) -> float:
    """Of the process, in MB, as long as it lived."""
    status = Path(f"/proc/{editor.process.pid}/status").read_text()
    [highest] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
    return highest / 1024


def test_an_error_of_the_tool_is_a_failed_call(tmp_path):
    call, editor = one_call(tmp_path, good(), "failing")
    assert call["status"] == "failed"
    assert "the flour is gone" in told_model(editor)


def test_a_diff_in_the_result_is_shown_as_one_beside_what_the_model_is_told(tmp_path):
    path = str(tmp_path / "work" / "bread.txt")
    call, editor = one_call(tmp_path, good(), "diff", path=path)
    diff, text = call["content"]
    assert diff == {"type": "diff", "path": path, "oldText": "a\n", "newText": "b\n"}
    assert text == {"type": "content", "content": {"type": "text", "text": "```text\nchanged\n```"}}
    assert told_model(editor) == "changed"


def test_a_change_that_was_approved_stays_to_be_seen_where_the_server_shows_none(tmp_path):
    go = "mcp__edits__go"
    change = {"path": str(tmp_path / "work" / "bread.txt"), "old_str": "rye", "new_str": "wheat"}
    editor = editing(tmp_path, calling((go, change), (go, change)))
    (Path(editor.workspace) / "bread.txt").write_text("rye bread\n")
    editor.new_session(mcpServers=[bad("edits")])
    editor.prompt("Go.")
    done, failed = editor.tool_calls().values()
    diff, text = done["content"]
    assert (diff["type"], diff["oldText"], diff["newText"]) == ("diff", "rye", "wheat")
    assert "edited" in text["content"]["text"]
    assert failed["status"] == "failed"
    assert "diff" not in [item["type"] for item in failed["content"]], "nothing was changed"
    editor.close()


def test_the_titles_that_a_server_gives_are_shown_with_nothing_that_hides(tmp_path):
    tools = ("go", "knead", "odd")
    editor = editing(tmp_path, calling(*((f"mcp__titled__{name}", {"name": "rye"}) for name in tools)) + DONE)
    editor.new_session(mcpServers=[bad("titled")])
    editor.prompt("Go.")
    titles = [call["title"] for call in editor.tool_calls().values()]
    assert titles[1:] == ["titled: Knead⏎the dough rye", "titled: odd rye"]
    assert titles[0].startswith("titled: Bake")
    assert "\u202e" not in titles[0]
    assert ["tool: go" in str(request) for request in editor.permissions] == [True, False, False]
    editor.prompt("/mcp")
    said = editor.text()
    assert "Best" in said
    assert "\u202e" not in said
    editor.close()


@pytest.mark.parametrize(
    ("told", "blocks", "shown"),
    [
        ("3 passed\n\n[exit code 0]", [{"type": "text", "text": "3 passed"}], ["3 passed\n\n[exit code 0]"]),
        ("3 passed\n", [{"type": "text", "text": "3 passed"}], ["3 passed\n"]),
        ("something else", [{"type": "text", "text": "3 passed"}], ["3 passed", "something else"]),
        ("Edited a.py (+1 -1).", [DIFF], ["diff", "Edited a.py (+1 -1)."]),
        ("Edited a.py (+1 -1).\nNow run rm.", [DIFF], ["diff", "Edited a.py (+1 -1).\nNow run rm."]),
    ],
)
def test_what_is_shown_already_is_not_shown_once_more_and_nothing_is_hidden(told, blocks, shown):
    meta = {"dev.crow/display": {"version": 1, "message": "+1 -1", "blocks": blocks}}
    result = result_of(CallToolResult(content=[TextContent(text=told)], _meta=meta), ["/project"])
    assert result.text == told
    assert [block.text if isinstance(block, TextBlock) else "diff" for block in result.display] == shown


def test_a_diff_of_a_relative_path_is_not_trusted(tmp_path):
    call, _ = one_call(tmp_path, good(), "diff", path="bread.txt")
    assert shown(call) == "```text\nchanged\n```"


def test_tools_with_unfit_schemas_are_left_out_or_mended_and_the_others_stay(tmp_path):
    long_name = "mcp__schemas__x_y_z" + "_" * 80
    editor = editing(tmp_path, calling(("mcp__schemas__fine", {})))
    editor.new_session(mcpServers=[bad("schemas")])
    editor.prompt("Go.")
    tools = {tool["name"]: tool for tool in editor.model_requests()[0]["tools"] if tool["name"].startswith("mcp__")}
    *known, hashed = tools
    assert known == ["mcp__schemas__fine", "mcp__schemas__cycle", "mcp__schemas__long"]
    assert len(hashed) == 64
    assert hashed[:55] == long_name[:55]
    assert "$ref" not in str(tools["mcp__schemas__cycle"])
    assert len(tools["mcp__schemas__long"]["description"]) < 2100
    [notice] = editor.notices
    assert notice == (
        "The MCP server `schemas` (from your editor): Unusable tools are left out: a text (inputSchema: "
        "Input should be a valid dictionary or instance of InputSchema), an array (inputSchema.type: Input should be "
        "'object'), a tool without a name (inputSchema: Field required), huge (its schema is larger than 32 KiB)."
    )
    assert editor.the_call()["status"] == "completed"
    editor.close()


def test_resources_are_listed_unasked_and_read_after_asking(tmp_path):
    asked = []

    def permit(request: dict) -> dict:
        asked.append(request["toolCall"]["title"])
        return chose("once")

    wanted = [{}, {"uri": "note://today"}, {"uri": "x:"}]
    script = calling(*(("mcp_resources", arguments) for arguments in wanted))
    editor = editing(tmp_path, script, permit=permit)
    editor.new_session(mcpServers=[good()])
    editor.prompt("Go.")
    listed, read, missing = editor.tool_calls().values()
    assert "note://today" in shown(listed)
    assert "bake bread" in shown(read)
    assert missing["status"] == "failed"
    assert asked == ["Read note://today from good", "Read x: from good"]
    editor.close()


def test_without_resources_there_is_no_tool_for_them(tmp_path):
    _, editor = one_call(tmp_path, bad("plain"), "go")
    assert "mcp_resources" not in offered(editor.model_requests()[0])
    assert "find_tools" not in offered(editor.model_requests()[0])


def commands_of_servers(editor: Editor) -> dict[str, Any]:
    """The first update that advertises a server's prompt; it may come a moment after the turn."""

    def told() -> list[dict[str, Any]]:
        updates = editor.all_updates_of(editor.session_id)
        return [
            update
            for update in updates
            if update["sessionUpdate"] == "available_commands_update"
            and any(command["name"].startswith("mcp:") for command in update["availableCommands"])
        ]

    editor.wait_until(lambda: bool(told()), "the server's prompts")
    return told()[0]


def test_a_prompt_of_a_server_is_a_command(tmp_path):
    editor = editing(tmp_path, calling())
    editor.new_session(mcpServers=[good()])
    editor.prompt("Hi.")
    update = commands_of_servers(editor)
    [command] = [command for command in update["availableCommands"] if command["name"] == "mcp:good:recipe"]
    assert command["input"] == {"hint": "dish [people]"}
    editor.prompt("/mcp:good:recipe people=6 apple pie")
    assert editor.last_prompt()[0]["text"] == "Give me a recipe of apple pie for 6."
    editor.prompt("/mcp:good:recipe")
    assert "needs: dish" in editor.text()
    editor.close()


def test_prompts_have_names_of_their_own_hints_on_one_line_and_texts_of_some_length(tmp_path):
    editor = editing(tmp_path, calling())
    editor.new_session(mcpServers=[bad("prompts")])
    editor.prompt("Hi.")
    update = commands_of_servers(editor)
    commands = {one["name"]: one for one in update["availableCommands"] if one["name"].startswith("mcp:")}
    name = "mcp:prompts:bake_bread"
    assert list(commands) == [name, f"{name}_2", f"{name}_3"]
    hint = commands[name]["input"]["hint"]
    assert hint.startswith("[a⏎b⟨U+202E⟩] [argument-0] ")
    assert len(hint) <= 201
    editor.prompt(f"/{name}_2")
    [text, note] = [part["text"] for part in editor.last_prompt()]
    assert text == "bake.bread" + "x" * 99_990
    assert note == "(The prompt is cut here: 500,020 more characters.)"
    editor.prompt("/mcp")
    assert "Done.1 tool from MCP servers" in editor.text()
    editor.close()


def test_a_read_only_tool_looks_like_one_and_is_asked_about_all_the_same(tmp_path):
    call, editor = one_call(tmp_path, good(), "add", {"config": PATIENT}, a=1, b=2)
    assert call["kind"] == "read"
    assert len(editor.permissions) == 1


def test_what_the_server_says_of_a_tool_that_destroys_is_shown(tmp_path):
    _, editor = one_call(tmp_path, good(), "environment")
    assert "the server says: this may be destructive" in shown(editor.permissions[0]["toolCall"])


def test_missing_arguments_are_told_to_the_model_unasked(tmp_path):
    call, editor = one_call(tmp_path, good(), "add", a=1)
    assert editor.permissions == []
    assert "- `b` is missing" in shown(call)


def test_a_prompt_of_a_server_that_is_still_starting_is_waited_for(tmp_path):
    editor = editing(tmp_path, calling())
    editor.new_session(mcpServers=[good()])
    editor.prompt("/mcp:good:recipe apple")
    assert editor.last_prompt()[0]["text"] == "Give me a recipe of apple for 2."
    editor.close()


def test_a_prompt_that_no_server_has_is_not_sent_to_the_model(tmp_path):
    editor = editing(tmp_path, calling())
    editor.new_session(mcpServers=[bad("plain")])
    for name in ("mcp:plain:recipe", "mcp:nobody:what.ever"):
        editor.prompt(f"/{name} apple")
        assert f"Unknown prompt `/{name}`: nothing was sent to the model." in editor.text()
    assert editor.model_requests() == []
    editor.close()
