"""Supervises commands, as a program beside the agent: all that a command started, daemons too, ends with it, or with
Crow.

    agent ──▶ fork server ──▶ supervisor ──▶ bash ──▶ whatever it starts
                     └──────▶ supervisor ──▶ bash ──▶ …

Every command gets a supervisor, forked off the fork server in a millisecond. A supervisor is a *child subreaper*: when
a process below it loses its parent, the supervisor becomes its parent, in whatever session or group it hides,
however often it forked, whatever it did to its environment. So "all that the command started" is exactly "all that
is below the supervisor"; nothing has to be guessed, and the agent's own children are never mistaken for a command's.

Supervisor and agent share a socket that nobody else holds. If the agent asks for the end, or closes the socket, or
dies in any way, kill -9 included, then the supervisor ends everything below it, and itself. A supervisor that is
killed leaves its processes to the fork server, a subreaper too, which kills them.

With the socket the agent hands over one stream, for both outputs of a command, or three for a program that it will
talk to: output, input, errors. An input that is a terminal becomes the command's controlling one.

On the socket the agent sends one request (`encode_request`), and later perhaps `END`. It is told, one a line:

    started                the command runs
    failed ERRNO           it could not be started, and that is all
    exited STATUS LEFT     it ended: wait status, and how many processes it left running (if it ended by itself)
    gone                   nothing is left of it

This file runs by itself, under `python -I -S`: it imports nothing of ours and little else, and never busily waits.
Without /proc (macOS) there is no subreaper either, and the process group is all that can be ended.
"""

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

GRACE = 0.5
"""Seconds between the request to end and the order."""
STUBBORN = 3.0
"""Seconds until we give up on what cannot be killed: another user's process, or one stuck in the kernel."""
END = b"end"

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""A terminal or a service manager sends these to everyone around; the fork server goes when the agent has gone."""
_CHANGED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_SET_CHILD_SUBREAPER = 36
_LENGTH = 4


class Request(NamedTuple):
    cwd: bytes
    arguments: Sequence[bytes]
    """The first is the program's absolute path."""
    environment: Sequence[bytes]
    """`NAME=value`."""


def encode_request(request: Request) -> bytes:
    """None of the fields can contain a null byte, so it separates them."""
    fields = [request.cwd, b"%d" % len(request.arguments), *request.arguments, *request.environment]
    body = b"\0".join(fields)
    return len(body).to_bytes(_LENGTH) + body


def decode_request(body: bytes) -> Request:
    cwd, count, *rest = body.split(b"\0")
    return Request(cwd, rest[: int(count)], rest[int(count) :])


# --- the fork server


def main() -> None:
    if len(sys.argv) > 1:  # the limit of open descriptors that commands are to have: the agent's own is a higher one
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), hard))
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    become_subreaper()
    control = socket.socket(fileno=os.dup(0))  # the agent hands it over as our standard input
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.close(null)
    serve(control)


def serve(control: socket.socket) -> None:
    """Forks a supervisor for every socket that comes, until the agent is gone and they are too."""
    alarm = ChildAlarm()
    supervisors: set[int] = set()
    agent_is_there = True
    while agent_is_there or supervisors:
        if alarm.wait(control if agent_is_there else None):
            message, descriptors, _, _ = socket.recv_fds(control, 1, 4)
            agent_is_there = bool(message)
            if len(descriptors) in (2, 4):
                supervisors.update(_fork_supervisor(control, *descriptors))
        for pid, status in reaped():
            supervisors.discard(pid)
            if status != 0:  # it was killed: whatever it watched is ours now
                kill_all(supervisors)


def _fork_supervisor(control: socket.socket, link: int, *streams: int) -> list[int]:
    """Empty if the system gives no further process."""
    for descriptor in (link, *streams):
        os.set_inheritable(descriptor, False)  # noqa: FBT003 -- the function takes it so
    try:
        pids = [os.fork()]
    except OSError as error:
        os.write(link, b"failed %d\n" % (error.errno or 1))
        pids = []
    if pids != [0]:
        for descriptor in (link, *streams):
            os.close(descriptor)
        return pids
    status = 1
    try:
        control.close()
        supervise(socket.socket(fileno=link), streams)
        status = 0
    finally:
        os._exit(status)


# --- a supervisor


def supervise(agent: socket.socket, streams: Sequence[int]) -> None:
    alarm = ChildAlarm()
    become_subreaper()
    request = _receive_request(agent)
    if request is None:
        return
    try:
        command = start(request, streams)
    except OSError as error:
        _tell(agent, f"failed {error.errno}")
        return
    for descriptor in streams:
        os.close(descriptor)
    _tell(agent, "started")
    while not alarm.wait(agent):  # a word from the agent and its end mean the same
        _report_exit(agent, command, counting=True)
    end_all(command, alarm, lambda: _report_exit(agent, command, counting=False))
    _tell(agent, "gone")


def start(request: Request, streams: Sequence[int]) -> int:
    """Starts the command in a session of its own. With one stream its input is empty. Raises OSError."""
    errors, report = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            os.close(errors)
            _become(request, *streams)
        except OSError as error:
            os.write(report, b"%d" % (error.errno or 1))
        finally:
            os._exit(127)
    os.close(report)
    with open(errors, "rb") as file:
        failure = file.read()
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


def _become(request: Request, output: int, entry: int | None = None, errors: int | None = None) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY) if entry is None else entry, 0)
    os.dup2(output, 1)
    os.dup2(output if errors is None else errors, 2)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (*_IGNORED, *_CHANGED_BY_PYTHON):  # what is ignored would stay ignored in the command
        signal.signal(number, signal.SIG_DFL)
    _enter(request.cwd)
    environment = dict(entry.split(b"=", 1) for entry in request.environment)
    os.execve(request.arguments[0], list(request.arguments), environment)  # noqa: S606 -- running commands is what we are for


