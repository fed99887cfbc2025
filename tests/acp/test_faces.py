"""What several clients do to one live session at the same time, each in a process of its own.

Who joins when, and files and questions in the smallest steps, is in `tests/session/test_faces.py`; the ends of
processes are in `test_attach.py`.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.databases import database
from tests.support.editor import DISMISSED, FILES, NOTICES, TERMINAL, Editor, ErrorAnswer, Json, Later, chose
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, call, edit, reply, run, say

ROUNDS = int(os.environ.get("CROW_FACES_ROUNDS", "12"))
GATE = "touch began; while [ ! -e go ]; do sleep 0.02; done; echo passed"
"""A command that waits until the test lets it go."""


class Editors:
    """Editors with one home and one workspace, each with an agent of its own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def start(self, name: str, script: str | None = None, **options: Any) -> Editor:
        options = {"capabilities": NOTICES, "client_info": {"name": name, "version": "1"}, **options}
        editor = Editor(self._folder, script=script, **options)
        self._stack.callback(editor.kill)
        return editor


@pytest.fixture
def editors(tmp_path: Path) -> Iterator[Editors]:
    with ExitStack() as stack:
        yield Editors(tmp_path, stack)


def once(request: Json) -> Json:
    return chose("once")


def answers(editor: Editor, session: str) -> list[Json]:
    """The answers to questions that are stored, in order."""
    with database(editor.home / "sessions.db") as connection:
        rows = connection.execute(
            "SELECT body FROM records WHERE tag = 'permission_answered' AND session ="
            " (SELECT key FROM sessions WHERE id = ?) ORDER BY seq",
            (session,),
        ).fetchall()
    return [json.loads(body) for (body,) in rows]


# --- questions


def test_of_two_answers_at_once_one_counts_and_is_what_is_done(editors):
    """One says yes to each question, the other no, as soon as they are asked."""
    writes = "".join(reply(call("write", path=f"{number}.txt", content="written\n")) for number in range(ROUNDS))
    yes = editors.start("yes", writes + DONE, permit=once, config="[limits]\nmodel_calls = 1000")
    session = yes.new_session()
    no = editors.start("no", permit=lambda _: chose("reject"))
    no.load_session(session)
    assert yes.prompt("write them all") == {"stopReason": "end_turn"}
    stored = answers(yes, session)
    assert len(stored) == ROUNDS
    for number, answer in enumerate(stored):
        assert answer["by"] == ("yes" if answer["allowed"] else "no")
        assert (yes.workspace / f"{number}.txt").exists() is answer["allowed"]
    no.wait_until(lambda: len(no.tool_calls()) == ROUNDS, "all calls")
    for watcher, name in ((yes, "yes"), (no, "no")):
        told = [notice for notice in watcher.notices if " in " in notice]
        assert len(told) == sum(answer["by"] != name for answer in stored)
    no.close()
    yes.close()


def test_a_question_outlives_the_client_that_caused_it(editors):
    owner = editors.start("owner", reply(call("write", path="a.txt", content="written\n")) + DONE, permit=never)
    session = owner.new_session()
    asker = editors.start("asker", permit=never)
    asker.load_session(session)
    answerer = editors.start("answerer", permit=once)
    asker.start_prompt("write it")
    asker.wait_for_call("session/request_permission")
    asker.kill()
    answerer.load_session(session)
    answerer.wait_until(lambda: bool(answerer.tool_calls()) and answerer.the_call()["status"] == "completed", "the end")
    assert (owner.workspace / "a.txt").read_text() == "written\n"
    assert [answer["by"] for answer in answers(owner, session)] == ["answerer"]
    answerer.close()
    owner.close()


def answer_with(answer: Any) -> Any:
    if isinstance(answer, ErrorAnswer):
        raise answer
    return answer


def never(request: Json) -> Any:
    """An answer that does not come."""
    return Later(lambda: threading.Event().wait(DEADLINE) and DISMISSED)


@pytest.mark.parametrize(
    "no_answer",
    [DISMISSED, chose("no such option"), ErrorAnswer(-32603, "it broke")],
    ids=["dismissed", "unknown option", "error"],
)
def test_what_is_no_answer_leaves_the_question_to_the_other(editors, no_answer):
    owner = editors.start("owner", reply(call("write", path="a.txt", content="written\n")) + DONE)
    owner.permit = lambda _: answer_with(no_answer)
    session = owner.new_session()
    release = threading.Event()
    other = editors.start("other", permit=lambda _: Later(lambda: release.wait(DEADLINE) and chose("once")))
    other.load_session(session)
    turn = owner.start_prompt("write it")
    owner.wait_for_call("session/request_permission")
    other.wait_for_call("session/request_permission")
    assert not turn.done
    release.set()
    assert turn.answer() == {"stopReason": "end_turn"}
    assert (owner.workspace / "a.txt").read_text() == "written\n"
    other.close()
    owner.close()


