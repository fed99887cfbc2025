"""The editor's buffers and the disk beneath them: which text counts, which way a write goes, and when it must not."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crow.acp import wire
from crow.acp import workspace as client
from crow.acp.workspace import ClientWorkspace
from crow.errors import ClientRefused, StaleFile, WorkspaceError
from crow.files.base import Document
from crow.files.resolved_path import ResolvedPath
from crow.files.text import LineRange
from crow.rpc.connection import PendingRequest
from crow.rpc.jsonrpc import RpcError
from tests.support.buffers import RawEditor, Toad, Zed, connected
from tests.support.patience import DEADLINE

Work = Callable[[ClientWorkspace], Awaitable[None]]


def play(editor: RawEditor, work: Work, **capabilities: bool) -> None:
    async def run() -> None:
        async with connected(editor.root, editor, **capabilities) as workspace, asyncio.timeout(DEADLINE):
            await work(workspace)

    asyncio.run(run())


async def read(workspace: ClientWorkspace, path: Path) -> Document:
    document = await workspace.read_document(ResolvedPath(str(path)))
    assert document is not None
    return document


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    return file


# --- which text counts


@pytest.mark.parametrize("kind", [RawEditor, Zed, Toad])
def test_unsaved_text_is_what_is_read_and_changed(path, kind):
    editor = kind(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        editor.typed(str(path), lambda text: text + "typed\n")
        before = await read(workspace, path)
        assert (before.text, before.unsaved, before.obstacle) == ("one\ntwo\ntyped\n", True, "")
        assert await workspace.read_text(ResolvedPath(str(path))) == before.text
        after = await workspace.write_document(ResolvedPath(str(path)), before.text + "ours\n", before)
        assert (after.text, after.unsaved, after.remarks) == ("one\ntwo\ntyped\nours\n", False, ())

    play(editor, run)
    assert path.read_text() == "one\ntwo\ntyped\nours\n"
    assert editor.unsaved == {}


SHOWN_OTHERWISE = {
    "crlf": b"one\r\ntwo\r\n",
    "cr": b"one\rtwo\r",
    "mixed": b"one\r\ntwo\nthree\r",
    "mark": b"\xef\xbb\xbfone\n",
    "latin-1": "grüße\n".encode("latin-1"),
    "utf-16": "grüße\n".encode("utf-16"),
}


@pytest.mark.parametrize("content", SHOWN_OTHERWISE.values(), ids=SHOWN_OTHERWISE)
@pytest.mark.parametrize("kind", [RawEditor, Zed, Toad])
def test_what_an_editor_cannot_show_is_no_change_of_the_person(path, kind, content):
    editor = kind(path.parent)
    path.write_bytes(content)

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        assert (before.unsaved, before.obstacle) == (False, "")
        await workspace.write_document(ResolvedPath(str(path)), before.text + "ü", before)

    play(editor, run)
    assert path.read_bytes() != content
    assert path.read_bytes().startswith(content)


@pytest.mark.parametrize(
    ("content", "lost"),
    [
        (b"one\r\ntwo\r\n", "line endings"),
        (b"one\r\ntwo\n", "line endings"),
        (b"\xef\xbb\xbfone\n", "byte order mark"),
        ("grüße\n".encode("latin-1"), "encoding"),
        ("grüße\n".encode("utf-16"), "encoding"),
    ],
)
def test_unsaved_text_whose_bytes_could_not_be_kept_is_refused(path, content, lost):
    editor = Zed(path.parent)
    path.write_bytes(content)

    async def run(workspace: ClientWorkspace) -> None:
        editor.typed(str(path), lambda text: text + "typed\n")
        before = await read(workspace, path)
        assert f"its {lost} might not survive a change made there. It has to be saved there first." in before.obstacle
        with pytest.raises(WorkspaceError, match=lost):
            await workspace.write_document(ResolvedPath(str(path)), "ours", before)
        with pytest.raises(WorkspaceError, match="unsaved changes"):
            await workspace.remove(ResolvedPath(str(path)), before)

    play(editor, run)
    assert path.read_bytes() == content
    assert editor.unsaved[str(path)].endswith("typed\n")
    assert "write" not in editor.asked


PAST_THE_EDITOR = {
    "carriage returns": (b"one\ntwo\n", "one\r\n"),
    "carriage returns, as before": (b"one\r\ntwo\r\n", "one\r\n"),
    "a mark": (b"\xef\xbb\xbfone\n", "two\n"),
    "another encoding": ("grüße\n".encode("latin-1"), "grün\n"),
    "too large": (b"one\n", "x" * (client.LARGEST_SENT + 1)),
    "carriage returns in a new file": (None, "one\r\n"),
    "a new file that is too large": (None, "x" * (client.LARGEST_SENT + 1)),
}
"""What is on disk, and what is to be written: no editor is trusted to keep it."""


@pytest.mark.parametrize(("content", "text"), PAST_THE_EDITOR.values(), ids=PAST_THE_EDITOR)
@pytest.mark.parametrize("kind", [RawEditor, Zed, Toad])
def test_what_goes_past_the_editor_never_goes_over_text_that_was_typed_meanwhile(path, kind, content, text):
    editor = kind(path.parent)
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    async def run(workspace: ClientWorkspace) -> None:
        workspace.note_buffer(ResolvedPath(str(path)))
        before = await workspace.read_document(ResolvedPath(str(path)))
        editor.unsaved[str(path)] = "typed\n"
        with pytest.raises(StaleFile):
            await workspace.write_document(ResolvedPath(str(path)), text, before)

    play(editor, run)
    assert editor.unsaved == {str(path): "typed\n"}
    assert (path.read_bytes() if path.exists() else None) == content
    assert "write" not in editor.asked


def test_an_editor_that_shows_carriage_returns_may_change_them_unsaved(path):
    editor = RawEditor(path.parent)
    path.write_bytes(b"one\r\ntwo\r\n")

    async def run(workspace: ClientWorkspace) -> None:
        editor.typed(str(path), lambda text: text + "typed\r\n")
        before = await read(workspace, path)
        await workspace.write_document(ResolvedPath(str(path)), before.text + "ours\r\n", before)

    play(editor, run)
    assert path.read_bytes() == b"one\r\ntwo\r\ntyped\r\nours\r\n"


def test_a_buffer_that_has_not_noticed_the_disk_is_not_taken_for_the_persons_text(path):
    editor = Zed(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        await read(workspace, path)
        editor.reloads = False
        path.write_text("one\ntwo\nthree\n")
        before = await read(workspace, path)
        assert (before.text, before.unsaved) == ("one\ntwo\nthree\n", False)
        editor.asked.clear()
        await workspace.write_document(ResolvedPath(str(path)), "all new\n", before)
        assert editor.asked == ["read"]  # through an editor that knows less, the newer text could be lost

    play(editor, run)
    assert path.read_text() == "all new\n"


def test_changes_in_the_editor_and_on_disk_are_both_left_alone(path):
    editor = Zed(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        await read(workspace, path)
        editor.typed(str(path), lambda text: text + "typed\n")
        assert (await read(workspace, path)).obstacle == ""
        path.write_text("one\ntwo\non disk\n")
        for _ in range(2):  # looking does not make it better
            both = await read(workspace, path)
            assert both.text == "one\ntwo\ntyped\n"
            assert str(path) in both.obstacle
        with pytest.raises(WorkspaceError, match=re.escape(both.obstacle)):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", both)
        editor.save(str(path), editor.unsaved[str(path)])
        assert (await read(workspace, path)).obstacle == ""

    play(editor, run)
    assert path.read_text() == "one\ntwo\ntyped\n"


def test_an_empty_answer_for_a_file_that_is_not_empty_means_that_it_was_not_found(path):
    class Lost(Toad):
        def text(self, path: str) -> str:
            return ""

    editor = Lost(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        assert (before.text, before.unsaved) == ("one\ntwo\n", False)
        await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)
        assert "write" not in editor.asked
        assert await workspace.read_document(ResolvedPath(str(path.parent / "missing"))) is None

    play(editor, run)
    assert path.read_text() == "ours\n"


def test_a_text_that_was_never_saved_is_read_and_changed_in_the_editor(tmp_path):
    editor = Zed(tmp_path)
    path = tmp_path / "sub/new.txt"

    async def run(workspace: ClientWorkspace) -> None:
        editor.unsaved[str(path)] = "typed\n"
        workspace.note_buffer(ResolvedPath(str(path)))
        before = await read(workspace, path)
        assert (before.text, before.unsaved, before.obstacle) == ("typed\n", True, "")
        await workspace.write_document(ResolvedPath(str(path)), "typed\nours\n", before)

    play(editor, run)
    assert path.read_text() == "typed\nours\n"


def test_an_editor_is_not_asked_for_a_file_that_nobody_has(tmp_path):
    """It answers with an error, which there are clients that print."""
    editor = Zed(tmp_path)
    path = tmp_path / "new.txt"

    async def run(workspace: ClientWorkspace) -> None:
        assert await workspace.read_document(ResolvedPath(str(path))) is None
        assert (editor.asked, workspace.known_buffers()) == ([], ())
        await workspace.write_document(ResolvedPath(str(path)), "ours\n", None)
        path.unlink()
        editor.unsaved[str(path)] = "typed\n"
        assert (await read(workspace, path)).text == "typed\n"

    play(editor, run)
    assert editor.asked[0] == "write"


# --- which way a write goes


def asked_for_writing(editor: RawEditor, path: Path, text: str, **capabilities: bool) -> list[str]:
    async def run(workspace: ClientWorkspace) -> None:
        before = await workspace.read_document(ResolvedPath(str(path)))
        editor.asked.clear()
        await workspace.write_document(ResolvedPath(str(path)), text, before)

    play(editor, run, **capabilities)
    assert path.read_bytes().decode("utf-8-sig") == text
    return editor.asked


@pytest.mark.parametrize(
    ("capabilities", "asked"),
    [
        ({}, ["read", "write", "read"]),
        ({"writes": False}, ["read"]),
        ({"reads": False}, ["write"]),
        ({"reads": False, "writes": False}, []),
    ],
)
def test_each_capability_is_used_by_itself(path, capabilities, asked):
    assert asked_for_writing(Zed(path.parent), path, "ours\n", **capabilities) == asked


@pytest.mark.parametrize("name", ["new.txt", "sub/sub/new.txt"])
def test_a_new_file_is_made_by_the_editor_in_folders_that_we_make(path, name):
    assert "write" in asked_for_writing(Zed(path.parent), path.parent / name, "ours\n")


def test_carriage_returns_go_to_disk_unless_the_editor_has_shown_that_it_keeps_them(path):
    assert asked_for_writing(Zed(path.parent), path, "one\r\ntwo\n") == ["read"]
    assert asked_for_writing(Zed(path.parent), path.parent / "new.txt", "one\r\n") == []
    path.write_bytes(b"one\r\n")
    assert asked_for_writing(RawEditor(path.parent), path, "one\r\ntwo\r\n") == ["read", "write", "read"]
    assert asked_for_writing(RawEditor(path.parent), path, "three\r\n", reads=False) == []


def test_a_mark_that_the_editor_shows_goes_back_through_it(path):
    path.write_bytes(b"\xef\xbb\xbfone\n")
    assert asked_for_writing(RawEditor(path.parent), path, "two\n") == ["read", "write", "read"]
    assert path.read_bytes() == b"\xef\xbb\xbftwo\n"


def test_a_text_that_is_too_large_for_a_message_goes_to_disk(path, monkeypatch):
    monkeypatch.setattr(client, "LARGEST_SENT", 100)
    assert asked_for_writing(Zed(path.parent), path, "x" * 101) == ["read"]

    async def run(workspace: ClientWorkspace) -> None:
        editor.typed(str(path), lambda text: text + "typed")
        with pytest.raises(WorkspaceError, match="too large"):
            await workspace.write_document(ResolvedPath(str(path)), "y" * 101, await read(workspace, path))

    editor = Zed(path.parent)
    play(editor, run)
    assert path.read_text() == "x" * 101


def test_outside_the_project_the_disk_is_used(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    outside = tmp_path / "outside.txt"
    outside.write_text("one\n")
    assert asked_for_writing(Zed(project), outside, "two\n") == []


def test_an_editor_whose_project_is_smaller_than_the_workspace(tmp_path):
    (tmp_path / "project").mkdir()
    path = tmp_path / "a.txt"
    path.write_text("one\n")
    editor = Zed(tmp_path / "project")

    async def run() -> None:
        async with connected(tmp_path, editor) as workspace:
            before = await read(workspace, path)
            await workspace.write_document(ResolvedPath(str(path)), "two\n", before)
            await workspace.write_document(ResolvedPath(str(tmp_path / "new.txt")), "new\n", None)

    asyncio.run(run())
    assert (path.read_text(), (tmp_path / "new.txt").read_text()) == ("two\n", "new\n")


def test_an_editor_that_formats_is_read_back(path):
    editor = Zed(path.parent)
    editor.format = lambda text: text.upper()

    async def run(workspace: ClientWorkspace) -> None:
        after = await workspace.write_document(ResolvedPath(str(path)), "ours\n", await read(workspace, path))
        assert (after.text, after.unsaved) == ("OURS\n", False)

    play(editor, run)
    assert path.read_text() == "OURS\n"


# --- an editor in trouble


class Troubled(Zed):
    """Does to reads or writes what the test says."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.on_read: Callable[[], Any] | None = None
        self.on_write: Callable[[], Any] | None = None

    def read(self, request: Any, pending: PendingRequest) -> Any:
        return super().read(request, pending) if self.on_read is None else self.on_read()

    def write(self, request: Any, pending: PendingRequest) -> Any:
        return super().write(request, pending) if self.on_write is None else self.on_write()


