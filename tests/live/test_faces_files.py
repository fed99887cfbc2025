"""One file in several editors: whose text counts, and that no unsaved text is ever lost, whoever leads."""

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from crow.acp.workspace import ClientWorkspace
from crow.errors import StaleFile, WorkspaceError
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.live import files
from crow.live.face import ClientKnowledge, Face
from crow.live.files import FacesWorkspace
from tests.support.buffers import RawEditor, Toad, Zed, connected
from tests.support.patience import DEADLINE

SEEDS = int(os.environ.get("CROW_FACES_SEEDS", "25"))

Work = Callable[[FacesWorkspace, list[Face]], Awaitable[None]]


def face(name: str, workspace: ClientWorkspace) -> Face:
    return Face(ClientKnowledge(name), None, None, workspace)  # pyright: ignore[reportArgumentType] -- files alone


def play(editors: dict[str, RawEditor], work: Work) -> None:
    """`work` gets the files, and the faces in the order in which they lead, which it may change."""

    async def run() -> None:
        async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE):
            faces = [
                face(name, await stack.enter_async_context(connected(editor.root, editor)))
                for name, editor in editors.items()
            ]
            root = str(next(iter(editors.values())).root)
            await work(FacesWorkspace(LocalWorkspace([root]), lambda: faces), faces)

    asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "a.txt"
    file.write_text("one\n")
    return file


def test_unsaved_text_in_another_editor_is_named_and_blocks_until_it_is_saved(path):
    lead, other = Zed(path.parent), Zed(path.parent)
    where = ResolvedPath(str(path))

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        other.typed(str(path), lambda text: text + "typed\n")
        before = await workspace.read_document(where)
        assert before is not None
        assert "Neovim" in before.obstacle
        with pytest.raises(WorkspaceError, match="Neovim"):
            await workspace.write_document(where, "ours\n", before)
        with pytest.raises(WorkspaceError, match="Neovim"):
            await workspace.remove(where, before)
        other.save(str(path), other.text(str(path)))
        before = await workspace.read_document(where)
        assert before is not None
        assert (before.text, before.obstacle) == ("one\ntyped\n", "")
        after = await workspace.write_document(where, before.text + "ours\n", before)
        assert after.text == "one\ntyped\nours\n"

    play({"Zed": lead, "Neovim": other}, run)
    assert path.read_text() == "one\ntyped\nours\n"


def test_text_that_was_typed_elsewhere_while_permission_was_asked_blocks_the_write(path):
    lead, other = Zed(path.parent), RawEditor(path.parent)
    where = ResolvedPath(str(path))

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        before = await workspace.read_document(where)
        assert before is not None
        assert before.obstacle == ""
        other.typed(str(path), lambda text: text + "typed\n")
        with pytest.raises(WorkspaceError, match="Neovim"):
            await workspace.write_document(where, "ours\n", before)

    play({"Zed": lead, "Neovim": other}, run)
    assert path.read_text() == "one\n"
    assert other.unsaved == {str(path): "one\ntyped\n"}


def test_an_editor_that_leads_later_does_not_take_our_own_change_for_the_persons(path):
    """Its buffer may still show the text that was there before we wrote through the other."""
    lead, other = RawEditor(path.parent), RawEditor(path.parent)
    where = ResolvedPath(str(path))

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        before = await workspace.read_document(where)
        await workspace.write_document(where, "ours\n", before)
        other.unsaved[str(path)] = "one\n"  # it has not reloaded the file yet
        faces.reverse()
        now = await workspace.read_document(where)
        assert now is not None
        assert (now.text, now.unsaved, now.obstacle) == ("ours\n", False, "")

    play({"Zed": lead, "Neovim": other}, run)


def test_text_typed_over_a_buffer_that_has_not_seen_our_write_does_not_undo_what_is_on_disk(path):
    lead, other = Zed(path.parent), Zed(path.parent)
    where = ResolvedPath(str(path))

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        await workspace.read_document(where)
        lead.reloads = False
        other.typed(str(path), lambda text: text + "typed there\n")
        other.save(str(path), other.text(str(path)))
        before = await workspace.read_document(where)
        await workspace.write_document(where, "one\ntyped there\nours\n", before)  # past a buffer that is behind
        lead.typed(str(path), lambda text: text + "typed here\n")
        before = await workspace.read_document(where)
        assert before is not None
        assert "changed on disk as well" in before.obstacle
        with pytest.raises(WorkspaceError):
            await workspace.write_document(where, before.text + "ours again\n", before)

    play({"Zed": lead, "Neovim": other}, run)
    assert path.read_text() == "one\ntyped there\nours\n"
    assert lead.unsaved[str(path)] == "one\ntyped here\n"


def test_a_new_file_can_be_made_beside_another_editor(path):
    new = path.parent / "new.txt"

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        assert await workspace.read_document(ResolvedPath(str(new))) is None
        await workspace.write_document(ResolvedPath(str(new)), "ours\n", None)

    play({"Zed": Zed(path.parent), "Toad": Toad(path.parent)}, run)
    assert new.read_text() == "ours\n"


def test_an_editor_that_does_not_answer_blocks_a_change_and_is_named(path, monkeypatch):
    monkeypatch.setattr(files, "ANSWER_TIMEOUT", 0.05)

    class Silent(RawEditor):
        async def read(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.Event().wait()

    async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
        before = await workspace.read_document(ResolvedPath(str(path)))
        assert before is not None
        assert "Neovim did not say" in before.obstacle

    play({"Zed": Zed(path.parent), "Neovim": Silent(path.parent)}, run)


@pytest.mark.parametrize("kinds", [(Zed, Zed), (Zed, RawEditor), (RawEditor, Toad), (Toad, Zed)])
def test_whatever_is_typed_saved_and_led_nothing_that_was_typed_is_lost_by_us(path, kinds):
    def tokens(editors: dict[str, RawEditor]) -> set[str]:
        texts = [path.read_text(), *(editor.unsaved.get(str(path), "") for editor in editors.values())]
        return {word for text in texts for word in text.split() if word.startswith("typed")}

    def interleave(seed: int) -> None:
        chance = random.Random(seed)
        path.write_text("one\n")
        editors = {"Zed": kinds[0](path.parent), "Neovim": kinds[1](path.parent)}
        where = ResolvedPath(str(path))
        number = 0

        def act() -> None:
            """Something that the person does in one of the editors."""
            nonlocal number
            editor = chance.choice(list(editors.values()))
            if isinstance(editor, Zed):
                editor.reloads = chance.random() < 0.6
            match chance.randrange(4):
                case 0 | 1:
                    number += 1
                    editor.typed(str(path), lambda text: f"{text}typed{number}\n")
                case 2:
                    editor.save(str(path), editor.text(str(path)))
                case _:
                    editor.unsaved.pop(str(path), None)

        async def run(workspace: FacesWorkspace, faces: list[Face]) -> None:
            await workspace.read_document(where)  # so that each editor has shown the file as it is
            for number_of_change in range(8):
                act()
                before = await workspace.read_document(where)
                assert before is not None
                for _ in range(chance.randrange(3)):
                    act()
                    if chance.random() < 0.5:
                        faces.reverse()
                known = tokens(editors)
                with contextlib.suppress(WorkspaceError, StaleFile):
                    await workspace.write_document(where, before.text + f"ours{number_of_change}\n", before)
                    written.append(seed)
                assert known <= tokens(editors), f"seed {seed}, change {number_of_change}"

        play(editors, run)

    written: list[int] = []
    for seed in range(SEEDS):
        interleave(seed)
    assert written
