"""Who may attach to a process's sessions, where its socket lies, and what hostile or silent peers can do: nothing."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from crow.acp import wire
from crow.acp.owner_link import _connected
from crow.cli import doctor
from crow.cli.doctor import check_attaching
from crow.commands import supervisor
from crow.commands.processes import MARK, ForkServer, is_command
from crow.live import attach_socket
from crow.live.attach_socket import AttachSocket
from crow.rpc.connection import Connection, PendingRequest, Route
from crow.store import owners as owners_module
from crow.store.owners import LONGEST_PATH, Owner, socket_of, socket_path, sweep
from crow.timeouts import timeout
from tests.support.patience import DEADLINE, eventually

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}

PEER = (
    f"GREETING = {json.dumps(INITIALIZE).encode()!r} + b'\\n'"
    """
import os, socket, sys
at, answers = sys.argv[1:3]
peer = socket.socket(socket.AF_UNIX)
try:
    peer.connect(at)
    peer.sendall(GREETING)
    said = peer.makefile("rb").readline().decode() or "closed"
except OSError as error:
    said = type(error).__name__
with open(answers + ".new", "w") as file:
    file.write(said)
os.rename(answers + ".new", answers)
"""
)
"""A program that attaches, and keeps what it was told."""

IN_BACKGROUND = """
import os, sys
if os.fork():
    sys.exit()
os.setsid()
if os.fork():
    sys.exit()
%s
"""
"""A program whose parents have ended when it runs."""


AS_NOBODY = """
import os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
"""
"""Makes a program another user's; what it needs is imported before, which that user may not be able to read."""


class Agent:
    """What is behind the socket: it knows `initialize` and nothing else."""

    def __init__(self, on_initialize: Callable[[], None], is_trusted: bool) -> None:
        self._on_initialize = on_initialize
        self._is_trusted = is_trusted

    def connect(self, reader: int, writer: int) -> Connection:
        return Connection(reader, writer, {"initialize": Route(wire.InitializeRequest, self._initialize)}, {})

    def _initialize(self, request: wire.InitializeRequest, pending: PendingRequest) -> Any:
        return {"welcome": self._on_initialize(), "trusted": self._is_trusted}

    async def close(self) -> None:
        pass


def always(answer: bool) -> Callable[[], Coroutine[Any, Any, bool]]:
    async def give() -> bool:
        return answer

    return give


def with_socket(folder: Path, talk: Callable[[AttachSocket], Coroutine[Any, Any, None]]) -> None:
    (folder / "run").mkdir(mode=0o700, exist_ok=True)

    async def run() -> None:
        async with timeout(DEADLINE):
            attach = AttachSocket(str(folder / "run" / "1-token"), Agent, always(True))
            try:
                await talk(attach)
            finally:
                await attach.close()

    asyncio.run(run())


async def told(answers: Path) -> str:
    while not answers.exists():  # noqa: ASYNC110 -- it is another process that makes it
        await asyncio.sleep(0.01)
    return answers.read_text()


async def written(path: Path) -> str:
    while not (path.exists() and path.read_text().endswith("\n")):  # noqa: ASYNC110 -- as above
        await asyncio.sleep(0.01)
    return path.read_text()