def fail() -> None:
    raise RpcError(-32603, "something broke")


def not_known() -> None:
    raise RpcError(-32002, "there is no such file")


def deny() -> None:
    """As acpx does with `--deny-all`: what was raised in it comes as data, beside a message that is always the same."""
    raise RpcError(-32603, "Internal error", {"details": "Permission denied for fs"})


def deny_by_parameters() -> None:
    """A code that says that the editor cannot, with words that say that it will not."""
    raise RpcError(-32602, "Permission denied by user")


async def never() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    "answer", [not_known, lambda: None, lambda: 7, dict, lambda: {"content": None}, lambda: {"content": ["x"]}]
)
def test_an_editor_that_has_no_text_to_give(path, answer):
    editor = Troubled(path.parent)
    editor.on_read = answer

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        assert before == Document(str(path), "one\ntwo\n")
        await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)

    play(editor, run)
    assert path.read_text() == "ours\n"
    assert "write" not in editor.asked


def test_an_editor_that_does_not_answer_is_not_written_under(path, monkeypatch):
    monkeypatch.setattr(client, "READ_TIMEOUT", 0.05)
    editor = Troubled(path.parent)
    editor.on_read = never

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        assert before.text == "one\ntwo\n"
        assert "0.05 seconds" in before.obstacle
        with pytest.raises(WorkspaceError, match=re.escape(str(path))):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)
        assert await workspace.read_text(ResolvedPath(str(path))) == "one\ntwo\n"
        await workspace.write_document(ResolvedPath(str(path.parent / "new.txt")), "new\n", None)

    play(editor, run)
    assert path.read_text() == "one\ntwo\n"
    assert (path.parent / "new.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(fail, "something broke"), (deny, "Permission denied for fs"), (deny_by_parameters, "Permission denied by user")],
)
def test_a_write_that_the_editor_refuses_is_not_made_on_disk(path, answer, reason):
    editor = Troubled(path.parent)
    editor.on_write = answer
    new = path.parent / "new.txt"

    async def run(workspace: ClientWorkspace) -> None:
        for _ in range(2):
            with pytest.raises(WorkspaceError, match=rf"a\.txt .*\({reason}\)"):
                await workspace.write_document(ResolvedPath(str(path)), "ours\n", await read(workspace, path))
            with pytest.raises(WorkspaceError, match="refused"):
                await workspace.write_document(ResolvedPath(str(new)), "new\n", None)
            editor.typed(str(path), lambda text: text + "typed\n")
        assert editor.unsaved == {str(path): "one\ntwo\ntyped\ntyped\n"}

    play(editor, run)
    assert path.read_text() == "one\ntwo\n"
    assert not new.exists()


