"""Files on this machine: whatever a path turns out to be, it is read or refused in words, and nothing hangs."""

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace, decode_text
from crow.files.resolved_path import ResolvedPath
from tests.support.folders import open_to_others
from tests.support.patience import DEADLINE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "sub").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "ping").symlink_to("pong")
    (tmp_path / "pong").symlink_to("ping")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "binary").write_bytes(b"a\0b")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    return tmp_path


def read(folder: Path, name: str) -> str:
    workspace = LocalWorkspace([str(folder)])

    async def run() -> str:
        async with asyncio.timeout(DEADLINE):
            return await workspace.read_text(await workspace.resolve(name))

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.txt", "does not exist."),
        ("dangling", "nowhere does not exist."),
        ("sub", "is a folder, not a file that can be read."),
        (".", "is a folder, not a file that can be read."),
        ("file.txt/x", "does not exist: a part of it is a file, not a folder."),
        ("loop", "cannot be read: too many levels of symbolic links."),
        ("ping", "cannot be read: too many levels of symbolic links."),
        ("binary", "is a binary file (3 bytes)."),
        ("pipe", "is a pipe, not a file that can be read."),
        ("socket", "cannot be read: no such device or address."),
        ("/dev/zero", "is a device, not a file that can be read."),
        ("/dev/tty", "cannot be read: no such device or address."),
        ("a\0b", "A path cannot contain a null character."),
        ("a/" * 400_000, "a/… is too long for a path: 800000 characters."),
        ("x" * 300, "cannot be read: file name too long."),
        (os.fsdecode(b"\xff"), "� does not exist."),
    ],
)
def test_what_cannot_be_read_is_said_in_words(folder, name, said):
    if name == "/dev/tty" and os.path.exists("/dev/tty"):
        try:
            os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
            said = "is a device, not a file that can be read."
        except OSError:
            pass
    with pytest.raises(WorkspaceError) as refused:
        read(folder, name)
    assert str(refused.value).endswith(said)
    str(refused.value).encode()


@pytest.mark.parametrize("name", ["file.txt", "./sub/../file.txt", "~/file.txt"])
def test_paths_are_resolved(folder, name, monkeypatch):
    monkeypatch.setenv("HOME", str(folder))
    assert read(folder, name) == "text"


AS_SOMEONE_ELSE = """
import asyncio, os, sys
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
asyncio.run(asyncio.to_thread(int))  # loads what is needed while it can be loaded
os.setgid(65534); os.setuid(65534)
workspace = LocalWorkspace([sys.argv[1]])
file, folder, missing = map(ResolvedPath, (sys.argv[2], sys.argv[3], sys.argv[3] + "/x"))
for work in (workspace.read_text(file), workspace.list_folder(folder), workspace.stat(missing)):
    try:
        print(asyncio.run(work))
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_what_may_not_be_read_is_said(folder):
    if os.getuid() != 0:
        pytest.skip("needs to become someone else")
    file, closed = folder / "file.txt", folder / "sub"
    file.chmod(0o600)
    closed.chmod(0o700)
    open_to_others(folder)
    done = subprocess.run(
        [sys.executable, "-c", AS_SOMEONE_ELSE, str(folder), str(file), str(closed)], capture_output=True, text=True
    )
    denied = "cannot be read: permission denied."
    assert done.stdout.splitlines() == [
        f"WorkspaceError {file} {denied}",
        f"WorkspaceError {closed} {denied}",
        f"WorkspaceError {closed}/x {denied}",
    ], done.stderr


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        ("grüße".encode(), "grüße"),
        (b"\xef\xbb\xbfmark", "mark"),
        ("grüße".encode("utf-16"), "grüße"),
        ("grüße".encode("latin-1"), "grüße"),
        (b"one\r\ntwo\r\n", "one\r\ntwo\r\n"),
    ],
)
def test_text_in_the_usual_encodings(content, text):
    assert decode_text("a.txt", content) == text


def test_a_folder_is_listed_in_order_with_names_that_can_be_sent(tmp_path):
    for name in (b"b", b"a", b"caf\xe9"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "to-sub").symlink_to("sub")
    names = asyncio.run(LocalWorkspace([str(tmp_path)]).list_folder(ResolvedPath(str(tmp_path))))
    assert names == ["a", "b", "caf�", "dangling", "sub/", "to-sub/"]


@pytest.mark.parametrize(
    ("path", "inside"), [("/w", True), ("/w/a", True), ("/wx", False), ("/", False), ("/more/x", True)]
)
def test_what_the_workspace_contains(path, inside):
    assert LocalWorkspace(["/w", "/more"]).contains(path) is inside


def test_the_whole_disk_as_workspace():
    assert LocalWorkspace(["/"]).contains("/etc/passwd")
