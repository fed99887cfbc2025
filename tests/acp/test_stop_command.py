"""`_crow/stop`: the person ends one command, and the turn goes on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.editor import TERMINAL, Editor, chose
from tests.support.scripts import DONE, reply, run

ENDLESS = "echo begun; sleep 1000"


def opened(open_editor: Callable[..., Editor], *calls: str, **options: Any) -> Editor:
    crow = open_editor(script=reply(*calls) + DONE, permit=lambda _: chose("once"), **options)
    crow.new_session()
    return crow


def stop(crow: Editor, call: str = "t1-c1") -> Any:
    return crow.start("_crow/stop", {"sessionId": crow.session_id, "toolCallId": call})


def told_to_model(crow: Editor) -> str:
    *_, result = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return result["text"]


def test_one_command_is_stopped_and_the_turn_goes_on(open_editor):
    crow = opened(open_editor, run(ENDLESS))
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: "text\\nbegun" in str(crow.tool_calls()), "the command")
    assert stop(crow).answer() == {}
    assert turn.answer()["stopReason"] == "end_turn"
    assert told_to_model(crow) == "begun\n[stopped by the user]"
    assert crow.the_call()["status"] == "failed"
    assert crow.text() == "Done."


def test_a_command_in_the_background_is_stopped_and_both_are_told(open_editor):
    crow = opened(open_editor, run(ENDLESS, background=True))
    crow.prompt("go")
    assert stop(crow).answer() == {}
    crow.wait_until(lambda: "stopped" in crow.the_call()["title"], "its end")
    crow.prompt("and now?")
    assert "has ended: stopped by the user" in str(crow.model_requests()[-1]["messages"])
    assert stop(crow).error().code == -32602


def test_a_command_in_the_clients_own_terminal_can_be_stopped_too(open_editor):
    crow = opened(open_editor, run(ENDLESS), capabilities=TERMINAL)
    turn = crow.start_prompt("go")
    crow.wait_for_call("terminal/wait_for_exit")
    assert stop(crow).answer() == {}
    turn.answer()
    assert "[stopped by the user]" in told_to_model(crow)


def test_what_does_not_run_cannot_be_stopped(open_editor):
    crow = opened(open_editor, run("true"))
    crow.prompt("go")
    for call in ("t1-c1", "t9-c9", ""):
        assert stop(crow, call).error().code == -32602
    assert crow.start("_crow/stop", {"sessionId": "nope", "toolCallId": "t1-c1"}).error().code == -32002


def test_a_client_of_another_process_can_stop_it(tmp_path: Path):
    owner = Editor(tmp_path, script=reply(run(ENDLESS)) + DONE, client_info={"name": "owner"})
    owner.permit = lambda _: chose("once")
    other = Editor(tmp_path, client_info={"name": "other"}, permit=lambda _: chose("once"))
    try:
        other.load_session(owner.new_session())
        turn = owner.start_prompt("go")
        other.wait_until(lambda: "text\\nbegun" in str(other.tool_calls()), "the command")
        assert stop(other).answer() == {}
        assert turn.answer()["stopReason"] == "end_turn"
        other.close()
        owner.close()
    finally:
        other.kill()
        owner.kill()