@pytest.mark.parametrize("text", ["one\r\ntwo\r\n", "\ufeffone\n", "x" * (client.LARGEST_SENT + 1)])
def test_after_a_refused_write_nothing_is_written_that_the_editor_is_not_asked_about(path, text):
    editor = Troubled(path.parent)
    editor.on_write = deny
    new, latin = path.parent / "made/new.txt", path.parent / "latin.txt"
    latin.write_bytes(b"gr\xfc\xdfe\n")

    async def run(workspace: ClientWorkspace) -> None:
        with pytest.raises(WorkspaceError, match="refused"):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", await read(workspace, path))
        with pytest.raises(WorkspaceError, match="refused"):
            await workspace.write_document(ResolvedPath(str(new)), "ours\n", None)
        with pytest.raises(WorkspaceError, match=r"new\.txt .*refused"):
            await workspace.write_document(ResolvedPath(str(new)), text, None)
        with pytest.raises(WorkspaceError, match=r"latin\.txt .*refused"):
            await workspace.write_document(ResolvedPath(str(latin)), "größe\n", await read(workspace, latin))

    play(editor, run)
    assert not new.parent.exists()
    assert latin.read_bytes() == b"gr\xfc\xdfe\n"


def test_a_large_file_that_the_editor_refuses_is_not_searched_on_the_disk(path):
    editor = Troubled(path.parent)
    path.write_text("one\n" * (client.LARGEST_SENT // 4 + 1))

    async def run(workspace: ClientWorkspace) -> None:
        assert await workspace.unsaved_text(ResolvedPath(str(path))) is None
        editor.on_read = deny
        with pytest.raises(ClientRefused, match=path.name):
            await workspace.unsaved_text(ResolvedPath(str(path)))

    play(editor, run)


@pytest.mark.parametrize("answer", [fail, deny, deny_by_parameters])
def test_a_read_that_the_editor_refuses_is_not_answered_from_the_disk(path, answer):
    editor = Troubled(path.parent)
    editor.on_read = answer
    (path.parent / "latin.txt").write_bytes(b"gr\xfc\xdfe\n")

    async def run(workspace: ClientWorkspace) -> None:
        for name in ("a.txt", "latin.txt"):  # once it refused, it is not taken for one that cannot show a file
            with pytest.raises(ClientRefused):
                await workspace.read_text(await workspace.resolve(name))
            with pytest.raises(ClientRefused):
                await workspace.read_document(await workspace.resolve(name))
        with pytest.raises(ClientRefused):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", Document(str(path), "one\ntwo\n"))
        assert await workspace.read_document(await workspace.resolve("missing")) is None

    play(editor, run)
    assert path.read_text() == "one\ntwo\n"


def test_a_file_that_the_editor_cannot_show_is_read_from_the_disk(path):
    editor = Troubled(path.parent)
    editor.on_read = fail
    path.write_bytes(b"gr\xfc\xdfe\n")

    async def run(workspace: ClientWorkspace) -> None:
        assert await workspace.read_text(ResolvedPath(str(path))) == "grüße\n"

    play(editor, run)


def test_a_no_is_no_inability_whatever_the_file_holds(path):
    """An editor may fail at bytes that are no UTF-8; one that answers with a code of its own has decided."""
    editor = Troubled(path.parent)

    def disabled() -> None:
        raise RpcError(-32000, "Agents have no business here")

    editor.on_read = disabled
    path.write_bytes(b"gr\xfc\xdfe\n")

    async def run(workspace: ClientWorkspace) -> None:
        with pytest.raises(ClientRefused, match="no business"):
            await workspace.read_text(ResolvedPath(str(path)))

    play(editor, run)


@pytest.mark.parametrize("code", [-32601, -32602, -32002])
def test_a_file_that_the_editor_does_not_know_is_written_to_disk_and_that_is_said(path, code):
    editor = Troubled(path.parent)

    def not_mine() -> None:
        raise RpcError(code, "not mine")

    editor.on_write = not_mine

    async def run(workspace: ClientWorkspace) -> None:
        after = await workspace.write_document(ResolvedPath(str(path)), "ours\n", await read(workspace, path))
        assert len(after.remarks) == 1, "that is said"

    play(editor, run)
    assert path.read_text() == "ours\n"


@pytest.mark.parametrize("answer", [lambda: None, dict, lambda: 7, lambda: {"ok": False}])
def test_an_editor_that_says_yes_and_does_nothing(path, answer):
    editor = Troubled(path.parent)
    editor.on_write = answer

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        with pytest.raises(WorkspaceError, match=path.name):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)
        with pytest.raises(WorkspaceError, match=r"new\.txt"):
            await workspace.write_document(ResolvedPath(str(path.parent / "new.txt")), "new\n", None)

    play(editor, run)


@pytest.mark.parametrize("does_it", [False, True])
def test_an_editor_that_does_not_answer_when_it_writes(path, monkeypatch, does_it):
    monkeypatch.setattr(client, "WRITE_TIMEOUT", 0.05)
    editor = Troubled(path.parent)

    async def write_without_a_word() -> None:
        if does_it:
            editor.save(str(path), "ours\n")
        await never()

    editor.on_write = write_without_a_word

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        if does_it:
            assert (await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)).text == "ours\n"
        else:
            with pytest.raises(WorkspaceError, match=path.name):
                await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)

    play(editor, run)


