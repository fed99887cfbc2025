"""Crow as an MCP host of Crow's own server: two processes and two protocols between the model and the file."""

import json
from pathlib import Path

import pytest

from tests.mcp.guests import are_gone, calling, children_of, editing, told_model
from tests.support.warm import CROW

EDITOR = "mcp__crow__file_editor"
ITSELF = {"name": "crow", "command": CROW, "args": ["mcp"], "env": []}


@pytest.mark.rule("R155")
def test_an_edit_by_crows_own_server_is_a_diff_in_the_editor_and_is_taken_back_to_the_byte(tmp_path: Path):
    script = calling(
        (EDITOR, {"command": "view", "path": "notes.txt"}),
        (EDITOR, {"command": "str_replace", "path": "notes.txt", "old_str": "two", "new_str": "2"}),
        (EDITOR, {"command": "undo_edit", "path": "notes.txt"}),
        (EDITOR, {"command": "view", "path": "/etc/passwd"}),
    )
    editor = editing(tmp_path, script)
    notes = Path(editor.workspace) / "notes.txt"
    before = b"\xef\xbb\xbfone\r\ntwo\r\n"
    notes.write_bytes(before)
    editor.new_session(mcpServers=[ITSELF])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}

    viewed, edited, undone, outside = editor.tool_calls().values()
    assert viewed["status"] == "completed"
    there = {"type": "diff", "path": str(notes), "oldText": "one\r\ntwo\r\n", "newText": "one\r\n2\r\n"}
    back = {**there, "oldText": there["newText"], "newText": there["oldText"]}
    assert without_meta(edited["content"][0]) == there
    assert without_meta(undone["content"][0]) == back
    assert "Edited notes.txt" in json.dumps(edited["content"][1:]), "what the model is told is shown beside it"
    assert [call["kind"] for call in (viewed, edited)] == ["other", "edit"]
    assert "```text" in json.dumps(viewed["content"]), "what the model is told is shown"
    assert notes.read_bytes() == before
    assert (edited["title"], viewed["title"]) == (
        "crow: file_editor str_replace notes.txt +1 −1",  # noqa: RUF001 -- a minus sign
        "crow: file_editor view notes.txt",
    )
    [asked] = [request for request in editor.permissions if request["toolCall"]["toolCallId"] == "t1-c2"]
    fragment = {"type": "diff", "path": str(notes), "oldText": "two", "newText": "2"}
    assert without_meta(asked["toolCall"]["content"][0]) == fragment, "before anything is done"
    calls = [update for update in editor.updates if update.get("toolCallId") == "t1-c2"]
    began, shown_first = calls[0], next(update for update in calls if update.get("content"))
    assert without_meta(shown_first["content"][0]) == fragment, "as its arguments arrive"
    assert (began["sessionUpdate"], shown_first is began) == ("tool_call", True)
    # The workspace's folders are the server's: Crow, as its host, named them.
    assert outside["status"] == "failed"
    assert "is outside the allowed folders" in told_model(editor)

    started = children_of(editor.process.pid)
    editor.request("session/close", {"sessionId": editor.session_id})
    editor.close()
    are_gone(list(started))


def test_the_question_shows_what_is_inserted_and_what_an_undo_takes_back(tmp_path: Path):
    script = calling(
        (EDITOR, {"command": "insert", "path": "notes.txt", "insert_line": 1, "new_str": "and a half"}),
        (EDITOR, {"command": "undo_edit", "path": "notes.txt"}),
        (EDITOR, {"command": "create", "path": "new/file.txt", "file_text": "new\n"}),
        (EDITOR, {"command": "undo_edit", "path": "new/file.txt"}),
    )
    editor = editing(tmp_path, script)
    notes, new = Path(editor.workspace) / "notes.txt", Path(editor.workspace) / "new/file.txt"
    notes.write_text("one\ntwo\n")
    editor.new_session(mcpServers=[ITSELF])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    inserted = {"type": "diff", "path": str(notes), "oldText": "one\ntwo\n", "newText": "one\nand a half\ntwo\n"}
    back = inserted | {"oldText": inserted["newText"], "newText": inserted["oldText"]}
    created = {"type": "diff", "path": str(new), "newText": "new\n"}
    removed = created | {"oldText": "new\n", "newText": ""}
    asked = [without_meta(request["toolCall"]["content"][0]) for request in editor.permissions]
    assert asked == [inserted, back, without_old(created), removed]
    calls = editor.tool_calls().values()
    assert [without_meta(call["content"][0]) for call in calls] == [inserted, back, without_old(created), removed]
    assert [request["toolCall"]["kind"] for request in editor.permissions] == ["edit", "edit", "edit", "delete"]
    assert [call["kind"] for call in calls] == ["edit", "edit", "edit", "delete"]
    assert (notes.read_text(), new.parent.exists()) == ("one\ntwo\n", False)
    editor.close()


def without_old(item: dict) -> dict:
    return {name: value for name, value in item.items() if name != "oldText"}


def without_meta(item: dict) -> dict:
    return {name: value for name, value in item.items() if name != "_meta"}