async def start(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", *arguments, env=dict(environ))
    await process.wait()


# --- who may


@pytest.mark.parametrize("program", [PEER, IN_BACKGROUND % PEER], ids=["a child", "a process in the background"])
def test_another_program_of_the_same_person_may_attach(tmp_path, program):
    async def talk(attach: AttachSocket) -> None:
        await start([program, attach._path, str(tmp_path / "answer")])
        assert "welcome" in json.loads(await told(tmp_path / "answer"))["result"]

    with_socket(tmp_path, talk)


def test_whoever_comes_when_newcomers_are_not_trusted_is_served_as_one_who_is_not(tmp_path):
    async def talk(attach: AttachSocket) -> None:
        for is_trusted in (True, False):
            attach._trusts_newcomers = always(is_trusted)
            await start([PEER, attach._path, str(tmp_path / f"{is_trusted}")])
            assert json.loads(await told(tmp_path / f"{is_trusted}"))["result"]["trusted"] is is_trusted

    with_socket(tmp_path, talk)


# --- which processes are commands


@pytest.mark.parametrize("older", [False, True], ids=["", "of an older Crow"])
@pytest.mark.parametrize("program", ["%s", IN_BACKGROUND], ids=["itself", "in the background"])
def test_all_below_a_fork_server_is_a_command(tmp_path, monkeypatch, program, older):
    """However it hides, as long as its supervisor lives. In an older Crow the file of the fork server has another
    name."""
    if older:
        file = tmp_path / "crow" / "workspace" / "keeper.py"
        file.parent.mkdir(parents=True)
        shutil.copy(supervisor.__file__, file)
        monkeypatch.setattr(supervisor, "__file__", str(file))
    says = (
        program % "import os, sys\nwith open(sys.argv[1], 'w') as file:\n    file.write(f'{os.getpid()}\\n')\ninput()"
    )

    async def run() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs, (tmp_path / "output").open("wb") as output:
            arguments = [sys.executable, "-c", says, str(tmp_path / "process")]
            words = [os.fsencode(word) for word in arguments]
            request = supervisor.Request(os.fsencode(os.path.realpath(tmp_path)), words, [])
            commands = ForkServer()
            command = await commands.run(request, output.fileno(), theirs.fileno(), output.fileno())
            found = await written(tmp_path / "process")
            assert is_command(int(found))
            await command.end()
            command.close()
            await commands.close()

    asyncio.run(run())


def test_what_a_crow_itself_comes_from_does_not_count(tmp_path):
    """A Crow that another Crow's command runs is no fork server of that command."""
    sees = "import os, sys; from crow.commands.processes import is_command; print(is_command(int(sys.argv[1])))"
    neighbour = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={MARK: "0123"})
    try:
        for mark, expected in (("0123", "False"), ("4567", "True"), ("", "True")):
            environ = {**os.environ, MARK: mark}
            run = subprocess.run([sys.executable, "-c", sees, str(neighbour.pid)], env=environ, capture_output=True)
            assert run.stdout.decode().strip() == expected
    finally:
        neighbour.communicate(b"\n")
    assert is_command(neighbour.pid), "of one that is gone nobody can tell"
    assert is_command(0)
    assert not is_command(os.getpid())
    assert not is_command(os.getppid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_even_where_the_folder_lets_them_in(tmp_path):
    async def talk(attach: AttachSocket) -> None:
        for folder in (tmp_path, *tmp_path.parents[:-2]):  # what is above them is everybody's
            folder.chmod(0o711)
        answers = tmp_path / "answers"
        answers.mkdir()
        answers.chmod(0o777)
        await start([AS_NOBODY + PEER, attach._path, str(answers / "closed folder")])
        assert await told(answers / "closed folder") == "PermissionError"
        (tmp_path / "run").chmod(0o755)
        os.chmod(attach._path, 0o777)
        await start([AS_NOBODY + PEER, attach._path, str(answers / "open folder")])
        assert "same user" in json.loads(await told(answers / "open folder"))["error"]["message"]

    with_socket(tmp_path, talk)


# --- hostile peers


async def initialized(attach: AttachSocket) -> asyncio.StreamWriter:
    # Not `open_unix_connection`: asyncio takes a queue that is full for a connection that is being made.
    reader, writer = await asyncio.open_connection(sock=await _connected(attach._path))
    writer.write(json.dumps(INITIALIZE).encode() + b"\n")
    assert "welcome" in json.loads(await reader.readline())["result"]
    return writer


def test_whoever_says_nothing_is_dropped_and_whoever_has_initialized_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(attach_socket, "INITIALIZE_TIMEOUT", 0.2)

    async def talk(attach: AttachSocket) -> None:
        writer = await initialized(attach)
        silent, silent_writer = await asyncio.open_unix_connection(attach._path)
        half, half_writer = await asyncio.open_unix_connection(attach._path)
        half_writer.write(json.dumps(INITIALIZE).encode())  # and no end of the line
        assert await silent.read() == b""
        assert await half.read() == b""
        assert len(attach._attached) == 1
        for one in (writer, silent_writer, half_writer):
            one.close()

    with_socket(tmp_path, talk)


def test_a_first_line_that_never_ends_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(attach_socket, "LONGEST_INITIALIZE", 1000)

    async def talk(attach: AttachSocket) -> None:
        reader, writer = await asyncio.open_unix_connection(attach._path)
        writer.write(b"x" * 100_000)
        error = json.loads(await reader.readline())
        assert error["id"] is None
        assert "skipped" in error["error"]["message"]
        writer.write(b"x" * 1_000_000 + b"\n" + json.dumps(INITIALIZE).encode() + b"\n")
        assert "welcome" in json.loads(await reader.readline())["result"]
        writer.write(json.dumps({**INITIALIZE, "params": {"protocolVersion": 1, "more": "x" * 5000}}).encode() + b"\n")
        assert "welcome" in json.loads(await reader.readline())["result"]
        writer.close()

    with_socket(tmp_path, talk)


def test_silent_connections_keep_nobody_out(tmp_path):
    async def talk(attach: AttachSocket) -> None:
        silent: list[socket.socket] = []
        honest: list[asyncio.StreamWriter] = []
        try:
            for number in range(300):
                peer = socket.socket(socket.AF_UNIX)
                peer.setblocking(False)
                silent.append(peer)
                while True:
                    try:
                        peer.connect(attach._path)
                        break
                    except BlockingIOError:
                        await asyncio.sleep(0)
                if number % 100 == 99:
                    honest.append(await initialized(attach))
            assert len(attach._unnamed) <= attach_socket.MOST_UNNAMED
            assert len(attach._attached) == 3
        finally:
            for one in (*silent, *honest):
                one.close()

    with_socket(tmp_path, talk)


def test_there_is_a_limit_for_those_that_stay_too(tmp_path, monkeypatch):
    monkeypatch.setattr(attach_socket, "MOST_ATTACHED", 2)

    async def talk(attach: AttachSocket) -> None:
        writers = [await initialized(attach), await initialized(attach)]
        reader, writer = await asyncio.open_unix_connection(attach._path)
        assert f"process {os.getpid()}" in json.loads(await reader.readline())["error"]["message"]
        writers.pop().close()
        while len(attach._attached) == 2:  # noqa: ASYNC110 -- nobody tells
            await asyncio.sleep(0)
        writers.append(await initialized(attach))
        for one in (*writers, writer):
            one.close()

    with_socket(tmp_path, talk)


# --- where it lies


def test_the_socket_is_for_its_owner_alone_and_goes_with_it(tmp_path):
    path = tmp_path / "run" / "1-token"

    async def talk(attach: AttachSocket) -> None:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    with_socket(tmp_path, talk)
    assert not path.exists()


def test_a_runtime_folder_that_others_can_enter_or_that_is_too_long_is_not_used(tmp_path, monkeypatch):
    shared = f"/tmp/crow-{os.geteuid()}"
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "private").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    long = tmp_path / ("x" * 100)
    long.mkdir(mode=0o700)
    taken = tmp_path / "taken"
    taken.mkdir(mode=0o700)
    (taken / "crow").symlink_to(tmp_path / "private")
    for runtime in ("", "relative", "open", "link", "missing", "taken", long.name):
        monkeypatch.setenv(
            "XDG_RUNTIME_DIR", runtime and (runtime if runtime == "relative" else str(tmp_path / runtime))
        )
        path = socket_path("1-token", str(tmp_path))
        assert os.path.dirname(path) == shared, runtime
        assert len(os.fsencode(path)) <= LONGEST_PATH
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "private"))
    assert socket_path("1-t", "/nowhere") == str(tmp_path / "private/crow/1-t")
    assert stat.S_IMODE((tmp_path / "private" / "crow").stat().st_mode) == 0o700
    assert not os.path.lexists("relative")


