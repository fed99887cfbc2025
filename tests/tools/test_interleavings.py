"""The person's newer text is never lost: they change the file at every moment, in the editor, on disk, or in both."""

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import PinnedFile
from tests.support.buffers import FLAVOURS, RawEditor, Zed, connected, opened
from tests.support.recording import RecordingJournal
from tests.tools.calling import Hand

TEXT = "first\n\nimport os\n\nvalue = 1\n\nlast\n"
APART: dict[str, Callable[[str], str]] = {
    "at the end": lambda text: text + "typed by the person\n",
    "at the beginning": lambda text: "typed by the person\n" + text,
    "in another line": lambda text: text.replace("import os", "import os  # typed by the person"),
    "around it": lambda text: "typed by the person\n" + text.replace("last", "very last"),
    "behind it in the same line": lambda text: text.replace("value = 1\n", "value = 1  # typed by the person\n"),
    "before it in the same line": lambda text: text.replace("value = 1", "typed_by_the_person = value = 1"),
    "the line before": lambda text: text.replace("\nvalue = 1", "typed by the person\nvalue = 1"),
    "the line after": lambda text: text.replace("value = 1\n", "value = 1\ntyped by the person"),
}
TOUCHING: dict[str, Callable[[str], str]] = {
    "the same words": lambda text: text.replace("value = 1", "value = 17  # typed by the person".replace("1", "", 1)),
    "another value": lambda text: text.replace("value = 1", "value = 3"),
    "taken away": lambda text: text.replace("value = 1\n", ""),
    "twice": lambda text: text.replace("value = 1\n", "value = 1\nvalue = 1\n"),
    "all": lambda text: "something else\n",
}
CHANGES = {**APART, **TOUCHING}
MOMENTS = ("before prepare", "while the permission is open", "right before the write")


class Person:
    """Changes the file when its moment has come, once."""

    def __init__(self, path: Path, editor: RawEditor | None, where: str, change: Callable[[str], str]) -> None:
        self._path = path
        self._editor = editor
        self._where = where
        self._change = change
        self.has_acted = False

    def act(self) -> None:
        if self.has_acted:
            return
        self.has_acted = True
        if self._where in ("buffer", "both"):
            assert self._editor is not None
            self._editor.typed(str(self._path), self._change)
        if self._where in ("disk", "both"):
            changed = self._change(self._path.read_text())
            self._path.write_text(changed if self._where == "disk" else "on disk\n" + changed)


