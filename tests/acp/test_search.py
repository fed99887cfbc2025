"""`_crow/search`: sessions by what was said in them and by their titles, over an index that forgets what is deleted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.databases import database
from tests.support.editor import Editor, ErrorAnswer, Json
from tests.support.scripts import DONE, call, reply, run, say

ANSWERS = (
    reply(say("The **zebrafish** swims in `tank_seven`."), when="fish")
    + reply(call("read", path="nothing.txt"), when="tools")
    + DONE
)


@pytest.fixture
def crow(open_editor: Callable[..., Editor]) -> Editor:
    return open_editor(script=ANSWERS)


def talk(crow: Editor, *prompts: str) -> str:
    session = crow.new_session()
    for prompt in prompts:
        crow.prompt(prompt)
    return session


def search(crow: Editor, query: str, **more: int) -> list[Json]:
    return crow.request("_crow/search", {"query": query, **more})["matches"]


def ids(crow: Editor, query: str, **more: int) -> list[str]:
    return [match["sessionId"] for match in search(crow, query, **more)]


def test_titles_are_found_before_texts_and_hits_are_marked(crow):
    text = talk(crow, "What about fish?")
    title = talk(crow, "All about the zebrafish")
    first, second = search(crow, "ZEBRA")
    assert (first["sessionId"], first["where"], first["title"]) == (title, "title", "All about the zebrafish")
    assert (second["sessionId"], second["where"], second["cwd"]) == (text, "text", str(crow.workspace))
    assert second["parts"] == [
        {"text": "The **", "hit": False},
        {"text": "zebrafish", "hit": True},
        {"text": "** swims in `tank_seven`.", "hit": False},
    ]
    assert ids(crow, "zebra", limit=1) == [title]


def test_all_words_must_be_there_and_may_be_beginnings(crow):
    talk(crow, "What about fish?")
    [session] = ids(crow, "swim tank")
    assert ids(crow, "tank_sev") == ids(crow, "fish what") == [session]
    assert ids(crow, "swim elephant") == ids(crow, "wim") == ids(crow, "") == ids(crow, "  ") == []


UNSPACED = {
    "Chinese": ("请修复登录页面的错误", "登录页面"),
    "Japanese": ("ログイン画面のエラーを直してください", "エラー"),
    "Thai": ("ช่วยแก้ข้อผิดพลาดในหน้าเข้าสู่ระบบ", "ผิดพลาด"),
    "beside Latin": ("把README.md翻译成中文", "翻译"),
    "Latin inside": ("把README.md翻译成中文", "readme"),
}


@pytest.mark.parametrize("script", UNSPACED)
def test_words_are_found_in_the_middle_where_a_script_has_no_spaces(crow, script):
    text, words = UNSPACED[script]
    session = talk(crow, "Something else", text)
    assert ids(crow, words) == [session]
    [match] = search(crow, words)
    assert "".join(part["text"] for part in match["parts"]) == text
    assert "".join(part["text"] for part in match["parts"] if part["hit"]).lower() == words
    assert ids(crow, words[::-1]) == []


def test_what_is_said_later_and_a_new_title_are_found_too(crow):
    session = talk(crow, "First words")
    assert ids(crow, "later") == []
    crow.prompt("Something later")
    assert ids(crow, "later") == [session]
    crow.prompt("/rename Quite another name")
    [match] = search(crow, "another")
    assert (match["where"], match["title"]) == ("title", "Quite another name")
    assert [match["where"] for match in search(crow, "first")] == ["text"]
    assert len(search(crow, "later")[0]["parts"]) == 2, "nothing is indexed twice"


HOSTILE = (
    *('"', '""', "AND", "NOT", "a OR", "NEAR(", "fish*", "^fish", "-fish", "text:fish", "{text}", "(", ")", "*"),
    *("fish AND", "\0", "\x02\x03", "💥", "x" * 5000, "a " * 500, '"fish', 'fi"sh', "'; DROP TABLE texts; --"),
)


@pytest.mark.parametrize("query", HOSTILE)
def test_no_query_is_anything_but_words(crow, query):
    talk(crow, "What about fish?")
    assert all(match["parts"] for match in search(crow, query))
    assert len(ids(crow, "fish")) == 1


def test_wrong_parameters_are_refused(crow):
    for params in ({}, {"query": 1}, {"query": "x", "limit": 0}, {"query": "x", "limit": "many"}):
        with pytest.raises(ErrorAnswer, match="-32602"):
            crow.request("_crow/search", params)


def bytes_below(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.iterdir() if path.is_file() and path.name != "record.jsonl")


def test_nothing_is_left_of_a_deleted_session(crow):
    kept = talk(crow, "Remember the quokka")
    talk(crow, "What about fish? unmistakable", "more unmistakable words")
    deleted = crow.session_id
    assert ids(crow, "unmistakable") == [deleted]
    assert b"unmistakab" in (crow.home / "search.db").read_bytes()
    crow.request("session/delete", {"sessionId": deleted})
    assert ids(crow, "unmistakable") == ids(crow, "zebrafish") == []
    assert ids(crow, "quokka") == [kept]
    crow.close()
    (crow.home / "script.toml").unlink()
    left = bytes_below(crow.home)
    for word in (b"unmistakab", b"nmistakable", b"zebrafish", b"ebrafish", deleted.encode()):
        assert word not in left
    assert b"quokka" in left


def test_what_an_older_crow_deleted_is_purged_with_the_next_search(crow):
    talk(crow, "unmistakable")
    session = talk(crow, "quokka")
    assert len(ids(crow, "unmistakable")) == 1
    with database(crow.home / "sessions.db") as connection:
        connection.execute("DELETE FROM sessions WHERE id != ?", (session,))
    assert ids(crow, "unmistakable") == []
    assert b"unmistakab" not in (crow.home / "search.db").read_bytes()


def test_an_index_that_is_damaged_or_of_another_version_is_made_anew(crow):
    session = talk(crow, "What about fish?")
    assert ids(crow, "fish") == [session]
    with database(crow.home / "search.db") as connection:
        connection.execute("PRAGMA user_version = 99")
    assert ids(crow, "fish") == [session]
    (crow.home / "search.db").write_bytes(b"no database at all" * 100)
    (crow.home / "search.db-journal").write_bytes(b"what is to be put back into it" * 100)
    assert ids(crow, "fish") == [session]
    assert (crow.home / "search.db").stat().st_mode & 0o777 == 0o600
    assert not (crow.home / "search.db-journal").exists()


def test_a_damaged_index_keeps_no_session_from_being_deleted(crow):
    session = talk(crow, "What about fish?")
    assert ids(crow, "fish") == [session]
    (crow.home / "search.db").write_bytes(b"no database at all, but fish" * 100)
    crow.request("session/delete", {"sessionId": session})
    assert ids(crow, "fish") == []
    assert b"fish" not in (crow.home / "search.db").read_bytes()


def test_nothing_is_indexed_before_somebody_searches(crow):
    talk(crow, "What about fish?")
    assert not (crow.home / "search.db").exists()


def test_a_running_turn_is_found_once_it_has_ended_and_holds_up_no_search(open_editor):
    script = reply(run("while [ ! -e go ]; do sleep 0.02; done"), when="wait") + DONE
    crow = open_editor(script=script, config='[permission]\nrules = [{tool = "terminal", decision = "allow"}]')
    crow.new_session()
    turn = crow.start_prompt("wait for the capybara")
    crow.wait_until(lambda: bool(crow.tool_calls()), "the command")
    assert [match["where"] for match in search(crow, "capybara")] == ["title"]
    (crow.workspace / "go").touch()
    turn.answer()
    assert ids(crow, "capybara") == [crow.session_id]


def test_two_processes_search_and_delete_at_the_same_time(crow):
    sessions = [talk(crow, f"common word{number}") for number in range(6)]
    other = Editor(crow.folder, client_info={"name": "other"})
    try:
        searches = [each.start("_crow/search", {"query": "common"}) for each in (crow, other) for _ in range(5)]
        other.request("session/delete", {"sessionId": sessions[0]})
        for pending in searches:
            found = [match["sessionId"] for match in pending.answer()["matches"]]
            assert len(found) == len(set(found))
        assert sorted(ids(crow, "common")) == sorted(ids(other, "common")) == sorted(sessions[1:])
        other.close()
    finally:
        other.kill()