def test_a_yes_that_comes_after_a_change_to_plan_elsewhere_does_nothing(editors):
    release = threading.Event()
    owner = editors.start(
        "owner",
        reply(call("write", path="a.txt", content="written\n")) + DONE,
        permit=lambda _: Later(lambda: release.wait(DEADLINE) and chose("once")),
    )
    session = owner.new_session()
    other = editors.start("other", permit=never)
    other.load_session(session)
    turn = owner.start_prompt("write it")
    owner.wait_for_call("session/request_permission")
    other.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
    release.set()
    turn.answer()
    assert not (owner.workspace / "a.txt").exists()
    assert owner.the_call()["status"] == "failed"
    other.close()
    owner.close()


# --- prompts, cancels, the end


def test_of_two_prompts_at_once_one_is_refused_and_the_winner_named(editors):
    owner = editors.start("owner", reply(run(GATE)) + DONE, permit=once)
    session = owner.new_session()
    other = editors.start("other", permit=once)
    other.load_session(session)
    winner = other.start_prompt("mine")
    other.wait_until(lambda: bool(other.tool_calls()), "the turn has begun")
    refused = owner.start_prompt("no, mine").error()
    assert refused.code == -32600
    assert "other" in refused.message
    (owner.workspace / "go").touch()
    assert winner.answer() == {"stopReason": "end_turn"}
    other.close()
    owner.close()


def test_whoever_watches_may_cancel(editors):
    owner = editors.start("owner", reply(run(GATE)) + DONE, permit=once)
    session = owner.new_session()
    other = editors.start("other", permit=once)
    other.load_session(session)
    turn = owner.start_prompt("go")
    eventually((owner.workspace / "began").exists, "the command has begun")
    other.cancel()
    assert turn.answer() == {"stopReason": "cancelled"}
    other.wait_until(lambda: other.the_call()["status"] == "failed", "the call's end")
    other.close()
    owner.close()


def test_only_the_last_that_closes_ends_the_turn(editors):
    owner = editors.start("owner", reply(say("Begun. "), run(GATE)) + reply(say("Ended.")) + DONE, permit=once)
    session = owner.new_session()
    other = editors.start("other", permit=once)
    other.load_session(session)
    other.start_prompt("go")
    eventually((owner.workspace / "began").exists, "the command has begun")
    refused = owner.start("session/delete", {"sessionId": session}).error()
    assert "other" in refused.message
    fork = owner.request("session/fork", {"sessionId": session, "cwd": str(owner.workspace), "mcpServers": []})
    assert fork["sessionId"] != session
    other.load_session(session)  # once more, in the middle of its own turn
    assert owner.request("session/close", {"sessionId": session}) == {}
    assert owner.start("session/close", {"sessionId": session}).error().code == -32002
    (owner.workspace / "go").touch()
    other.wait_for_text("Ended.")
    assert other.request("session/close", {"sessionId": session}) == {}
    stranger = editors.start("stranger")
    assert stranger.start("session/close", {"sessionId": session}).error().code == -32002
    stranger.load_session(session)
    assert stranger.text().split() == ["Begun.", "Ended."]
    for editor in (stranger, other, owner):
        editor.close()


def test_what_one_chooses_reaches_all(editors):
    owner = editors.start("owner", DONE)
    session = owner.new_session()
    other = editors.start("other")
    other.load_session(session)
    other.request("session/set_mode", {"sessionId": session, "modeId": "edit"})
    owner.wait_until(
        lambda: any(update.get("currentModeId") == "edit" for update in owner.all_updates_of(session)), "the mode"
    )
    other.prompt("/rename Our house")
    owner.wait_until(
        lambda: any(update.get("title") == "Our house" for update in owner.all_updates_of(session)), "the title"
    )
    other.close()
    owner.close()


def test_the_state_of_a_session_is_told_to_clients_that_know_it(editors):
    owner = editors.start("owner", reply(call("write", path="a.txt", content="w\n")) + DONE, permit=once)
    session = owner.new_session()
    watcher = editors.start("watcher", initialize=False, permit=never)
    watcher.request(
        "initialize",
        {
            "protocolVersion": 1,
            "clientInfo": {"name": "watcher", "version": "1"},
            "_meta": {"crow": {"state": True}},
        },
    )
    watcher.load_session(session)
    owner.prompt("write it")

    def states() -> list[Json]:
        return [message["params"] for message in watcher.received if message.get("method") == "_crow/state"]

    watcher.wait_until(lambda: [state["state"] for state in states()][-1:] == ["idle"] and len(states()) > 3, "its end")
    assert [state["state"] for state in states()] == ["idle", "running", "asks", "running", "idle"]
    assert states()[0] == {"sessionId": session, "state": "idle", "faces": ["owner", "watcher"]}
    assert states()[1] == {
        "sessionId": session,
        "state": "running",
        "turn": "t1",
        "by": "owner",
        "faces": ["owner", "watcher"],
    }
    assert states()[-1]["ended"] == {"turn": "t1", "stopReason": "end_turn"}
    watcher.close()
    owner.close()


