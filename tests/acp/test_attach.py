"""Sessions that live in one process and are joined from others: real processes, each with its own editor."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from crow.store.owners import socket_of
from tests.acp.test_kill import KILLS, SEED, busy
from tests.support.databases import database
from tests.support.editor import NOTICES, Editor, Json, Later, Pending, chose
from tests.support.fold import ReadTracker
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, call, reply, run, say

GATE = "touch began; while [ ! -e go ]; do sleep 0.02; done; echo passed"
"""A command that waits until the test lets it go."""


BUSY = reply(say("Begun. "), run(GATE), when="begin") + reply(say("Ended."), when="begin") + DONE
"""A turn with such a command. Whichever process plays the script, only a prompt that says so begins it."""


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


def go(editor: Editor) -> None:
    (editor.workspace / "go").touch()


def has_begun(editor: Editor) -> None:
    eventually((editor.workspace / "began").exists, "the command has begun")


def row(editor: Editor, session: str) -> tuple[str, int, int]:
    with database(editor.home / "sessions.db") as connection:
        return connection.execute("SELECT owner, epoch, running FROM sessions WHERE id = ?", (session,)).fetchone()


def socket_at(editor: Editor, session: str) -> str:
    """Where the process listens in which the session lives, once it does."""
    path = socket_of(str(editor.home / "owners"), row(editor, session)[0])
    eventually(lambda: os.path.exists(path), "the socket")
    return path


def test_a_session_that_lives_elsewhere_is_joined_and_both_see_the_same(editors):
    first = editors.start("first", reply(say("One.")) + reply(say("Two.")) + DONE)
    session = first.new_session()
    first.prompt("hello")
    second = editors.start("second")
    second.load_session(session)
    assert second.text() == "One."
    assert second.prompt("and now?") == {"stopReason": "end_turn"}
    assert second.text() == "One.Two."
    first.wait_for_text("One.Two.")
    said = [update["content"]["text"] for update in first.updates if update["sessionUpdate"] == "user_message_chunk"]
    assert said == ["and now?"]
    assert row(first, session)[0].startswith(f"{first.process.pid}-")
    assert row(first, session)[1] == 1, "nobody else claimed it"
    assert second.close() == 0
    assert first.prompt("once more") == {"stopReason": "end_turn"}
    assert first.close() == 0


def test_a_question_is_answered_where_it_was_not_asked_first(editors):
    release = threading.Event()
    first = editors.start(
        "first",
        reply(call("write", path="a.txt", content="written\n")) + DONE,
        permit=lambda _: Later(lambda: release.wait(DEADLINE) and chose("reject")),
    )
    session = first.new_session()
    turn = first.start_prompt("write it")
    first.wait_for_call("session/request_permission")
    second = editors.start("second", permit=once)
    second.load_session(session)
    assert turn.answer() == {"stopReason": "end_turn"}
    assert (first.workspace / "a.txt").read_text() == "written\n"
    first.wait_for_call("$/cancel_request")
    assert any("second" in notice for notice in first.notices)
    second.wait_until(lambda: second.the_call()["status"] == "completed", "the end of the call")
    release.set()
    second.close()
    first.close()


def test_who_has_joined_a_running_turn_goes_on_alone_when_its_owner_is_killed(editors):
    first = editors.start("first", BUSY, permit=once)
    session = first.new_session()
    turn = first.start_prompt("begin")
    has_begun(first)
    second = editors.start("second", permit=once)
    second.load_session(session)
    assert second.the_call()["status"] == "in_progress"
    first.kill()
    second.wait_until(lambda: bool(notices_of(second, f"process {first.process.pid}")), "the notice")
    assert second.the_call()["status"] == "failed"
    assert turn.message is None
    assert second.prompt("go on") == {"stopReason": "end_turn"}
    assert row(second, session)[0].startswith(f"{second.process.pid}-"), "it lives here now"
    assert second.text() == "Begun. Done."
    assert second.close() == 0


# --- the end of an owner

ENDED = "has ended."


def ends_told(editor: Editor) -> int:
    """How often an editor was told that an owner has ended."""
    return sum(notice.endswith(ENDED) for notice in editor.notices)


def notices_of(editor: Editor, words: str) -> list[str]:
    return [notice for notice in editor.notices if words in notice]


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(") ")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid:
                found += [int(entry.name), *children_of(int(entry.name))]
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def history(editor: Editor, session: str) -> list[Json]:
    """What a load shows of a session."""
    at = len(editor.updates_of(session))
    editor.load_session(session)
    return [update for update in editor.updates_of(session)[at:] if "usage" not in update["sessionUpdate"]]


def test_a_session_whose_owner_is_killed_in_a_command_is_opened_by_whoever_speaks_first(editors):
    owner = editors.start("owner", BUSY, permit=once)
    session = owner.new_session()
    watchers = [editors.start(name, permit=once) for name in ("one", "two")]
    for watcher in watchers:
        watcher.load_session(session)
    turn = watchers[0].start_prompt("begin")
    has_begun(owner)
    for watcher in watchers:
        watcher.wait_until(lambda w=watcher: w.tool_calls() != {}, "the call")
        watcher.wait_until(lambda w=watcher: w.the_call()["status"] == "in_progress", "its start")
    epoch = row(owner, session)[1]
    below = children_of(owner.process.pid)
    assert below
    path = socket_at(owner, session)
    owner.kill()

    error = turn.error()
    assert "cut off" in error.message
    assert f"process {owner.process.pid}" in error.message
    watchers[1].wait_until(lambda: bool(notices_of(watchers[1], ENDED)), "the notice")
    for watcher in watchers:
        watcher.wait_until(lambda w=watcher: w.the_call()["status"] == "failed", "the call's end")
        assert watcher.text() == "Begun. "
    assert row(owner, session)[1] == epoch, "nobody has gone on with it"
    eventually(lambda: not any(map(lives, below)), "the end of all that the owner had started")

    (owner.workspace / "go").touch()
    for watcher in reversed(watchers):
        assert watcher.prompt("go on") == {"stopReason": "end_turn"}
        assert len(notices_of(watcher, "opened again")) == 1
    token, after, running = row(owner, session)
    assert token.startswith(f"{watchers[1].process.pid}-")
    assert (after, running) == (epoch + 1, 0)
    assert not os.path.exists(path)
    watchers[1].wait_for_text("Done.Done.")
    # Everyone is told once, and whoever sent the prompt by its answer.
    assert [ends_told(watcher) for watcher in watchers] == [0, 1]
    assert history(watchers[0], session) == history(watchers[1], session)
    for watcher in watchers:
        watcher.close()


def test_an_owner_that_is_told_to_end_finishes_the_turn_that_others_watch(editors):
    owner = editors.start("owner", BUSY, permit=once)
    session = owner.new_session()
    watchers = [editors.start(name, permit=once) for name in ("one", "two")]
    for watcher in watchers:
        watcher.load_session(session)
    turn = watchers[0].start_prompt("begin")
    has_begun(owner)
    owner.hang_up()
    owner.signal(signal.SIGTERM)  # as editors do a moment later
    owner.wait_until_it_rests()
    refused = watchers[1].start_prompt("meanwhile").error()
    assert refused.code == -32600
    assert "begun in one" in str(refused), "which is why, also while the owner is ending"
    assert owner.process.poll() is None
    go(owner)
    assert turn.answer() == {"stopReason": "end_turn"}
    assert owner.exit_status() == 128 + signal.SIGTERM
    for watcher in watchers:
        watcher.wait_until(lambda w=watcher: bool(notices_of(w, ENDED)), "the notice")
    assert watchers[1].prompt("and now?") == {"stopReason": "end_turn"}
    for watcher in watchers:
        assert watcher.text() == "Begun. \n\nEnded." + ("Done." if watcher is watchers[1] else "")
        assert not notices_of(watcher, "cut off")
        assert watcher.the_call()["status"] == "completed"
    assert row(owner, session)[1] == 2
    for watcher in watchers:
        watcher.close()


@pytest.mark.parametrize("number", range(3))
def test_a_prompt_in_the_moment_of_a_hand_over_is_answered_here_or_to_be_sent_again(editors, number):
    owner = editors.start("owner", BUSY, permit=once)
    session = owner.new_session()
    watcher = editors.start("watcher", permit=once)
    watcher.load_session(session)
    turn = watcher.start_prompt("begin")
    has_begun(owner)
    owner.hang_up()
    owner.wait_until_it_rests()
    go(owner)
    assert turn.answer() == {"stopReason": "end_turn"}
    answer = watcher.start_prompt("and now?").wait()
    if "error" in answer:
        assert "again" in answer["error"]["message"]
        watcher.wait_until(lambda: ends_told(watcher) == 1, "the notice")
        answer = watcher.start_prompt("and now?").wait()
    assert answer["result"] == {"stopReason": "end_turn"}
    assert owner.exit_status() == 0
    assert watcher.text() == "Begun. \n\nEnded.Done."
    assert watcher.close() == 0


def test_an_idle_owner_ends_at_once_and_its_session_goes_on_elsewhere(editors):
    owner = editors.start("owner", reply(say("One."), when="hello") + reply(say("Two."), when="now") + DONE)
    session = owner.new_session()
    owner.prompt("hello")
    watcher = editors.start("watcher")
    watcher.load_session(session)
    assert owner.close() == 0
    assert watcher.prompt("and now?") == {"stopReason": "end_turn"}
    assert watcher.text() == "One.Two."
    assert row(watcher, session)[0].startswith(f"{watcher.process.pid}-")
    watcher.close()


def test_a_second_signal_ends_an_owner_that_would_finish(editors):
    owner = editors.start("owner", reply(run(GATE), when="begin") + DONE, permit=once)
    session = owner.new_session()
    watcher = editors.start("watcher", permit=once)
    watcher.load_session(session)
    turn = watcher.start_prompt("begin")
    has_begun(owner)
    owner.signal(signal.SIGTERM)
    owner.wait_until_it_rests()
    assert owner.process.poll() is None
    owner.signal(signal.SIGTERM)
    assert owner.exit_status() == 128 + signal.SIGTERM
    assert turn.answer() == {"stopReason": "cancelled"}
    go(owner)
    assert watcher.prompt("go on") == {"stopReason": "end_turn"}
    watcher.close()


# --- who gets in, and where


def test_a_long_home_is_no_hindrance(tmp_path):
    folder = tmp_path / ("a-rather-long-name" * 12)
    with ExitStack() as stack:
        editors = Editors(folder, stack)
        first = editors.start("first", reply(say("One.")) + DONE)
        session = first.new_session()
        first.prompt("hello")
        second = editors.start("second")
        second.load_session(session)
        assert second.text() == "One."
        assert row(first, session)[1] == 1
        second.close()
        first.close()


def test_an_owner_that_does_not_answer_is_named_and_left_alone(editors):
    owner = editors.start("owner", BUSY, permit=once)
    session = owner.new_session()
    turn = owner.start_prompt("begin")
    has_begun(owner)
    other = editors.start("other", permit=once)
    owner.signal(signal.SIGSTOP)
    load = other.start("session/load", {"sessionId": session, "cwd": str(other.workspace), "mcpServers": []})
    assert f"process {owner.process.pid}" in load.error().message
    owner.signal(signal.SIGCONT)
    go(owner)
    assert turn.answer() == {"stopReason": "end_turn"}
    assert row(owner, session)[1] == 1
    other.load_session(session)
    assert "Ended." in other.text()
    other.close()
    owner.close()


def test_a_socket_that_was_removed_is_made_anew_for_who_wants_to_join(editors, tmp_path):
    runtime = tmp_path / "r"
    runtime.mkdir(mode=0o700)
    owner = editors.start("owner", BUSY, permit=once, environment={"XDG_RUNTIME_DIR": str(runtime)})
    session = owner.new_session()
    turn = owner.start_prompt("begin")
    has_begun(owner)
    first = editors.start("first", permit=once)
    first.load_session(session)
    socket_at(owner, session)
    shutil.rmtree(runtime)  # as when somebody logs out whose tmux goes on
    second = editors.start("second", permit=once)
    second.load_session(session)
    path = socket_at(owner, session)
    go(owner)
    assert turn.answer() == {"stopReason": "end_turn"}
    for editor in (first, second):
        editor.wait_for_text("Ended.")
        editor.close()
    assert owner.close() == 0
    assert not os.path.exists(path)


def test_processes_that_load_at_the_same_moment_share_one_session(editors):
    maker = editors.start("maker", reply(say("One."), when="hello") + DONE)
    session = maker.new_session()
    maker.prompt("hello")
    maker.close()
    for _ in range(3):
        loaders = [editors.start(f"loader {number}") for number in range(3)]
        params = {"sessionId": session, "cwd": str(maker.workspace), "mcpServers": []}
        before = row(maker, session)[1]
        loads = [loader.start("session/load", params) for loader in loaders]
        for load in loads:
            load.answer()
        assert row(maker, session)[1] == before + 1
        for loader in loaders:
            loader.session_id = session
        assert loaders[0].prompt("and now?") == {"stopReason": "end_turn"}
        for loader in loaders:
            loader.wait_until(lambda one=loader: one.text().endswith("Done."), "the text")
        ends = [threading.Thread(target=loader.close) for loader in loaders]
        for end in ends:
            end.start()
        for end in ends:
            end.join(DEADLINE)


def test_a_session_is_loaded_while_its_owner_closes_it(editors):
    owner = editors.start("owner", reply(say("One.")) + DONE)
    other = editors.start("other")
    session = owner.new_session()
    owner.prompt("hello")
    params = {"sessionId": session, "cwd": str(owner.workspace), "mcpServers": []}
    for number in range(6):
        one, two = (owner, other) if number % 2 == 0 else (other, owner)
        closing = one.start("session/close", {"sessionId": session})
        loading = two.start("session/load", params)
        assert closing.answer() == {}
        loading.answer()
        assert two.request("session/set_mode", {"sessionId": session, "modeId": "plan"}) == {}
    owner.close()
    other.close()


# --- clients at the socket itself

RAW = """
import json, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
lines = peer.makefile("rb")
def call(id, method, **params):
    peer.sendall(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\\n")
def answer(id):
    while True:
        message = json.loads(lines.readline())
        if message.get("id") == id:
            return message["result"]
call(1, "initialize", protocolVersion=1, clientInfo={"name": "raw", "version": "1"})
answer(1)
call(2, "session/load", sessionId=sys.argv[2], cwd=sys.argv[3], mcpServers=[])
answer(2)
print("joined", flush=True)
"""
"""A program that joins a session by itself, and then does what is written below it."""

SENDS_HALF = """
prompt = json.dumps({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"sessionId": sys.argv[2],
    "prompt": [{"type": "text", "text": "x" * 30_000_000}]}}).encode()
