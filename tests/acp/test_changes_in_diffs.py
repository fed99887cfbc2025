"""Which lines of a diff are changed, for clients that ask for it: in questions, results and replays."""

from pathlib import Path
from typing import Any

from tests.support.editor import Editor, Json, chose
from tests.support.scripts import DONE, call, edit, reply

ASKS = {"changes": True}


def diffs_in(content: list[Json]) -> list[Json]:
    return [item for item in content if item["type"] == "diff"]


def lines(text: str | None) -> list[str]:
    return (text or "").splitlines(keepends=True)


def applied(item: Json) -> str:
    """The new text, made of the old one and of the new one's changed lines alone."""
    old, new = lines(item["oldText"]), lines(item["newText"])
    made: list[str] = []
    at = 0
    for old_start, old_count, new_start, new_count in item["_meta"]["crow"]["diff"]["changes"]:
        made += old[at:old_start] + new[new_start : new_start + new_count]
        at = old_start + old_count
    return "".join(made + old[at:])


def opened(open_editor: Any, *replies: str, crow: Json | None = ASKS) -> Editor:
    editor = open_editor(script="".join(replies) + DONE, crow=crow, permit=lambda _: chose("once"))
    editor.new_session()
    return editor


def numbered(count: int, size: int = 1) -> str:
    return "".join(f"line {number} {'x' * size}\n" for number in range(1, count + 1))


def test_questions_results_and_replays_say_which_lines_are_changed(open_editor):
    two = [{"old": "line 2 x", "new": "second"}, {"old": "line 9 x\n", "new": ""}]
    crow = opened(open_editor, reply(call("edit", path="a.txt", edits=two)))
    (crow.workspace / "a.txt").write_text(numbered(10))
    crow.prompt("change it")
    [asked] = diffs_in(crow.permissions[0]["toolCall"]["content"])
    assert asked["_meta"] == {"crow": {"diff": {"oldLine": 1, "newLine": 1, "changes": [[1, 1, 1, 1], [8, 1, 8, 0]]}}}
    assert applied(asked) == asked["newText"] == (crow.workspace / "a.txt").read_text()
    assert diffs_in(crow.the_call()["content"]) == [asked]
    crow.close()
    again = open_editor(folder=crow.folder, crow=ASKS)
    again.load_session(crow.session_id)
    assert diffs_in(again.the_call()["content"]) == [asked]
    again.close()


def test_a_large_file_is_shown_in_parts_that_say_where_they_lie(open_editor):
    two = [{"old": "line 7 ", "new": "seventh "}, {"old": "line 2900 ", "new": "more\nline 2900 "}]
    crow = opened(open_editor, reply(call("edit", path="a.txt", edits=two)))
    path = crow.workspace / "a.txt"
    path.write_text(numbered(3000, 100))
    crow.prompt("change it")
    first, second = diffs_in(crow.permissions[0]["toolCall"]["content"])
    assert first["_meta"]["crow"]["diff"] == {"oldLine": 4, "newLine": 4, "changes": [[3, 1, 3, 1]]}
    assert second["_meta"]["crow"]["diff"] == {"oldLine": 2897, "newLine": 2897, "changes": [[3, 0, 3, 1]]}
    after = lines(path.read_text())
    for item in (first, second):
        place = item["_meta"]["crow"]["diff"]["newLine"] - 1
        assert lines(applied(item)) == after[place : place + len(lines(item["newText"]))]
    crow.close()
    again = open_editor(folder=crow.folder, crow=ASKS)
    again.load_session(crow.session_id)
    assert diffs_in(again.the_call()["content"]) == [first, second]
    again.close()


def test_a_new_file_is_one_change_and_an_undone_one_too(open_editor):
    crow = opened(open_editor, reply(call("write", path="new.txt", content="a\nb\n")))
    crow.prompt("write it")
    [made] = diffs_in(crow.the_call()["content"])
    assert "oldText" not in made
    assert made["_meta"]["crow"]["diff"]["changes"] == [[0, 0, 0, 2]]
    crow.prompt("/undo")
    *_, removed = crow.tool_calls().values()
    assert diffs_in(removed["content"])[0]["_meta"]["crow"]["diff"]["changes"] == [[0, 2, 0, 0]]
    crow.close()


def test_a_client_that_does_not_ask_is_told_nothing(open_editor):
    crow = opened(open_editor, reply(edit("a.txt", "one", "1")), crow=None)
    (crow.workspace / "a.txt").write_text("one\n")
    crow.prompt("change it")
    assert not any("_meta" in item for item in diffs_in(crow.permissions[0]["toolCall"]["content"]))
    assert not any("_meta" in item for item in diffs_in(crow.the_call()["content"]))
    crow.close()


def test_a_client_of_another_process_is_told_too(tmp_path: Path):
    """Through the relay: what a client says of itself goes with it."""
    owner = Editor(tmp_path, script=reply(edit("a.txt", "one", "1")) + DONE, client_info={"name": "owner"})
    asker = Editor(tmp_path, client_info={"name": "asker"}, crow=ASKS, permit=lambda _: chose("once"))
    try:
        (owner.workspace / "a.txt").write_text("one\n")
        session = owner.new_session()
        owner.permit = lambda _: {"outcome": {"outcome": "cancelled"}}
        asker.load_session(session)
        asker.prompt("change it")
        [shown] = diffs_in(asker.permissions[0]["toolCall"]["content"])
        assert shown["_meta"]["crow"]["diff"]["changes"] == [[0, 1, 0, 1]]
        assert not any("_meta" in item for item in diffs_in(owner.permissions[0]["toolCall"]["content"]))
        asker.close()
        owner.close()
    finally:
        asker.kill()
        owner.kill()
