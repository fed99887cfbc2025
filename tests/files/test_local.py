"""Writing on this machine's disk: all or nothing, the file's own ways kept, no litter, errors in words."""

import asyncio
import errno
import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from crow.errors import StaleFile, WorkspaceError
from crow.files import atomic
from crow.files.atomic import replace_file, temporary_name
from crow.files.base import Document
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from tests.support.folders import open_to_others
from tests.support.patience import DEADLINE, eventually

as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs to become someone else")


def change(path: Path, text: str) -> Document:
    async def run() -> Document:
        workspace = LocalWorkspace([str(path.parent)])
        before = await workspace.read_document(ResolvedPath(str(path)))
        return await workspace.write_document(ResolvedPath(str(path)), text, before)

    return asyncio.run(run())


def test_mode_and_owner_are_kept_and_the_person_is_told_what_is_not(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    os.link(path, tmp_path / "other name")
    if os.getuid() == 0:
        os.chown(path, 1234, 2345)
    path.chmod(0o4751)
    after = change(path, "new")
    assert after.remarks == (
        "Its setuid or setgid bit was dropped.",
        "A hard link was broken: the file's other name keeps the old text.",
    )
    status = path.stat()
    assert status.st_mode & 0o7777 == 0o751
    assert (tmp_path / "other name").read_text() == "old"
    if os.getuid() == 0:
        assert (status.st_uid, status.st_gid) == (1234, 2345)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o666, 0o700, 0o200 | 0o400])