# --- one who does not read


def test_one_who_does_not_read_holds_up_nobody_and_misses_nothing(editors):
    words = " ".join(f"word-{number}" for number in range(50_000))
    rounds = "".join(
        reply(say(words), run(f"seq {number}000000 {number}100000 | head -c 2000000")) for number in range(8)
    )
    script, window = rounds + reply(say("Ended.")) + DONE, "context_window = 100000000"
    owner = editors.start("owner", script, permit=once, config=window)
    session = owner.new_session()
    phone = editors.start("phone", permit=never)
    phone.load_session(session)
    other = editors.start("other", permit=never)
    other.load_session(session)
    phone.stop_reading()
    assert owner.prompt("go") == {"stopReason": "end_turn"}
    other.wait_for_text("Ended.")
    assert other.text() == owner.text()
    phone.read_on()
    phone.wait_for_text("Ended.")
    assert phone.text() == owner.text()
    assert [call["status"] for call in phone.tool_calls().values()] == ["completed"] * 8
    for editor in (phone, other, owner):
        editor.close()


# --- files and terminals


def test_unsaved_text_in_another_editor_blocks_a_change_until_it_is_saved(editors):
    owner = editors.start(
        "Zed", reply(edit("a.txt", "one", "two")) + reply(say("No.")) + reply(edit("a.txt", "one", "two")) + DONE,
        permit=once, capabilities=NOTICES | FILES,
    )  # fmt: skip
    path = str(owner.workspace / "a.txt")
    Path(path).write_text("one\n")
    session = owner.new_session()
    other = editors.start("Neovim", permit=once, capabilities=NOTICES | FILES)
    other.load_session(session)
    owner.files[path] = "one\n"
    other.files[path] = "one\nunsaved\n"
    owner.prompt("change it")
    assert owner.the_call()["status"] == "failed"
    assert "Neovim" in str(owner.the_call()["content"])
    assert (Path(path).read_text(), owner.files[path], other.files[path]) == ("one\n", "one\n", "one\nunsaved\n")
    Path(path).write_text("one\nunsaved\n")
    owner.files[path] = "one\nunsaved\n"
    owner.prompt("again")
    assert owner.files[path] == "two\nunsaved\n"
    other.close()
    owner.close()


def test_a_command_in_one_clients_terminal_is_text_elsewhere_and_ends_with_that_client(editors):
    host = editors.start("host", reply(run(GATE)) + reply(run("echo here")) + DONE, permit=once)
    session = host.new_session()
    zed = editors.start("Zed", permit=once, capabilities=NOTICES | TERMINAL)
    (host.home / "terminals.json").write_text('{"version": 1, "clients": {"Zed 1": true}}')
    zed.load_session(session)
    host.request("session/close", {"sessionId": session})  # from now on Zed is alone
    zed.start_prompt("go")
    zed.wait_for_call("terminal/create")
    browser = editors.start("browser", permit=once)
    browser.load_session(session)
    assert browser.the_call()["status"] == "in_progress"
    browser.take_part(zed)
    zed.kill()
    browser.wait_for_text("Done.")
    first, second = browser.tool_calls().values()
    assert first["status"] == "failed"
    assert "gone" in str(first)
    assert second["status"] == "completed"
    assert "here" in str(second["content"])
    shown = [block for update in browser.updates for block in update.get("content") or () if "content" in update]
    assert not [block for block in shown if isinstance(block, dict) and block.get("type") == "terminal"]
    browser.close()
    host.close()


def test_a_command_is_as_wide_as_the_client_shows_it_whose_prompt_it_is(editors):
    turn = reply(run("stty size <&1")) + reply(say("So wide."))
    owner = editors.start("owner", turn * 6, environment={"CROW_MODE": "auto"})
    session = owner.new_session()
    watcher = editors.start("watcher", environment={"CROW_MODE": "auto"})
    watcher.load_session(session)

    def width_for(editor: Editor, meta: Any) -> str:
        before = set(owner.tool_calls())
        editor.request("session/prompt", {**editor.prompt_params("how wide?", session=session), "_meta": meta})
        [new] = [call for id, call in owner.tool_calls().items() if id not in before]
        [shown] = new["content"]
        return shown["content"]["text"].split()[2]  # behind the fence and the number of lines

    assert [width_for(owner, {"crow": {"columns": 97}}), width_for(watcher, {"crow": {"columns": 81}})] == ["97", "81"]
    assert width_for(watcher, {"crow": {"columns": 30}}) == "72", "the model reads it too"
    for nothing in (None, {"crow": {"columns": -7}}, {"crow": "x", "columns": 80}):
        assert width_for(watcher, nothing) == "120"
    watcher.close()
    owner.close()