def test_an_editor_that_keeps_the_text_to_itself(path):
    """Some change the buffer and leave the saving to the person."""

    class Hesitant(Zed):
        def save(self, path: str, text: str) -> None:
            self.unsaved[path] = text

    editor = Hesitant(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        after = await workspace.write_document(ResolvedPath(str(path)), "ours\n", await read(workspace, path))
        assert (after.text, after.unsaved) == ("ours\n", True)
        assert len(after.remarks) == 1, "that is said"
        again = await workspace.write_document(ResolvedPath(str(path)), "ours, again\n", await read(workspace, path))
        assert again.text == "ours, again\n"

    play(editor, run)
    assert path.read_text() == "one\ntwo\n"


def test_the_disk_is_looked_at_again_after_a_slow_editor(path):
    editor = Troubled(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)

        def slow() -> Any:
            path.write_text("on disk\n")  # after we have read the disk, and without the editor noticing
            return {"content": "one\ntwo\n"}

        editor.on_read = slow
        with pytest.raises(StaleFile):
            await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)

    play(editor, run)
    assert path.read_text() == "on disk\n"


def test_an_editor_that_is_gone(path):
    editor = Zed(path.parent)

    async def run(workspace: ClientWorkspace) -> None:
        before = await read(workspace, path)
        await workspace._connection.close()
        await workspace.write_document(ResolvedPath(str(path)), "ours\n", before)

    play(editor, run)
    assert path.read_text() == "ours\n"


