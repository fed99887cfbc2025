"""One contract, every kind of workspace: texts are read and written without loss, or refused in words."""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from crow.errors import StaleFile, WorkspaceError
from crow.files.base import Document, Workspace
from crow.files.resolved_path import ResolvedPath
from crow.files.text import could_be_shown_as, decode, encode
from tests.support.buffers import FLAVOURS, opened
from tests.support.file_cases import CASES
from tests.support.patience import DEADLINE

Given = TypeVar("Given")

pytestmark = pytest.mark.parametrize("flavour", FLAVOURS)


def in_workspace(root: Path, flavour: str, work: Callable[[Workspace], Awaitable[Given]]) -> Given:
    async def run() -> Given:
        async with opened(root, flavour) as workspace, asyncio.timeout(DEADLINE):
            return await work(workspace)

    return asyncio.run(run())


async def read(workspace: Workspace, path: Path) -> Document:
    document = await workspace.read_document(ResolvedPath(str(path)))
    assert document is not None
    return document


def test_what_is_read_and_written_back_is_the_same(tmp_path, flavour):
    async def run(workspace: Workspace) -> None:
        for number, case in enumerate(CASES.values()):
            path = tmp_path / str(number)
            path.write_bytes(case.content)
            before = await read(workspace, path)
            after = await workspace.write_document(ResolvedPath(str(path)), before.text, before)
            assert path.read_bytes() == case.content
            assert after.same_as(before)
            assert before.unsaved is False

    in_workspace(tmp_path, flavour, run)


def test_a_missing_file_is_none_and_can_be_made_with_its_folders(tmp_path, flavour):
    async def run(workspace: Workspace) -> None:
        path = await workspace.resolve(str(tmp_path / "a/b/c.txt"))
        assert await workspace.read_document(path) is None
        after = await workspace.write_document(path, "grüße\r\n", None)
        assert after == Document(path.real, "grüße\r\n")

    in_workspace(tmp_path, flavour, run)
    assert (tmp_path / "a/b/c.txt").read_bytes() == "grüße\r\n".encode()


@pytest.mark.parametrize("text", ["", "\n", "a", "a\r", "\r\n", "\ufeffmark\n", "a\u2028b\x0c", "\U0001f426" * 1000])
def test_a_new_file_holds_exactly_the_bytes(tmp_path, flavour, text):
    path = ResolvedPath(str(tmp_path / "a"))
    in_workspace(tmp_path, flavour, lambda workspace: workspace.write_document(path, text, None))
    assert (tmp_path / "a").read_bytes() == text.encode()


def test_an_existing_file_is_not_taken_for_a_new_one(tmp_path, flavour):
    (tmp_path / "a").write_text("theirs")
    path = ResolvedPath(str(tmp_path / "a"))
    with pytest.raises(StaleFile, match="now exists"):
        in_workspace(
            tmp_path,
            flavour,
            lambda workspace: workspace.write_document(path, "ours", None),
        )
    assert (tmp_path / "a").read_text() == "theirs"


@pytest.mark.parametrize("change", ["longer", "same length", "removed", "folder gone", "emptied", "encoding"])
def test_a_file_that_has_changed_is_left_alone(tmp_path, flavour, change):
    path = tmp_path / "sub" / "a"
    path.parent.mkdir()
    path.write_text("one é\n")

    async def run(workspace: Workspace) -> None:
        before = await read(workspace, path)
        match change:
            case "longer":
                path.write_text("one é\ntwo\n")
            case "same length":
                path.write_text("two é\n")
            case "emptied":
                path.write_text("")
            case "encoding":
                path.write_bytes("one é\n".encode("latin-1"))
            case _:
                path.unlink()
        if change == "folder gone":
            path.parent.rmdir()
        with pytest.raises(StaleFile):
            await workspace.write_document(ResolvedPath(str(path)), "ours", before)
        with pytest.raises(StaleFile):
            await workspace.remove(ResolvedPath(str(path)), before)

    in_workspace(tmp_path, flavour, run)
    assert not path.exists() or "ours" not in path.read_bytes().decode("latin-1")


