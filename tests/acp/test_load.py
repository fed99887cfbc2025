"""Sessions that outlive everything: stored with every step, and gone on with by another process.

That a load shows what was seen live is tested with every golden transcript, see test_golden.py.
"""

import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from crow.acp.translate_session import LARGEST_REPLAYED
from tests.config.support import crow as run_crow
from tests.support.databases import database
from tests.support.editor import EVERYTHING, NOTICES, SILENCE, Editor, chose
from tests.support.histories import assert_valid, said
from tests.support.scripts import DONE, call, edit, reply, run, say

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
HANGING = '[[reply]]\nrepeat = true\nevents = [{ text = "Once" }, { wait = 60 }]'
STORE = "sessions.db"
PICTURE = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}


def kinds(crow: Editor) -> list[str]:
    return [update["sessionUpdate"] for update in crow.updates]


def texts(crow: Editor, kind: str) -> list[str]:
    return [update["content"]["text"] for update in crow.updates if update["sessionUpdate"] == kind]


def again(open_editor: Any, crow: Editor, **options: Any) -> Editor:
    """Another process with the same home."""
    return open_editor(folder=crow.folder, **options)


# --- load


@pytest.mark.rule("R39", "R40", "R41", "R42", "R46", "R80")
def test_a_session_is_replayed_in_order_and_answered_after_its_last_update(open_editor):
    script = reply('{ thought = "Hm." }', say("I look first."), call("read", path="a.txt")) + DONE
    crow = open_editor(script=script)
    (crow.workspace / "a.txt").write_text("one\n")
    session = crow.new_session()
    crow.prompt("read it")
    crow.prompt("thank you")
    crow.close()
    other = again(open_editor, crow)
    answer = other.load_session(session)
    commands = "available_commands_update"
    other.wait_until(lambda: any(u["sessionUpdate"] == commands for u in other.all_updates_of(session)), "the commands")
    assert [(update["sessionUpdate"], update.get("messageId") or update["toolCallId"]) for update in other.updates] == [
        ("user_message_chunk", "t1-m1"),
        ("agent_thought_chunk", "t1-m2"),
        ("agent_message_chunk", "t1-m3"),
        ("tool_call", "t1-c1"),
        ("tool_call_update", "t1-c1"),
        ("agent_message_chunk", "t1-m4"),
        ("user_message_chunk", "t2-m1"),
        ("agent_message_chunk", "t2-m2"),
    ]
    assert other.the_call()["status"] == "completed"
    assert other.the_call()["rawInput"] == {"path": "a.txt"}
    assert answer["modes"]["currentModeId"] == "ask"
    assert {option["id"] for option in answer["configOptions"]} >= {"mode", "model"}
    order = [m.get("method") or m["result"].keys() for m in other.received]
    answered = order.index(answer.keys())
    assert set(order[1:answered]) == {"session/update"}
    about = [m["params"]["update"]["sessionUpdate"] for m in other.received[answered:] if m.get("method")]
    assert about == ["session_info_update", commands]


@pytest.mark.rule("R40", "R48")
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_the_model_knows_what_was_said_and_turns_are_counted_on(open_editor, method):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("My name is Ada.")
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session, method=method)
    assert kinds(other) == ([] if method == "session/resume" else ["user_message_chunk", "agent_message_chunk"])
    other.prompt("What is my name?")
    assert said(other.model_requests()[-1]["messages"], "user") == ["My name is Ada.", "What is my name?"]
    assert other.updates[-1]["messageId"] == "t2-m2"


@pytest.mark.rule("R40", "R42")
def test_a_prompt_comes_back_block_by_block_under_one_id(open_editor):
    crow = open_editor(script=HELLO, images=True)
    session = crow.new_session()
    resource = {"type": "resource", "resource": {"uri": "file:///x.py", "text": "x = 1", "mimeType": "text/x-python"}}
    link = {"type": "resource_link", "uri": "https://example.org/a", "name": "a", "title": "A page"}
    blocks = [{"type": "text", "text": "look"}, PICTURE, resource, link]
    crow.prompt(*blocks)
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    prompt = [update for update in other.updates if update["sessionUpdate"] == "user_message_chunk"]
    assert [update["content"] for update in prompt] == blocks
    assert {update["messageId"] for update in prompt} == {"t1-m1"}


