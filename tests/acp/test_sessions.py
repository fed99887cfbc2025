"""Sessions: opening, closing, several at once, and the order in which the client learns of things."""

import itertools
import socket
from typing import Any

import pytest

from tests.support.editor import FILES, NOTICES, SILENCE, Editor, Pending

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'
STORY = '[[reply]]\nrepeat = true\nevents = [{ text = "Once upon a time there was", pace = 30 }]'
HANGING = '[[reply]]\nrepeat = true\nevents = [{ text = "Once" }, { wait = 60 }]'
MEBIBYTE = 2**20


@pytest.mark.rule("R36", "R65", "R160", "R35")
def test_nothing_about_a_session_comes_before_its_id(open_editor):
    crow = open_editor(script=HELLO, capabilities=NOTICES)
    server = {"name": "docs", "command": "/bin/docs", "args": [], "env": []}
    crow.new_session(mcpServers=[server])
    crow.wait_until(lambda: bool(crow.notices), "the notice")
    about = [message for message in crow.received if crow.session_id in str(message)]
    assert about[0]["result"]["sessionId"] == crow.session_id
    [notice] = crow.notices
    assert "`docs` (from your editor) cannot be used: command `/bin/docs` not found" in notice


@pytest.mark.rule("R35", "R160")
def test_a_client_without_notices_is_told_in_the_first_turn(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session(mcpServers=[{"name": "docs", "command": "/bin/docs", "args": [], "env": []}])
    crow.prompt("hi")
    notice, *reply = crow.updates
    assert "docs" in notice["content"]["text"]
    assert notice["messageId"] not in {update.get("messageId") for update in reply}


@pytest.mark.rule("R58", "R76", "R77", "R80", "R81")
def test_the_answer_to_a_prompt_is_the_last_thing_of_its_turn(open_editor):
    script = '[[reply]]\nevents = [{ thought = "A greeting." }, { text = "Hello there, friend." }]'
    crow = open_editor(script=script)
    crow.new_session()
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    crow.start("nonsense").error()
    *turn, answer, _ = crow.received[2:]
    assert answer["result"] == {"stopReason": "end_turn"}
    assert {message["method"] for message in turn} == {"session/update"}
    kinds = [update["sessionUpdate"] for update in crow.updates]
    assert list(dict.fromkeys(kinds)) == ["agent_thought_chunk", "agent_message_chunk"]
    assert crow.thoughts() == "A greeting."
    assert crow.text() == "Hello there, friend."
    ids = {update["sessionUpdate"]: set() for update in crow.updates}
    for update in crow.updates:
        ids[update["sessionUpdate"]].add(update["messageId"])
    assert ids == {"agent_thought_chunk": {"t1-m2"}, "agent_message_chunk": {"t1-m3"}}


@pytest.mark.rule("R78", "R79")
def test_a_fast_stream_arrives_whole_in_few_messages(open_editor):
    words = " ".join(f"wörd{number}😀" for number in range(5000))
    crow = open_editor(script=f'[[reply]]\nevents = [{{ text = "{words}" }}]')
    crow.new_session()
    prompt = crow.start_prompt("go")
    prompt.answer()
    assert crow.text() == words
    assert len(crow.updates) < 10 + prompt.took * 80


@pytest.mark.rule("R78")
def test_a_slow_stream_is_not_held_back(open_editor):
    crow = open_editor(script=STORY)
    crow.new_session()
    crow.prompt("go")
    assert [update["content"]["text"] for update in crow.updates] == [
        f"{w} " for w in ["Once", "upon", "a", "time", "there"]
    ] + ["was"]


@pytest.mark.rule("R12", "R13")
def test_eight_sessions_interleave_and_one_cancelled_does_not_touch_the_others(open_editor):
    crow = open_editor(script='[[reply]]\nevents = [{ text = "a b c d e f g h i j k l", pace = 50 }]')
    sessions = [crow.new_session() for _ in range(8)]
    assert len(set(sessions)) == 8
    prompts = [crow.start_prompt("go", session=session) for session in sessions]
    crow.wait_for_text("c", sessions[3])
    crow.cancel(sessions[3])
    assert prompts[3].answer() == {"stopReason": "cancelled"}
    for number, prompt in enumerate(prompts):
        if number != 3:
            assert prompt.answer() == {"stopReason": "end_turn"}
            assert crow.text(sessions[number]) == "a b c d e f g h i j k l"
    order = [m["params"]["sessionId"] for m in crow.received if m.get("method") == "session/update"]
    changes = sum(one != two for one, two in itertools.pairwise(order))
    assert changes > 16


@pytest.mark.rule("R12")
def test_a_question_in_one_session_does_not_hold_up_another(open_editor):
    script = """
    [[reply]]
    when = "ask"
    events = [{ call = "read", arguments = { path = "/etc/hostname" } }]
    [[reply]]
    events = [{ text = "Free." }]
    """
    crow = open_editor(script=script, permit=lambda request: SILENCE)
    waiting = crow.new_session()
    asked = crow.start_prompt("ask", session=waiting)
    crow.wait_for_call("session/request_permission")
    free = crow.new_session()
    assert crow.prompt("hi", session=free) == {"stopReason": "end_turn"}
    assert not asked.done
    crow.cancel(waiting)
    asked.answer()


LONG = "".join(f"{number:07d} " for number in range(500_000))


def stalled(open_editor) -> tuple[Editor, Pending]:
    """A client that has stopped reading in the middle of a reply of four megabytes, until Crow waits for it."""
    crow = open_editor(script=f'[[reply]]\nevents = [{{ text = "Ready. " }}, {{ text = "{LONG}" }}]', cold=True)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Ready.")
    crow.stop_reading()
    crow.wait_until_it_rests()
    return crow, prompt


@pytest.mark.rule("R12", "R78")
def test_a_client_that_stops_reading_for_a_while_loses_nothing(open_editor):
    crow, prompt = stalled(open_editor)
    assert not prompt.done
    crow.read_on()
    assert prompt.answer() == {"stopReason": "end_turn"}
    assert crow.text() == "Ready. " + LONG


@pytest.mark.rule("R12", "R68")
def test_what_it_does_not_read_is_not_piled_up(open_editor):
    """The turn waits for the client: of four megabytes less than one was under way when it was cancelled."""
    crow, prompt = stalled(open_editor)
    crow.cancel()
    crow.read_on()
    assert prompt.answer() == {"stopReason": "cancelled"}
    text = crow.text()
    assert ("Ready. " + LONG).startswith(text)
    assert len(text) < MEBIBYTE
    assert crow.memory() < 150 * MEBIBYTE


@pytest.mark.rule("R49", "R63")
def test_closing_a_session_ends_its_turn_first(open_editor):
    crow = open_editor(script=HANGING)
    crow.new_session()
    prompt = crow.start_prompt("go")
    crow.wait_for_text("Once")
    closing = crow.start("session/close", {"sessionId": crow.session_id})
    assert closing.answer() == {}
    assert prompt.answer() == {"stopReason": "cancelled"}
    order = [message["id"] for message in crow.received if message.get("id") in (prompt.id, closing.id)]
    assert order == [prompt.id, closing.id]
    error = crow.start_prompt("again").error()
    assert error.code == -32002
    assert crow.start("session/close", {"sessionId": crow.session_id}).error().code == -32002


@pytest.mark.rule("R63")
def test_an_unknown_session_is_not_found(open_editor):
    crow = open_editor(script=HELLO)
    error = crow.start_prompt("hi", session="no such").error()
    assert (error.code, error.data) == (-32002, {"uri": "no such"})


@pytest.mark.rule("R33", "R52")
@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"cwd": "relative"}, "cwd"),
        ({"cwd": ""}, "cwd"),
        ({"cwd": "/a\0b"}, "cwd"),
        ({"cwd": "/nowhere/at/all"}, "cwd"),
        ({"cwd": "/etc/hostname"}, "cwd"),
        ({"cwd": None}, "cwd"),
        ({"additionalDirectories": ["relative"]}, "additionalDirectories"),
        ({"additionalDirectories": [""]}, "additionalDirectories"),
        ({"additionalDirectories": ["/tmp", "/nowhere/at/all"]}, "additionalDirectories"),
        ({"additionalDirectories": "/tmp"}, "additionalDirectories"),
        ({"additionalDirectories": [7]}, "additionalDirectories"),
        ({"mcpServers": [{"command": "x"}]}, "mcpServers"),
        ({"mcpServers": 1}, "mcpServers"),
    ],
)
def test_a_session_that_cannot_be_opened_as_asked_is_refused_by_name(open_editor, params: dict[str, Any], named):
    crow = open_editor(script=HELLO)
    error = crow.start("session/new", {"cwd": str(crow.workspace), "mcpServers": []} | params).error()
    assert error.code == -32602
    assert named in error.message