def test_a_file_is_removed(tmp_path, flavour):
    async def run(workspace: Workspace) -> None:
        (tmp_path / "a").write_text("text")
        await workspace.remove(ResolvedPath(str(tmp_path / "a")), await read(workspace, tmp_path / "a"))

    in_workspace(tmp_path, flavour, run)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "text", "said"),
    [
        ("grüße\n".encode("latin-1"), "grüße, 5 €\n", "is encoded as Latin-1, which has no “€” (U+20AC)."),
        ("grüße\n".encode("latin-1"), "a\u200b\n", "is encoded as Latin-1, which has no character U+200B."),
        (b"text\n", "a\0b", "a null character would make it a binary file."),
    ],
)
def test_what_the_encoding_does_not_have_is_refused(tmp_path, flavour, content, text, said):
    path = tmp_path / "a"
    path.write_bytes(content)

    async def run(workspace: Workspace) -> None:
        before = await read(workspace, path)
        with pytest.raises(WorkspaceError) as refused:
            await workspace.write_document(ResolvedPath(str(path)), text, before)
        assert said in str(refused.value)

    in_workspace(tmp_path, flavour, run)
    assert path.read_bytes() == content


def test_what_is_no_text_file_is_said_in_words(tmp_path, flavour):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "binary").write_bytes(b"a\0b")
    (tmp_path / "odd").write_bytes("ab".encode("utf-16") + b"\0")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    told = {
        "folder": "is a folder, not a file that can be read.",
        "binary": "is a binary file (3 bytes).",
        "odd": "is a binary file (7 bytes).",
        "loop": "too many levels of symbolic links.",
        "pipe": "is a pipe, not a file that can be read.",
        "file/x": "a part of it is a file, not a folder.",
        "x" * 300: "file name too long.",
        "/dev/zero": "is a device, not a file that can be read.",
    }

    async def run(workspace: Workspace) -> None:
        for name, said in told.items():
            with pytest.raises(WorkspaceError) as refused:
                await workspace.read_document(await workspace.resolve(name))
            assert str(refused.value).endswith(said)
        for name in ("folder", "pipe", "loop", "file/x", "x" * 300, "/dev/zero", "folder/" + "y" * 300):
            with pytest.raises(WorkspaceError):
                await workspace.write_document(await workspace.resolve(name), "text", None)

    in_workspace(tmp_path, flavour, run)
    assert (tmp_path / "file").read_text() == "x"


def test_links_are_written_through(tmp_path, flavour):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("one\n")
    (tmp_path / "link").symlink_to("real/file")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "dangling").symlink_to("real/made")

    async def run(workspace: Workspace) -> None:
        for name in ("link", "folder/file"):
            path = await workspace.resolve(name)
            before = await read(workspace, Path(path))
            await workspace.write_document(path, before.text + name + "\n", before)
        await workspace.write_document(await workspace.resolve("dangling"), "made\n", None)

    in_workspace(tmp_path, flavour, run)
    assert (tmp_path / "real/file").read_text() == "one\nlink\nfolder/file\n"
    assert (tmp_path / "real/made").read_text() == "made\n"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "dangling").is_symlink()


def test_any_bytes_survive_decoding(tmp_path, flavour):
    choice = random.Random(flavour)
    alphabet = [b"a", b"\n", b"\r", b"\xff", b"\xfe", b"\xef\xbb\xbf", b"\xc3\xa9", b"\xe9", b"\xd8", b"\x80", b"\0"]
    for _ in range(2000):
        content = b"".join(choice.choices(alphabet, k=choice.randint(0, 8)))
        try:
            text, encoding, mark = decode("a", content)
        except WorkspaceError:
            assert b"\0" in content
            continue
        assert encode("a", text, encoding, mark=mark) == content
        assert could_be_shown_as(content, text)