@pytest.mark.rule("R40")
def test_long_messages_come_back_whole_and_long_outputs_cut(open_editor):
    words = "".join(f"word{number} " for number in range(300_000))
    prompt = words[:70_000]
    file = "".join(f"{number:>99}\n" for number in range(800))
    script = reply(call("read", path="long.txt")) + f'[[reply]]\nevents = [{{ text = "{words}" }}]'
    crow = open_editor(script=script, config="context_window = 1_000_000\n")
    (crow.workspace / "long.txt").write_text(file)
    session = crow.new_session()
    crow.prompt(prompt)
    live = shown_of(crow.the_call())
    assert len(live) > len(file)
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    assert other.text() == words
    assert len(texts(other, "agent_message_chunk")) == 1 + len(words) // 2**20
    assert "".join(texts(other, "user_message_chunk")) == prompt
    cut = shown_of(other.the_call())
    assert cut.startswith(live[:LARGEST_REPLAYED])
    assert LARGEST_REPLAYED < len(cut) < LARGEST_REPLAYED + 100
    assert "the rest is not shown again" in cut


def shown_of(call):
    [block] = call["content"]
    return block["content"]["text"]


@pytest.mark.rule("R43")
def test_a_terminal_comes_back_as_text(open_editor):
    crow = open_editor(
        script=reply(run("echo from the terminal")) + DONE, capabilities=EVERYTHING, permit=lambda _: chose("once")
    )
    session = crow.new_session()
    crow.prompt("go")
    crow.close()
    other = again(open_editor, crow, capabilities=EVERYTHING)
    other.load_session(session)
    [block] = other.the_call()["content"]
    assert block["type"] == "content"
    assert "from the terminal\nexit 0" in block["content"]["text"]


@pytest.mark.rule("R44", "R161")
def test_notices_do_not_come_back(open_editor):
    failing = "[[reply]]\nevents = [{ fail = { status = 503, message = 'overloaded', retry_after = 0.1 } }]\n"
    for capabilities in ({}, NOTICES):
        crow = open_editor(script=failing + HELLO, capabilities=capabilities)
        session = crow.new_session()
        crow.prompt("hi")
        crow.close()
        assert "overloaded" in str(crow.updates)
        other = again(open_editor, crow, capabilities=capabilities)
        other.load_session(session)
        assert texts(other, "agent_message_chunk") == ["Hello there."]
        assert other.notices == []


@pytest.mark.rule("R40", "R125")
def test_of_all_plans_the_last_comes_back(open_editor):
    plans = [[{"content": "look"}], [{"content": "look", "status": "completed"}]]
    crow = open_editor(script="".join(reply(call("plan", entries=plan)) for plan in plans) + DONE)
    session = crow.new_session()
    crow.prompt("go")
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    [plan] = [update for update in other.updates if update["sessionUpdate"] == "plan"]
    assert plan["entries"] == [{"content": "look", "status": "completed", "priority": "medium"}]


@pytest.mark.rule("R46", "R144")
def test_how_full_the_window_was_is_told_after_the_load(open_editor):
    usage = "{ usage = { input_tokens = 120, output_tokens = 30 } }"
    crow = open_editor(script=f"[[reply]]\nevents = [{say('Hi.')}, {usage}]", config="context_window = 100000")
    session = crow.new_session()
    crow.prompt("hi")
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    other.request("session/list")
    told = [(u["used"], u["size"]) for u in other.updates if u["sessionUpdate"] == "usage_update"]
    assert told == [(150, 100_000)]


