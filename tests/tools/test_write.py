"""`write`: new files, whole files anew, more at the end; and what must have been read before."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.results import DiffBlock, Location, TextBlock, ToolKind
from crow.tools.base import BadArguments
from crow.tools.read import ReadTracker
from crow.tools.write import Write
from tests.support.buffers import Zed, connected
from tests.support.recording import RecordingJournal
from tests.tools.calling import Hand

Given = TypeVar("Given")


def play(folder: Path, work: Callable[[Hand], Awaitable[Given]]) -> Given:
    async def run() -> Given:
        return await work(Hand(LocalWorkspace([str(folder)])))

    return asyncio.run(run())


def test_it_shows_everything_before_anything_is_done(tmp_path):
    async def run(hand: Hand) -> None:
        action = await hand.prepare("write", path="src/app.py", content="one\ntwo\n")
        path = str(tmp_path / "src/app.py")
        assert action.title == "Write src/app.py"
        assert (action.deed.tool, action.deed.kind, action.deed.writes) == ("write", ToolKind.EDIT, (path,))
        assert action.display == (DiffBlock(path, "add", "", "one\ntwo\n"),)
        assert action.locations == (Location(path, 1),)
        assert list(tmp_path.iterdir()) == []
        result = await action.perform(RecordingJournal())
        assert (result.ok, result.text, result.message) == (True, "Created src/app.py (+2 −0).", "+2 −0")  # noqa: RUF001
        assert result.display == action.display

    play(tmp_path, run)
    assert (tmp_path / "src/app.py").read_bytes() == b"one\ntwo\n"


def test_an_existing_file_must_have_been_read(tmp_path):
    path = tmp_path / "a"
    path.write_text("one\ntwo\nthree\n")

    async def run(hand: Hand) -> list[str]:
        told: list[str] = []

        async def try_to_write() -> None:
            with pytest.raises(WorkspaceError) as refused:
                await hand.prepare("write", path="a", content="new\n")
            told.append(str(refused.value).removeprefix(str(path)).partition(" Nothing was written.")[0])

        await try_to_write()
        await hand.call("read", path="a", limit=1)
        await try_to_write()
        await hand.call("read", path="a", offset=3)
        await try_to_write()
        await hand.call("read", path="a", offset=2, limit=1)
        path.write_text("one\ntwo\nthree\nfour\n")
        await try_to_write()
        await hand.call("read", path="a")
        assert (await hand.call("write", path="a", content="new\n")).ok
        return told

    assert play(tmp_path, run) == [
        " exists and has not been read.",
        " was only partly read: line 2 was not.",
        " was only partly read: line 2 was not.",
        " has changed since it was last read or written.",
    ]
    assert path.read_text() == "new\n"


def test_what_we_wrote_ourselves_we_know(tmp_path):
    async def run(hand: Hand) -> None:
        await hand.call("write", path="a", content="one\ntwo\n")
        await hand.edit("a", "one", "1")
        await hand.call("write", path="a", content="three\n", append=True)
        assert (await hand.call("write", path="a", content="new\n")).ok
        (tmp_path / "b").write_text("one\ntwo\n")
        await hand.edit("b", "one", "1")
        with pytest.raises(WorkspaceError, match="line 1 was not"):  # of that file we know one word
            await hand.prepare("write", path="b", content="new\n")

    play(tmp_path, run)


def test_an_empty_file_holds_nothing_that_could_be_lost(tmp_path):
    (tmp_path / "a").touch()
    assert play(tmp_path, lambda hand: hand.call("write", path="a", content="new\n")).ok


def test_a_line_that_cannot_be_read_in_full_leaves_the_edit(tmp_path):
    (tmp_path / "a").write_text("short\n" + "x" * 5000 + "\n")

    async def run(hand: Hand) -> str:
        await hand.call("read", path="a")
        with pytest.raises(WorkspaceError) as refused:
            await hand.prepare("write", path="a", content="new\n")
        return str(refused.value)

    assert play(tmp_path, run).endswith(
        "a cannot be read in full: line 2 is too long. Nothing was written. Change it with `edit`."
    )


@pytest.mark.parametrize(
    ("before", "content", "after", "kept"),
    [
        (b"one\r\ntwo\r\n", "one\nnew\n", b"one\r\nnew\r\n", "Kept the file's line ends."),
        (b"one\r\ntwo\r\n", "one\r\nnew\r\n", b"one\r\nnew\r\n", ""),
        (b"one\ntwo\n", "one\nnew\n", b"one\nnew\n", ""),
        (b"one\ntwo\n", "one\r\nnew\n", b"one\r\nnew\n", ""),
        (b"a\r\nb\nc\r\nd\r\n", "a\nb\nC\nd\ne\n", b"a\r\nb\nC\r\nd\r\ne\r\n", "Kept the file's line ends."),
        (b"a\rb\r", "a\nc\n", b"a\rc\r", "Kept the file's line ends."),
        (b"\xef\xbb\xbfone\n", "two\n", b"\xef\xbb\xbftwo\n", "Kept the file's byte order mark."),
        ("grüße\n".encode("latin-1"), "grün\n", "grün\n".encode("latin-1"), "Kept the file's encoding (Latin-1)."),
        (
            "a\r\n".encode("utf-16"),
            "ü\n",
            "ü\r\n".encode("utf-16"),
            "Kept the file's line ends, encoding (UTF-16), byte order mark.",
        ),
    ],
)
def test_a_file_written_anew_keeps_its_ways(tmp_path, before, content, after, kept):
    (tmp_path / "a").write_bytes(before)

    async def run(hand: Hand) -> str:
        await hand.call("read", path="a")
        return (await hand.call("write", path="a", content=content)).text

    told = play(tmp_path, run)
    assert (tmp_path / "a").read_bytes() == after
    assert kept in told
    assert bool(kept) == ("Kept" in told)


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (None, "new\n", b"new\n"),
        (b"", "new\n", b"new\n"),
        (b"one", " and more", b"one and more"),
        (b"one\n", "two\n", b"one\ntwo\n"),
        (b"one\r\n", "two\n", b"one\r\ntwo\r\n"),
        (b"one\r\ntwo\n", "three", b"one\r\ntwo\nthree"),
    ],
)
def test_appending_needs_no_reading(tmp_path, before, content, after):
    if before is not None:
        (tmp_path / "a").write_bytes(before)
    result = play(tmp_path, lambda hand: hand.call("write", path="a", content=content, append=True))
    assert (tmp_path / "a").read_bytes() == after
    assert result.text.startswith("Created" if before is None else "Appended to")


def test_the_same_text_again_is_not_written(tmp_path):
    path = tmp_path / "a"
    path.write_text("one\n")

    async def run(hand: Hand) -> str:
        await hand.call("read", path="a")
        inode = path.stat().st_ino
        result = await hand.call("write", path="a", content="one\n")
        assert path.stat().st_ino == inode
        return result.message

    assert play(tmp_path, run) == "unchanged"


def test_what_cannot_be_written_is_said_before_anyone_is_asked(tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "a").chmod(0o444)
    (tmp_path / "b").write_bytes("ü\n".encode("latin-1"))

    async def run(hand: Hand) -> None:
        for name in "ab":
            await hand.call("read", path=name)
        with pytest.raises(WorkspaceError, match="is read-only"):
            await hand.prepare("write", path="a", content="new\n")
        with pytest.raises(WorkspaceError, match="which has no “€”"):
            await hand.prepare("write", path="b", content="5 €\n")
        with pytest.raises(WorkspaceError, match="null character"):
            await hand.prepare("write", path="c", content="a\0b")
        with pytest.raises(WorkspaceError, match="is a folder"):
            await hand.prepare("write", path=".", content="x")
        with pytest.raises(BadArguments, match="content"):
            await hand.prepare("write", path="c")

    play(tmp_path, run)


def test_a_formatting_editor_is_told_of_and_must_be_read_again(tmp_path):
    editor = Zed(tmp_path)
    editor.format = lambda text: text.replace("=", " = ")

    async def run() -> None:
        async with connected(tmp_path, editor) as workspace:
            hand = Hand(workspace)
            result = await hand.call("write", path="a.py", content="x=1\ny=2\n")
            assert result.message == "+2 −0. It changed when it was saved."  # noqa: RUF001
            assert "-x=1\n-y=2\n+x = 1\n+y = 2\n" in result.text
            assert result.display == (DiffBlock(str(tmp_path / "a.py"), "add", "", "x = 1\ny = 2\n"),)
            with pytest.raises(WorkspaceError, match="Read "):
                await hand.prepare("write", path="a.py", content="z = 3\n")
            assert (await hand.edit("a.py", "x = 1", "x = 10")).ok

    asyncio.run(run())
    assert (tmp_path / "a.py").read_text() == "x  =  10\ny  =  2\n"


def test_what_was_done_apart_from_the_text_is_in_the_message(tmp_path):
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    result = play(tmp_path, lambda hand: hand.edit("a", "one", "two"))
    assert result.message.startswith("+1 −1. A hard link ")  # noqa: RUF001


def test_arguments_that_are_still_arriving():
    tool = Write(ReadTracker())
    assert tool.title({}) == "Write"
    assert tool.title({"path": "src/app.py"}) == "Write src/app.py"
    assert tool.partial_display({"path": "a", "content": "half a te"}) == TextBlock("half a te")
    assert tool.partial_display({"path": "a"}) is None
    assert tool.partial_display({"content": 7}) is None


def test_unknown_arguments_are_named(tmp_path):
    result = play(tmp_path, lambda hand: hand.call("write", path="a", content="x", mode="w"))
    assert result.text.endswith("\n(ignored unknown arguments: mode)")


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr("crow.tools.read.MOST_REMEMBERED", 100)
    seen = ReadTracker()
    for number in range(10):
        seen.note_written(f"/{number}", "x" * 30)
    assert [seen.text(f"/{number}") is not None for number in range(10)] == [False] * 7 + [True] * 3
    seen.note_written("/large", "x" * 101)
    assert seen.gap("/large", "x" * 101) == "/large exists and has not been read."