@pytest.mark.rule("R35", "R53")
@pytest.mark.parametrize(
    "params", [{"mcpServers": None}, {"additionalDirectories": None}, {"additionalDirectories": []}]
)
def test_what_is_null_or_empty_counts_as_left_out(open_editor, params):
    """No server is named to the person, and no folder but the session's own is read without asking."""
    script = '[[reply]]\nevents = [{ call = "read", arguments = { path = "/etc/hostname" } }]\n' + HELLO
    crow = open_editor(script=script, capabilities=NOTICES)
    crow.new_session(**params)
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert len(crow.permissions) == 1
    assert crow.notices == []


@pytest.mark.rule("R32")
def test_ids_of_sessions_are_unique_and_fit_for_file_names(open_editor):
    crow = open_editor(script=HELLO)
    ids = [crow.new_session() for _ in range(50)]
    assert len(set(ids)) == 50
    assert [id.split("-")[0] for id in ids] == sorted(id.split("-")[0] for id in ids)
    assert all(set(id) <= set("0123456789abcdef-") for id in ids)


@pytest.mark.rule("R33", "R34", "R84")
def test_each_session_has_a_folder_of_its_own(open_editor, tmp_path):
    crow = open_editor(script='[[reply]]\nevents = [{ call = "read", arguments = { path = "name.txt" } }]\n' + HELLO)
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "name.txt").write_text(f"I am {name}")
        crow.new_session(folder)
        crow.prompt("read")
        assert f"I am {name}" in str(crow.the_call()["content"])
        assert f"Working directory: {folder}" in crow.model_requests()[-1]["system"]