@pytest.mark.rule("R38", "R39")
def test_an_empty_session_can_be_loaded_at_once_while_its_maker_still_lives(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    other = again(open_editor, crow)
    assert other.request("session/list") == {"sessions": []}
    other.load_session(session)
    assert other.updates == []
    assert other.prompt("hi") == {"stopReason": "end_turn"}
    assert other.updates[0]["messageId"] == "t1-m2"


@pytest.mark.rule("R35", "R46")
def test_servers_come_from_the_request(open_editor):
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    session = crow.new_session(mcpServers=[{"name": "old", "command": "/bin/old", "args": [], "env": []}])
    crow.prompt("hi")
    crow.close()
    other = again(open_editor, crow, capabilities=NOTICES)
    other.load_session(session, mcpServers=[{"name": "docs", "command": "/bin/docs", "args": [], "env": []}])
    other.prompt("hi")
    assert [notice for notice in other.notices if "old" in notice] == []
    assert any("docs" in notice and "/bin/docs" in notice for notice in other.notices)


@pytest.mark.rule("R53", "R52")
def test_further_folders_are_those_of_the_request(open_editor, tmp_path):
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("found it")
    crow = open_editor(script=reply(call("read", path=str(more / "a.txt")), when="read") + DONE)
    session = crow.new_session(additionalDirectories=[str(more)])
    crow.prompt("hello")
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    other.prompt("read")
    assert len(other.permissions) == 1
    assert "additionalDirectories" not in other.request("session/list")["sessions"][0]


# --- what was cut off


def killed(open_editor: Any, crow: Editor, **options: Any) -> Editor:
    crow.signal(signal.SIGKILL)
    crow.exit_status()
    return again(open_editor, crow, **options)


@pytest.mark.rule("R40", "R42")
def test_a_reply_that_was_cut_off_by_kill_comes_back_and_the_next_prompt_works(open_editor):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("Once")
    other = killed(open_editor, crow)
    (crow.home / "script.toml").write_text(HELLO)
    other.load_session(session)
    assert texts(other, "user_message_chunk") == ["go"]
    assert other.prompt("and now?") == {"stopReason": "end_turn"}
    assert_valid(other.model_requests()[-1]["messages"])


@pytest.mark.rule("R42", "R99")
def test_a_call_that_was_cut_off_by_kill_is_settled_and_the_model_is_told(open_editor):
    crow = open_editor(script=reply(run("echo begun > out.txt; sleep 1000")) + DONE, permit=lambda _: chose("once"))
    session = crow.new_session()
    crow.start_prompt("go")
    crow.wait_until(lambda: crow.tool_calls().get("t1-c1", {}).get("status") == "in_progress", "the command")
    other = killed(open_editor, crow)
    (crow.home / "script.toml").write_text(HELLO)
    other.load_session(session)
    seen = other.the_call()
    assert seen["status"] == "failed"
    assert "Interrupted" in str(seen["content"])
    other.prompt("and now?")
    messages = other.model_requests()[-1]["messages"]
    assert_valid(messages)
    [result] = [message for message in messages if message["role"] == "tool"]
    assert not result["ok"]
    assert "was stopped" in result["text"]


@pytest.mark.rule("R42", "R99")
def test_a_call_that_was_still_asked_about_is_replayed_and_known_not_to_have_begun(open_editor):
    crow = open_editor(script=reply(call("write", path="a.txt", content="x")) + DONE, permit=lambda _: SILENCE)
    session = crow.new_session()
    crow.start_prompt("go")
    crow.wait_until(lambda: len(crow.permissions) == 1, "the question")
    other = killed(open_editor, crow)
    (crow.home / "script.toml").write_text(HELLO)
    other.load_session(session)
    seen = other.the_call()
    assert (seen["title"], seen["status"]) == ("Write a.txt", "failed")
    assert "Not run" in str(seen["content"])
    other.prompt("and now?")
    messages = other.model_requests()[-1]["messages"]
    assert_valid(messages)
    [result] = [message for message in messages if message["role"] == "tool"]
    assert not result["ok"]
    assert "Nothing" in result["text"]


@pytest.mark.rule("R42")
def test_what_was_settled_is_stored(open_editor):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("Once")
    second = killed(open_editor, crow)
    second.load_session(session)
    second.close()
    third = again(open_editor, crow)
    third.load_session(session)
    assert third.updates == second.updates


@pytest.mark.rule("R40")
@pytest.mark.parametrize("leave", [lambda crow: crow.signal(signal.SIGTERM), lambda crow: crow.hang_up()])
def test_a_crow_that_is_told_to_go_in_a_turn_stores_it_to_its_end(open_editor, leave):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    crow.start_prompt("go")
    crow.wait_for_text("Once")
    leave(crow)
    crow.exit_status()
    (crow.home / "script.toml").write_text(HELLO)
    other = again(open_editor, crow)
    other.load_session(session)
    assert texts(other, "agent_message_chunk") == ["Once", "\n\n> Cancelled.\n\n"]
    other.prompt("and now?")
    assert "interrupted" in said(other.model_requests()[-1]["messages"], "user")[-1]


# --- a session that is open here, or elsewhere


def test_what_comes_while_a_session_is_being_loaded_is_told_to_wait(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("one")
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    load = crow.start("session/load", params)
    early = [crow.start_prompt("two"), crow.start("session/close", {"sessionId": session})]
    for request in early:
        error = request.error()
        assert (error.code, error.message) == (
            -32600,
            "This session is being loaded. Send this again once the load is answered.",
        )
    load.answer()
    assert crow.prompt("three") == {"stopReason": "end_turn"}
    assert said(crow.model_requests()[-1]["messages"], "user") == ["one", "three"]


def test_a_load_that_fails_leaves_the_session_that_is_open(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("one")
    with closing(sqlite3.connect(crow.home / STORE, isolation_level=None)) as store:
        store.execute("UPDATE records SET version = 99 WHERE tag = 'user_said'")
        params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
        assert "newer" in crow.start("session/load", params).error().message
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    assert said(crow.model_requests()[-1]["messages"], "user") == ["one", "two"]


@pytest.mark.rule("R47")
def test_loading_a_session_whose_turn_runs_here_cancels_it_first(open_editor):
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    before = len(crow.updates)
    crow.load_session(session)
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert [update["sessionUpdate"] for update in crow.updates[before:]] == [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_message_chunk",  # that it was cancelled
    ]
    order = [m["id"] for m in crow.received if "id" in m and "method" not in m]
    assert order[-2:] == [prompt.id, prompt.id + 1]


@pytest.mark.rule("R47")
def test_loading_an_idle_session_again_gives_one_history(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("one")
    crow.load_session(session)
    crow.load_session(session)
    crow.prompt("two")
    assert said(crow.model_requests()[-1]["messages"], "user") == ["one", "two"]


@pytest.mark.rule("R47")
def test_loads_of_one_session_at_once_are_all_answered(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("one")
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    loads = [crow.start("session/load", params) for _ in range(4)]
    assert all("modes" in load.answer() for load in loads)
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    assert said(crow.model_requests()[-1]["messages"], "user") == ["one", "two"]


@pytest.mark.rule("R45")
def test_a_session_whose_turn_runs_in_a_process_that_cannot_be_joined_is_busy(open_editor):
    """Such as an older Crow, or one on another machine: its lock names no socket."""
    crow = open_editor(script=HANGING)
    session = crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    [lock] = (crow.home / "owners").iterdir()
    lock.write_bytes(lock.read_bytes().replace(b"socket ", b"no-sock"))
    other = again(open_editor, crow)
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    error = other.start("session/load", params).error()
    assert error.code == -32600
    assert f"process {crow.process.pid}" in error.message
    assert error.data == {"details": error.message}
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}
    other.load_session(session)


@pytest.mark.rule("R45")
def test_a_session_that_went_on_elsewhere_says_so_and_can_be_fetched_back(open_editor):
    """An older Crow claims what is idle, and knows of nobody who could be joined."""
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("one")
    with database(crow.home / "sessions.db") as connection:
        connection.execute("UPDATE sessions SET owner = '1-older', epoch = epoch + 1 WHERE id = ?", (session,))
    error = crow.start_prompt("three").error()
    assert error.code == -32603
    assert error.data == {"details": error.message}
    assert "load" in error.message.lower()
    assert crow.start_prompt("three").error().code == -32002
    crow.load_session(session)
    crow.prompt("three")
    assert said(crow.model_requests()[-1]["messages"], "user") == ["one", "three"]


# --- what cannot be loaded


@pytest.mark.rule("R45")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
def test_an_unknown_session_is_not_found(open_editor, method):
    crow = open_editor(script=HELLO)
    error = crow.start(method, {"sessionId": "no such", "cwd": str(crow.workspace), "mcpServers": []}).error()
    assert (error.code, error.data) == (-32002, {"uri": "no such"})


@pytest.mark.rule("R45", "R57")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
def test_another_folder_is_refused_by_name_and_another_way_to_the_same_is_not(open_editor, tmp_path, method):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    (tmp_path / "elsewhere").mkdir()
    params = {"sessionId": session, "mcpServers": []}
    error = crow.start(method, {**params, "cwd": str(tmp_path / "elsewhere")}).error()
    assert error.code == -32602
    assert str(crow.workspace) in error.message
    assert crow.prompt("still here?") == {"stopReason": "end_turn"}
    (tmp_path / "link").symlink_to(crow.workspace)
    assert "modes" in crow.request(method, {**params, "cwd": str(tmp_path / "link")})


def test_a_session_whose_folder_is_gone_can_still_be_read(open_editor):
    crow = open_editor(script=DONE)
    session = crow.new_session()
    crow.prompt("one")
    crow.close()
    other = again(open_editor, crow)
    crow.workspace.rename(crow.folder / "elsewhere")
    params = {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}
    refused = other.start("session/load", params).error()
    assert refused.code == -32602
    shows = "read what was said: crow sessions show "
    assert refused.message.partition(shows)[2] == session
    assert "one" in run_crow(crow.folder, "sessions", "show", session, CROW_HOME=str(crow.home)).stdout


@pytest.mark.rule("R33", "R52")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
@pytest.mark.parametrize(
    "params", [{"cwd": "relative"}, {"cwd": "/nowhere/at/all"}, {"additionalDirectories": ["relative"]}]
)
def test_folders_are_checked_as_for_a_new_session(open_editor, method, params):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    error = crow.start(method, {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": [], **params}).error()
    assert error.code == -32602
    assert next(iter(params)) in error.message


@pytest.mark.rule("R24")
@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/fork"])
def test_without_a_model_a_login_is_asked_for(open_editor, method):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    crow.close()
    (crow.home / "config.toml").unlink()
    other = again(open_editor, crow)
    error = other.start(method, {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}).error()
    assert error.code == -32000
    assert [entry["sessionId"] for entry in other.request("session/list")["sessions"]] == [session]


# --- a store that cannot be used


def spoil_store(home: Path) -> None:
    """A folder stands where the file should be."""
    (home / STORE).mkdir(parents=True)


def test_a_session_that_cannot_be_kept_works_and_says_so(open_editor):
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    spoil_store(crow.home)
    session = crow.new_session()
    crow.wait_until(lambda: bool(crow.notices), "the warning")
    assert str(crow.home / STORE) in crow.notices[0]
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    for method in ("session/load", "session/list"):
        error = crow.start(method, {"sessionId": session, "cwd": str(crow.workspace), "mcpServers": []}).error()
        assert error.code == -32603
        assert error.data == {"details": error.message}


def test_edited_files_are_as_they_are_after_a_load(open_editor):
    script = reply(edit("a.py", "one", "1")) + DONE
    crow = open_editor(script=script, permit=lambda _: chose("once"))
    (crow.workspace / "a.py").write_text("one\n")
    session = crow.new_session()
    crow.prompt("go")
    crow.close()
    other = again(open_editor, crow)
    other.load_session(session)
    assert (crow.workspace / "a.py").read_text() == "1\n"
    [diff] = other.the_call()["content"]
    assert (diff["type"], diff["oldText"], diff["newText"]) == ("diff", "one\n", "1\n")