def test_reading_is_cancelled_at_once(path):
    editor = Troubled(path.parent)
    editor.on_read = never

    async def run(workspace: ClientWorkspace) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(workspace.read_document(ResolvedPath(str(path))), 0.05)

    play(editor, run)


# --- a part of a large file


class Windowed(RawEditor):
    """Gives the lines that it is asked for, and keeps what it was asked."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.windows: list[tuple[int | None, int | None]] = []

    def read(self, request: Any, pending: PendingRequest) -> Any:
        self.windows.append((request.line, request.limit))
        text = self.text(request.path)
        if request.line is not None:
            text = "".join(text.splitlines(keepends=True)[request.line - 1 : request.line - 1 + request.limit])
        return wire.ReadTextFileResponse(content=text)


def test_of_a_large_file_the_editor_is_asked_for_the_lines_that_are_wanted(path):
    path.write_text("".join(f"line {number}\n" for number in range(300_000)))
    editor = Windowed(path.parent)
    wanted = LineRange(200_001, 5, 100)

    async def run(workspace: ClientWorkspace) -> None:
        found = await workspace.read_lines(ResolvedPath(str(path)), wanted)
        assert [line.text for line in found.lines] == [f"line {number}" for number in range(200_000, 200_005)]
        assert found.total == 300_000
        assert editor.windows == [(200_001, 5)]
        editor.typed(str(path), lambda text: "typed\n" + text)
        found = await workspace.read_lines(ResolvedPath(str(path)), wanted)
        assert [line.text for line in found.lines] == [f"line {number}" for number in range(199_999, 200_004)]

    play(editor, run)