peer.sendall(prompt[:20_000_000])
print("half", flush=True)
sys.stdin.read()
"""
STOPS_READING = """
sys.stdin.read()
"""


def raw_client(editor: Editor, session: str, more: str) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", RAW + more, socket_at(editor, session), session, str(editor.workspace)]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


MUCH = 16 * 1024 * 1024
"""Bytes that are a good part of a long line, and more than a session needs for anything else."""


def test_a_client_that_is_killed_in_the_middle_of_a_long_line_is_not_noticed(editors):
    owner = editors.start("owner", DONE, cold=True)
    session = owner.new_session()
    owner.prompt("hello")
    before = owner.memory()
    client = raw_client(owner, session, SENDS_HALF)
    assert client.stdout is not None
    with client:
        assert client.stdout.readline() == b"joined\n"
        assert client.stdout.readline() == b"half\n"
        eventually(lambda: owner.memory() > before + MUCH, "half of the line is there")
        assert owner.prompt("meanwhile") == {"stopReason": "end_turn"}
        client.kill()
    eventually(lambda: owner.memory() < before + MUCH, "the memory is given back")
    assert owner.prompt("after it") == {"stopReason": "end_turn"}
    assert "x" * 100 not in str(owner.model_requests()[-1]), "half a line is no message"
    assert owner.close() == 0


def test_a_client_that_is_killed_while_a_long_line_is_sent_to_it_is_not_noticed(editors):
    owner = editors.start("owner", DONE, cold=True)
    session = owner.new_session()
    owner.prompt("hello")
    client = raw_client(owner, session, STOPS_READING)
    assert client.stdout is not None
    with client:
        assert client.stdout.readline() == b"joined\n"
        owner.prompt("y" * 30_000_000)  # which every other client is shown
        unsent = owner.memory()
        client.kill()
    eventually(lambda: owner.memory() < unsent - MUCH, "the memory is given back")
    assert owner.prompt("after it") == {"stopReason": "end_turn"}
    assert owner.close() == 0


# --- versions

OTHER_VERSION = """
import sys
from crow.acp import wire
wire.ATTACH_VERSION = {version}
sys.argv = ["crow", "acp"]
from crow.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(("version", "word"), [(2, "newer"), (0, "older")])
def test_an_owner_of_another_version_is_left_alone(editors, version, word):
    """Whichever of the two is the older one says so."""
    here = editors.start("here", BUSY)
    code = OTHER_VERSION.format(version=version)
    environment = {"PATH": os.defpath, "HOME": str(here.folder), "CROW_HOME": str(here.home), "CROW_MODE": "auto"}
    there = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )
    assert there.stdin is not None
    assert there.stdout is not None
    with there:

        def ask(id: int, method: str, **params: Any) -> None:
            assert there.stdin is not None
            there.stdin.write(
                json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"
            )
            there.stdin.flush()

        def answer(id: int) -> Json:
            assert there.stdout is not None
            while (message := json.loads(there.stdout.readline())).get("id") != id:
                pass
            return message["result"]

        ask(1, "initialize", protocolVersion=1)
        answer(1)
        ask(2, "session/new", cwd=str(here.workspace), mcpServers=[])
        session = answer(2)["sessionId"]
        ask(3, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "begin"}])
        has_begun(here)
        params = {"sessionId": session, "cwd": str(here.workspace), "mcpServers": []}
        said = here.start("session/load", params).error().message
        assert word in said
        assert f"process {there.pid}" in said
        assert said.count(". ") == 0
        go(here)
        assert answer(3) == {"stopReason": "end_turn"}
        assert row(here, session)[1] == 1
        there.stdin.close()
        assert there.wait(DEADLINE) == 0
    here.close()


