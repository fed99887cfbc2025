"""Stopping: in every phase, with nothing left open and nothing lost. How soon is a matter of the bench.

What is cancelled takes longer than any test waits for an answer: whoever waits for it is found out.
"""

import pytest

from tests.support import histories
from tests.support.editor import DISMISSED, FILES, NOTICES, SILENCE, Editor, Pending, chose

AFTERWARDS = """
[[reply]]
when = "go on"
events = [{ text = "Going on." }]
"""


def assert_cancelled(crow: Editor, prompt: Pending) -> None:
    """The promise: `cancelled`, every call closed, and the next prompt as if nothing had been."""
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert all(call["status"] in ("completed", "failed") for call in crow.tool_calls().values())
    seen = len(crow.updates)
    assert crow.prompt("go on") == {"stopReason": "end_turn"}
    assert crow.updates[seen]["content"]["text"].startswith("Going")
    assert crow.text().endswith("Going on.")
    histories.assert_valid(crow.model_requests()[-1]["messages"])
    assert histories.said(crow.model_requests()[-1]["messages"], "user")[-1].endswith("go on")


@pytest.mark.rule("R68", "R69", "R74")
def test_a_cancel_in_the_same_write_as_the_prompt(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nrepeat = true\nevents = [{ text = "late" }]')
    crow.new_session()
    prompt = crow.expect("session/prompt", 77)
    crow.send(
        {"jsonrpc": "2.0", "id": 77, "method": "session/prompt", "params": crow.prompt_params("stop this")},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": crow.session_id}},
    )
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert crow.text() == ""
    assert_cancelled(crow, prompt)
    assert "stop this" in histories.said(crow.model_requests()[-1]["messages"], "user")[0]


@pytest.mark.rule("R12", "R68", "R69")
def test_a_cancel_before_the_first_token(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nevents = [{ wait = 600 }, { text = "late" }]')
    crow.new_session()
    prompt = crow.start_prompt("think hard")
    crow.wait_until(lambda: bool(crow.model_requests()) or prompt.done, "the model's request")
    crow.cancel()
    assert_cancelled(crow, prompt)


@pytest.mark.rule("R68", "R69", "R75")
def test_a_cancel_in_the_middle_of_the_text_keeps_what_was_said(open_editor):
    crow = open_editor(
        script=AFTERWARDS + '[[reply]]\nevents = [{ text = "Once upon" }, { wait = 600 }, { text = "late" }]'
    )
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once upon")
    crow.cancel()
    assert_cancelled(crow, prompt)
    messages = crow.model_requests()[-1]["messages"]
    assert histories.said(messages, "assistant") == ["Once upon"]
    assert histories.said(messages, "user") == ["tell me a story", "[The user interrupted the reply above.]go on"]


@pytest.mark.rule("R68", "R69", "R75")
def test_a_cancel_in_a_thought(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nevents = [{ thought = "Hmm." }, { wait = 600 }]')
    crow.new_session()
    prompt = crow.start_prompt("think")
    crow.wait_until(lambda: crow.thoughts() == "Hmm.", "the thought")
    crow.cancel()
    assert_cancelled(crow, prompt)


@pytest.mark.rule("R68", "R69")
def test_a_cancel_while_waiting_to_try_again(open_editor):
    script = AFTERWARDS + "[[reply]]\nevents = [{ fail = { status = 503, retry_after = 120 } }]"
    crow = open_editor(script=script, capabilities=NOTICES)
    crow.new_session()
    prompt = crow.start_prompt("try")
    crow.wait_until(lambda: any("Trying again in 120 s" in notice for notice in crow.notices), "the notice")
    crow.cancel()
    assert_cancelled(crow, prompt)


CALL = '[[reply]]\nevents = [{{ text = "Looking." }}, {{ call = "read", arguments = {{ path = "{path}" }} }}]\n'


@pytest.mark.rule("R68", "R69", "R70", "R72", "R75", "R88", "R149")
def test_a_cancel_in_a_running_tool(open_editor):
    """The editor does not answer a read; the request is withdrawn, the call closed, its result made up."""
    crow = open_editor(script=AFTERWARDS + CALL.format(path="slow.txt"), capabilities=FILES)
    (crow.workspace / "slow.txt").write_text("on disk")
    crow.files[str(crow.workspace / "slow.txt")] = SILENCE
    crow.new_session()
    prompt = crow.start_prompt("read it")
    asked = crow.wait_for_call("fs/read_text_file")
    crow.cancel()
    assert_cancelled(crow, prompt)
    assert crow.wait_for_call("$/cancel_request")["params"] == {"requestId": asked["id"]}
    assert crow.the_call()["status"] == "failed"
    call, result = crow.model_requests()[-1]["messages"][1:3]
    assert call["parts"][1]["arguments"] == '{"path":"slow.txt"}'
    assert result == {"role": "tool", "call_id": "t1-c1", "text": result["text"], "ok": False, "images": []}
    assert "Interrupted by the user" in result["text"]


@pytest.mark.rule("R68", "R69", "R71", "R72", "R149")
def test_a_cancel_while_the_person_is_being_asked(open_editor):
    """The cancel itself is the answer: nobody waits for the dialog, which is withdrawn."""
    crow = open_editor(script=AFTERWARDS + CALL.format(path="/etc/hostname"), permit=lambda request: SILENCE)
    crow.new_session()
    prompt = crow.start_prompt("read it")
    asked = crow.wait_for_call("session/request_permission")
    crow.cancel()
    assert_cancelled(crow, prompt)
    assert crow.wait_for_call("$/cancel_request")["params"] == {"requestId": asked["id"]}
    assert crow.the_call()["status"] == "failed"


@pytest.mark.rule("R71", "R149")
@pytest.mark.parametrize("late", [DISMISSED, chose("once"), {"odd": 1}], ids=["cancelled", "allowed", "odd"])
def test_the_late_answer_to_a_withdrawn_question_changes_nothing(open_editor, late):
    crow = open_editor(script=AFTERWARDS + CALL.format(path="/etc/hostname"), permit=lambda request: SILENCE)
    crow.new_session()
    prompt = crow.start_prompt("read it")
    asked = crow.wait_for_call("session/request_permission")
    crow.cancel()
    crow.send({"jsonrpc": "2.0", "id": asked["id"], "result": late})
    assert_cancelled(crow, prompt)
    assert crow.the_call()["status"] == "failed"
    assert "on disk" not in str(crow.model_requests())


@pytest.mark.rule("R68", "R74")
def test_a_cancel_while_an_attachment_is_being_read_keeps_the_prompt(open_editor):
    crow = open_editor(script=AFTERWARDS, capabilities=FILES)
    path = crow.workspace / "slow.txt"
    path.write_text("on disk")
    crow.files[str(path)] = SILENCE
    crow.new_session()
    prompt = crow.start_prompt("explain this", {"type": "resource_link", "uri": path.as_uri(), "name": "slow.txt"})
    crow.wait_for_call("fs/read_text_file")
    crow.cancel()
    assert_cancelled(crow, prompt)
    assert "explain this" in histories.said(crow.model_requests()[-1]["messages"], "user")[0]


@pytest.mark.rule("R68", "R73")
def test_cancelling_twice_is_as_good_as_once(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nevents = [{ text = "a" }, { wait = 600 }]')
    crow.new_session()
    prompt = crow.start_prompt("x")
    crow.wait_for_text("a")
    crow.cancel()
    crow.cancel()
    crow.cancel()
    assert_cancelled(crow, prompt)


@pytest.mark.rule("R73")
def test_a_cancel_without_a_turn_or_for_an_unknown_session_does_nothing(open_editor):
    crow = open_editor(script=AFTERWARDS)
    crow.new_session()
    crow.cancel()
    crow.cancel("no such session")
    assert crow.prompt("go on") == {"stopReason": "end_turn"}
    crow.cancel()
    assert crow.text() == "Going on."


@pytest.mark.rule("R146", "R69")
def test_a_prompt_can_be_cancelled_by_its_id_too(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nevents = [{ text = "a" }, { wait = 600 }]')
    crow.new_session()
    prompt = crow.start("session/prompt", crow.prompt_params("x"), id="the prompt")
    crow.wait_for_text("a")
    crow.notify("$/cancel_request", {"requestId": "the prompt"})
    assert_cancelled(crow, prompt)
    crow.notify("$/cancel_request", {"requestId": "the prompt"})
    crow.start("nonsense").error()


@pytest.mark.rule("R64")
def test_a_second_prompt_is_refused_while_the_first_runs(open_editor):
    crow = open_editor(script='[[reply]]\nevents = [{ text = "a" }, { wait = 0.3 }, { text = "b" }]')
    crow.new_session()
    first = crow.start_prompt("x")
    crow.wait_for_text("a")
    error = crow.start_prompt("y").error()
    assert (error.code, "already running" in error.message) == (-32600, True)
    assert first.answer() == {"stopReason": "end_turn"}
    assert crow.text() == "ab"
    assert "y" not in str(crow.model_requests()[-1]["messages"])


@pytest.mark.rule("R64", "R74")
def test_a_prompt_right_after_a_cancel_waits_for_its_end_and_runs(open_editor):
    crow = open_editor(script=AFTERWARDS + '[[reply]]\nevents = [{ text = "a" }, { wait = 600 }]')
    crow.new_session()
    first = crow.start_prompt("x")
    crow.wait_for_text("a")
    crow.cancel()
    second = crow.start_prompt("go on")
    assert second.answer() == {"stopReason": "end_turn"}
    assert first.answer() == {"stopReason": "cancelled"}
    answers = [message["id"] for message in crow.received if "stopReason" in message.get("result", {})]
    assert answers == [first.id, second.id]
    assert crow.text() == "aGoing on."


@pytest.mark.rule("R64", "R74", "R75")
def test_prompts_and_cancels_in_one_write(open_editor):
    """Prompt, cancel, prompt, cancel, prompt: the last one is answered, in order, with all of it in the history."""
    crow = open_editor(script=AFTERWARDS + "[[reply]]\nrepeat = true\nevents = [{ wait = 600 }]")
    crow.new_session()
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": crow.session_id}}
    prompts = [crow.expect("session/prompt", f"p{number}") for number in range(3)]
    texts = ["first", "second", "go on"]
    first, second, third = (
        {"jsonrpc": "2.0", "id": prompt.id, "method": "session/prompt", "params": crow.prompt_params(text)}
        for prompt, text in zip(prompts, texts, strict=True)
    )
    crow.send(first, cancel, second, cancel, third)
    assert [prompt.answer()["stopReason"] for prompt in prompts] == ["cancelled", "cancelled", "end_turn"]
    answers = [message["id"] for message in crow.received if "stopReason" in message.get("result", {})]
    assert answers == ["p0", "p1", "p2"]
    messages = crow.model_requests()[-1]["messages"]
    histories.assert_valid(messages)
    told = "".join(histories.said(messages, "user"))
    assert all(text in told for text in texts)


@pytest.mark.rule("R12", "R68", "R69")
def test_a_cancel_is_heard_over_a_model_that_never_pauses(open_editor):
    flood = "".join(f"{number:07d} " for number in range(1_000_000))
    crow = open_editor(script=AFTERWARDS + f'[[reply]]\nevents = [{{ text = "Ready. " }}, {{ text = "{flood}" }}]')
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Ready. 0000")
    crow.cancel()
    assert_cancelled(crow, prompt)
    assert len(crow.text()) < len(flood)
