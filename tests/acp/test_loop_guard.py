"""A model that repeats itself: the person is asked, by whatever their client can ask with."""

import pytest

from tests.support.editor import ErrorAnswer
from tests.support.scripts import DONE, call, reply, run

SCRIPT = reply(call("read", path="a.txt")) * 7 + DONE


FORMS = {"elicitation": {"form": {}}}
BROKEN_OFF = {"stopReason": "max_turn_requests", "_meta": {"crow": {"leftOpen": "repetition"}}}


def answering(answer):
    """A client with forms, and what is filled into them."""
    return {"capabilities": FORMS, "answers": {"elicitation/create": lambda form: answer}}


GO_ON = answering({"action": "accept", "content": {"answer": "Go on"}})
STOP = answering({"action": "accept", "content": {"answer": "Stop"}})


def opened(open_editor, script=SCRIPT, **options):
    crow = open_editor(script=script, **options)
    (crow.workspace / "a.txt").write_text("one\n")
    crow.new_session()
    return crow


def forms(crow):
    return [message["params"] for message in crow.received if message.get("method") == "elicitation/create"]


def test_the_fifth_time_is_asked_about_and_stopping_names_the_call(open_editor):
    crow = opened(open_editor, **STOP)
    assert crow.prompt("Read.") == {"stopReason": "end_turn"}
    [asked] = forms(crow)
    assert asked["requestedSchema"]["properties"]["answer"]["enum"] == ["Go on", "Stop"]
    assert "Read a.txt" in asked["message"]
    assert len(crow.model_requests()) == 5
    assert "“Read a.txt” ran 5 times with the same result" in crow.text()
    assert {call["status"] for call in crow.tool_calls().values()} == {"completed"}


def test_going_on_goes_on(open_editor):
    crow = opened(open_editor, **GO_ON)
    assert crow.prompt("Read.") == {"stopReason": "end_turn"}
    assert len(crow.model_requests()) == 8
    assert crow.text() == "Done."


def test_whoever_always_goes_on_is_not_asked_for_ever(open_editor):
    crow = opened(open_editor, reply(call("read", path="a.txt")) * 40 + DONE, **GO_ON)
    assert crow.prompt("Read.") == BROKEN_OFF
    assert len(forms(crow)) == 2
    assert len(crow.model_requests()) == 15


def test_a_client_that_approves_everything_does_not_keep_the_loop_going(open_editor):
    crow = opened(
        open_editor,
        permit=lambda request: {"outcome": {"outcome": "selected", "optionId": request["options"][0]["optionId"]}},
    )
    assert crow.prompt("Read.") == BROKEN_OFF
    assert crow.permissions == []
    assert len(crow.model_requests()) == 5
    assert "I stopped: “Read a.txt” ran 5 times" in crow.text()


def test_a_client_that_cannot_ask_breaks_the_turn_off_with_words(open_editor):
    crow = opened(open_editor, **answering(ErrorAnswer(-32601, "no such method")))
    assert crow.prompt("Read.") == BROKEN_OFF
    assert len(crow.model_requests()) == 5
    assert "“Read a.txt” ran 5 times" in crow.text()


def test_a_command_is_named_in_its_own_marks(open_editor):
    crow = open_editor(script=reply(run("echo `date +%Y`")) * 5 + DONE)
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "auto"})
    crow.prompt("Run.")
    assert "I stopped: “echo `date +%Y`” ran 5 times" in crow.text()


def test_waiting_for_a_command_in_the_background_is_no_circle(open_editor):
    polling = reply(call("terminal_read", id="b1")) + reply(run("sleep 0.01"))
    crow = open_editor(script=reply(run("sleep 1000", background=True)) + polling * 8 + DONE)
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "auto"})
    assert crow.prompt("Wait for it.") == {"stopReason": "end_turn"}
    assert crow.permissions == []
    assert crow.text() == "Done."


@pytest.mark.rule("R75")
def test_the_next_prompt_goes_on_from_there(open_editor):
    crow = opened(open_editor, **STOP)
    crow.prompt("Read.")
    assert crow.prompt("Something else, please.") == {"stopReason": "end_turn"}
    assert crow.text().endswith("Done.")


def test_a_dismissed_form_is_no_answer(open_editor):
    crow = opened(open_editor, **answering({"action": "cancel"}))
    assert crow.prompt("Read.") == BROKEN_OFF
