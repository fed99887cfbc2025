"""How a turn ends: the five stop reasons, used truthfully, and errors that say what happened and what to do."""

import pytest

from tests.support import histories
from tests.support.editor import NOTICES

NEXT = '[[reply]]\nwhen = "next"\nevents = [{ text = "Fine." }]\n'


def reply(*events: str) -> str:
    return f"[[reply]]\nevents = [{', '.join(events)}]\n"


@pytest.mark.rule("R59", "R60", "R61")
@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal"])
def test_the_models_reason_is_the_turns(open_editor, reason):
    crow = open_editor(script=reply('{ text = "Well," }', f'{{ finish = "{reason}" }}'))
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": reason}
    assert crow.text() == "Well,"


@pytest.mark.rule("R60")
def test_a_refused_prompt_is_forgotten(open_editor):
    script = NEXT + reply('{ text = "First." }') + reply('{ text = "I would rather not." }', '{ finish = "refusal" }')
    crow = open_editor(script=script)
    crow.new_session()
    crow.prompt("hello")
    assert crow.prompt("do something bad") == {"stopReason": "refusal"}
    crow.prompt("next")
    messages = crow.model_requests()[-1]["messages"]
    assert histories.said(messages, "user") == ["hello", "next"]
    assert histories.said(messages, "assistant") == ["First."]


@pytest.mark.rule("R61", "R59")
def test_the_limit_of_requests_is_said(open_editor):
    script = '[[reply]]\nrepeat = true\nevents = [{ call = "read", arguments = { path = "." } }]'
    crow = open_editor(script=script, config="[limits]\nmodel_calls = 3", capabilities=NOTICES)
    crow.new_session()
    assert crow.prompt("go on for ever") == {"stopReason": "max_turn_requests"}
    assert len(crow.model_requests()) == 3
    assert crow.notices == ["Stopped after 3 requests to the model."]
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 3


@pytest.mark.rule("R61")
@pytest.mark.parametrize("status", [413, 400])
def test_a_conversation_that_no_longer_fits_ends_with_max_tokens_and_says_why(open_editor, status):
    crow = open_editor(
        script=reply(f'{{ fail = {{ status = {status}, message = "prompt is too long" }} }}'), capabilities=NOTICES
    )
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "max_tokens"}
    [notice] = crow.notices
    assert "prompt is too long" in notice


@pytest.mark.rule("R59")
def test_a_reply_without_a_word_is_said(open_editor):
    crow = open_editor(script=reply(), capabilities=NOTICES)
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.notices == ["scripted/test ended its turn without a reply."]


@pytest.mark.rule("R24", "R62")
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_asks_for_a_login(open_editor, status):
    crow = open_editor(script=reply(f'{{ fail = {{ status = {status}, message = "bad key" }} }}'))
    crow.new_session()
    error = crow.start_prompt("hi").error()
    assert error.code == -32000
    assert "bad key" in error.message
    assert "crow login" in error.message
    assert error.data == {"details": error.message}


NO_RETRIES = "[limits]\nretry_wait = 0"
FAILURES = {
    "bad request": ('{ fail = { status = 400, message = "no such tool" } }', ["400", "no such tool"]),
    "not found": ('{ fail = { status = 404, message = "no such model" } }', ["404", "no such model", "crow models"]),
    "no money": ('{ fail = { status = 429, message = "insufficient_quota" } }', ["429", "credit"]),
    "too long a wait": ("{ fail = { status = 429, retry_after = 9999 } }", ["429", "9999 s"]),
    "no connection": ('{ text = "Half" }, { fail = { message = "the line was cut" } }', ["the line was cut"]),
}