@pytest.mark.rule("R52", "R54", "R34")
def test_further_folders_are_read_without_asking(open_editor, tmp_path):
    more = tmp_path / "more"
    more.mkdir()
    (more / "a.txt").write_text("found it")
    crow = open_editor(script=f'[[reply]]\nevents = [{{ call = "read", arguments = {{ path = "{more}/a.txt" }} }}]')
    crow.new_session(additionalDirectories=[str(more)])
    crow.prompt("read")
    assert crow.permissions == []
    assert "found it" in str(crow.the_call()["content"])


@pytest.mark.rule("R120")
@pytest.mark.parametrize("fs", [{}, {"readTextFile": True}, {"writeTextFile": True}, FILES["fs"]])
def test_the_client_is_asked_for_files_only_if_it_offers_them(open_editor, fs):
    crow = open_editor(
        script='[[reply]]\nevents = [{ call = "read", arguments = { path = "a.txt" } }]', capabilities={"fs": fs}
    )
    (crow.workspace / "a.txt").write_text("disk")
    crow.files[str(crow.workspace / "a.txt")] = "buffer"
    crow.new_session()
    crow.prompt("read")
    expected = "buffer" if fs.get("readTextFile") else "disk"
    assert expected in str(crow.the_call()["content"])


@pytest.mark.rule("R55")
def test_what_was_not_offered_has_no_effect(open_editor):
    crow = open_editor(script=HELLO)
    prompt = {"mode": "override", "content": [{"type": "text", "text": "You are a pirate."}]}
    crow.new_session(systemPrompt=prompt, modeId="auto", configOptions=[{"id": "model", "value": "other"}])
    assert crow.prompt("hi") == {"stopReason": "end_turn"}
    assert "pirate" not in str(crow.model_requests())


@pytest.mark.rule("R146", "R148")
def test_a_request_that_is_withdrawn_is_answered_with_its_own_error(open_editor):
    """Opening a session looks for model servers on this machine; this one accepts and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = {"CROW_LOCAL_SERVERS": f"silent={server.getsockname()[1]}"}
        crow = open_editor(environment=found)
        opening = crow.expect("session/new", "opening")
        params = {"cwd": str(crow.workspace), "mcpServers": []}
        crow.send(
            {"jsonrpc": "2.0", "id": "opening", "method": "session/new", "params": params},
            {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "opening"}},
        )
        assert opening.error().code == -32800