def test_an_older_crow_finds_a_session_busy_or_claims_it_as_ever(editors):
    """It reads no further than the first line of a lock. What it claims is told to who had it."""
    owner = editors.start("owner", BUSY, permit=once)
    session = owner.new_session()
    turn = owner.start_prompt("begin")
    has_begun(owner)
    token = row(owner, session)[0]
    lock = (owner.home / "owners" / token).read_text().splitlines()
    assert len(lock[0].split()) == 1, "the machine, to the letter"
    assert lock[1].startswith("socket ")
    go(owner)
    assert turn.answer() == {"stopReason": "end_turn"}
    with database(owner.home / "sessions.db") as connection:
        connection.execute("UPDATE sessions SET owner = '1-older', epoch = epoch + 1 WHERE id = ?", (session,))
    assert "load" in owner.start_prompt("more").error().message.lower()
    owner.load_session(session)
    owner.close()


# --- kills at any moment


def seen_by(editor: Editor, session: str, *, since: int = 0) -> ReadTracker:
    tracker = ReadTracker()
    for update in editor.updates_of(session)[since:]:
        if update["sessionUpdate"] not in ("config_option_update", "current_mode_update"):
            tracker.take(update)
    return tracker


def wait_for_progress(editor: Editor, lines: int, prompt: Pending) -> None:
    last = len(editor.lines) + lines
    editor.wait_until(lambda: len(editor.lines) >= last or prompt.done, "some progress")


