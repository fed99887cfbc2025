"""What a session has changed so far (`_crow/changes`), and what an undo would take back now (`_crow/undo`)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.editor import FILES, Editor, Json, chose
from tests.support.scripts import DONE, call, edit, reply, run


def opened(open_editor: Callable[..., Editor], *replies: str, **options: Any) -> Editor:
    crow = open_editor(script="".join(replies) + DONE, permit=lambda _: chose("once"), **options)
    (crow.workspace / "a.txt").write_text("one\ntwo\n")
    crow.new_session()
    return crow


def changed(crow: Editor) -> list[Json]:
    files = crow.request("_crow/changes", {"sessionId": crow.session_id})["files"]
    return [file | {"path": str(Path(file["path"]).relative_to(crow.workspace))} for file in files]


def items(crow: Editor, name: str) -> list[Json]:
    params = {"sessionId": crow.session_id, "path": str(crow.workspace / name)}
    return crow.request("_crow/changes", params)["items"]


def preview(crow: Editor) -> Json:
    return crow.request("_crow/undo", {"sessionId": crow.session_id})


TWO_TURNS = (
    reply(edit("a.txt", "one", "1"), call("write", path="new.txt", content="x\n")),
    reply(),
    reply(edit("a.txt", "two", "2\n3")),
)


def test_files_are_compared_with_what_they_held_before_the_session(open_editor):
    crow = opened(open_editor, *TWO_TURNS)
    assert changed(crow) == []
    crow.prompt("first")
    crow.prompt("second")
    assert changed(crow) == [
        {"path": "a.txt", "kind": "modified", "added": 3, "removed": 2, "turn": "t2"},
        {"path": "new.txt", "kind": "added", "added": 1, "removed": 0, "turn": "t1"},
    ]
    [item] = items(crow, "a.txt")
    assert (item["oldText"], item["newText"]) == ("one\ntwo\n", "1\n2\n3\n")
    assert item["diff"] == {"oldLine": 1, "newLine": 1, "changes": [[0, 2, 0, 3]]}
    [new] = items(crow, "new.txt")
    assert (new["oldText"], new["newText"]) == (None, "x\n")
    assert items(crow, "another.txt") == []
    crow.close()
    again = open_editor(folder=crow.folder)
    again.load_session(crow.session_id)
    assert [file["path"] for file in changed(again)] == ["a.txt", "new.txt"]


def test_what_is_as_before_is_not_listed_and_what_is_gone_is(open_editor):
    crow = opened(open_editor, *TWO_TURNS)
    crow.prompt("first")
    (crow.workspace / "a.txt").write_text("one\ntwo\n")
    (crow.workspace / "new.txt").unlink()
    assert changed(crow) == []
    (crow.workspace / "a.txt").unlink()
    assert changed(crow) == [{"path": "a.txt", "kind": "deleted", "added": 0, "removed": 2, "turn": "t1"}]
    [item] = items(crow, "a.txt")
    assert (item["oldText"], item["newText"]) == ("one\ntwo\n", None)


def test_a_file_that_cannot_be_read_is_listed_with_the_reason(open_editor):
    crow = opened(open_editor, *TWO_TURNS)
    crow.prompt("first")
    (crow.workspace / "a.txt").unlink()
    (crow.workspace / "a.txt").symlink_to("new.txt")
    [file, _] = changed(crow)
    assert (file["path"], file["kind"], "symbolic link" in file["problem"]) == ("a.txt", "modified", True)


def test_the_text_in_an_editor_counts(open_editor):
    crow = opened(open_editor, reply(edit("a.txt", "one", "1")), capabilities=FILES)
    path = str(crow.workspace / "a.txt")
    crow.files[path] = "one\ntwo\n"
    crow.prompt("change it")
    crow.files[path] = "1\ntwo\nunsaved\n"
    assert changed(crow) == [{"path": "a.txt", "kind": "modified", "added": 2, "removed": 1, "turn": "t1"}]


def test_an_undo_is_previewed_and_then_does_what_was_shown(open_editor):
    crow = opened(open_editor, *TWO_TURNS)
    assert preview(crow) == {"files": []}
    crow.prompt("first words")
    before = (crow.workspace / "a.txt").read_bytes()
    shown = preview(crow)
    assert (shown["turn"], shown["prompt"]) == ("t1", "first words")
    new, a = shown["files"]
    assert (new["kind"], new["items"][0]["newText"]) == ("deleted", None)
    assert (a["kind"], a["items"][0]["oldText"], a["items"][0]["newText"]) == ("modified", "1\ntwo\n", "one\ntwo\n")
    assert (crow.workspace / "a.txt").read_bytes() == before
    assert len(crow.tool_calls()) == 2, "nothing was done"
    crow.prompt("/undo")
    assert (crow.workspace / "a.txt").read_text() == "one\ntwo\n"
    assert not (crow.workspace / "new.txt").exists()
    assert preview(crow) == {"files": []}


def test_a_preview_says_what_stays_and_why(open_editor):
    crow = opened(open_editor, reply(edit("a.txt", "one", "1"), run("true")))
    crow.prompt("go")
    (crow.workspace / "a.txt").write_text("somebody's own\n")
    shown = preview(crow)
    [file] = shown["files"]
    assert (file["items"], file["blocked"]) == ([], "a.txt has changed since.")
    assert len(shown["remarks"]) == 1


def test_nothing_is_previewed_while_a_turn_runs(open_editor):
    crow = opened(open_editor, reply(run("while [ ! -e go ]; do sleep 0.02; done")))
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: any("in_progress" in str(call) for call in crow.tool_calls().values()), "the command")
    assert crow.start("_crow/undo", {"sessionId": crow.session_id}).error().code == -32600
    (crow.workspace / "go").touch()
    turn.answer()


def test_a_client_of_another_process_is_told_too(tmp_path: Path):
    owner = Editor(tmp_path, script="".join(TWO_TURNS) + DONE, client_info={"name": "owner"})
    owner.permit = lambda _: chose("once")
    (owner.workspace / "a.txt").write_text("one\ntwo\n")
    other = Editor(tmp_path, client_info={"name": "other"})
    try:
        session = owner.new_session()
        owner.prompt("first")
        other.load_session(session)
        assert [file["path"] for file in changed(other)] == ["a.txt", "new.txt"]
        assert preview(other)["turn"] == "t1"
        other.close()
        owner.close()
    finally:
        other.kill()
        owner.kill()