def _enter(folder: bytes) -> None:
    """The folder was resolved when somebody agreed to it. If a symbolic link leads elsewhere now: ELOOP."""
    os.chdir(folder)
    is_it = os.path.samestat(os.stat("."), os.lstat(folder))
    if not is_it or os.path.realpath(folder) != folder:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _receive_request(agent: socket.socket) -> Request | None:
    """The request of the agent; None if the agent went away before it had said what to run."""
    with contextlib.suppress(OSError), agent.makefile("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH))
        body = stream.read(length)
        if length and len(body) == length:
            return decode_request(body)
    return None


def _report_exit(agent: socket.socket, command: int, *, counting: bool) -> None:
    for pid, status in reaped():
        if pid == command:
            left = len(processes_below(os.getpid())) if counting else 0
            _tell(agent, f"exited {status} {left}")


def _tell(agent: socket.socket, words: str) -> None:
    with contextlib.suppress(OSError):  # the agent may be gone
        agent.sendall(words.encode() + b"\n")


# --- ending processes


def end_all(command: int, alarm: "ChildAlarm", reap: Callable[[], None]) -> None:
    """Asks everything below us to end, and kills what is still there after the grace."""
    _send_all(signal.SIGTERM, command)
    grace_ends = time.monotonic() + GRACE
    pause = 0.005
    while _anything_left(command) and time.monotonic() < grace_ends:
        alarm.wait(None, pause)
        reap()
        pause = min(pause * 2, 0.05)
    given_up = time.monotonic() + STUBBORN
    while _anything_left(command) and time.monotonic() < given_up:
        kill_all() if _HAS_PROC else _send_all(signal.SIGKILL, command)
        alarm.wait(None, 0.02)
        reap()
    reap()


def kill_all(spared: Collection[int] = ()) -> None:
    """Kills everything below us, but for the spared and what is below them.

    They are stopped first, all of them, and whole groups at a blow: else one could fork while others are killed.
    """
    stopped: set[int] = set()
    while fresh := _targets(spared) - stopped:
        for target in fresh:
            _send(target, signal.SIGSTOP)
        stopped |= fresh
    for target in stopped:
        _send(target, signal.SIGKILL)


def _targets(spared: Collection[int]) -> set[int]:
    """What `kill` takes: processes, and their groups as negative numbers.

    A group lies in one session, and theirs began below us, so that nobody else can be in it. Ours is left out: a
    process is in it for the moment between its fork and its own session.
    """
    found = processes_below(os.getpid(), spared)
    return {process.id for process in found} | {-process.group for process in found} - {-os.getpgrp()}


class Process(NamedTuple):
    id: int
    parent: int
    group: int


def processes_below(root: int, spared: Collection[int] = ()) -> list[Process]:
    """The living descendants of a process, parents before their children."""
    children: dict[int, list[Process]] = {}
    for process in _living():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [root]
    while queue:
        fresh = [child for child in children.pop(queue.pop(), []) if child.id not in spared]
        found += fresh
        queue += [child.id for child in fresh]
    return found


def _living() -> list[Process]:
    found: list[Process] = []
    for name in os.listdir("/proc") if _HAS_PROC else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The name in parentheses may contain anything, a parenthesis too.
                state, parent, group, *rest = file.read().rpartition(b") ")[2].split()
                threads_left = int(rest[14]) > 1  # a process whose first thread ended looks dead and is not
                if state not in (b"Z", b"X") or threads_left:
                    found.append(Process(int(name), int(parent), int(group)))
    return found


def _anything_left(command: int) -> bool:
    if _HAS_PROC:
        return bool(processes_below(os.getpid()))
    try:
        os.killpg(command, 0)
    except OSError:
        return False
    return True


def _send_all(number: signal.Signals, command: int) -> None:
    """To whole groups at a blow, parents first: a shell whose child ends before it would go on with its line."""
    if _HAS_PROC:
        ours = os.getpgrp()
        found = processes_below(os.getpid())
        for target in dict.fromkeys(process.id if process.group == ours else -process.group for process in found):
            _send(target, number)
    else:
        with contextlib.suppress(OSError):
            os.killpg(command, number)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # it ended in the meantime, or belongs to another user
        os.kill(pid, number)


# --- children


class ChildAlarm:
    """Waits for a child's end and for a socket at once: the signal writes into a pipe, and a pipe can be polled."""

    def __init__(self) -> None:
        self._bell, rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(rope, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(rope, warn_on_full_buffer=False)

    def wait(self, other: socket.socket | None, timeout: float | None = None) -> bool:
        """Returns when a child has ended, or the other can be read (then True), or time is up."""
        sources = select.poll()
        sources.register(self._bell, select.POLLIN)
        if other is not None:
            sources.register(other, select.POLLIN)
        ready = [descriptor for descriptor, _ in sources.poll(None if timeout is None else timeout * 1000)]
        if self._bell in ready:
            os.read(self._bell, 4096)
        return other is not None and other.fileno() in ready


def reaped() -> list[tuple[int, int]]:
    """The children that have ended, with their wait status. A process below us that we adopted counts as one."""
    ended: list[tuple[int, int]] = []
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            ended.append(child)
    return ended


def become_subreaper() -> None:
    if _HAS_PROC:
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


_HAS_PROC = os.path.isdir("/proc/self")

if __name__ == "__main__":
    main()
