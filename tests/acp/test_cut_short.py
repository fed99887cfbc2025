"""What a person sees of calls that were cut short, refused or stopped: live, and when the session is loaded."""

import json

import pytest

from tests.support.editor import SILENCE, Editor, chose
from tests.support.scripts import DONE, call, edit, reply, run

INTERRUPTED = {"type": "content", "content": {"type": "text", "text": "Interrupted by the user before it was done."}}


def loaded(open_editor, crow: Editor) -> Editor:
    crow.close()
    again = open_editor(folder=crow.folder)
    again.load_session(crow.session_id)
    return again


def test_a_plan_that_was_shown_is_no_failed_call_after_a_cancel(open_editor):
    steps = [{"content": "look"}]
    crow = open_editor(
        script=reply(run("echo one"), call("plan", entries=steps)) + DONE, permit=lambda request: SILENCE
    )
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_call("session/request_permission")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    for seen in (crow, loaded(open_editor, crow)):
        assert [call["name"] for call in seen.tool_calls().values()] == ["terminal"]
        assert [update["sessionUpdate"] for update in seen.updates].count("plan") == 1


@pytest.mark.parametrize("change", [edit("a.txt", "one", "two"), call("write", path="b.txt", content="two\n")])
def test_a_change_that_was_asked_about_keeps_its_diff_after_a_cancel(open_editor, change):
    crow = open_editor(script=reply(change) + DONE, permit=lambda request: SILENCE)
    (crow.workspace / "a.txt").write_text("one\n")
    crow.new_session()
    prompt = crow.start_prompt("change it")
    crow.wait_for_call("session/request_permission")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    for seen in (crow, loaded(open_editor, crow)):
        diff, said = seen.the_call()["content"]
        assert (diff["type"], diff["newText"]) == ("diff", "two\n")
        assert said == INTERRUPTED


def test_a_change_that_is_being_written_keeps_its_diff_after_a_cancel(open_editor):
    crow = open_editor(
        script=reply(edit("a.txt", "one", "two")) + DONE,
        capabilities={"fs": {"readTextFile": True, "writeTextFile": True}},
        permit=lambda request: chose("once"),
        answers={"fs/write_text_file": lambda write: SILENCE},
    )
    (crow.workspace / "a.txt").write_text("one\n")
    crow.files[str(crow.workspace / "a.txt")] = "one\n"
    crow.new_session()
    prompt = crow.start_prompt("change it")
    crow.wait_for_call("fs/write_text_file")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    for seen in (crow, loaded(open_editor, crow)):
        diff, said = seen.the_call()["content"]
        assert (diff["type"], diff["oldText"], diff["newText"]) == ("diff", "one\n", "two\n")
        assert said == INTERRUPTED


def test_a_change_behind_another_question_keeps_its_diff_after_a_cancel(open_editor):
    crow = open_editor(
        script=reply(run("echo one"), edit("a.txt", "one", "two")) + DONE, permit=lambda request: SILENCE
    )
    (crow.workspace / "a.txt").write_text("one\n")
    crow.new_session()
    prompt = crow.start_prompt("change it")
    crow.wait_for_call("session/request_permission")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    for seen in (crow, loaded(open_editor, crow)):
        diff, said = list(seen.tool_calls().values())[1]["content"]
        assert (diff["type"], diff["oldText"], diff["newText"]) == ("diff", "one", "two")
        assert said == INTERRUPTED


@pytest.mark.parametrize("ends", [SILENCE, chose("reject")])
def test_a_large_diff_that_was_asked_about_is_sent_once_however_the_question_ends(open_editor, ends):
    text = "".join(f"line {number} of what is new\n" for number in range(4000))
    crow = open_editor(
        script=reply(call("write", path="a.txt", content=text)) + DONE,
        capabilities={"elicitation": {"form": {}}},
        permit=lambda request: ends,
        answers={"elicitation/create": lambda form: {"action": "accept", "content": {"reason": "not that way"}}},
    )
    crow.new_session()
    prompt = crow.start_prompt("write it")
    crow.wait_for_call("session/request_permission")
    if ends is SILENCE:
        crow.cancel()
    prompt.answer()
    sent = [json.dumps(message) for message in crow.received]
    assert sum(len(message) for message in sent if '"diff"' in message) < 1.5 * len(text)
    assert crow.the_call()["status"] == "failed"
    assert crow.the_call()["title"].endswith(" · interrupted" if ends is SILENCE else " · rejected")


def test_a_turn_that_went_round_in_circles_is_not_said_to_have_made_too_many_requests(open_editor):
    crow = open_editor(script=reply(call("read", path="a.txt")) * 7 + DONE)
    (crow.workspace / "a.txt").write_text("one\n")
    crow.new_session()
    facts = {"crow": {"leftOpen": "repetition"}}
    assert crow.prompt("read") == {"stopReason": "max_turn_requests", "_meta": facts}
    assert crow.prompt("/context") == {"stopReason": "end_turn"}
    again = loaded(open_editor, crow)
    assert "I stopped: “Read a.txt” ran 5 times" in again.text()
    assert "Stopped: " not in again.text()


def test_what_crow_says_of_a_cancelled_command_is_not_among_its_output(open_editor):
    crow = open_editor(script=reply(run("echo half of it; sleep 1000")) + DONE, permit=lambda request: chose("once"))
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_until(lambda: bool(crow.tool_calls()) and "half of it\n" in shown(crow), "its output")
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    for seen in (crow, loaded(open_editor, crow)):
        call = seen.the_call()
        printed, said = call["content"]
        assert printed["content"]["text"] == "```text\nhalf of it\n```"
        assert said == INTERRUPTED
        assert call["rawOutput"]["stdout"] == "half of it\n"
        assert call["rawOutput"]["exitCode"] is None


def shown(crow: Editor) -> str:
    content = crow.the_call().get("content") or [{}]
    return content[0].get("content", {}).get("text", "").removeprefix("```text\n")


def test_the_reason_of_a_rejection_is_shown_as_the_person_gave_it(open_editor):
    crow = open_editor(
        script=reply(call("write", path="a.txt", content="one\n")) + DONE,
        capabilities={"elicitation": {"form": {}}},
        permit=lambda request: chose("reject"),
        answers={"elicitation/create": lambda form: {"action": "accept", "content": {"reason": "not that way"}}},
    )
    crow.new_session()
    crow.prompt("go")
    assert crow.the_call()["content"][-1]["content"]["text"] == "Rejected: not that way"
    assert crow.the_call()["rawOutput"]["message"] == "Rejected: not that way"
    result = crow.model_requests()[-1]["messages"][-1]["text"]
    assert result == "Not done: permission was refused, with these words: not that way"
