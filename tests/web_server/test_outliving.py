"""`crow web` as an owner that outlives its clients: turns go on and questions stay open while nobody is there."""

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from crow.live.host import Host
from tests.support.editor import DISMISSED, NOTICES, Editor, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, edit, reply, run, say
from tests.support.timers import timers_left
from tests.support.web import Web, WebSocket, crow_with_page, serving

EDIT = reply(say("I change it."), edit("a.txt", "one", "two")) + DONE
WAIT = "until [ -e go ]; do sleep 0.02; done; echo went"
WAITS = reply(say("I wait."), run(WAIT)) + DONE


def client(web: Web, token: str) -> WebSocket:
    page = web.connect(token)
    page.initialize()
    return page


def state(page: WebSocket, session: str) -> Any:
    return page.request("session/status", {"sessionId": session})["_meta"]["crow"]["state"]


def test_a_question_stays_open_until_somebody_comes(tmp_path: Path):
    with serving(tmp_path, script=EDIT) as web:
        (web.workspace / "a.txt").write_text("one\n")
        token = web.token()
        with client(web, token) as first:
            session = first.new_session(web.workspace)
            first.start_prompt("change it")
            first.wait_for_question()
        with client(web, token) as watcher:
            eventually(lambda: state(watcher, session) == "asks")
            assert watcher.request("session/status", {"sessionId": session})["_meta"]["crow"]["clients"] == []
        with client(web, token) as second:
            second.load(session, web.workspace)
            second.reply(second.wait_for_question(), chose("once"))
            second.wait_for(lambda message: message.get("method") == "_crow/state" and "ended" in message["params"])
            assert (web.workspace / "a.txt").read_text() == "two\n"
            assert second.text().endswith("Done.")


def test_a_question_does_not_wait_for_ever(tmp_path: Path):
    changes = "import crow.live.host as h; h.Host._question_timeout = lambda self, settings: 0.3"
    with serving(tmp_path, script=EDIT, program=crow_with_page(tmp_path, changes)) as web:
        (web.workspace / "a.txt").write_text("one\n")
        token = web.token()
        with client(web, token) as first:
            session = first.new_session(web.workspace)
            first.start_prompt("change it")
            first.wait_for_question()
        with client(web, token) as second:
            eventually(lambda: state(second, session) == "idle")
            second.load(session, web.workspace)
            assert second.text().endswith("Done.")
            (call,) = [one for one in second.updates() if one["sessionUpdate"] == "tool_call"]
            assert call["status"] == "failed"
        assert (web.workspace / "a.txt").read_text() == "one\n"


def test_a_question_that_was_dismissed_by_who_is_there_is_a_no(tmp_path: Path):
    with serving(tmp_path, script=EDIT) as web:
        (web.workspace / "a.txt").write_text("one\n")
        with client(web, web.token()) as page:
            page.new_session(web.workspace)
            turn = page.start_prompt("change it")
            page.reply(page.wait_for_question(), DISMISSED)
            page.answer(turn)
        assert (web.workspace / "a.txt").read_text() == "one\n"


def test_a_turn_goes_on_without_anybody(tmp_path: Path):
    with serving(tmp_path, script=WAITS) as web:
        token = web.token()
        with client(web, token) as first:
            session = first.new_session(web.workspace)
            first.start_prompt("wait")
            first.reply(first.wait_for_question(), chose("once"))
            first.wait_for(lambda message: "in_progress" in str(message))
        with client(web, token) as second:
            assert state(second, session) == "running"
            (web.workspace / "go").touch()
            eventually(lambda: state(second, session) == "idle")
            second.load(session, web.workspace)
            assert second.text() == "I wait.\n\nDone."
            assert "went" in str(second.updates())


def test_a_page_that_comes_back_in_mid_turn_joins_it(tmp_path: Path):
    """Also on the same connection: nothing is cancelled by a load."""
    with serving(tmp_path, script=WAITS) as web:
        token = web.token()
        with client(web, token) as page:
            session = page.new_session(web.workspace)
            turn = page.start_prompt("wait")
            page.reply(page.wait_for_question(), chose("once"))
            page.wait_for(lambda message: "in_progress" in str(message))
            page.load(session, web.workspace)
            (web.workspace / "go").touch()
            assert page.answer(turn)["stopReason"] == "end_turn"
            assert page.text().endswith("Done.")


