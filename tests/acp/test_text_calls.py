"""Calls that a model wrote as text, in a conversation: shown and asked about like any other, and told of once."""

from tests.support.editor import NOTICES, chose
from tests.support.scripts import DONE, reply, say

CALL = '<tool_call>\n{"name": "write", "arguments": {"path": "a.txt", "content": "one\\n"}}\n</tool_call>'


def test_a_call_in_the_text_is_asked_about_shown_and_answered(open_editor):
    crow = open_editor(
        script=reply(say(f"I write it.\n{CALL}")) + reply(say(CALL.replace("a.txt", "b.txt"))) + DONE,
        permit=lambda request: chose("once"),
        capabilities=NOTICES,
    )
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert [request["toolCall"]["title"] for request in crow.permissions] == ["Write a.txt", "Write b.txt"]
    assert [entry["status"] for entry in crow.tool_calls().values()] == ["completed"] * 2
    assert (crow.workspace / "a.txt").read_text() == "one\n"
    assert "tool_call" not in crow.text()
    (notice,) = crow.notices
    assert "wrote its tool calls as text, as Hermes models do" in notice
    # The model's own call goes back to it as a call.
    assistant = crow.model_requests()[1]["messages"][1]
    assert [part["part"] for part in assistant["parts"]] == ["text", "call"]


def test_a_call_in_a_code_block_is_shown_and_not_run(open_editor):
    text = f"One writes a call like this:\n\n```\n{CALL}\n```\n"
    crow = open_editor(script=reply(say(text)))
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.text() == text
    assert crow.permissions == []
    assert list(crow.workspace.iterdir()) == []
