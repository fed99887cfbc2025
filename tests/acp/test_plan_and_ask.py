"""The plan that ticks off, and a question in whatever way the client can put it."""

import json

import pytest

from tests.support.editor import EVERYTHING, NOTHING, ErrorAnswer

DONE = '[[reply]]\nevents = [{ text = "Done." }]\nrepeat = true\n'


def call(tool: str, **arguments: object) -> str:
    return f"[[reply]]\nevents = [{{ call = '{tool}', raw = '{json.dumps(arguments)}' }}]\n"


@pytest.mark.rule("R125")
def test_a_plan_is_shown_whole_each_time_and_can_be_cleared(open_editor):
    first = [{"content": "look", "status": "in_progress", "priority": "high"}, {"content": "mend"}]
    crow = open_editor(script=call("plan", entries=first) + call("plan", entries=[]) + DONE)
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert [update["entries"] for update in crow.updates if update["sessionUpdate"] == "plan"] == [
        [
            {"content": "look", "priority": "high", "status": "in_progress"},
            {"content": "mend", "priority": "medium", "status": "pending"},
        ],
        [],
    ]
    assert crow.tool_calls() == {}
    assert crow.permissions == []


def test_a_plan_that_makes_no_sense_is_a_result_for_the_model(open_editor):
    crow = open_editor(script=call("plan", entries=[{"content": "x", "status": "perhaps"}]) + DONE)
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.the_call()["status"] == "failed"
    assert "do not fit" in crow.the_call()["content"][0]["content"]["text"]


@pytest.mark.rule("R129", "R130", "R131", "R134")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"action": "accept", "content": {"answer": "red"}}, "The user answered: red"),
        ({"action": "decline"}, "The user did not answer the question."),
        ({"action": "cancel"}, "The user did not answer the question."),
        ({"action": "_newer", "content": {"answer": "red"}}, "The user did not answer the question."),
        ({"action": "accept", "content": {"answer": 5}}, "The user did not answer the question."),
    ],
)
def test_a_client_with_forms_gets_a_form(open_editor, answer, told):
    crow = open_editor(
        script=call("ask", question="Which colour?", options=["red", "blue"]) + DONE,
        capabilities=EVERYTHING,
        answers={"elicitation/create": lambda params: answer},
    )
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    (form,) = [m["params"] for m in crow.received if m.get("method") == "elicitation/create"]
    assert form["mode"] == "form"
    assert form["message"] == "Which colour?"
    assert form["requestedSchema"] == {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Answer", "enum": ["red", "blue"]}},
        "required": ["answer"],
    }
    assert crow.model_requests()[-1]["messages"][-1]["text"] == told


def test_a_client_that_approves_everything_does_not_answer_for_the_person(open_editor):
    """A question is no permission: without forms it ends the turn, and the answer is what the person says next."""
    crow = open_editor(
        script=call("ask", question="Delete the production database?", options=["Yes", "No"]) + DONE,
        permit=lambda params: {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}},
    )
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn", "_meta": {"crow": {"leftOpen": "question"}}}
    assert crow.permissions == []
    assert crow.tool_calls() == {}  # the question stands once, and nothing says that it is done
    assert crow.text() == "Delete the production database?\n1. Yes\n2. No"
    assert len(crow.model_requests()) == 1
    crow.prompt("No!")
    assert "The user answered" not in str(crow.model_requests()[-1])


@pytest.mark.parametrize("capabilities", [NOTHING, EVERYTHING])
def test_a_question_that_no_dialog_can_put_ends_the_turn_as_text(open_editor, capabilities):
    crow = open_editor(
        script=call("ask", question="What is it called?") + DONE,
        capabilities=capabilities,
        answers={"elicitation/create": lambda params: ErrorAnswer(-32601, "no forms after all")},
    )
    crow.new_session()
    assert crow.prompt("go")["stopReason"] == "end_turn"
    assert crow.text() == "What is it called?"
    assert [call["title"] for call in crow.tool_calls().values()] == (
        [] if capabilities is NOTHING else ["What is it called? · not answered yet"]
    )
    assert len(crow.model_requests()) == 1
    crow.prompt("It is called Nest.")
    roles = [message["role"] for message in crow.model_requests()[-1]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