@pytest.mark.timeout(max(600, KILLS * 60))
def test_owners_that_are_killed_at_any_moment_lose_nothing_and_say_nothing_twice(editors):
    """Three editors share a session that is at work. Its owner is killed, one of the two that are left opens it again,
    the other joins that one, and a new editor comes: CROW_KILLS times."""
    dice = random.Random(SEED)
    options: dict[str, Any] = {"environment": {"CROW_MODE": "auto"}}
    crowd = [editors.start("e0", busy(), **options)]
    session = crowd[0].new_session()
    for number in range(1, 3):
        crowd.append(editors.start(f"e{number}", **options))
        crowd[-1].load_session(session)
    since = dict.fromkeys(crowd, 0)
    for number in range(KILLS):
        token, epoch, _ = row(crowd[0], session)
        [owner] = [editor for editor in crowd if token.startswith(f"{editor.process.pid}-")]
        rest = [editor for editor in crowd if editor is not owner]
        prompter = dice.choice(crowd)
        prompt = prompter.start_prompt("go to work")
        wait_for_progress(rest[0], dice.randrange(400), prompt)
        time.sleep(dice.uniform(0, 0.02))
        told = {editor: ends_told(editor) for editor in rest}
        below = children_of(owner.process.pid)
        owner.kill()
        cut_off = prompter is not owner and "error" in prompt.wait()
        for editor in rest:
            if not (cut_off and editor is prompter):  # who is told by the answer to the prompt
                editor.wait_until(lambda e=editor: ends_told(e) > told[e], "the notice")  # noqa: B023
            assert editor.request("session/set_mode", {"sessionId": session, "modeId": "auto"}) == {}
            assert ends_told(editor) == told[editor] + (not (cut_off and editor is prompter))
        assert row(rest[0], session)[1] == epoch + 1, "one of them has it, once"
        eventually(lambda: not any(map(lives, below)), "nothing is left of the owner")  # noqa: B023 -- called at once
        crowd = [*rest, editors.start(f"e{number + 3}", **options)]
        crowd[-1].load_session(session)
        since[crowd[-1]] = 0
        crowd[-1].take_part(*rest)
        stored = seen_by(crowd[-1], session)
        for editor in rest:
            seen = seen_by(editor, session, since=since[editor])
            for id, message in seen.messages.items():
                known = stored.messages.get(id, {"text": ""})["text"]
                assert known.startswith(message["text"]) or message["text"].startswith(known), "said twice"
            for id, shown in seen.calls.items():
                # Of one that had hardly begun nothing may be stored; it has ended all the same.
                assert shown["status"] in ("failed", stored.calls.get(id, {"status": "failed"})["status"])
            since[editor] = len(editor.updates_of(session))
            editor.load_session(session)
            again = seen_by(editor, session, since=since[editor])
            assert {id: call["status"] for id, call in again.calls.items()} == {
                id: call["status"] for id, call in stored.calls.items()
            }, "a load shows what was missed"
    for editor in crowd:
        editor.close()


def test_a_relay_is_told_what_no_longer_lives_there_and_a_plain_client_may_load_it(editors):
    """A relay's session would else come to live in a process whose own editor has closed it."""
    owner = editors.start("owner", reply(say("One."), when="hello") + DONE)
    session = owner.new_session()
    owner.prompt("hello")
    path = socket_at(owner, session)
    owner.request("session/close", {"sessionId": session})
    refused = loaded_through(path, owner, session, {"attach": 1})
    assert refused["error"]["data"] == {"crow": "released"}
    assert row(owner, session)[0] == ""
    assert "result" in loaded_through(path, owner, session, {})
    owner.close()


def loaded_through(path: str, owner: Editor, session: str, crow: Json) -> Json:
    """How an owner answers at its socket whoever says `crow` of itself and loads the session, and leaves."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        answers = peer.makefile("rb")
        load = {"sessionId": session, "cwd": str(owner.workspace), "mcpServers": []}
        hello = {"protocolVersion": 1, "_meta": {"crow": crow}}
        for id, (method, params) in enumerate([("initialize", hello), ("session/load", load)]):
            message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            peer.sendall(json.dumps(message).encode() + b"\n")
            while (answer := json.loads(answers.readline())).get("id") != id:
                pass
    return answer
