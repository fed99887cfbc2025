"""Typing into a command that Crow runs: who may, into which command, and what the command sees."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import RAW_OUTPUT, Editor, Json, chose
from tests.support.scripts import DONE, reply, run

TYPES = {"typing": True, "changes": True}
READS = 'read -p "name? " name; echo "hello $name"'


def opened(open_editor: Callable[..., Editor], *commands: str, **options: Any) -> Editor:
    script = "".join(reply(run(command)) for command in commands) + DONE
    options = {"capabilities": RAW_OUTPUT, "crow": TYPES, "permit": lambda _: chose("once"), **options}
    crow = open_editor(script=script, **options)
    crow.new_session()
    return crow


def with_input(request: Json) -> Json:
    return chose("once") | {"_meta": {"crow": {"input": "open"}}}


def open_input(crow: Editor, *, is_open: bool = True) -> Any:
    return crow.request("_crow/input/open", {"sessionId": crow.session_id, "open": is_open})


def type_in(crow: Editor, data: str, call: str = "t1-c1") -> Any:
    return crow.start("_crow/input", {"sessionId": crow.session_id, "toolCallId": call, "data": data})


def metas(crow: Editor, key: str) -> list[Json]:
    """What updates had under a key of `_meta`, in order."""
    return [update["_meta"][key] for update in crow.updates if key in update.get("_meta", {})]


def facts_in(crow: Editor) -> list[Json]:
    return metas(crow, "crow")


def written(crow: Editor) -> str:
    return "".join(piece["data"] for piece in metas(crow, "terminal_output"))


def wait_for(crow: Editor, text: str) -> None:
    crow.wait_until(lambda: text in written(crow), f"{text!r} on the terminal")


def told_to_model(crow: Editor) -> str:
    *_, result = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return result["text"]


@pytest.mark.parametrize("how", ["in the answer", "for the session"])
def test_a_person_answers_what_a_command_asks(open_editor, how):
    crow = opened(open_editor, READS)
    if how == "in the answer":
        crow.permit = with_input
    else:
        open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "name? ")
    assert type_in(crow, "Ada\r").answer() == {}
    turn.answer()
    assert "hello Ada" in told_to_model(crow)
    facts = facts_in(crow)
    assert facts[0] == {"input": "open"}
    assert "input" not in facts[-1]


def test_a_command_has_no_input_unless_it_is_opened(open_editor):
    crow = opened(open_editor, READS + "; while [ ! -e go ]; do sleep 0.02; done")
    turn = crow.start_prompt("go")
    wait_for(crow, "hello")
    assert type_in(crow, "Ada\r").error().code == -32602
    assert facts_in(crow) == []
    (crow.workspace / "go").touch()
    turn.answer()
    assert "Ada" not in told_to_model(crow)


def test_what_was_opened_for_the_session_can_be_closed_again(open_editor):
    crow = opened(open_editor, "test -t 0 && echo typed || echo deaf", "test -t 0 && echo typed || echo deaf")
    open_input(crow)
    open_input(crow, is_open=False)
    crow.prompt("go")
    assert written(crow) == "deaf\ndeaf\n"


def test_control_keys_are_signals_and_the_end_of_the_input(open_editor):
    endless = "trap 'echo caught; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    crow = opened(open_editor, endless, "cat; echo ended")
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "ready")
    type_in(crow, "\x03").answer()
    wait_for(crow, "caught")
    second = "t1-c2"
    crow.wait_until(lambda: "'input': 'open'" in str(crow.tool_calls().get(second)), "its input")
    type_in(crow, "one line\r\x04", second).answer()
    turn.answer()
    assert written(crow).endswith("one line\none line\nended\n")


def test_the_size_of_the_window_reaches_the_command(open_editor):
    crow = opened(open_editor, "echo ready; read x; stty size")
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "ready")
    params = {"sessionId": crow.session_id, "toolCallId": "t1-c1"}
    assert crow.request("_crow/input/size", params | {"columns": 91, "rows": 17}) == {}
    type_in(crow, "\r").answer()
    turn.answer()
    assert "17 91" in written(crow)
    assert crow.start("_crow/input/size", params | {"columns": 0, "rows": 17}).error().code == -32602


def test_a_program_asks_for_a_password_at_its_own_terminal_and_nobody_sees_it(open_editor):
    ask = "import getpass; print('length', len(getpass.getpass('secret: ')))"
    crow = opened(open_editor, f'python3 -c "{ask}"')
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "secret: ")
    type_in(crow, "hunter2hunter2\r").answer()
    turn.answer()
    assert "length 14" in told_to_model(crow)
    crow.close()
    kept = [path.read_bytes() for path in crow.home.rglob("*") if path.is_file()]
    assert not any(b"hunter2" in data for data in kept)


def test_keys_arrive_in_their_order_however_fast_they_come(open_editor):
    crow = opened(open_editor, 'stty -echo; echo ready; read line; echo "got $line"')
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "ready")
    for key in [*"abcdefghijklmnopqrstuvwxyz", "\r"]:
        type_in(crow, key)
    turn.answer()
    assert "got abcdefghijklmnopqrstuvwxyz" in written(crow)


def test_what_does_not_run_or_is_of_another_session_cannot_be_typed_into(open_editor):
    crow = opened(open_editor, READS)
    first = crow.session_id
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "name? ")
    second = crow.new_session()
    assert type_in(crow, "x\r").error().code == -32602, "the same call id in another session"
    assert crow.start("_crow/input", {"sessionId": "nope", "toolCallId": "t1-c1", "data": "x"}).error().code == -32002
    crow.session_id = first
    type_in(crow, "Ada\r").answer()
    turn.answer()
    assert type_in(crow, "too late\r").error().code == -32602
    assert second != first


def test_only_who_can_type_opens_an_input(open_editor):
    crow = opened(open_editor, "test -t 0 && echo typed || echo deaf", crow=None, permit=with_input)
    refused = crow.start("_crow/input/open", {"sessionId": crow.session_id, "open": True}).error()
    assert (refused.code, "typing" in refused.message) == (-32602, True)
    crow.prompt("go")
    assert written(crow) == "deaf\n"


def test_a_command_cannot_read_what_is_typed_into_another(open_editor):
    """Root can, as root can do anything."""
    crow = opened(open_editor, 'tty > place; stat -c %a "$(tty)"; read x')
    open_input(crow)
    turn = crow.start_prompt("go")
    wait_for(crow, "\n")
    assert re.search(r"^200$", written(crow), re.MULTILINE)
    type_in(crow, "\r").answer()
    turn.answer()


def test_who_joins_is_told_what_can_be_typed_into_and_may_type(tmp_path: Path):
    typing: Json = {"capabilities": RAW_OUTPUT, "crow": TYPES, "permit": lambda _: chose("once")}
    owner = Editor(tmp_path, script=reply(run(READS)) + DONE, client_info={"name": "owner"})
    owner.permit = lambda _: chose("once")
    page = Editor(tmp_path, client_info={"name": "page"}, **typing)
    late = Editor(tmp_path, client_info={"name": "late"}, **typing)
    try:
        session = owner.new_session()
        page.load_session(session)
        open_input(page)
        turn = owner.start_prompt("go")
        wait_for(page, "name? ")
        late.load_session(session)
        late.wait_until(lambda: "'input': 'open'" in str(late.updates), "the open input")
        wait_for(late, "name? ")
        late.take_part(owner)
        type_in(late, "Grace\r").answer()
        turn.answer()
        wait_for(page, "hello Grace")
        for editor in (late, page, owner):
            editor.close()
    finally:
        for editor in (late, page, owner):
            editor.kill()
