"""What a server's call is about, as its arguments say it: a target for the title, a diff for the question."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET, UnsetType

from crow.mcp.client.changes import (
    LARGEST_DIFF,
    PastChange,
    PastChanges,
    change_meant,
    command_of,
    partial_change,
    target_of,
    text_now,
)
from crow.results import DiffBlock, TextBlock


def changes(
    folder: Path, past: PastChanges | None = None, tool: str = "", /, **arguments: Any
) -> tuple[DiffBlock, ...]:
    meant = change_meant(arguments, tool, past or PastChanges(), [str(folder)])
    return asyncio.run(meant).diffs


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        ({"command": "view", "path": "a.py"}, "a.py"),
        ({"query": "crows", "limit": 3}, "crows"),
        ({"path": 3, "url": "https://example.org"}, "https://example.org"),
        ({"limit": 3}, ""),
    ],
)
def test_a_target(arguments, target):
    assert target_of(arguments) == target


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({"command": "view", "path": "a.py"}, "view"),
        ({"command": "make"}, ""),  # the target itself
        ({"command": "undo_edit"}, "undo_edit"),  # the path is still to come
        ({"command": "rm -rf x", "path": "a.py"}, ""),
        ({"command": 3, "path": "a.py"}, ""),
    ],
)
def test_what_is_done_with_the_target(arguments, command):
    assert command_of(arguments) == command


@pytest.mark.parametrize("names", [("old_str", "new_str"), ("old_string", "new_string"), ("oldText", "newText")])
def test_a_replacement_is_a_diff(tmp_path, names):
    old, new = names
    path = str(tmp_path / "a.py")
    assert changes(tmp_path, path="a.py", **{old: "one", new: "1"}) == (DiffBlock(path, "modify", "one", "1"),)
    edits = [{old: "one", new: "1"}, {old: "two", new: "2"}, "nonsense"]
    assert [(diff.old_text, diff.new_text) for diff in changes(tmp_path, path=path, edits=edits)] == [
        ("one", "1"),
        ("two", "2"),
    ]


def test_a_whole_file_is_a_diff_with_what_is_there(tmp_path):
    path = str(tmp_path / "a.py")
    assert changes(tmp_path, path="a.py", content="new\n") == (DiffBlock(path, "add", "", "new\n"),)
    (tmp_path / "a.py").write_text("old\n")
    assert changes(tmp_path, path="a.py", file_text="new\n") == (DiffBlock(path, "modify", "old\n", "new\n"),)


@pytest.mark.parametrize("name", ["new_str", "insert_text"])
@pytest.mark.parametrize(
    ("line", "after"), [(0, "new\r\none\r\ntwo"), (1, "one\r\nnew\r\ntwo"), (2, "one\r\ntwo\r\nnew")]
)
def test_lines_that_are_inserted_are_a_diff_with_what_is_there(tmp_path, name, line, after):
    path = tmp_path / "a.py"
    path.write_bytes(b"one\r\ntwo")
    arguments = {"command": "insert", "path": "a.py", "insert_line": line, name: "new"}
    assert changes(tmp_path, **arguments) == (DiffBlock(str(path), "modify", "one\r\ntwo", after),)
    assert changes(tmp_path, **arguments | {"insert_line": 3}) == ()
    assert changes(tmp_path, **arguments | {"path": "missing"}) == ()


def test_an_undo_shows_what_it_takes_back_unless_somebody_else_has_been_there(tmp_path):
    path, past = str(tmp_path / "a.py"), PastChanges()
    undo = {"command": "undo_edit", "path": "a.py"}
    assert changes(tmp_path, past, **undo) == ()
    past.add(PastChange(path, None, "one\n"))
    past.add(PastChange(path, "one\n", "1\n"))
    (tmp_path / "a.py").write_text("1\n")
    assert changes(tmp_path, past, **undo) == (DiffBlock(path, "modify", "1\n", "one\n"),)
    assert changes(tmp_path, past, "undo_edit", path="a.py") == changes(tmp_path, past, **undo)
    (tmp_path / "a.py").write_text("somebody else's\n")
    assert changes(tmp_path, past, **undo) == ()
    (last,) = [past.last(path)]
    assert last is not None
    past.forget(last)
    (tmp_path / "a.py").write_text("one\n")
    assert changes(tmp_path, past, **undo) == (DiffBlock(path, "delete", "one\n", ""),)


def test_a_file_that_cannot_be_read_is_not_taken_for_one_that_is_not_there(tmp_path):
    def now(**arguments: str) -> str | UnsetType | None:
        meant = change_meant(arguments, "", PastChanges(), [str(tmp_path)])

        async def story() -> str | UnsetType | None:
            return await text_now(await meant)

        return asyncio.run(story())

    (tmp_path / "binary").write_bytes(b"\0\xff\xfe" * 100)
    (tmp_path / "text").write_text("one\n")
    for name, text in (("missing", None), ("text", "one\n"), ("binary", UNSET)):
        assert now(path=name, old_str="one", new_str="1") == text
    assert now(path="text") is UNSET, "no change is meant"


def test_former_texts_are_kept_within_bounds():
    past = PastChanges()
    for number in range(10):
        past.add(PastChange(f"/a{number}", "x" * 400_000, "y" * 400_000))
    assert [past.last(f"/a{number}") is not None for number in range(10)] == [False] * 5 + [True] * 5


def test_nothing_is_shown_of_what_lies_outside_is_too_large_or_is_no_change(tmp_path):
    (tmp_path / "link").symlink_to("/etc")
    assert changes(tmp_path, path="/etc/passwd", content="x") == ()
    assert changes(tmp_path, path="link/passwd", content="x") == ()
    assert changes(tmp_path, path="../a.py", old_str="one", new_str="1") == ()
    assert changes(tmp_path, path="a.py", content="x" * (LARGEST_DIFF + 1)) == ()
    assert changes(tmp_path, path="a.py", old_str="one", new_str=1) == ()
    assert changes(tmp_path, path="a.py") == ()
    assert changes(tmp_path, path="a\0b", content="x") == ()
    assert changes(tmp_path, content="x") == ()


def test_a_change_is_shown_while_it_arrives():
    assert partial_change({"file_path": "a.py", "old_string": "one"}) is None
    growing = {"file_path": "a.py", "old_string": "one", "new_string": "1"}
    assert partial_change(growing) == (DiffBlock("a.py", "modify", "one", "1"),)
    edits = [{"oldText": "one", "newText": "1"}, {"oldText": "tw"}]
    assert partial_change({"path": "a.py", "edits": edits}) == (DiffBlock("a.py", "modify", "one", "1"),)
    assert partial_change({"path": "a.py", "file_text": "x = "}) == TextBlock("x = ", language="py")
    inserted = {"command": "insert", "path": "a.py", "insert_line": 3, "new_str": "x = "}
    assert partial_change(inserted) == TextBlock("x = ", language="py")


def test_nothing_is_shown_of_a_path_that_may_be_half_there_or_of_what_is_no_change():
    assert partial_change({"old_str": "one", "new_str": "1", "path": "src/ne"}) is None
    assert partial_change({"old_str": "one", "new_str": "1"}) is None
    assert partial_change({"path": "a.py", "limit": 3}) is None
    assert partial_change({}) is None
