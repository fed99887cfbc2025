"""No turn is silent: what is waited for is named, with its time, through whatever the client shows."""

import threading

from tests.support.editor import NOTICES, Later, chose
from tests.support.provider import Provider
from tests.support.scripts import DONE, call, reply, run

IMPATIENT = {"CROW_PATIENCE": "0.05"}


def test_a_model_that_does_not_answer_is_named_in_a_notice(open_editor):
    with Provider() as provider:
        provider.openai.keep_silent()
        crow = open_editor(base_url=provider.openai.url, capabilities=NOTICES, environment=IMPATIENT)
        crow.new_session()
        turn = crow.start_prompt("Hi.")
        named = "Waiting for the model's answer"
        crow.wait_until(lambda: sum(notice.startswith(named) for notice in crow.notices) >= 3, "three notices")
        crow.cancel()
        assert turn.answer() == {"stopReason": "cancelled"}


def test_a_person_who_takes_their_time_is_told_nothing(open_editor):
    told = []

    def decide():
        before = len(crow.notices)  # on a busy machine looking at the file may have taken longer than the patience, too
        threading.Event().wait(0.5)  # ten times the patience
        told.append(crow.notices[before:])
        return chose("once")

    crow = open_editor(
        script=reply(call("write", path="a.txt", content="x\n")) + DONE,
        capabilities=NOTICES,
        environment=IMPATIENT,
        permit=lambda request: Later(decide),
    )
    crow.new_session()
    assert crow.prompt("Write.") == {"stopReason": "end_turn"}
    assert told == [[]]
    assert not any("your" in notice for notice in crow.notices)
    assert (crow.workspace / "a.txt").read_text() == "x\n"


def test_a_command_that_prints_nothing_is_named(open_editor):
    crow = open_editor(
        script=reply(run("while ! test -e go; do sleep 0.05; done")) + DONE,
        capabilities=NOTICES,
        environment=IMPATIENT,
        permit=lambda request: chose("once"),
    )
    crow.new_session()
    turn = crow.start_prompt("Wait.")
    crow.wait_until(lambda: any("while ! test -e go" in notice for notice in crow.notices), "the notice")
    (crow.workspace / "go").touch()
    assert turn.answer() == {"stopReason": "end_turn"}


def test_with_the_patience_of_a_person_a_quick_turn_says_nothing(open_editor):
    crow = open_editor(script=reply(call("read", path="a.txt")) + DONE, capabilities=NOTICES)
    crow.new_session()
    crow.prompt("Read.")
    assert crow.notices == []
