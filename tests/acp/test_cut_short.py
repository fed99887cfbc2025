"""What a person sees of calls that were cut short, refused or stopped: live, and when the session is loaded."""

import pytest

from tests.support.editor import SILENCE, Editor
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
