"""Starts `crow` in processes that have everything imported already.

Most of what the suite cost was hundreds of interpreters that imported the same modules. One process for each pytest
process has imported them and waits for requests; for each it forks a process, which gets the arguments, the folder, the
environment and the descriptors that a program gets, runs the same `main` and ends like a program. Tests that are about
starting, or about memory, ask for a cold start; with CROW_COLD_STARTS=1 every start is one.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CROW = str(Path(sys.executable).with_name("crow"))
COLD = bool(os.environ.get("CROW_COLD_STARTS"))
LIBRARIES = ("argparse", "jiter", "sqlite3", "tree_sitter", "tree_sitter_bash")
NOT_PRELOADED = ("crow.__main__", "crow.web.")  # web pages are converted in processes of their own
INTERPRETER = {"LANG": "C.UTF-8", "PYTHONWARNINGS": "default"}
"""What an interpreter reads while it starts. Whoever wants it otherwise gets a cold start."""
SIZE = struct.Struct("!I")


def start_crow(
    arguments: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    stdin: int,
    stdout: int,
    stderr: int,
    cold: bool = False,
) -> "Process | subprocess.Popen[bytes]":
    read = {name: value for name, value in env.items() if name.startswith(("LANG", "LC_", "PYTHON"))}
    if cold or COLD or read != INTERPRETER:
        command = [CROW, *arguments]
        return subprocess.Popen(command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
    return Process(arguments, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)


class Process:
    """A process that is forked from the one that has everything imported; to be used like a Popen."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path | str, env: Mapping[str, str], stdin: int, stdout: int, stderr: int
    ) -> None:
        self.returncode: int | None = None
        self._ending, told = os.pipe()
        request = {"argv": [CROW, *arguments], "cwd": str(cwd), "env": dict(env)}
        try:
            self.pid = _nest().start(request, [stdin, stdout, stderr, told])
        finally:
            os.close(told)

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        if (status := self._look(timeout)) is None:
            raise subprocess.TimeoutExpired([CROW], timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], timeout)[0]:
            self.returncode = int(os.read(self._ending, 16))
            os.close(self._ending)
        return self.returncode


class _Nest:
    """The process that forks them."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env={"PATH": os.defpath, **INTERPRETER}, stdin=subprocess.DEVNULL
            )
        _exactly(self._socket, 1)
        atexit.register(self._close)

    def _close(self) -> None:
        self._socket.close()
        self._process.wait()

    def start(self, request: Mapping[str, Any], descriptors: list[int]) -> int:
        data = json.dumps(request).encode()
        socket.send_fds(self._socket, [SIZE.pack(len(data))], descriptors)
        self._socket.sendall(data)
        return SIZE.unpack(_exactly(self._socket, SIZE.size))[0]


@functools.cache
def _nest() -> _Nest:
    return _Nest()


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (piece := connection.recv(size - len(data))):
            raise EOFError
        data += piece
    return data


# --- the process that has everything imported


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Forks for each request. In the forked process it returns what is to be run, in its own None when all is over."""
    endings: dict[int, tuple[int, int]] = {}  # by the descriptor of a process: its id, and where its end is told
    while True:
        ready, _, _ = select.select([connection.fileno(), *endings], [], [])
        for process in endings.keys() & set(ready):
            _tell_the_end(process, *endings.pop(process))
        if connection.fileno() not in ready:
            continue
        size, descriptors, _, _ = socket.recv_fds(connection, SIZE.size, 4)
        if not size:
            return None
        request = json.loads(_exactly(connection, SIZE.unpack(size)[0]))
        pid = os.fork()
        if pid == 0:
            for process, (_, told) in endings.items():
                os.close(process)
                os.close(told)
            return {**request, "descriptors": descriptors}
        endings[os.pidfd_open(pid)] = pid, descriptors.pop()
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(SIZE.pack(pid))


def _tell_the_end(process: int, pid: int, told: int) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # whoever started it does not ask any more
        os.write(told, str(code).encode())
    os.close(told)
    os.close(process)


def _become(argv: list[str], cwd: str, env: dict[str, str], descriptors: list[int]) -> None:
    """Makes of this process what an interpreter is that was started so."""
    *standard, told = descriptors
    os.close(told)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = argv
    sys.stdin = sys.__stdin__ = os.fdopen(0, "r", encoding="utf-8", closefd=False)  # pyright: ignore[reportAttributeAccessIssue]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", encoding="utf-8", closefd=False)  # pyright: ignore[reportAttributeAccessIssue]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, encoding="utf-8", closefd=False)  # pyright: ignore[reportAttributeAccessIssue]


def _main() -> int:
    import crow
    from crow.__main__ import main

    sys.path.pop(0)  # the folder of this file
    for name in (*LIBRARIES, *(module.name for module in pkgutil.walk_packages(crow.__path__, "crow."))):
        if not name.startswith(NOT_PRELOADED):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        connection.sendall(b"!")
        request = _serve(connection)
    if request is None:
        return 0
    _become(**request)
    return main()


if __name__ == "__main__":
    sys.exit(_main())
