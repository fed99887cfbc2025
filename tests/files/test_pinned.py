"""What was approved is a resolved path: a symbolic link that appears on it afterwards is not followed."""

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crow.acp import workspace as editors
from crow.commands.base import CommandRequest
from crow.errors import StaleFile, WorkspaceError
from crow.files import local
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.search import search
from crow.search.search import Query, Searcher
from tests.commands.test_terminal import Machine, on_this_machine
from tests.support.buffers import RawEditor, connected
from tests.support.patience import DEADLINE

CHANGED = "has changed since it was approved"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/x").write_text("private key")
    (tmp_path / "pub").mkdir()
    (tmp_path / "pub/x").write_text("public")
    return tmp_path


def lead_astray(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved away"))
    path.symlink_to(target)


LOOKS: dict[str, Callable[[LocalWorkspace, ResolvedPath], Awaitable[object]]] = {
    "stat": lambda workspace, path: workspace.stat(path),
    "bytes": lambda workspace, path: workspace.read_bytes(path, 100),
    "text": lambda workspace, path: workspace.read_text(path),
    "document": lambda workspace, path: workspace.read_document(path),
    "folder": lambda workspace, path: workspace.list_folder(ResolvedPath(os.path.dirname(path))),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_a_folder_that_became_a_link_is_not_looked_into(folder, look):
    workspace = LocalWorkspace([str(folder)])
    path = asyncio.run(workspace.resolve("pub/x"))
    lead_astray(folder / "pub", folder / "secret")
    with pytest.raises(WorkspaceError, match=CHANGED):
        asyncio.run(_awaited(look(workspace, path)))


@pytest.mark.parametrize("target", ["secret/x", "nowhere"])
@pytest.mark.parametrize("look", [LOOKS[name] for name in ("stat", "bytes", "text", "document")])
def test_a_file_that_became_a_link_is_not_read(folder, look, target):
    workspace = LocalWorkspace([str(folder)])
    path = asyncio.run(workspace.resolve("pub/x"))
    lead_astray(folder / "pub/x", folder / target)
    with pytest.raises(WorkspaceError, match=CHANGED):
        asyncio.run(_awaited(look(workspace, path)))


async def _awaited(work: Awaitable[object]) -> object:
    return await work


def test_what_is_no_link_is_read_as_ever(folder):
    async def run() -> None:
        workspace = LocalWorkspace([str(folder)])
        assert (await workspace.stat(ResolvedPath("/"))).kind == "folder"
        assert "tmp/" in await workspace.list_folder(ResolvedPath("/"))
        assert await workspace.list_folder(ResolvedPath(str(folder))) == ["pub/", "secret/"]
        assert await workspace.read_document(ResolvedPath(str(folder / "none/x"))) is None

    asyncio.run(run())


# --- searching


def test_a_root_that_became_a_link_is_not_searched(folder):
    root = str(folder / "pub")
    lead_astray(folder / "pub", folder / "secret")
    searcher = Searcher(None)
    with pytest.raises(StaleFile, match=CHANGED):
        asyncio.run(searcher.search(Query(root, "key"), lambda path: False))
    with pytest.raises(StaleFile, match=CHANGED):
        asyncio.run(searcher.find(root, "*"))


def test_a_file_that_becomes_a_link_while_it_is_searched_is_left_out(folder, monkeypatch):
    real = search.output_of

    async def output_of(argv, **options):
        output = await real(argv, **options)
        lead_astray(folder / "pub/x", folder / "secret/x")  # the matcher may have read either
        return output

    monkeypatch.setattr(search, "output_of", output_of)
    found = asyncio.run(Searcher(None).search(Query(str(folder / "pub"), "."), lambda path: False))
    assert found.files == []


# --- commands


def test_a_command_does_not_start_in_a_folder_that_became_a_link(folder):
    lead_astray(folder / "pub", folder / "secret")
    (folder / "secret/below").mkdir()

    async def story(machine: Machine) -> None:
        for cwd in ("pub", "pub/below"):
            with pytest.raises(WorkspaceError, match=rf"{CHANGED}.*The command was not started\."):
                await machine.commands.open_terminal(
                    CommandRequest("touch was-here", cwd=str(folder / cwd), output_limit=1000)
                )

    on_this_machine(folder, story)
    assert not list(folder.rglob("was-here"))


def test_a_folder_is_held_to_what_it_was(folder):
    workspace = LocalWorkspace([str(folder)])

    async def look() -> None:
        pinned = await workspace.pin(await workspace.resolve("pub"))
        assert (await workspace.stat(pinned)).kind == "folder"
        with pytest.raises(WorkspaceError, match="is not a folder"):
            await workspace.pin(await workspace.resolve("pub/x"))
        (folder / "pub").rename(folder / "old")
        with pytest.raises(WorkspaceError, match="does not exist"):
            await workspace.stat(pinned)
        (folder / "pub").mkdir()
        with pytest.raises(StaleFile, match=r"/pub .*replaced"):
            await workspace.stat(pinned)

    asyncio.run(look())


@pytest.mark.parametrize("gone", ["pub", ""])
def test_no_folder_is_made_again_for_a_write_that_is_refused(folder, gone):
    workspace = LocalWorkspace([str(folder)])

    async def write() -> None:
        path = await workspace.resolve("pub/new/x")
        shutil.rmtree(folder / gone)
        with pytest.raises(StaleFile, match="gone"):
            await workspace.write_document(path, "x\n", None)
        assert not (folder / "pub").exists()

    asyncio.run(write())


# --- through the editor


class Tempted(RawEditor):
    """A link appears while the editor is asked for its buffer."""

    link: Path
    target: Path

    def read(self, request, call):
        if not self.link.is_symlink():
            if self.link.exists():
                self.link.rename(self.link.with_name("moved away"))
            self.link.symlink_to(self.target)
        return super().read(request, call)


@pytest.mark.parametrize("name", ["new.txt", "sub/new.txt"])
@pytest.mark.parametrize("reads", [True, False])
def test_a_link_that_appears_before_a_write_is_not_followed_by_the_editor(tmp_path, name, reads):
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    editor = RawEditor(root)

    async def run() -> None:
        async with connected(root, editor, reads=reads) as workspace, asyncio.timeout(DEADLINE):
            path = await workspace.resolve(name)
            assert await workspace.read_document(path) is None
            if "/" in name:
                lead_astray(root / "sub", outside)
            else:
                (root / name).symlink_to(outside / "new.txt")
            with pytest.raises(WorkspaceError, match=CHANGED):
                await workspace.write_document(path, "text\n", None)

    asyncio.run(run())
    assert list(outside.iterdir()) == []
    assert "write" not in editor.asked


def test_what_a_link_led_the_editor_to_is_not_read(folder):
    editor = Tempted(folder)
    editor.link, editor.target = folder / "pub/x", folder / "secret/x"

    async def run() -> None:
        async with connected(folder, editor) as workspace, asyncio.timeout(DEADLINE):
            with pytest.raises(WorkspaceError, match=CHANGED):
                await workspace.read_text(ResolvedPath(str(folder / "pub/x")))

    asyncio.run(run())


def test_a_link_that_leads_somewhere_is_called_a_link(folder):
    async def run() -> None:
        workspace = LocalWorkspace([str(folder)])
        path = await workspace.resolve("new")
        (folder / "new").symlink_to("pub/x")
        with pytest.raises(WorkspaceError) as refused:
            await workspace.write_document(path, "text", None)
        assert "is a symbolic link, not a file that can be written" in str(refused.value)

    asyncio.run(run())


# --- large texts


def test_a_large_text_is_decoded_and_compared_off_the_event_loop(folder, monkeypatch):
    path = folder / "large"
    path.write_text("line\n" * 300_000)
    editor = RawEditor(folder)
    editor.typed(str(path), lambda text: text + "typed\n")
    on_loop: list[str] = []

    def watch(module: object, name: str) -> None:
        real = getattr(module, name)

        def watched(*arguments, **options):
            if threading.current_thread() is threading.main_thread():
                on_loop.append(name)
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, watched)

    for module, name in (
        (local, "decode"),
        (local, "decode_text"),
        (local, "encode"),
        (editors, "could_be_shown_as"),
    ):
        watch(module, name)

    async def run() -> None:
        alone = LocalWorkspace([str(folder)])
        assert len(await alone.read_text(ResolvedPath(str(path)))) == 1_500_000
        before = await alone.read_document(ResolvedPath(str(path)))
        assert before is not None
        await alone.write_document(ResolvedPath(str(path)), before.text + "more\n", before)
        async with connected(folder, editor) as workspace, asyncio.timeout(DEADLINE):
            assert (await workspace.read_text(ResolvedPath(str(path)))).endswith("typed\n")

    asyncio.run(run())
    assert on_loop == []
