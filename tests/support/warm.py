"""Starts `crow`, and servers made with large libraries, in processes that have everything imported already.

Most of what the suite cost was thousands of interpreters that imported the same modules. One process has imported them
and waits for requests; for each it forks a process, which gets the arguments, the folder, the environment and the
descriptors that a program gets, runs the same `main` and ends like a program. Tests that are about starting, or about
memory, ask for a cold start; with CROW_COLD_STARTS=1 every start is one.

Whoever starts programs by themselves is given the words of one: `warm(CROW)`, `warm(script)`.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import os
import pkgutil
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CROW = str(Path(sys.executable).with_name("crow"))
COLD = bool(os.environ.get("CROW_COLD_STARTS"))
LIBRARIES = (
    *("_ctypes", "encodings.utf_8_sig"),
    *("acp", "argparse", "jiter", "sqlite3", "tree_sitter", "tree_sitter_bash"),
    *("mcp.server.mcpserver", "mcp.server.auth.provider", "mcp.server.auth.settings", "uvicorn"),
)
NOT_PRELOADED = ("crow.web.",)  # web pages are converted in processes of their own
INTERPRETER = {"LANG": "C.UTF-8", "PYTHONWARNINGS": "default"}
"""What an interpreter reads while it starts. A `crow` that is to have it otherwise gets a cold start."""
TERMINAL = "terminal"
"""How a process is started that is the first in the terminal on its standard input."""
TAKE_TERMINAL = """
import fcntl, os, signal, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever started the tests may ignore it
os.execv(sys.argv[1], sys.argv[1:])
"""


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
    if cold or COLD:
        command = [CROW, *arguments]
        return subprocess.Popen(command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr)
    return Process([CROW, *arguments], cwd=cwd, env=env, descriptors=(stdin, stdout, stderr))


def prepare() -> None:
    """Starts the process that has everything imported, for this process and those that are forked from it."""
    if not COLD:
        _nest()


def warm(program: Path | str) -> list[str]:
    """The words that start `crow`, or a Python program of the tests, without what it would import."""
    return _cold(str(program)) if COLD else [*_stand_in(_nest()), str(program)]


def in_terminal(command: Sequence[str], terminal: int, env: Mapping[str, str]) -> "Process | subprocess.Popen[bytes]":
    """Starts `crow`, or a program like it, as the first process in a terminal."""
    if not COLD:
        return Process(command, cwd=os.getcwd(), env=env, descriptors=[terminal] * 3, how=TERMINAL)
    return subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *command], stdin=terminal, stdout=terminal, stderr=terminal, env=env
    )


class Process:
    """A process that is forked from the one that has everything imported; to be used like a Popen."""

    def __init__(
        self,
        program: Sequence[str],
        *,
        cwd: Path | str,
        env: Mapping[str, str],
        descriptors: Sequence[int],
        how: str = "",
    ) -> None:
        from tests.support.warm_start import ask_for

        self.returncode: int | None = None
        variables = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
        self._ending, self.pid = ask_for(_nest(), program, str(cwd), variables, descriptors, how)

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
        from tests.support.warm_start import end_of

        if self.returncode is None and select.select([self._ending], [], [], timeout)[0]:
            self.returncode = end_of(self._ending)
            self._ending.close()
        return self.returncode


def _cold(program: str) -> list[str]:
    is_executable = os.access(program, os.X_OK)
    return [program] if is_executable else [sys.executable, "-W", "ignore", program]


def _stand_in(place: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("warm_start.py")), place]


_kept: list[subprocess.Popen[bytes]] = []
"""A process that multiprocessing forks forgets what was to be done at the end, and so what is kept by that."""


@functools.cache
def _nest() -> str:
    """Starts the process that forks the others: the place of its socket. It ends with this process.

    Whoever asks before it is ready waits in the socket's queue.
    """
    folder = tempfile.mkdtemp(prefix="crow-nest-")
    place = os.path.join(folder, "socket")
    leash, ours = os.pipe()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(100)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, place, str(listener.fileno()), str(leash)],
            cwd=Path(__file__).parents[2],
            env={"PATH": os.defpath, **INTERPRETER},
            pass_fds=[listener.fileno(), leash],
            stdin=subprocess.DEVNULL,
        )
    os.close(leash)
    _kept.append(process)

    @atexit.register
    def end() -> None:
        os.close(ours)
        process.wait()
        shutil.rmtree(folder)

    return place


# --- the process that has everything imported


class _Request(NamedTuple):
    how: str
    cwd: str
    program: list[str]
    env: dict[str, str]
    descriptors: list[int]


class _Forked(NamedTuple):
    pid: int
    asker: socket.socket


def _serve(listener: socket.socket, leash: int) -> _Request | None:
    """Forks for each request. In the forked process it returns what is to be run, in its own None when all is over."""
    by_ending: dict[int, _Forked] = {}
    by_asker: dict[int, _Forked] = {}
    while True:
        ready, _, _ = select.select([leash, listener, *by_ending, *by_asker], [], [])
        if leash in ready:
            return None
        for process in by_ending.keys() & set(ready):
            forked = by_ending.pop(process)
            by_asker.pop(forked.asker.fileno(), None)
            os.close(process)
            _tell_the_end(forked)
        for asker in by_asker.keys() & set(ready):  # they have nothing more to say: the asker is gone
            os.kill(by_asker.pop(asker).pid, signal.SIGKILL)
        if listener not in ready:
            continue
        asker, _ = listener.accept()
        if (request := _read(asker)) is None:
            continue
        pid = os.fork()
        if pid == 0:
            listener.close()
            asker.close()
            for process, forked in by_ending.items():
                os.close(process)
                forked.asker.close()
            os.close(leash)
            return request
        for descriptor in request.descriptors:
            os.close(descriptor)
        forked = _Forked(pid, asker)
        by_ending[os.pidfd_open(pid)] = by_asker[asker.fileno()] = forked
        with contextlib.suppress(OSError):
            asker.sendall(pid.to_bytes(4, "big"))


def _read(asker: socket.socket) -> _Request | None:
    size, descriptors, _, _ = socket.recv_fds(asker, 4, 3)
    data = b""
    while len(data) < int.from_bytes(size, "big"):
        if not (piece := asker.recv(1 << 20)):
            return None
        data += piece
    count, *parts = (os.fsdecode(part) for part in data.split(b"\0"))
    (how, cwd, *program), variables = parts[: int(count)], parts[int(count) :]
    return _Request(how, cwd, program, dict(variable.split("=", 1) for variable in variables), descriptors)


def _tell_the_end(forked: _Forked) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(forked.pid, 0)[1])
    with forked.asker as asker, contextlib.suppress(OSError):  # whoever started it does not ask any more
        asker.sendall(code.to_bytes(4, "big", signed=True))


def _become(request: _Request) -> None:
    """Makes of this process what an interpreter is that was started so."""
    for number, descriptor in enumerate(request.descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(request.cwd)
    if request.how == TERMINAL:
        _take_terminal()
    read = {name: value for name, value in request.env.items() if name.startswith(("LANG", "LC_", "PYTHON"))}
    if read != INTERPRETER and os.access(request.program[0], os.X_OK):
        os.execve(request.program[0], request.program, request.env)
    os.environ.clear()
    os.environ.update(request.env)
    sys.argv = request.program
    options = {"encoding": "utf-8", "errors": "surrogateescape", "closefd": False}
    sys.stdin = sys.__stdin__ = open(0, **options)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", 1 if os.isatty(1) else -1, **options)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115


def _take_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it


def _run(program: Sequence[str], place: str) -> int:
    from crow.__main__ import main
    from crow.cli import demo, run
    from crow.cli.chat import conversation

    agent = (*_stand_in(place), CROW, "acp")
    conversation.AGENT = demo.AGENT = run.AGENT = agent  # pyright: ignore[reportPrivateImportUsage]
    if program[0] == CROW:
        return main()
    if not os.access(program[0], os.X_OK):
        warnings.simplefilter("ignore")
    runpy.run_path(program[0], run_name="__main__")
    return 0


def _main(place: str, listening: int, leash: int) -> int:
    import crow
    from tests.support.rehearsal import rehearse

    sys.path.pop(0)  # the project's folder
    for name in (*LIBRARIES, *(module.name for module in pkgutil.walk_packages(crow.__path__, "crow."))):
        if not name.startswith(NOT_PRELOADED):
            importlib.import_module(name)
    rehearse()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=listening) as listener:
        request = _serve(listener, leash)
    if request is None:
        return 0
    _become(request)
    try:
        code = _run(request.program, place)
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        code = end.code or 0
    return _leave(code)


def _leave(code: int) -> int:
    """Ends without taking everything apart, which writes to each page that is shared: most of what a start cost."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        return code  # an interpreter has its own words for it
    os._exit(code)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