@pytest.mark.rule("R62", "R31")
@pytest.mark.parametrize(("event", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failed_turn_is_an_error_that_says_so(open_editor, event, words):
    crow = open_editor(script=NEXT + reply(event), config=NO_RETRIES)
    crow.new_session()
    error = crow.start_prompt("hi").error()
    assert error.code == -32603
    assert error.data == {"details": error.message}
    assert all(word in error.message for word in ["scripted", *words])
    assert "Traceback" not in error.message
    assert crow.prompt("next") == {"stopReason": "end_turn"}
    histories.assert_valid(crow.model_requests()[-1]["messages"])


@pytest.mark.rule("R62", "R88")
def test_a_failure_after_a_call_was_announced_closes_the_call(open_editor):
    crow = open_editor(
        script=NEXT + reply('{ call = "read", arguments = { path = "." } }', "{ fail = { status = 400 } }")
    )
    crow.new_session()
    assert crow.start_prompt("hi").error().code == -32603
    assert crow.the_call()["status"] == "failed"
    assert crow.prompt("next") == {"stopReason": "end_turn"}
    histories.assert_valid(crow.model_requests()[-1]["messages"])


@pytest.mark.rule("R62", "R75")
def test_text_of_a_reply_that_broke_off_is_kept_and_not_shown_twice(open_editor):
    crow = open_editor(
        script=NEXT + reply('{ fail = { status = 503, after_text = "Half of" } }') + reply('{ text = "Never." }'),
        config=NO_RETRIES,
    )
    crow.new_session()
    error = crow.start_prompt("hi").error()
    assert error.code == -32603
    assert crow.text() == "Half of"
    assert len(crow.model_requests()) == 1
    crow.prompt("next")
    messages = crow.model_requests()[-1]["messages"]
    assert histories.said(messages, "assistant") == ["Half of"]
    assert histories.said(messages, "user")[-1] == "[The reply above was cut off by an error.]next"


@pytest.mark.rule("R62", "R75", "R160")
def test_a_reply_that_broke_off_goes_on(open_editor):
    crow = open_editor(
        script=reply('{ fail = { status = 503, after_text = "Half of" } }') + reply('{ text = " an answer." }') + NEXT,
        config="[limits]\nretry_wait = 0.1",
        capabilities=NOTICES,
    )
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert crow.text() == "Half of an answer."
    said = [update for update in crow.updates if update["sessionUpdate"] == "agent_message_chunk"]
    assert len({update["messageId"] for update in said}) == 1
    [notice] = crow.notices
    assert notice.startswith("The reply was cut off: scripted answered 503")
    crow.prompt("next")
    messages = crow.model_requests()[-1]["messages"]
    assert histories.said(messages, "assistant") == ["Half of", " an answer."]
    histories.assert_valid(messages)


RETRIED = reply('{ fail = { status = 503, message = "overloaded" } }') + reply('{ text = "Here I am." }')


@pytest.mark.rule("R62", "R160", "R161")
def test_a_failure_that_is_tried_again_is_told_as_a_notice(open_editor):
    crow = open_editor(script=RETRIED, capabilities=NOTICES)
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    [notice] = crow.notices
    assert "503" in notice
    assert "overloaded" in notice
    assert "(attempt 2)" in notice
    assert crow.text() == "Here I am."


@pytest.mark.rule("R160", "R80")
def test_or_as_a_message_of_its_own(open_editor):
    crow = open_editor(script=RETRIED)
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    notice, *rest = crow.updates
    assert notice["content"]["text"].startswith("> scripted answered 503")
    assert notice["messageId"] not in {update["messageId"] for update in rest}
    assert "".join(update["content"]["text"] for update in rest) == "Here I am."
    assert "503" not in str(crow.model_requests()[-1]["messages"])


@pytest.mark.rule("R144")
def test_usage_is_told_with_the_size_of_the_window(open_editor):
    script = reply('{ text = "x" }', "{ usage = { input_tokens = 120, output_tokens = 80, cached_tokens = 100 } }")
    crow = open_editor(script=script)
    crow.new_session()
    crow.prompt("hi")
    assert crow.updates[-1] == {"sessionUpdate": "usage_update", "used": 200, "size": 100_000}


@pytest.mark.rule("R62")
def test_a_script_that_is_wrong_is_one_clear_message(open_editor):
    crow = open_editor(script="[[reply]]\nevents = [{ dance = 1 }]")
    crow.new_session()
    error = crow.start_prompt("hi").error()
    assert error.code == -32603
    assert "script.toml is wrong" in error.message