def act_right_before_the_write(person: Person, editor: RawEditor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the last time that Crow looks: at the bytes on disk, or at the editor's text if the editor is asked."""

    def watch(owner: object, name: str) -> None:
        look = getattr(owner, name)

        def spy(*args: object) -> object:
            person.act()
            return look(*args)

        monkeypatch.setattr(owner, name, spy)

    if editor is not None and editor.asked:
        watch(editor, "read")
    elif editor is not None:
        watch(LocalWorkspace, "read_document")
    watch(PinnedFile, "holds")


WHERE = [
    ("local", "disk"),
    *itertools.product(("raw", "zed", "zed, read only"), ("disk", "buffer", "both")),
    *itertools.product(("toad",), ("disk", "buffer")),
    ("raw, write only", "disk"),
]


async def play(
    root: Path,
    flavour: str,
    where: str,
    moment: str,
    change: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    **call: object,
) -> tuple[bool, str, str | None]:
    """Whether the tool succeeded, the disk afterwards, and the editor's unsaved text if there is one."""
    path = root / "a.py"
    path.write_text(TEXT)
    async with opened(root, flavour) as workspace:
        editor = getattr(workspace, "editor", None)
        person = Person(path, editor, where, change)
        hand = Hand(workspace)
        await hand.call("read", path="a.py")
        try:
            if moment == "before prepare":
                person.act()
            action = await hand.prepare(str(call.pop("tool")), path="a.py", **call)
            if moment == "while the permission is open":
                person.act()
            if moment == "right before the write":
                act_right_before_the_write(person, editor, monkeypatch)
            done = (await action.perform(RecordingJournal())).ok
        except WorkspaceError:
            done = False
        assert person.has_acted
        unsaved = editor.unsaved.get(str(path)) if editor is not None else None
        return done, path.read_text(), unsaved


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("flavour", "where"), WHERE)
def test_an_edit_is_carried_over_or_refused(tmp_path, monkeypatch, flavour, where, moment):
    for name, change in CHANGES.items():
        with monkeypatch.context() as patch:
            done, disk, unsaved = asyncio.run(
                play(
                    tmp_path,
                    flavour,
                    where,
                    moment,
                    change,
                    patch,
                    tool="edit",
                    edits=[{"old": "value = 1", "new": "value = 2"}],
                )
            )
        theirs = change(TEXT)
        theirs_on_disk = "on disk\n" + theirs
        merged = theirs.replace("value = 1", "value = 2")
        if where == "both":
            assert not done, name
            assert (disk, unsaved) == (theirs_on_disk, theirs), name
        elif name in TOUCHING or (where == "buffer" and "read only" in flavour):
            assert not done, name
            assert (unsaved or disk) == theirs, name
            assert disk in (theirs, TEXT), name
        else:
            assert done, name
            assert (disk, unsaved) == (merged, None), name


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("flavour", "where"), WHERE)
def test_writing_a_file_anew_is_refused(tmp_path, monkeypatch, flavour, where, moment):
    for name, change in CHANGES.items():
        with monkeypatch.context() as patch:
            done, disk, unsaved = asyncio.run(
                play(tmp_path, flavour, where, moment, change, patch, tool="write", content="all new\n")
            )
        theirs = change(TEXT)
        assert not done, name
        assert (unsaved or disk) == theirs, name
        assert disk in (theirs, TEXT, "on disk\n" + theirs), name


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("flavour", "where"), [pair for pair in WHERE if pair[1] == "disk"])
def test_what_is_appended_goes_to_the_new_end(tmp_path, monkeypatch, flavour, where, moment):
    for name, change in CHANGES.items():
        with monkeypatch.context() as patch:
            done, disk, _ = asyncio.run(
                play(tmp_path, flavour, where, moment, change, patch, tool="write", content="more\n", append=True)
            )
        assert done, name
        assert disk == change(TEXT) + "more\n", name


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_file_that_appears_while_the_permission_is_open_is_not_overwritten(tmp_path, flavour):
    async def run() -> None:
        async with opened(tmp_path, flavour) as workspace:
            action = await Hand(workspace).prepare("write", path="new.py", content="ours\n")
            (tmp_path / "new.py").write_text("theirs\n")
            with pytest.raises(WorkspaceError, match="now exists"):
                await action.perform(RecordingJournal())

    asyncio.run(run())
    assert (tmp_path / "new.py").read_text() == "theirs\n"


def test_a_new_file_that_the_person_has_named_and_begun_in_the_editor_is_not_overwritten(tmp_path):
    editor = Zed(tmp_path)

    async def run() -> None:
        async with connected(tmp_path, editor) as workspace:
            workspace.note_buffer(await workspace.resolve("new.py"))
            action = await Hand(workspace).prepare("write", path="new.py", content="ours\n")
            editor.unsaved[str(tmp_path / "new.py")] = "theirs\n"
            with pytest.raises(WorkspaceError, match="now exists"):
                await action.perform(RecordingJournal())

    asyncio.run(run())
    assert editor.unsaved == {str(tmp_path / "new.py"): "theirs\n"}
    assert not (tmp_path / "new.py").exists()


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_file_that_was_removed_meanwhile_stays_removed(tmp_path, flavour):
    async def run() -> None:
        (tmp_path / "a.py").write_text(TEXT)
        async with opened(tmp_path, flavour) as workspace:
            action = await Hand(workspace).prepare("edit", path="a.py", edits=[{"old": "last", "new": "end"}])
            (tmp_path / "a.py").unlink()
            with pytest.raises(WorkspaceError, match="Nothing was written"):
                await action.perform(RecordingJournal())

    asyncio.run(run())
    assert not (tmp_path / "a.py").exists()


def test_the_model_is_told_what_the_person_changed(tmp_path):
    async def run() -> str:
        (tmp_path / "a.py").write_text(TEXT)
        async with opened(tmp_path, "zed") as workspace:
            hand = Hand(workspace)
            await hand.call("read", path="a.py")
            (tmp_path / "a.py").write_text(TEXT.replace("first", "very first"))
            action = await hand.prepare("edit", path="a.py", edits=[{"old": "value = 1", "new": "value = 2"}])
            (tmp_path / "a.py").write_text(TEXT.replace("first", "very first").replace("os", "sys"))
            return (await action.perform(RecordingJournal())).text

    told = asyncio.run(run())
    assert told.startswith("Edited a.py (+1 −1).\n")  # noqa: RUF001 -- a minus sign
    assert "has changed since you last saw it; the other change was kept:\n--- a/a.py\n+++ b/a.py\n" in told
    assert "-first\n+very first\n" in told
    assert "The file changed in the meantime; the other change was kept:\n" in told
    assert "-import os\n+import sys\n" in told