def test_closing_a_session_does_not_end_what_runs_in_it(tmp_path: Path):
    with serving(tmp_path, script=WAITS) as web:
        token = web.token()
        with client(web, token) as page, client(web, token) as other:
            session = page.new_session(web.workspace)
            page.start_prompt("wait")
            page.reply(page.wait_for_question(), chose("once"))
            page.wait_for(lambda message: "in_progress" in str(message))
            page.request("session/close", {"sessionId": session})
            assert state(other, session) == "running"
            (web.workspace / "go").touch()
            eventually(lambda: state(other, session) == "idle")
            other.load(session, web.workspace)
            other.request("session/close", {"sessionId": session})
            assert state(other, session) == "saved", "nothing ran in it"


def test_an_idle_session_ends_in_time(tmp_path: Path):
    changes = "import crow.live.host as h; h.IDLE_LIFETIME = 0.3"
    background = reply(run(WAIT, background=True)) + DONE
    with serving(tmp_path, script=background, program=crow_with_page(tmp_path, changes)) as web:
        token = web.token()
        with client(web, token) as watcher:
            with client(web, token) as page:
                session = page.new_session(web.workspace)
                turn = page.start_prompt("in the background")
                page.reply(page.wait_for_question(), chose("once"))
                page.answer(turn)
            for _ in range(5):
                assert state(watcher, session) == "idle", "a command runs in it"
            (web.workspace / "go").touch()
            eventually(lambda: state(watcher, session) == "saved")


def test_a_session_that_is_left_again_has_all_of_its_time(tmp_path: Path):
    """The clock that ran when it was left before does not end it sooner."""

    class Left:
        id, is_at_work, faces = "s", False, SimpleNamespace(present=[], leave=lambda _: None)

    session: Any = Left()

    async def leave_twice() -> None:
        host = Host(str(tmp_path), {}, outlives_clients=True)
        host._live["s"] = session
        face: Any = None
        assert host.leave(session, face) is None
        assert host.leave(session, face) is None

    assert len(timers_left(leave_twice)) == 1


def test_a_session_of_an_editor_is_opened_and_joined_in_the_page(tmp_path: Path):
    with serving(tmp_path, script=EDIT, config='[faces]\nhome = "here"\n') as web:
        (web.workspace / "a.txt").write_text("one\n")
        editor = Editor(tmp_path, capabilities=NOTICES)
        try:
            session = editor.new_session()
            turn = editor.start_prompt("change it")
            editor.wait_until(lambda: bool(editor.permissions), "the question")
            with client(web, web.token()) as page:
                page.load(session, web.workspace)
                assert turn.answer()["stopReason"] == "end_turn"
                assert page.text().endswith("Done.")
        finally:
            editor.close()
        with client(web, web.token()) as page:
            eventually(lambda: state(page, session) == "saved")
            page.load(session, web.workspace)
            assert page.text() == "I change it.\n\nDone."


def test_told_to_end_it_finishes_what_an_editor_watches(tmp_path: Path):
    with serving(tmp_path, script=WAITS) as web:
        token = web.token()
        with client(web, token) as page:
            session = page.new_session(web.workspace)
            page.start_prompt("wait")
            page.reply(page.wait_for_question(), chose("once"))
            page.wait_for(lambda message: "in_progress" in str(message))
            editor = Editor(tmp_path, capabilities=NOTICES)
            try:
                editor.load_session(session)
                web.process.send_signal(signal.SIGTERM)
                assert page.until_closed() == 1001
                (web.workspace / "go").touch()
                assert web.end(0) == 128 + signal.SIGTERM
                editor.wait_until(lambda: editor.text().endswith("Done."), "the end")
                assert editor.prompt("more")["stopReason"] == "end_turn"
            finally:
                editor.close()
