"""File work beside the loop: what hangs costs its own folder's threads, and nobody has to wait for it."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from crow import disk
from crow.disk import Disk
from crow.errors import FileSystemSilent, WorkspaceError
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from tests.support.patience import DEADLINE, eventually


@contextlib.contextmanager
def hanging(folder: Path) -> Generator[Path]:
    """A file whose opening does not return, for anyone, until this is left."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    try:
        yield pipe
    finally:
        writer = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # both ends: whoever waits goes on
        pipe.unlink()
        os.close(writer)


def test_results_and_exceptions_come_back(tmp_path):
    async def run() -> None:
        files = Disk(str(tmp_path))
        assert await files.run(lambda: 42) == 42
        with pytest.raises(FileNotFoundError):
            await files.run((tmp_path / "none").read_text)
        names = await asyncio.gather(*(files.run(lambda: threading.current_thread().name) for _ in range(100)))
        assert set(names) == {"crow-disk"}

    asyncio.run(run())


def test_a_folder_that_hangs_is_named_and_costs_no_other_folder_anything(tmp_path):
    async def run() -> None:
        hung, sound = Disk(str(tmp_path / "hung")), Disk(str(tmp_path))
        with hanging(tmp_path) as pipe:
            for _ in range(disk.THREADS):
                with pytest.raises(FileSystemSilent, match=r"/hung "):
                    await hung.run(pipe.read_bytes, patience=0.05)
            began = threading.active_count()
            with pytest.raises(FileSystemSilent):
                await hung.run(lambda: pytest.fail("there was no thread left for this"), patience=0.05)
            assert threading.active_count() <= began
            assert await asyncio.gather(*(sound.run(lambda: 1, patience=20) for _ in range(50))) == [1] * 50
        assert await hung.run(lambda: "again", patience=20) == "again"

    asyncio.run(run())


def test_where_every_thread_hangs_nobody_waits_the_whole_patience(tmp_path):
    async def run() -> None:
        hung = Disk(str(tmp_path), threads=1)
        with hanging(tmp_path) as pipe:
            with pytest.raises(FileSystemSilent):
                await hung.run(pipe.read_bytes, patience=0.05)
            with pytest.raises(FileSystemSilent):
                await hung.run(lambda: None, patience=3600)

    asyncio.run(run())


def test_whoever_is_cancelled_does_not_wait_and_what_was_not_begun_never_is(tmp_path):
    async def run() -> None:
        files = Disk(str(tmp_path), threads=1)
        begun: list[int] = []
        with hanging(tmp_path) as pipe:
            first = asyncio.create_task(files.run(pipe.read_bytes))
            second = asyncio.create_task(files.run(lambda: begun.append(1)))
            await asyncio.sleep(0)
            for task in (first, second):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
        assert await files.run(lambda: "again") == "again"
        assert begun == []

    asyncio.run(run())


HANGS = """
import asyncio, sys
from crow.disk import Disk
from crow.errors import FileSystemSilent

async def run():
    try:
        await Disk("/somewhere").run(lambda: open(sys.argv[1]).read(), patience=0.05)
    except FileSystemSilent as silent:
        print(silent.message)

asyncio.run(run())
"""


def test_a_hung_call_keeps_no_program_from_ending(tmp_path):
    with hanging(tmp_path) as pipe:
        done = subprocess.run(
            [sys.executable, "-c", HANGS, str(pipe)], capture_output=True, text=True, timeout=DEADLINE
        )
    assert (done.returncode, done.stdout) == (0, "The file system of /somewhere does not respond.\n")


def test_threads_are_not_kept_for_folders_that_rest(tmp_path):
    async def run() -> None:
        disks = [Disk(str(tmp_path)) for _ in range(50)]
        await asyncio.gather(*(each.run(lambda: time.sleep(0.01)) for each in disks))

    asyncio.run(run())
    eventually(lambda: sum(thread.name == "crow-disk" for thread in threading.enumerate()) <= 8)


def test_a_real_file_system_that_does_not_answer(tmp_path, hung_disk, monkeypatch):
    """Every call of a workspace whose folder hangs ends with words, and one in another folder works meanwhile."""
    monkeypatch.setattr(disk.Disk.run, "__defaults__", (0.2,))
    (tmp_path / "sound").mkdir()
    (tmp_path / "sound/a").write_text("text")
    (tmp_path / "hung").mkdir()
    workspace, other = LocalWorkspace([str(tmp_path / "hung")]), LocalWorkspace([str(tmp_path / "sound")])
    path, inside = ResolvedPath(str(tmp_path / "hung/a")), ResolvedPath(str(tmp_path / "sound/a"))

    async def run() -> None:
        for call in (
            lambda: workspace.resolve("a"),
            lambda: workspace.stat(path),
            lambda: workspace.read_text(path),
            lambda: workspace.read_bytes(path, 10),
            lambda: workspace.list_folder(ResolvedPath(str(tmp_path / "hung"))),
            lambda: workspace.read_document(path),
            lambda: workspace.write_document(path, "new", None),
        ):
            with pytest.raises(WorkspaceError, match="does not respond"):
                await call()
            document = await other.read_document(inside)
            assert document is not None
            assert document.text == "text"

    with hung_disk(tmp_path / "hung"):
        asyncio.run(run())
