"""The pseudo-terminal that a command writes to, so that it prints as it does for a person, and why nothing in it can
wait for a key. A command's output has colours, width and progress there.

Both outputs of a command are the terminal; its input is at its end (`/dev/null`), as nobody can type. Programs find
ways round that when they want a password or a key, and none of them may wait for ever for one:

- `/dev/tty` is no way: the terminal is not the command's controlling one, so opening that fails at once (ssh, sudo,
  git, `getpass`). Nor is there a SIGHUP when we close our end: a command lives as long as its supervisor lets it.
- Reading from the outputs fails: they are open for writing alone, and nobody but root may open the terminal by its
  name for reading.
- Whoever gets through, or only waits until there is something to be read, finds the answer of somebody who leaves.

A command that somebody can type into gets the whole terminal instead, as its controlling one: then Ctrl-C is a signal.
What is typed reaches this command alone: nobody but Crow has the other end, and no other command may open the terminal.

Line ends come as they were written: the terminal adds no carriage return to a line feed, which is for whoever shows the
bytes to do. Where a system has no pseudo-terminals a pipe takes their place.
"""

import asyncio
import contextlib
import errno
import os
import termios
from collections.abc import Mapping, Sequence

DEFAULT_COLUMNS, ROWS = 120, 40

ON_A_TERMINAL = {"TERM": "xterm-256color", "PYTHONUNBUFFERED": "1", "BUILDKIT_PROGRESS": "plain"}
"""Variables of a command that writes to a terminal. Docker's build would show what each step prints only until that
ends. NO_COLOR is not set: it would change the outcome of people's tests."""
ON_A_PIPE = {"TERM": "dumb", "PYTHONUNBUFFERED": "1"}
OTHER_TERMINALS = ("COLUMNS", "LINES")
"""Variables that tell the size of the terminal that Crow was started in, and would be taken for that of ours."""

ANSWERED_BY_NOBODY = ("GIT_TERMINAL_PROMPT", "PIP_NO_INPUT", "DEBIAN_FRONTEND")
"""Variables by which programs are told to ask nothing. A command that somebody can type into does not get them."""

_LEAVES = b"\x04q"
"""The end of the input for a program that reads lines, and the key by which a pager is left."""
_OUTPUT_FLAGS, _LOCAL_FLAGS = 1, 3
"""Where `tcgetattr` has them."""


class Channel:
    """A pipe: the descriptors that the command is given, and the one from which its output is read."""

    takes_input = False
    variables: Mapping[str, str] = ON_A_PIPE
    withheld: Sequence[str] = ()
    """Variables of ours that the command does not get."""

    def __init__(self, reader: int, given: Sequence[int]) -> None:
        self.reader = reader
        """Not blocking. Whoever reads it closes it."""
        self.given: Sequence[int] = given
        """One for both outputs; or output, input and errors. They are ours until `start`."""
        os.set_blocking(reader, False)

    def start(self) -> None:
        """Once the command has its descriptors: ours are closed, so that the end of its output can be seen."""
        for descriptor in set(self.given):
            os.close(descriptor)
        self.given = ()

    async def write_input(self, data: bytes) -> None:
        """Types into the command. OSError if it takes no input, or has ended."""
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))

    def resize(self, columns: int, rows: int) -> None:
        """Tells the command how much can be seen of its output at once."""

    def close(self) -> None:
        """Closes what is left, apart from the reader."""
        self.start()


class Pseudoterminal(Channel):
    variables = ON_A_TERMINAL
    withheld = OTHER_TERMINALS

    def __init__(self, reader: int, given: Sequence[int], *, takes_input: bool) -> None:
        super().__init__(reader, given)
        self.takes_input = takes_input
        self._control = os.dup(reader)  # the reader is closed on another thread, at any time
        self._waiting: asyncio.Event | None = None
        """Set when more can be typed, or nothing any longer; None while nobody waits for it."""

    async def write_input(self, data: bytes) -> None:
        while data:
            if not self.takes_input or self._control < 0:
                raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
            try:
                data = data[os.write(self._control, data) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        self._waiting = asyncio.Event()
        asyncio.get_running_loop().add_writer(self._control, self._waiting.set)
        try:
            await self._waiting.wait()
        finally:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        """Before the descriptor is closed: its number is another's soon, whom the event loop would take for ours."""
        if self._waiting is not None:
            self._waiting.set()
            self._waiting = None
            asyncio.get_running_loop().remove_writer(self._control)

    def resize(self, columns: int, rows: int) -> None:
        if self._control >= 0:
            termios.tcsetwinsize(self._control, (rows, columns))

    def close(self) -> None:
        super().close()
        self._stop_waiting()
        if self._control >= 0:
            os.close(self._control)
            self._control = -1


def open_channel(*, columns: int = DEFAULT_COLUMNS, takes_input: bool = False) -> Channel:
    """A pseudo-terminal, or what takes its place. OSError if there are no descriptors left."""
    try:
        master, slave = os.openpty()
    except OSError:
        reader, writer = os.pipe()
        return Channel(reader, (writer,))
    try:
        termios.tcsetwinsize(slave, (ROWS, columns))
        _set_modes(slave, echoes=takes_input)
        if takes_input:
            with contextlib.suppress(OSError):
                os.fchmod(slave, 0o200)  # no other command can open it by its name, to read what is typed
        else:
            os.write(master, _LEAVES)
            slave = _for_writing(slave)
        return Pseudoterminal(master, (slave,) * 3 if takes_input else (slave,), takes_input=takes_input)
    except BaseException:
        os.close(master)
        os.close(slave)
        raise


def _set_modes(slave: int, *, echoes: bool) -> None:
    modes = termios.tcgetattr(slave)
    modes[_OUTPUT_FLAGS] &= ~termios.ONLCR
    if not echoes:
        modes[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, modes)


def _for_writing(slave: int) -> int:
    """The terminal, opened for writing alone, and closed to other readers; as it is where that cannot be done."""
    with contextlib.suppress(OSError):
        os.fchmod(slave, 0o200)
        writer = os.open(os.ttyname(slave), os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        os.close(slave)
        return writer
    return slave


def read_some(reader: int, size: int) -> bytes | None:
    """At most so many bytes of what has been written; None if that is nothing yet, empty at the end of the output."""
    pieces: list[bytes] = []
    while size > 0:  # a terminal hands out no more than 4 KiB at once
        try:
            piece = os.read(reader, size)
        except BlockingIOError:
            return b"".join(pieces) if pieces else None
        except OSError as error:
            if error.errno != errno.EIO:  # how a terminal says that nobody can write to it any more
                raise
            piece = b""
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