@pytest.mark.parametrize("planted", ["a link", "a file", "open to all", "another user's"])
def test_a_shared_folder_that_is_not_ours_alone_is_refused(tmp_path, monkeypatch, planted):
    """Others could lead us astray there, and could keep everybody out by making it first: the home is used instead."""
    folder = tmp_path / "shared"
    for module in (owners_module, doctor):
        monkeypatch.setattr(module, "shared_folder", lambda: str(folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    match planted:
        case "a link":
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            folder.symlink_to(tmp_path / "elsewhere")
        case "a file":
            folder.touch(mode=0o600)
        case "open to all":
            folder.mkdir()
            folder.chmod(0o777)
        case _:
            if os.geteuid() != 0:
                pytest.skip("only root can give a folder away")
            folder.mkdir(mode=0o700)
            os.chown(folder, 65534, 65534)
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        assert socket_path("1-token", home) == f"{home}/sockets/1-token"
        assert stat.S_IMODE(os.stat(f"{home}/sockets").st_mode) == 0o700
        assert list(check_attaching(home)) == []
    too_long = tmp_path / ("x" * 100)
    too_long.mkdir()
    assert socket_path("1-token", str(too_long)) == ""
    (check,) = check_attaching(str(too_long))
    assert check.outcome == "warn"
    assert str(folder) in check.text


# --- how others find it, and what a crash leaves


def test_others_find_the_socket_in_the_lock_and_requests_to_stop_are_not_mistaken_for_it(tmp_path, monkeypatch):
    runtime = tmp_path / "run time"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    folder = str(tmp_path / "owners")
    assert Owner(folder, stoppable=True).socket == ""
    owner = Owner(folder, stoppable=True, attachable=True)
    assert owner.socket == str(runtime / "crow" / owner.token)
    assert socket_of(folder, owner.token) == owner.socket
    lock = tmp_path / "owners" / owner.token
    with lock.open("ab") as file:
        file.write(b"stop-this\n")
    assert owner.requests() == ["stop-this"]
    assert socket_of(folder, "1-nobody") == ""
    text = lock.read_bytes()
    lock.write_bytes(text.replace(b"socket ", b"socket another-machine-", 1))
    assert socket_of(folder, owner.token) == "", "it leads nowhere from here"
    lock.write_bytes(text)
    owner.withdraw_socket()
    assert socket_of(folder, owner.token) == ""
    assert owner.requests() == []
    owner.close()


def test_the_socket_of_a_process_that_was_killed_is_swept_and_nothing_else_is(tmp_path, monkeypatch):
    owners, sockets = tmp_path / "owners", tmp_path / "sockets"
    owners.mkdir()
    sockets.mkdir()
    monkeypatch.setattr(owners_module, "socket_path", lambda token, _: str(sockets / token))
    living = Owner(str(owners), attachable=True)
    with contextlib.ExitStack() as stack:
        for name in ("1-dead", "another", living.token):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(sockets / name))
    (sockets / "3-dead").touch()
    for dead, path in (("1-dead", "1-dead"), ("2-dead", "another"), ("3-dead", "3-dead")):
        (owners / dead).write_text(f"socket machine {sockets / path}\n")
    sweep(str(owners))
    assert sorted(os.listdir(owners)) == [living.token]
    assert sorted(os.listdir(sockets)) == sorted(["3-dead", "another", living.token])
    living.close()
    eventually(lambda: not os.listdir(owners))
