"""Starts commands under a supervisor and learns how they end; and finds processes that carry a command's mark, to end
them.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from crow.commands import supervisor
from crow.commands.base import TerminalExit
from crow.descriptors import soft_limit_before
from crow.errors import WorkspaceError
from crow.timeouts import timeout

MARK = "CROW_TERMINAL"
"""Set in the environment of every command: whoever looks at a process can tell where it came from."""

MOST_ROUNDS = 100
"""Looks for marked processes, as long as each finds some that the last one did not."""
POLL_INTERVAL = 0.01
"""Seconds between two looks whether marked processes have ended."""

START_TIMEOUT = 10
"""Seconds that the fork server gets to start a command."""

_KEPT_FOR_PYTHON = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG")


class SupervisorKilled(WorkspaceError):
    """Somebody killed the supervisor before it could say that the command runs: perhaps the command did."""

    def __init__(self) -> None:
        super().__init__(
            "The command's supervisor was killed, perhaps by the command itself. "
            "The command may have started; everything it started was stopped."
        )


class ForkServer:
    """Starts the fork server process with the first command, and anew if somebody killed it.

    One serves all sessions. It ends by itself when the agent does, in whatever way that happens.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self.has_run = False
        """Whether it was asked to start anything yet."""

    async def run(self, request: supervisor.Request, *streams: int) -> "Supervised":
        """Starts a command whose output goes to the descriptor; three of them are output, input and errors.

        OSError if it cannot be started.
        """
        self.has_run = True
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as on_failure:
            on_failure.enter_context(ours)
            self._hand_over(theirs.fileno(), *streams)
            on_failure.pop_all()
        supervised = Supervised(ours)
        try:
            async with timeout(START_TIMEOUT):
                with contextlib.suppress(ConnectionError):  # it has said by then why there is nobody to read it
                    await asyncio.get_running_loop().sock_sendall(ours, supervisor.encode_request(request))
                await supervised.started()
        except TimeoutError:
            supervised.close()
            raise WorkspaceError(
                "The command could not be started: the process that runs commands is not responding."
            ) from None
        except BaseException:
            supervised.close()  # which ends whatever was started by then
            raise
        return supervised

    def _hand_over(self, *descriptors: int) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):  # it is gone: start another
                socket.send_fds(self._control, [b"+"], descriptors)
                return
            self._forget()
        socket.send_fds(self._start(), [b"+"], descriptors)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as on_failure:
            on_failure.enter_context(ours)
            # Nothing of the agent's is handed on: neither its standard streams nor its folder nor its keys.
            self._process = subprocess.Popen(  # noqa: S603 -- our own file
                [sys.executable, "-I", "-S", supervisor.__file__, *map(str, soft_limit_before)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _KEPT_FOR_PYTHON if name in os.environ},
                start_new_session=True,
            )
            on_failure.pop_all()
        ours.setblocking(False)  # noqa: FBT003 -- the method takes it so
        self._control = ours
        return ours

    async def close(self) -> None:
        """Lets the fork server go; it ends once the last command has."""
        process = self._process
        self._forget()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 2)

    def _forget(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.poll()
        self._control = self._process = None


class Supervised:
    """A command under its supervisor. The socket to it is what keeps the command alive: closing it ends everything."""

    def __init__(self, link: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._rest = b""
        self._orderly = False
        self._started: asyncio.Future[int | None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self.exited: asyncio.Future[TerminalExit] = self._loop.create_future()
        """Never fails. An exit without code and signal: somebody killed the supervisor, and its command with it."""
        self.vanished = False
        """The supervisor is gone and has not said that nothing is left: somebody killed it."""
        link.setblocking(False)  # noqa: FBT003 -- the method takes it so
        self._loop.add_reader(link, self._read)

    async def started(self) -> None:
        number = await self._started
        if number is None:
            raise SupervisorKilled
        if number:
            raise OSError(number, os.strerror(number))

    async def end(self) -> None:
        """Returns when everything that the command started is gone. The caller bounds the wait."""
        with contextlib.suppress(OSError):
            self._link.send(supervisor.END)
        await self._gone.wait()

    def close(self) -> None:
        if self._link.fileno() >= 0:
            self._loop.remove_reader(self._link)
            self._link.close()
            self._finish()

    def _read(self) -> None:
        try:
            data = self._link.recv(4096)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.vanished = not self._orderly
            self.close()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode().split())

    def _take(self, words: list[str]) -> None:
        match words:
            case ["started"]:
                self._start(0)
            case ["failed", number]:
                self._orderly = True
                self._start(int(number))
            case ["exited", status, left] if not self.exited.done():
                self.exited.set_result(as_exit(int(status), int(left)))
            case ["gone"]:
                self._orderly = True
            case _:
                pass

    def _start(self, number: int | None) -> None:
        if not self._started.done():
            self._started.set_result(number)

    def _finish(self) -> None:
        self._start(None)  # it never said that it had started, nor that it could not
        if not self.exited.done():
            self.exited.set_result(TerminalExit())
        self._gone.set()


def as_exit(status: int, left_running: int) -> TerminalExit:
    if os.WIFSIGNALED(status):
        return TerminalExit(signal=signal_name(os.WTERMSIG(status)), left_running=left_running)
    return TerminalExit(code=os.WEXITSTATUS(status), left_running=left_running)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class MarkedProcess(NamedTuple):
    """A process that carries a command's mark. Its id may be another's soon; together with its start it may not."""

    id: int
    started: bytes


def kill_marked(mark: str) -> None:
    """Kills every process that carries a command's mark. They are stopped first, so that none of them forks away."""
    stopped: set[MarkedProcess] = set()
    for _ in range(MOST_ROUNDS):
        fresh = set(marked(mark)) - stopped
        if not fresh:
            break
        _signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    _signal_all(stopped, signal.SIGKILL)


def end_marked(mark: str, grace: float = supervisor.GRACE) -> None:
    """Asks every process that carries a command's mark to end, and kills what is still there after the grace."""
    found = marked(mark)
    if not found:
        return
    _signal_all(found, signal.SIGTERM)
    grace_ends = time.monotonic() + grace
    while any(_start_of(process.id) == process.started for process in found) and time.monotonic() < grace_ends:
        time.sleep(POLL_INTERVAL)
    kill_marked(mark)


def marked(mark: str) -> list[MarkedProcess]:
    """The living processes of this user that carry a command's mark in their environment."""
    if not os.path.isdir("/proc/self"):
        return []
    entry, user = f"\0{MARK}={mark}\0".encode(), os.getuid()
    found: list[MarkedProcess] = []
    with os.scandir("/proc") as folders:
        for folder in folders:
            with contextlib.suppress(OSError):  # it ended in the meantime
                if not folder.name.isdigit() or folder.stat().st_uid != user:
                    continue
                started = _start_of(int(folder.name))
                with open(f"/proc/{folder.name}/environ", "rb") as file:
                    if started and entry in b"\0" + file.read():
                        found.append(MarkedProcess(int(folder.name), started))
    return found


def _start_of(process: int) -> bytes:
    """When a process started, as the system counts it; empty if there is none that lives."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name in parentheses may contain anything, a parenthesis too.
            state, *rest = file.read().rpartition(b") ")[2].split()
    except OSError:
        return b""
    return b"" if state in (b"Z", b"X") else rest[18]


def _signal_all(processes: Iterable[MarkedProcess], number: signal.Signals) -> None:
    for process in processes:
        if _start_of(process.id) == process.started:
            with contextlib.suppress(OSError):
                os.kill(process.id, number)


# --- which processes are commands

_OPTIONS = [b"-I", b"-S"]
_FORK_SERVERS = tuple(
    os.path.join("crow", *path).encode()
    for path in (("commands", "supervisor.py"), ("workspace", "supervisor.py"), ("workspace", "keeper.py"))
)
"""How a fork server's path ends, wherever that Crow is installed; an older Crow has it under one of the later names."""
MOST_LOOKS = 3
"""Looks at where a process came from, if one of those above it ends meanwhile."""


def is_command(process: int) -> bool:
    """Whether a process is one that a Crow runs for a model, or was started by one; also if nobody can tell.

    All below a fork server is, however often it forked, as its supervisor is a subreaper; and all that carries a mark,
    which is what commands in a client's terminal have. What this process itself comes from does not count: a Crow that
    is run by another Crow's command is not that command's fork server.
    """
    for _ in range(MOST_LOOKS if process > 0 else 0):  # 0 stands for one that lives where we cannot see it
        with contextlib.suppress(OSError):
            above = {ancestor.id for ancestor in _lineage(os.getpid())}
            found = (ancestor for ancestor in _lineage(process) if ancestor.id not in above)
            return any(ancestor.is_fork_server or ancestor.is_marked for ancestor in found)
    return True


class _Ancestor(NamedTuple):
    """A process, or one above it."""

    id: int
    is_fork_server: bool
    is_marked: bool
    """It carries the mark of a command that this process does not come from."""


def _lineage(process: int) -> list[_Ancestor]:
    """The process, its parent, and so on up to the first of all. OSError if one of them ended, or cannot be seen."""
    found: list[_Ancestor] = []
    while process > 1:
        with open(f"/proc/{process}/stat", "rb") as file:
            parent = int(file.read().rpartition(b") ")[2].split()[1])
        with open(f"/proc/{process}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        is_fork_server = words[1:3] == _OPTIONS and words[3].endswith(_FORK_SERVERS)
        found.append(_Ancestor(process, is_fork_server, _is_another_mark(_mark_of(process))))
        process = parent
    return found


def _mark_of(process: int) -> str:
    """The mark in a process's environment; empty if there is none, or nobody may look, as into a Crow's own."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            _, found, rest = (b"\0" + file.read()).partition(f"\0{MARK}=".encode())
    except PermissionError:
        return ""
    return rest.partition(b"\0")[0].decode("utf-8", "replace") if found else ""


def _is_another_mark(mark: str) -> bool:
    """Whether it is the mark of a command that this process does not come from."""
    return bool(mark) and mark != os.environ.get(MARK, "")
