"""A command in the background that ends between two turns: the person and the model learn of it."""

import pytest

from tests.support.editor import NOTICES, TERMINAL, Editor, chose
from tests.support.scripts import DONE, call, reply, run

COMMAND = "until [ -e stop ]; do sleep 0.05; done; exit 3"
END = "The background command b1 (until [ -e stop ]; do sleep 0.05; done; exit 3) has ended: exit code 3."


def opened(open_editor, *replies: str, capabilities=NOTICES) -> Editor:
    crow = open_editor(
        script=reply(run(COMMAND, background=True)) + "".join(replies) + DONE,
        capabilities=capabilities,
        permit=lambda request: chose("once"),
    )
    crow.new_session()
    crow.prompt("serve it")
    return crow


def last_prompt(crow: Editor) -> str:
    return str([part["text"] for part in crow.last_prompt()])


@pytest.mark.parametrize("capabilities", [NOTICES, NOTICES | TERMINAL], ids=["here", "in the client"])
def test_an_end_between_turns_is_told_to_both(open_editor, capabilities):
    crow = opened(open_editor, capabilities=capabilities)
    (crow.workspace / "stop").touch()
    crow.wait_until(lambda: bool(crow.notices), "the notice")
    assert crow.notices == [END]
    crow.prompt("and now?")
    assert END in last_prompt(crow)
    assert "and now?" in last_prompt(crow)
    crow.prompt("once more")
    assert END not in last_prompt(crow)


def test_a_client_without_notices_is_told_with_the_next_turn(open_editor):
    crow = opened(open_editor, capabilities={})
    (crow.workspace / "stop").touch()
    for _ in range(200):
        crow.prompt("how is it?")
        if END in crow.text():
            break
    assert f"> {END}" in crow.text()
    assert crow.text().count(END) == 1
    crow.prompt("and now?")  # it may have ended after the model was asked
    assert str(crow.model_requests()[-1]).count("has ended: exit code 3") == 1


def test_what_the_model_has_read_itself_is_not_told_again(open_editor):
    crow = opened(open_editor, reply(call("terminal_read", id="b1", wait=60), when="until it ends"))
    prompt = crow.start_prompt("wait until it ends")
    crow.wait_until(lambda: len(crow.tool_calls()) == 2, "the call")
    (crow.workspace / "stop").touch()
    prompt.answer()
    assert "[exit code 3; offset" in str(crow.model_requests()[-1])
    assert crow.notices == []
    crow.prompt("once more")
    assert last_prompt(crow) == "['once more']"


def test_one_that_is_stopped_is_told_by_its_stop_alone(open_editor):
    crow = opened(open_editor, reply(call("terminal_stop", id="b1"), when="stop it"))
    crow.prompt("stop it")
    crow.prompt("and now?")
    assert crow.notices == []
    assert last_prompt(crow) == "['and now?']"
