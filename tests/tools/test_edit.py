"""`edit`, apart from any conversation: what it shows, refuses, does and tells."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.results import DiffBlock, Location, ToolKind
from crow.tools.base import BadArguments
from crow.tools.edit import Edit
from crow.tools.read import ReadTracker
from tests.support.recording import RecordingJournal
from tests.tools.calling import Hand

Given = TypeVar("Given")


def play(folder: Path, work: Callable[[Hand], Awaitable[Given]]) -> Given:
    async def run() -> Given:
        return await work(Hand(LocalWorkspace([str(folder)])))

    return asyncio.run(run())


def test_it_shows_everything_before_anything_is_done(tmp_path):
    path = tmp_path / "src/app.py"
    path.parent.mkdir()
    path.write_text("one\ntwo\nthree\n")

    async def run(hand: Hand) -> None:
        edits = [{"old": "three", "new": "3"}, {"old": "two\n", "new": ""}]
        action = await hand.prepare("edit", path="src/app.py", edits=edits)
        assert action.title == "Edit src/app.py"
        assert (action.deed.tool, action.deed.kind, action.deed.writes) == ("edit", ToolKind.EDIT, (str(path),))
        assert action.display == (DiffBlock(str(path), "modify", "one\ntwo\nthree\n", "one\n3\n"),)
        assert action.locations == (Location(str(path), 2),)
        assert path.read_text() == "one\ntwo\nthree\n"
        result = await action.perform(RecordingJournal())
        assert (result.ok, result.text, result.message) == (True, "Edited src/app.py (+1 −2).", "+1 −2")  # noqa: RUF001
        assert result.display == action.display

    play(tmp_path, run)
    assert path.read_text() == "one\n3\n"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ([], "- `edits` is empty"),
        ([{"old": "", "new": "x"}], "The edit has an empty `old`. To create or rewrite a file use `write`;"),
        ([{"old": "one", "new": "one"}], "The edit changes nothing: `old` and `new` are the same."),
        ([{"old": "one", "new": "1"}, {"old": "", "new": "x"}], "Edit 2 has an empty `old`."),
        ([{"old": "one"}], "- `edits[0].new` is missing"),
        ("one", "- `edits` must be a list, not text"),
    ],
)
def test_arguments_that_make_no_sense(tmp_path, edits, said):
    (tmp_path / "a").write_text("one\n")
    with pytest.raises(BadArguments) as refused:
        play(tmp_path, lambda hand: hand.prepare("edit", path="a", edits=edits))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing", "missing does not exist. To make a new file use `write`."),
        (".", "is a folder"),
        ("binary", "is a binary file"),
        ("read-only", "is read-only"),
        ("crlf", "The edits change nothing in"),
    ],
)
def test_files_that_cannot_be_edited(tmp_path, name, said):
    (tmp_path / "binary").write_bytes(b"one\0")
    (tmp_path / "read-only").write_text("one\r\n")
    (tmp_path / "read-only").chmod(0o400)
    (tmp_path / "crlf").write_bytes(b"one\r\n")
    new = "one\r\n" if name == "crlf" else "two\n"
    with pytest.raises(WorkspaceError) as refused:
        play(tmp_path, lambda hand: hand.edit(name, "one\n", new))
    assert said in str(refused.value)


def test_a_tolerant_match_is_shown_and_told(tmp_path):
    (tmp_path / "a.py").write_text("def f():\n    x = 1\n")

    async def run(hand: Hand) -> str:
        action = await hand.prepare("edit", path="a.py", edits=[{"old": "\tx = 1", "new": "\tx = 2"}])
        [shown] = action.display
        assert isinstance(shown, DiffBlock)
        assert shown.new_text == "def f():\n    x = 2\n"
        return (await action.perform(RecordingJournal())).text

    told = play(tmp_path, run)
    assert told == "Edited a.py (+1 −1).\nThe edit matched at line 2 by overlooking indentation."  # noqa: RUF001
    assert (tmp_path / "a.py").read_text() == "def f():\n    x = 2\n"


def test_in_a_file_that_has_changed_nothing_is_guessed(tmp_path):
    path = tmp_path / "a"
    path.write_text("one\n  two\n")

    async def run(hand: Hand) -> str:
        await hand.call("read", path="a")
        path.write_text("ONE\n  two\n")
        with pytest.raises(WorkspaceError) as refused:
            await hand.edit("a", "two \n", "2\n")
        return str(refused.value)

    told = play(tmp_path, run)
    assert told.startswith(f"{path} has changed since you last saw it. The edit does not apply")
    assert "-one\n+ONE\n" in told
    assert told.endswith("Read it again.")


def test_a_place_that_was_ambiguous_when_it_was_read_is_not_guessed(tmp_path):
    path = tmp_path / "a"
    path.write_text("x\nmiddle\nx\n")

    async def run(hand: Hand) -> None:
        await hand.call("read", path="a")
        path.write_text("middle\nx\n")
        with pytest.raises(WorkspaceError, match="unclear"):
            await hand.edit("a", "x\n", "y\n")

    play(tmp_path, run)


def test_a_secret_is_not_quoted_before_it_was_read(tmp_path):
    (tmp_path / ".env").write_text("KEY=hunter2\n")
    with pytest.raises(WorkspaceError) as refused:
        play(tmp_path, lambda hand: hand.edit(".env", "KEY=hunter1", "KEY="))
    assert "hunter2" not in str(refused.value)


def test_what_was_read_in_part_stays_known_in_part(tmp_path):
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(1, 11)))

    async def run(hand: Hand) -> str:
        await hand.call("read", path="a", limit=5)
        await hand.edit("a", "line 2\n", "line 2\nline 2a\n")
        await hand.call("read", path="a", offset=7, limit=4)
        with pytest.raises(WorkspaceError) as refused:
            await hand.prepare("write", path="a", content="new")
        await hand.call("read", path="a", offset=11)
        assert (await hand.call("write", path="a", content="new")).ok
        return str(refused.value)

    assert "line 11 was not" in play(tmp_path, run)


def test_a_large_file_is_shown_by_its_changes(tmp_path):
    (tmp_path / "a").write_text("".join(f"line {number}\n" for number in range(20_000)))

    async def run(hand: Hand) -> None:
        action = await hand.prepare("edit", path="a", edits=[{"old": "line 9\n", "new": "9\n"}])
        [shown] = action.display
        assert isinstance(shown, DiffBlock)
        assert len(shown.old_text) < 200
        assert action.locations[0].line == 10
        assert (await action.perform(RecordingJournal())).message == "+1 −1"  # noqa: RUF001

    play(tmp_path, run)


@pytest.mark.parametrize(
    ("edits", "shown"),
    [
        ("x", None),
        ([{"old": "a"}], None),
        ([{"old": "a", "new": "half a te"}], [("a", "half a te")]),
        ([{"old": "a", "new": "one"}, {"old": "b", "new": "two"}, 7, {"new": 8}], [("a", "one"), ("b", "two")]),
    ],
)
def test_arguments_that_are_still_arriving(edits: object, shown: list[tuple[str, str]] | None):
    tool = Edit(ReadTracker())
    diffs = tuple(DiffBlock("a.py", "modify", old, new) for old, new in shown) if shown else None
    assert tool.partial_display({"path": "a.py", "edits": edits}) == diffs
    assert tool.partial_display({"edits": edits}) is None
    assert tool.title({"path": "src/app.py"}) == "Edit src/app.py"
    assert tool.title({}) == "Edit"


def test_the_schema_stands_by_itself():
    schema = Edit(ReadTracker()).spec.schema
    assert "$ref" not in str(schema)
    assert list(schema["properties"]["edits"]["items"]["properties"]) == ["old", "new", "all"]
    assert schema["properties"]["edits"]["items"]["required"] == ["old", "new"]
