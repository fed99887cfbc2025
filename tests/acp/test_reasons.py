"""What a person can say besides yes and no, and what they are offered where their client shows words of its own."""

import pytest

from tests.support.editor import SILENCE, Editor, ErrorAnswer, Json, chose
from tests.support.scripts import DONE, call, reply, run

FORMS = {"elicitation": {"form": {}}}
WRITE = reply(call("write", path="a.txt", content="one\n")) + DONE


def opened(open_editor, answer, *, permit=lambda request: chose("reject"), **options) -> Editor:
    answers = {"elicitation/create": lambda form: answer}
    crow = open_editor(script=WRITE, capabilities=FORMS, permit=permit, answers=answers, **options)
    crow.new_session()
    return crow


def forms(crow: Editor) -> list[Json]:
    return [message["params"] for message in crow.received if message.get("method") == "elicitation/create"]


def told(crow: Editor) -> str:
    [text] = [message["text"] for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return text


@pytest.mark.rule("R129", "R130")
def test_a_rejection_carries_its_reason_to_the_model(open_editor):
    crow = opened(open_editor, {"action": "accept", "content": {"reason": "  Call it b.txt.\n"}})
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    [form] = forms(crow)
    assert "Write a.txt" in form["message"]
    assert form["toolCallId"] == "t1-c1"
    assert list(form["requestedSchema"]["properties"]) == ["reason"]
    assert "required" not in form["requestedSchema"]
    assert told(crow).endswith("permission was refused, with these words: Call it b.txt.")
    assert not (crow.workspace / "a.txt").exists()


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "accept", "content": {"reason": " "}},
        {"action": "accept", "content": {"reason": 5}},
        {"action": "accept"},
        {"action": "decline"},
        {"action": "cancel", "content": {"reason": "not sent"}},
        ErrorAnswer(-32601, "no forms after all"),
    ],
)
def test_nobody_has_to_give_one(open_editor, answer):
    crow = opened(open_editor, answer)
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert "and said" not in told(crow)
    assert told(crow).startswith("Not done: ")


def test_a_turn_can_be_cancelled_while_the_reason_is_asked_for(open_editor):
    crow = opened(open_editor, SILENCE)
    prompt = crow.start_prompt("go")
    form = crow.wait_for_call("elicitation/create")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    withdrawn = [m["params"]["requestId"] for m in crow.received if m.get("method") == "$/cancel_request"]
    assert withdrawn == [form["id"]]


@pytest.mark.parametrize("permit", [lambda request: chose("once"), lambda request: chose("nonsense")])
def test_it_is_asked_for_only_after_a_plain_no(open_editor, permit):
    crow = opened(open_editor, SILENCE, permit=permit)
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert forms(crow) == []


# --- labels


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("CodeCompanion.nvim", ["once", "session", "reject"]),
        ("zed", ["once", "session", "project", "reject"]),
    ],
)
def test_of_options_that_look_the_same_only_the_narrower_is_offered(open_editor, name, offered):
    """CodeCompanion makes its labels from the kinds: what was chosen unseen there was "for this project"."""
    crow = open_editor(script=reply(run("make test")) + DONE, client_info={"name": name, "version": "1.0.0"})
    crow.new_session()
    crow.prompt("go")
    [asked] = crow.permissions
    assert [option["optionId"] for option in asked["options"]] == offered
