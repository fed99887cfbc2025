"""`crow sessions` on homes that real conversations have filled."""

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from crow.cli.sessions import ListedSession, short_ids, table
from tests.config.support import CROW, Terminal, crow
from tests.support.editor import SILENCE, Editor, ErrorAnswer, chose
from tests.support.patience import DEADLINE
from tests.support.scripts import DONE, edit, reply, run, say

SCRIPT = reply(say("Let me look."), edit("a.txt", "one", "two"), run("echo printed")) + DONE


@contextmanager
def conversation(folder: Path, script: str | None = SCRIPT) -> Iterator[Editor]:
    editor = Editor(folder, script=script, permit=lambda request: chose("once"))
    (editor.workspace / "a.txt").write_text("one\n")
    try:
        yield editor
        editor.close()
    finally:
        editor.kill()


def sessions(folder: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return crow(folder, "sessions", *arguments, CROW_HOME=str(folder / "home"), **more)


def one_session(folder: Path, prompt: str = "change it") -> str:
    with conversation(folder) as editor:
        session = editor.new_session()
        editor.prompt(prompt)
    return session


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """One line for the person, and nothing else."""
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("crow: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


# --- list


def test_without_a_store_there_are_none_and_nothing_is_made(tmp_path):
    assert said(sessions(tmp_path, "list")).count("\n") == 1
    assert said(sessions(tmp_path, "list", "--json")) == "[]\n"
    for action in (("show", "x"), ("export", "x"), ("delete", "x", "--yes")):
        assert complaint(sessions(tmp_path, *action))
    assert list(tmp_path.iterdir()) == []


def test_the_list_is_newest_first_and_its_ids_can_be_typed(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with conversation(tmp_path, DONE) as editor:
        first = editor.new_session()
        editor.prompt("the first one")
        second = editor.new_session(other)
        editor.prompt("the second\x1b[31m one")
        editor.new_session()  # nothing is said in it
    lines = said(sessions(tmp_path, "list")).splitlines()
    assert [line.split("  ")[-1].strip() for line in lines] == ["the second⟨U+001B⟩[31m one", "the first one"]
    assert "~/other" in lines[0]
    for line, session in zip(lines, (second, first), strict=True):
        id = line.split()[0]
        assert session.startswith(id)
        assert f"- Session: `{session}`" in said(sessions(tmp_path, "show", id))
    listed = json.loads(said(sessions(tmp_path, "list", "--json")))
    assert [entry["id"] for entry in listed] == [second, first]
    assert listed[0]["cwd"] == str(other)


def test_the_list_of_one_folder_and_of_the_last_few(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    with conversation(tmp_path, DONE) as editor:
        for number in range(22):
            editor.new_session(other if number == 3 else None)
            editor.prompt(f"number {number}")
    link = tmp_path / "link"
    link.symlink_to(other)
    for folder in (other, link):
        assert said(sessions(tmp_path, "list", "--cwd", str(folder))).endswith("  number 3\n")
    assert said(sessions(tmp_path, "list", "--cwd", "/", "--json")) == "[]\n"
    few = sessions(tmp_path, "list", "--limit", "2")
    assert [line.split("  ")[-1] for line in few.stdout.splitlines()] == ["number 21", "number 20"]
    assert few.stderr == "20 more: crow sessions list --all\n"
    assert len(sessions(tmp_path, "list").stdout.splitlines()) == 20
    assert len(said(sessions(tmp_path, "list", "--all")).splitlines()) == 22


def test_short_ids_are_beginnings_that_no_other_id_has():
    ids = ["019a00000000-aa", "019a00000000-ab", "019a00000001-aa", "29", "3" * 20]
    assert short_ids(ids) == {
        "019a00000000-aa": "019a00000000-aa",
        "019a00000000-ab": "019a00000000-ab",
        "019a00000001-aa": "019a00000001",
        "29": "29",
        "3" * 20: "3" * 8,
    }
    assert short_ids([]) == {}


def test_a_line_fits_the_terminal(tmp_path):
    one_session(tmp_path, "a long title " * 20)
    with Terminal(tmp_path, "sessions", "list", CROW_HOME=str(tmp_path / "home"), COLUMNS="60") as terminal:
        assert terminal.ended() == 0
        [line] = terminal.output.splitlines()
    assert len(line) <= 60
    assert line.endswith("…")


@pytest.mark.rule("R164")
def test_the_list_says_what_each_session_does_and_where(tmp_path):
    with conversation(tmp_path, reply(run("true"), when="ask") + DONE) as editor:
        editor.permit = lambda request: SILENCE
        saved, idle, asks = (editor.new_session() for _ in range(3))
        for session, prompt in ((saved, "a saved one"), (idle, "an idle one")):
            editor.prompt(prompt, session=session)
        editor.request("session/close", {"sessionId": saved})
        editor.start_prompt("ask me", session=asks)
        editor.wait_for_call("session/request_permission")
        other = Editor(tmp_path, client_info={"name": "other", "version": "1"})
        other.load_session(idle)
        try:
            lines = said(sessions(tmp_path, COLUMNS="200")).splitlines()
            columns = [re.split(" {2,}", line) for line in lines]  # an id may be shorter than another
            states = {row[-1]: row[2] for row in columns}
            process = f"process {editor.process.pid})"
            assert states == {
                "ask me": f"asks (test-editor, {process}",
                "an idle one": f"idle (test-editor, other, {process}",
                "a saved one": "saved",
            }
            for one in (editor, other):
                told = {
                    session: one.request("session/status", {"sessionId": session}) for session in (saved, idle, asks)
                }
                assert {
                    session: (answer["status"], answer["_meta"]["crow"]["state"]) for session, answer in told.items()
                } == {
                    saved: ("saved", "saved"),
                    idle: ("open", "idle"),
                    asks: ("open", "asks"),
                }
                assert told[asks]["_meta"]["crow"] == {
                    "state": "asks",
                    "process": editor.process.pid,
                    "clients": ["test-editor"],
                }
            listed = {entry["id"]: entry for entry in json.loads(said(sessions(tmp_path, "--json")))}
            assert [listed[id]["state"] for id in (saved, idle, asks)] == ["saved", "idle", "asks"]
            assert [listed[id]["process"] for id in (saved, idle)] == [None, editor.process.pid]
            assert listed[idle]["clients"] == ["test-editor", "other"]
            assert other.start("session/status", {"sessionId": "none"}).error().code == -32002
            editor.signal(signal.SIGSTOP)
            lines = said(sessions(tmp_path)).splitlines()
            assert any(f"running (process {editor.process.pid})" in line for line in lines), "as the store knows it"
        finally:
            editor.signal(signal.SIGCONT)
            other.close()
            other.kill()
            editor.cancel(asks)


# --- show, export


def test_show_prints_the_conversation(tmp_path):
    session = one_session(tmp_path, "change \x1b]0;owned\x07 it")
    text = said(sessions(tmp_path, "show", session[:9]))
    for part in ("## You", "change ␛]0;owned␇ it", "## Model", "Let me look.", "-one\n+two\n", "printed", "Done."):
        assert part in text
    assert "\x1b" not in text


def test_export_writes_markdown_or_json(tmp_path):
    session = one_session(tmp_path)
    assert said(sessions(tmp_path, "export", session)) == said(sessions(tmp_path, "show", session))
    whole = json.loads(said(sessions(tmp_path, "export", session, "--format", "json")))
    assert whole["session"]["id"] == session
    assert [event["event"] for event in whole["events"]].count("turn_ended") == 1
    assert "file_changing" not in {event["event"] for event in whole["events"]}


def test_json_is_json_whatever_the_terminal_speaks(tmp_path):
    session = one_session(tmp_path, "größer \N{BIRD}")
    done = subprocess.run(
        [CROW, "sessions", "export", session, "--format", "json"],
        env={**os.environ, "CROW_HOME": str(tmp_path / "home"), "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=DEADLINE,
    )
    assert json.loads(done.stdout)["session"]["title"] == "größer \N{BIRD}"


def test_export_to_a_file_is_private_and_overwrites_nothing(tmp_path):
    session, path = one_session(tmp_path), tmp_path / "out.md"
    assert said(sessions(tmp_path, "export", session, "--output", str(path))) == ""
    assert path.read_text() == said(sessions(tmp_path, "export", session))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("mine")
    assert "already exists" in complaint(sessions(tmp_path, "export", session, "--output", str(path)))
    assert path.read_text() == "mine"
    target = tmp_path / "target"
    (tmp_path / "dangling").symlink_to(target)
    complaint(sessions(tmp_path, "export", session, "--output", str(tmp_path / "dangling")))
    assert not target.exists()
    missing = complaint(sessions(tmp_path, "export", session, "--output", str(tmp_path / "no" / "out.md")))
    assert "no such file or directory" in missing


def test_a_reader_that_leaves_early_is_no_trouble(tmp_path):
    session = one_session(tmp_path, "words " * 100_000)
    command = f"{CROW} sessions show {session} | head -1"
    environment = {**os.environ, "CROW_HOME": str(tmp_path / "home")}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=DEADLINE)
    assert done.stdout.startswith("# words")
    assert done.stderr == ""


# --- delete


def test_without_a_terminal_deleting_needs_a_yes(tmp_path):
    session = one_session(tmp_path)
    refused = sessions(tmp_path, "delete", session)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--yes" in refused.stderr
    assert "'zzz'" in complaint(sessions(tmp_path, "delete", "zzz"))
    assert said(sessions(tmp_path, "delete", session, session[:9], "--yes")) == f"Deleted {session} (change it).\n"
    assert said(sessions(tmp_path, "list", "--json")) == "[]\n"
    assert session in complaint(sessions(tmp_path, "delete", session, "--yes"))


def test_a_mistyped_id_deletes_nothing(tmp_path):
    session = one_session(tmp_path)
    complaint(sessions(tmp_path, "delete", session, "nonsense", "--yes"))
    assert said(sessions(tmp_path, "list"))


@pytest.mark.parametrize(("answer", "is_deleted"), [("y", True), ("", False), ("n", False), ("perhaps", False)])
def test_in_a_terminal_it_asks_and_only_a_clear_yes_is_one(tmp_path, answer, is_deleted):
    session = one_session(tmp_path)
    with Terminal(tmp_path, "sessions", "delete", session[:9], CROW_HOME=str(tmp_path / "home")) as terminal:
        terminal.expect(f"Delete {session} (change it) permanently? [y/N]:")
        assert terminal.ended_after(answer) == 0
        assert f"{'Deleted' if is_deleted else 'Not deleted:'} {session}" in terminal.output
    assert (said(sessions(tmp_path, "list", "--json")) == "[]\n") is is_deleted


def test_the_end_of_input_is_no_yes(tmp_path):
    session = one_session(tmp_path)
    with Terminal(tmp_path, "sessions", "delete", session, CROW_HOME=str(tmp_path / "home")) as terminal:
        terminal.expect("[y/N]:")
        assert terminal.ended_by(b"\x04") == 0
    assert said(sessions(tmp_path, "list"))


def test_of_a_session_that_is_open_it_says_so(tmp_path):
    with conversation(tmp_path, DONE) as editor:
        session = editor.new_session()
        editor.prompt("hello")
        is_open = f"It is open in process {editor.process.pid}; new messages there will not be stored."
        assert is_open in said(sessions(tmp_path, "delete", "--yes", session))
        assert sessions(tmp_path, "show", session).returncode == 1


def test_it_works_beside_an_agent_and_a_running_session_is_not_deleted(tmp_path):
    script = reply(say("Working."), run("sleep 600"))
    with conversation(tmp_path, script) as editor:
        session = editor.new_session()
        turn = editor.start_prompt("work")
        editor.wait_until(
            lambda: any(call.get("status") == "in_progress" for call in editor.tool_calls().values()), "the command"
        )
        assert session[:8] in said(sessions(tmp_path, "list"))
        assert "Working." in said(sessions(tmp_path, "show", session))
        refused = sessions(tmp_path, "delete", session, "--yes")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"{session} (work) was not deleted." in refused.stderr
        assert f"process {editor.process.pid}" in refused.stderr
        editor.cancel()
        assert turn.answer() == {"stopReason": "cancelled"}
    assert said(sessions(tmp_path, "delete", session, "--yes")).startswith("Deleted")


# --- what can be wrong


def test_unknown_and_ambiguous_ids(tmp_path):
    with conversation(tmp_path, DONE) as editor:
        ids = []
        for number in (1, 2):
            ids.append(editor.new_session())
            editor.prompt(f"number {number}")
        empty = editor.new_session()
    shared = os.path.commonprefix(ids)  # noqa: RUF071 -- no paths
    for action in ("show", "export"):
        assert "'nonsense'" in complaint(sessions(tmp_path, action, "nonsense"))
        assert "''" in complaint(sessions(tmp_path, action, ""))
        ambiguous = complaint(sessions(tmp_path, action, shared))
        assert "2 sessions begin with" in ambiguous
        assert "Use more of the ID." in ambiguous
    assert f"`{empty}`" in said(sessions(tmp_path, "show", empty))  # not listed, and yet there


def test_a_store_that_is_damaged_or_none_is_told_in_a_sentence(tmp_path):
    session = one_session(tmp_path)
    store = tmp_path / "home" / "sessions.db"
    for content in (b"no database at all, but long enough to be looked at" * 100, store.read_bytes()[:5000]):
        store.write_bytes(content)
        for action in (("list",), ("show", session), ("export", session), ("delete", session, "--yes")):
            assert str(store) in complaint(sessions(tmp_path, *action))
        doctor = crow(tmp_path, "doctor", "--offline", CROW_HOME=str(tmp_path / "home"))
        assert [line for line in doctor.stdout.splitlines() if line.startswith("✗") and str(store) in line]
        assert store.read_bytes() == content


def test_a_store_of_a_newer_crow_is_left_alone(tmp_path):
    one_session(tmp_path)
    store = tmp_path / "home" / "sessions.db"
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert "newer" in complaint(sessions(tmp_path, "list"))


def test_a_folder_that_may_only_be_read_can_be_read_and_nothing_else(tmp_path):
    session = one_session(tmp_path)
    home = tmp_path / "home"
    tmp_path.chmod(0o755)
    for path in (home, *home.iterdir()):
        path.chmod(0o555 if path.is_dir() else 0o444)  # for its owner too, who may be the one who looks
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.geteuid() and str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o755)
    code = (
        "import argparse, importlib, os, resource, sys\n"
        # another user may not read Python's files
        "import crow.cli.process, crow.cli.parsing, crow.cli.sessions, crow.store.sessions, crow.store.database\n"
        "if os.geteuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "sys.argv = ['crow', 'sessions', *sys.argv[1:]]\n"
        "from crow.__main__ import main\n"
        "sys.exit(main())\n"
    )

    def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "CROW_HOME": str(home), "HOME": "/"},
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            cwd="/",
        )

    assert "change it" in said(as_nobody("list"))
    assert "Let me look." in said(as_nobody("show", session))
    assert json.loads(said(as_nobody("export", session, "--format", "json")))["session"]["id"] == session
    assert "sessions.db" in complaint(as_nobody("delete", session, "--yes"))
    home.chmod(0o755)


# --- stop


def test_a_turn_that_nobody_answers_any_more_can_be_stopped_from_elsewhere(tmp_path):
    """As when a line has died silently: the agent waits for an answer that never comes, and its session is busy."""
    with conversation(tmp_path) as editor, conversation(tmp_path) as other:
        editor.permit = lambda request: SILENCE
        session = editor.new_session()
        prompt = editor.start_prompt("change it")
        editor.wait_for_call("session/request_permission")
        editor.stop_reading()
        [lock] = [path for path in (editor.home / "owners").iterdir() if path.name.startswith(str(editor.process.pid))]
        lock.write_bytes(lock.read_bytes().replace(b"socket ", b"no-sock"))  # it cannot be joined, as an older Crow
        with pytest.raises(ErrorAnswer, match=f"`crow sessions stop {session}`"):
            other.load_session(session)
        assert said(sessions(tmp_path, "stop", session[:16])) == f"Stopped {session} (change it).\n"
        other.load_session(session)
        assert other.text() == "Let me look.\n\n> Cancelled.\n\n"
        assert other.prompt("go on") == {"stopReason": "end_turn"}
        editor.read_on()
        assert prompt.answer() == {"stopReason": "cancelled"}
        assert said(sessions(tmp_path, "stop", session)).count(f"{session} (change it)") == 1


def test_a_turn_of_a_process_that_was_killed_does_not_run(tmp_path):
    editor = Editor(tmp_path, script=SCRIPT, permit=lambda request: SILENCE)
    session = editor.new_session()
    editor.start_prompt("change it")
    editor.wait_for_call("session/request_permission")
    editor.kill()
    assert said(sessions(tmp_path, "stop", session)).count(f"{session} (change it)") == 1
    assert "'nonsense'" in complaint(sessions(tmp_path, "stop", "nonsense"))


def test_a_process_that_does_not_heed_is_named(tmp_path):
    """Its file does not say that it does, as on another machine: no signal is sent, which might end it."""
    with conversation(tmp_path) as editor:
        editor.permit = lambda request: SILENCE
        session = editor.new_session()
        prompt = editor.start_prompt("change it")
        editor.wait_for_call("session/request_permission")
        [owner] = (tmp_path / "home" / "owners").iterdir()
        owner.write_text("another machine\n")
        told = complaint(sessions(tmp_path, "stop", session))
        assert f"(process {editor.process.pid}) cannot be asked" in told
        assert not prompt.done
        editor.cancel()
        assert prompt.answer() == {"stopReason": "cancelled"}


def test_wrong_usage(tmp_path):
    for arguments in (
        *(("nonsense",), ("show",), ("delete",), ("list", "extra"), ("list", "--limit", "0")),
        *(("list", "--limit", "many"), ("list", "--all", "--limit", "3"), ("export", "x", "--format", "pdf")),
    ):
        done = sessions(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: crow ")


def test_doctor_says_that_the_store_is_sound(tmp_path):
    one_session(tmp_path)
    doctor = crow(tmp_path, "doctor", "--offline", CROW_HOME=str(tmp_path / "home"))
    assert f"✓ the store {tmp_path}/home/sessions.db is sound: 1 session\n" in doctor.stdout


@pytest.mark.parametrize(("room", "folder"), [(100, "/a/long/way/to/the/project"), (60, "/a/long/…"), (40, "")])
def test_a_narrow_terminal_cuts_the_folder_before_the_title(room, folder):
    entry = ListedSession("0123456789", "/a/long/way/to/the/project", (), "Mend the nest", 0, 0)
    [line] = table([entry], {entry.id: "012345678"}, room)
    assert line.endswith("  Mend the nest" if room > 40 else "  Mend the n…")
    assert len(line) <= room
    assert folder in line
    assert ("/a" in line) == bool(folder)
