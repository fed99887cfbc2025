"""The list of sessions: what is in it, in which order, page by page; and how sessions come by their titles."""

import re

import pytest

from tests.support.editor import Editor

HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello there." }]'


def listed(crow: Editor, **params: object) -> list[str]:
    return [entry["sessionId"] for entry in crow.request("session/list", params)["sessions"]]


@pytest.mark.rule("R50", "R38")
def test_sessions_with_something_in_them_are_listed_newest_first(open_editor):
    crow = open_editor(script=HELLO)
    assert crow.request("session/list") == {"sessions": []}
    first, second = crow.new_session(), crow.new_session()
    crow.new_session()  # nothing is said in this one
    crow.prompt("one", session=first)
    crow.prompt("two", session=second)
    assert listed(crow) == [second, first]
    crow.prompt("more", session=first)
    assert listed(crow) == [first, second]
    entry = crow.request("session/list")["sessions"][0]
    assert set(entry) == {"sessionId", "cwd", "title", "updatedAt"}
    assert (entry["cwd"], entry["title"]) == (str(crow.workspace), "one")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["updatedAt"])


@pytest.mark.rule("R50")
def test_a_folder_filters_by_equality(open_editor, tmp_path):
    crow = open_editor(script=HELLO)
    one, two = tmp_path / "one", tmp_path / "one" / "two"
    two.mkdir(parents=True)
    ids = {folder: crow.new_session(folder) for folder in (one, two)}
    for session in ids.values():
        crow.prompt("hi", session=session)
    assert listed(crow, cwd=str(one)) == [ids[one]]
    assert listed(crow, cwd=f"{two}/") == [ids[two]]
    assert listed(crow, cwd="/nowhere/at/all") == []
    assert crow.start("session/list", {"cwd": "relative"}).error().code == -32602


@pytest.mark.rule("R50")
def test_a_folder_is_found_through_a_link_too(open_editor, tmp_path):
    crow = open_editor(script=HELLO)
    folder, link = tmp_path / "one", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    session = crow.new_session(folder)
    crow.prompt("hi")
    (entry,) = crow.request("session/list", {"cwd": str(link)})["sessions"]
    assert (entry["sessionId"], entry["cwd"]) == (session, str(folder))


@pytest.mark.rule("R51")
def test_pages_follow_each_other_without_a_gap(open_editor):
    crow = open_editor(script=HELLO)
    ids = [crow.new_session() for _ in range(53)]
    for session in ids:
        crow.prompt("hi", session=session)
    first = crow.request("session/list", {"cwd": str(crow.workspace)})
    assert len(first["sessions"]) == 50
    rest = crow.request("session/list", {"cwd": str(crow.workspace), "cursor": first["nextCursor"]})
    assert "nextCursor" not in rest
    found = [entry["sessionId"] for entry in first["sessions"] + rest["sessions"]]
    assert found == list(reversed(ids))


@pytest.mark.rule("R51")
@pytest.mark.parametrize("cursor", ["nonsense", "é", "x" * 10_000, "MTIz"])
def test_a_cursor_that_we_never_gave_out_is_refused(open_editor, cursor):
    crow = open_editor(script=HELLO)
    assert crow.start("session/list", {"cursor": cursor}).error().code == -32602


@pytest.mark.rule("R50", "R51")
def test_what_is_null_counts_as_left_out(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.prompt("hi")
    assert listed(crow, cwd=None, cursor=None) == [crow.session_id]


@pytest.mark.rule("R50")
def test_sessions_of_other_processes_are_listed_without_a_model_and_not_touched(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("hi")
    (crow.home / "config.toml").unlink()
    other = open_editor(folder=crow.folder)
    assert listed(other) == [session]
    assert crow.prompt("still mine") == {"stopReason": "end_turn"}


@pytest.mark.rule("R50", "R53")
def test_further_folders_are_listed_with_the_session(open_editor, tmp_path):
    crow = open_editor(script=HELLO)
    crow.new_session(additionalDirectories=[str(tmp_path)])
    crow.prompt("hi")
    assert crow.request("session/list")["sessions"][0]["additionalDirectories"] == [str(tmp_path)]


# --- titles


def titles(crow: Editor) -> list[str]:
    updates = crow.all_updates_of(crow.session_id)
    return [update["title"] for update in updates if update["sessionUpdate"] == "session_info_update"]


@pytest.mark.rule("R143")
def test_a_session_is_called_after_its_first_prompt_and_keeps_the_name(open_editor):
    crow = open_editor(script=HELLO)
    session = crow.new_session()
    crow.prompt("  Mend   the parser\nand its tests")
    crow.prompt("something else")
    assert titles(crow) == ["Mend the parser"]
    assert crow.request("session/list")["sessions"][0]["title"] == "Mend the parser"
    crow.close()
    other = open_editor(folder=crow.folder)
    other.load_session(session)
    other.prompt("and again")
    assert titles(other) == ["Mend the parser"]  # told once, with the load
    assert other.request("session/list")["sessions"][0]["title"] == "Mend the parser"


@pytest.mark.rule("R143", "R128")
def test_a_command_for_crow_itself_gives_no_name(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.prompt("/help")
    crow.prompt("/context  \nand more")
    assert titles(crow) == []
    assert crow.request("session/list")["sessions"][0]["title"] == "/help"  # in a list it has to be called something
    crow.prompt("Mend it")
    assert titles(crow) == ["Mend it"]
    assert crow.request("session/list")["sessions"][0]["title"] == "Mend it"
    crow.prompt("/help")
    assert crow.request("session/list")["sessions"][0]["title"] == "Mend it"