def test_every_mode_is_kept(tmp_path, mode):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(mode)
    assert change(path, "new").remarks == ()
    assert path.stat().st_mode & 0o7777 == mode


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path):
    code = (
        "import asyncio, os, sys\nfrom crow.files.local import LocalWorkspace\n"
        "from crow.files.resolved_path import ResolvedPath\nos.umask(0o027)\n"
        "path = ResolvedPath(sys.argv[1] + '/sub/new')\n"
        "asyncio.run(LocalWorkspace([sys.argv[1]]).write_document(path, 'x', None))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert (tmp_path / "sub/new").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "sub").stat().st_mode & 0o777 == 0o750


def test_extended_attributes_are_kept(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    change(path, "new")
    assert os.getxattr(path, "user.note") == b"kept"


def test_a_file_without_write_permission_for_its_owner_is_refused_for_root_too(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o444)

    async def obstacle() -> str:
        document = await LocalWorkspace([str(tmp_path)]).read_document(ResolvedPath(str(path)))
        assert document is not None
        return document.obstacle

    assert asyncio.run(obstacle()).endswith("a is read-only, even for its owner.")
    with pytest.raises(WorkspaceError, match="is read-only"):
        change(path, "new")
    assert path.read_text() == "old"


# --- as somebody else

AS_SOMEONE_ELSE = """
import asyncio, os, sys
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
asyncio.run(asyncio.to_thread(int))
os.setgroups([]); os.setgid(65534); os.setuid(65534)
workspace = LocalWorkspace(["/"])
async def change(path):
    path = ResolvedPath(path)
    before = await workspace.read_document(path)
    print(bool(before and before.obstacle), end=" ")
    return (await workspace.write_document(path, "new", before)).remarks
for path in sys.argv[1:]:
    try:
        print(asyncio.run(change(path)))
    except Exception as error:
        print(type(error).__name__, error)
"""


@as_root
def test_what_somebody_else_may_not_write_is_refused(tmp_path):
    open_to_others(tmp_path)
    closed, shared, own = tmp_path / "closed", tmp_path / "shared", tmp_path / "own"
    for folder, mode in ((closed, 0o755), (shared, 0o777), (own, 0o755)):
        folder.mkdir()
        folder.chmod(mode)
    os.chown(own, 65534, 65534)
    files = {
        closed / "writable": 0o666,
        shared / "readable": 0o644,
        shared / "foreign": 0o666,
        own / "own": 0o600,
    }
    for path, mode in files.items():
        path.write_text("old")
        path.chmod(mode)
    os.chown(own / "own", 65534, 65534)
    paths = [*files, closed / "new", own / "new", own / "sub/new"]
    done = subprocess.run(
        [sys.executable, "-c", AS_SOMEONE_ELSE, *map(str, paths)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"True WorkspaceError {closed}/writable cannot be written: permission denied in {closed}.",
        f"True WorkspaceError {shared}/readable cannot be written: permission denied.",
        "False ('It now belongs to you: its owner or group could not be kept.',)",
        "False ()",
        f"False WorkspaceError {closed}/new cannot be written: permission denied in {closed}.",
        "False ()",
        "False ()",
    ]
    assert [path.read_text() for path in files] == ["old", "old", "new", "new"]
    assert not list(tmp_path.rglob(".crow*"))


# --- trouble


def in_child(code: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        **options,  # pyright: ignore[reportArgumentType, reportCallIssue] -- passed on
    )


CHANGE = """
import asyncio, sys
from crow.files.local import LocalWorkspace
async def main():
    workspace = LocalWorkspace(["/"])
    path = await workspace.resolve(sys.argv[1])
    before = await workspace.read_document(path)
    try:
        await workspace.write_document(path, "x" * 1_000_000, before)
    except Exception as error:
        print(error)
asyncio.run(main())
"""


@pytest.mark.parametrize("old", [b"old\n", None])
def test_a_file_that_does_not_fit_leaves_the_old_one_and_nothing_else(tmp_path, old):
    path = tmp_path / "a"
    if old is not None:
        path.write_bytes(old)
    done = in_child(CHANGE, path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert done.stdout == f"{path} was not written: file too large. It is unchanged.\n", done.stderr
    assert [item.read_bytes() for item in tmp_path.iterdir()] == ([old] if old else [])


@as_root
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    mounted = tmp_path / "small"
    mounted.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(mounted)], capture_output=True).returncode:
        pytest.skip("may not mount a small disk")
    try:
        (mounted / "a").write_text("old")
        done = in_child(CHANGE, mounted / "a")
        assert done.stdout == f"{mounted}/a was not written: the disk is full. It is unchanged.\n"
        assert [item.read_text() for item in mounted.iterdir()] == ["old"]
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, "the disk is full. It is unchanged."),
        (errno.EDQUOT, "the disk is full. It is unchanged."),
        (errno.EROFS, "read-only file system. It is unchanged."),
        (errno.EIO, "input/output error. It is unchanged."),
    ],
)
@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_whatever_the_disk_says_is_passed_on_and_tidied_up(tmp_path, monkeypatch, number, said, step):
    path = tmp_path / "a"
    path.write_text("old")

    def fail(*args: object, **more: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(atomic.os, step, fail)
    with pytest.raises(WorkspaceError) as refused:
        change(path, "new")
    monkeypatch.undo()
    assert str(refused.value).endswith(said)
    assert [item.read_text() for item in tmp_path.iterdir()] == ["old"]


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def refuse(*args: object, **more: object) -> None:
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(atomic.os, "link", refuse)
    assert change(tmp_path / "a", "new").text == "new"
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


# --- links that appear after a path was judged


@pytest.mark.parametrize("swapped", ["the file", "its folder", "a folder above"])
def test_a_link_that_has_appeared_on_the_path_is_not_followed(tmp_path, swapped):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for root in (inside, outside):
        (root / "sub/deep").mkdir(parents=True)
        (root / "sub/deep/a").write_text("old")
    path = inside / "sub/deep/a"

    async def run() -> None:
        workspace = LocalWorkspace([str(inside)])
        before = await workspace.read_document(ResolvedPath(str(path)))
        where = {"the file": path, "its folder": path.parent, "a folder above": path.parent.parent}[swapped]
        where.rename(tmp_path / "away")
        where.symlink_to(outside / where.relative_to(inside))
        with pytest.raises(WorkspaceError):
            await workspace.write_document(ResolvedPath(str(path)), "new", before)
        if swapped != "the file":
            with pytest.raises(WorkspaceError):
                await workspace.write_document(ResolvedPath(f"{path}-new"), "new", None)

    asyncio.run(run())
    assert (outside / "sub/deep/a").read_text() == "old"
    assert [item.name for item in (outside / "sub/deep").iterdir()] == ["a"]


# --- interrupted


KILLED = """
import os, signal, sys
from threading import Event
from crow.files import atomic
from crow.files.resolved_path import ResolvedPath
path, step, when = sys.argv[1:]
real = getattr(os, step)
def die(*args, **more):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    result = real(*args, **more)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(atomic.os, step, die)
atomic.replace_file(ResolvedPath(path), b"new" * 100_000, b"old" * 100_000, Event())
"""


@pytest.mark.parametrize("step", ["fchmod", "write", "fsync", "replace"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_kill_leaves_the_old_bytes_or_the_new_and_the_next_write_tidies_up(tmp_path, step, when):
    path = tmp_path / "a"
    path.write_bytes(b"old" * 100_000)
    assert in_child(KILLED, path, step, when).returncode == -signal.SIGKILL
    there = path.read_bytes()
    assert there == (b"new" if (step, when) == ("replace", "after") else b"old") * 100_000
    assert all(item.name in ("a", temporary_name("a")) for item in tmp_path.iterdir())
    replace_file(ResolvedPath(str(path)), b"newer", there, threading.Event())
    assert [item.name for item in tmp_path.iterdir()] == ["a"]
    assert path.read_bytes() == b"newer"


@pytest.mark.parametrize("step", ["stat", "fchmod", "write", "fsync", "fstat"])
def test_a_disk_that_answers_with_an_error_after_a_while_leaves_no_temporary_file(tmp_path, monkeypatch, step):
    """As one that hung and came back does, whatever it was asked when it did."""
    path, real = tmp_path / "a", getattr(os, step)
    path.write_bytes(b"old")

    def fail(what: Any, *more: Any, **named: Any) -> Any:
        name = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else what
        if os.path.basename(name) == temporary_name("a"):
            raise OSError(errno.ENOTCONN, "it was away")
        return real(what, *more, **named)

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(WorkspaceError):
        replace_file(ResolvedPath(str(path)), b"new", b"old", threading.Event())
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_a_write_that_was_given_up_while_its_disk_hung_does_not_begin_once_it_answers(tmp_path):
    """It would wait for the other writer of the file, and make a temporary file of its own."""
    path, given_up = tmp_path / "a", threading.Event()
    path.write_bytes(b"old")
    given_up.set()
    with open(tmp_path / temporary_name("a"), "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(WorkspaceError, match="it was interrupted"):
            replace_file(ResolvedPath(str(path)), b"new", b"old", given_up)


RESTLESS = """
import sys
from threading import Event
from crow.files.atomic import replace_file
from crow.files.resolved_path import ResolvedPath
path = sys.argv[1]
now = open(path, "rb").read()
print("ready", flush=True)
while True:
    new = (b"b" if now[:1] == b"a" else b"a") * 300_000
    replace_file(ResolvedPath(path), new, now, Event())
    now = new
"""


def test_kill_at_any_time(tmp_path):
    """Two texts are written in turn, as fast as can be, and the writer is killed at random moments."""
    path = tmp_path / "a"
    texts = b"a" * 300_000, b"b" * 300_000
    path.write_bytes(texts[0])
    for moment in range(8):
        with subprocess.Popen([sys.executable, "-c", RESTLESS, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(0.003 * moment)
            writer.kill()
        assert path.read_bytes() in texts
    replace_file(ResolvedPath(str(path)), b"end", path.read_bytes(), threading.Event())
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("left", ["file", "link", "pipe"])
def test_what_lies_at_the_temporary_name_is_no_obstacle_and_not_followed(tmp_path, left):
    path, litter, victim = tmp_path / "a", tmp_path / temporary_name("a"), tmp_path / "victim"
    path.write_text("old")
    victim.write_text("untouched")
    match left:
        case "file":
            litter.write_text("half a te")
        case "link":
            litter.symlink_to(victim)
        case _:
            os.mkfifo(litter)
    change(path, "new")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a", "victim"]
    assert (path.read_text(), victim.read_text()) == ("new", "untouched")


def test_two_writers_of_one_file_do_not_mix(tmp_path):
    """Each adds one line to what it found; whoever comes second finds the file changed, and tries again."""
    path = tmp_path / "a"
    path.write_text("")

    def add(name: str) -> None:
        for number in range(20):
            while True:
                before = path.read_bytes()
                try:
                    replace_file(
                        ResolvedPath(str(path)), before + f"{name}{number}\n".encode(), before, threading.Event()
                    )
                    break
                except StaleFile:
                    continue

    writers = [threading.Thread(target=add, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = path.read_text().splitlines()
    assert set(lines) <= {f"{name}{number}" for name in "abc" for number in range(20)}, "a part of a line"
    assert len(set(lines)) == len(lines), "a line that was written twice"
    for name in "abc":
        own = [int(line[1:]) for line in lines if line.startswith(name)]
        assert own == sorted(own)
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("step", ["fchmod", "write", "fsync", "replace"])
def test_a_cancelled_write_is_whole_or_did_not_happen(tmp_path, monkeypatch, step):
    path = tmp_path / "a"
    path.write_text("old")
    reached, go_on = threading.Event(), threading.Event()
    real = getattr(os, step)

    def slow(*args: object, **more: object) -> object:
        reached.set()
        go_on.wait(DEADLINE)
        return real(*args, **more)

    async def run() -> None:
        monkeypatch.setattr(atomic.os, step, slow)
        workspace = LocalWorkspace([str(tmp_path)])
        before = await workspace.read_document(ResolvedPath(str(path)))
        task = asyncio.create_task(workspace.write_document(ResolvedPath(str(path)), "new", before))
        await asyncio.to_thread(reached.wait)
        task.cancel()
        asyncio.get_running_loop().call_later(0.1, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert [item.name for item in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == ("new" if step == "replace" else "old")


def test_a_write_that_hangs_does_not_hold_up_the_cancelling(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")
    reached, go_on = threading.Event(), threading.Event()
    ended: list[int] = []

    def hang(fd: int) -> None:
        reached.set()
        go_on.wait(DEADLINE)
        ended.append(fd)

    async def run() -> None:
        monkeypatch.setattr(atomic.os, "fsync", hang)
        workspace = LocalWorkspace([str(tmp_path)])
        task = asyncio.create_task(
            workspace.write_document(
                ResolvedPath(str(path)), "new", await workspace.read_document(ResolvedPath(str(path)))
            )
        )
        await asyncio.to_thread(reached.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended, "the cancel waited for the disk"
        go_on.set()

    asyncio.run(run())
    # Nobody waits for the thread, which finds that it was given up.
    eventually(lambda: len(list(tmp_path.iterdir())) == 1)
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["a"]


def test_a_link_that_leads_to_itself_is_listed_like_any_other_entry(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("x")
    names = asyncio.run(LocalWorkspace([str(tmp_path)]).list_folder(ResolvedPath(str(tmp_path))))
    assert names == ["file", "folder/", "loop"]
