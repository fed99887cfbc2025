"""New sessions of an editor that live in `crow web`: seen and answered there, in the editor's environment, and going on
when the editor is closed. Real processes throughout: an editor on pipes, a server, a client on a WebSocket.
"""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import NOTICES, SILENCE, Editor, ErrorAnswer, chose, clean_environment
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, edit, reply, run, say
from tests.support.warm import CROW, warm
from tests.support.web import Web, WebSocket, serving

WAIT = "until [ -e go ]; do sleep 0.02; done; echo went"
SIDE_BY_SIDE = reply(say("I change it."), edit("a.txt", "one", "two")) + reply(say("I wait."), run(WAIT)) + DONE


@contextmanager
def editing(folder: Path, **options: Any) -> Iterator[Editor]:
    editor = Editor(folder, capabilities=NOTICES, client_info={"name": "Zed", "version": "1"}, **options)
    try:
        yield editor
    finally:
        editor.kill()


def where(editor: Editor) -> int:
    """The process in which the editor's session lives."""
    return editor.request("session/status", {"sessionId": editor.session_id})["_meta"]["crow"]["process"]


def joined(web: Web, session: str, stack: ExitStack) -> WebSocket:
    page = stack.enter_context(web.connect(web.token()))
    page.initialize()
    page.load(session, web.workspace)
    return page


def is_running(page: WebSocket) -> bool:
    return page.request("session/status", {"sessionId": page.session_id})["_meta"]["crow"]["state"] != "idle"


def test_editor_and_page_side_by_side_and_the_turn_outlives_the_editor(tmp_path: Path):
    with ExitStack() as stack:
        web = stack.enter_context(serving(tmp_path, script=SIDE_BY_SIDE))
        (web.workspace / "a.txt").write_text("one\n")
        editor = stack.enter_context(editing(tmp_path, permit=lambda request: SILENCE))
        session = editor.new_session()
        assert where(editor) == web.process.pid
        turn = editor.start_prompt("change it, then wait")
        page = joined(web, session, stack)
        question = page.wait_for_question()
        assert page.text() == editor.text() == "I change it."
        assert "".join(one["content"]["text"] for one in page.updates() if "user" in one["sessionUpdate"])
        editor.wait_until(lambda: bool(editor.permissions), "the question in the editor")
        page.reply(question, chose("once"))
        said = "Allowed in Browser"
        editor.wait_until(lambda: said in str(editor.received), "who answered")
        page.reply(page.wait_for_question(), chose("once"))
        page.wait_for(lambda message: "in_progress" in str(message))
        assert not turn.done
        editor.kill()
        eventually(lambda: page.states()[-1]["faces"] == ["Browser"] or page.next_message() is None)
        assert is_running(page), "nobody ended it"
        (web.workspace / "go").touch()
        page.wait_for(lambda message: message.get("method") == "_crow/state" and "ended" in message["params"])
        assert page.text().endswith("Done.")
        assert (web.workspace / "a.txt").read_text() == "two\n"


def test_without_a_crow_web_a_session_lives_with_its_editor(tmp_path: Path):
    with editing(tmp_path, script=DONE) as editor:
        editor.new_session()
        assert where(editor) not in (0, None)
        assert editor.prompt("hello")["stopReason"] == "end_turn"


def test_the_configuration_keeps_sessions_with_their_editor(tmp_path: Path):
    with serving(tmp_path, script=DONE, config='[faces]\nhome = "here"\n') as web, editing(tmp_path) as editor:
        editor.new_session()
        assert where(editor) != web.process.pid


def test_commands_see_the_editors_environment(tmp_path: Path):
    script = reply(run('echo "[$OF_THE_EDITOR]" "[$OF_THE_WEB]" "[$NOT_TEXT]"')) + DONE
    environment = {"OF_THE_EDITOR": "yes", "NOT_TEXT": "caf\udce9"}
    with (
        serving(tmp_path, script=script, environment={"OF_THE_WEB": "yes"}) as web,
        editing(tmp_path, environment=environment, permit=lambda request: chose("once")) as editor,
    ):
        editor.new_session()
        assert where(editor) == web.process.pid
        editor.prompt("print them")
        shown = str(editor.updates)
        assert "[yes] []" in shown
        assert "[yes] [yes]" not in shown


def test_a_crow_web_that_was_killed_is_not_waited_for(tmp_path: Path):
    with serving(tmp_path, script=DONE) as web:
        web.end(signal.SIGKILL)
        assert (web.home / "web.json").exists()
        with editing(tmp_path) as editor:
            editor.new_session()
            assert where(editor) != web.process.pid
            assert editor.prompt("hello")["stopReason"] == "end_turn"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_when_crow_web_ends_the_editor_goes_on(number: signal.Signals, tmp_path: Path):
    with serving(tmp_path, script=DONE) as web, editing(tmp_path) as editor:
        editor.new_session()
        assert where(editor) == web.process.pid
        editor.prompt("hello")
        web.end(number)
        assert editor.prompt("again")["stopReason"] == "end_turn"
        assert where(editor) != web.process.pid


def test_what_crow_web_refuses_is_answered_here(tmp_path: Path):
    with serving(tmp_path, script=DONE), editing(tmp_path) as editor:
        with pytest.raises(ErrorAnswer) as refused:
            editor.new_session(tmp_path / "nowhere")
        assert refused.value.code == -32602
        assert "no folder" in refused.value.message
        editor.new_session()
        assert editor.prompt("hello")["stopReason"] == "end_turn"


def test_a_run_in_a_script_lives_by_itself(tmp_path: Path):
    with serving(tmp_path, script=reply(say("Hello.")) + DONE) as web, web.connect(web.token()) as page:
        page.initialize()
        done = subprocess.run(
            [*warm(CROW), "run", "hello"],
            cwd=web.workspace,
            env=clean_environment(web.home, tmp_path),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        assert (done.returncode, done.stdout.strip()) == (0, "Hello.")
        (entry,) = page.request("session/list", {})["sessions"]
        status = page.request("session/status", {"sessionId": entry["sessionId"]})
        assert status["_meta"]["crow"]["state"] == "saved", "else it would live on in crow web"
