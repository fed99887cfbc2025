"""The terminals of a session: how many commands may run in the background, releasing each terminal once, and the folder
for their output.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import threading
import time
from collections.abc import Callable, Mapping

from crow.errors import WorkspaceError
from crow.workspace.base import Commands, Terminal, TerminalExit, TerminalOutput

MOST_IN_BACKGROUND = 16
FRAME = 0.25
"""Seconds between two times that somebody is told of the growth of a background command's output."""
RELEASE_TIMEOUT = 1.2
"""Seconds that closing waits for the releases; those of a client that does not answer go on by themselves."""


class BackgroundCommand:
    """A command that outlives its tool call. It ends with the session at the latest. `grew` is told of its output."""

    def __init__(
        self,
        id: str,
        command: str,
        terminal: Terminal,
        call_id: str,
        begun: float,
        grew: Callable[["BackgroundCommand"], None],
    ) -> None:
        self.id = id
        self.command = command
        self.call_id = call_id
        """The call that started it."""
        self.begun = begun
        """The moment, of `time.monotonic`."""
        self.terminal = terminal
        self.read_to_end = False
        """The model has read of its end in a call, which the person sees too."""
        self.model_knows = False
        """The model has been told of its end, in a call or otherwise."""
        loop = asyncio.get_running_loop()
        self._watch = loop.create_task(terminal.wait())
        self._following = loop.create_task(self._follow(grew))

    @property
    def seconds(self) -> float:
        """For how long it has run by now."""
        return round(time.monotonic() - self.begun, 3)

    @property
    def exit(self) -> TerminalExit | None:
        """How the command ended; None while it runs."""
        return self._watch.result() if self._watch.done() and not self._watch.cancelled() else None

    def when_ended(self, tell: Callable[[], None]) -> None:
        self._watch.add_done_callback(lambda watch: None if watch.cancelled() else tell())

    def forget(self) -> None:
        self._watch.cancel()
        self._following.cancel()

    async def _follow(self, grew: Callable[["BackgroundCommand"], None]) -> None:
        while not self._watch.done():
            await self.terminal.grew()
            grew(self)
            await asyncio.wait([self._watch], timeout=FRAME)


class Terminals:
    """Opens terminals, and lets go of every one of them exactly once."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._open: set[Terminal] = set()
        self._releases: set[asyncio.Task[None]] = set()
        self._background: dict[str, BackgroundCommand] = {}
        self._last_id = 0
        self.on_growth: Callable[[BackgroundCommand], None] | None = None
        """Told of each command in the background that has printed something, a few times a second at most."""
        self.on_end: Callable[[BackgroundCommand], None] | None = None
        """Told of each command in the background that ends by itself."""

    async def open(self, command: str, *, cwd: str, environ: Mapping[str, str], output_limit: int) -> Terminal:
        terminal = await self._commands.open_terminal(command, cwd=cwd, environ=environ, output_limit=output_limit)
        self._open.add(terminal)
        return terminal

    def release_soon(self, terminal: Terminal) -> None:
        """Begins when the caller has returned to the event loop.

        A client accepts an update that shows a terminal only while the terminal exists. So the result of a tool
        call must be in the journal first; and it is, if nothing is awaited between the two.
        """
        if terminal in self._open:
            self._open.discard(terminal)
            task = asyncio.get_running_loop().create_task(terminal.release())
            self._releases.add(task)
            task.add_done_callback(self._releases.discard)

    async def released(self, patience: float) -> None:
        """Waits a moment for the releases that are under way."""
        if self._releases:
            await asyncio.wait(self._releases, timeout=patience)

    async def close(self) -> None:
        """Ends everything."""
        for command in self._background.values():
            command.forget()
        self._background.clear()
        for terminal in list(self._open):
            self.release_soon(terminal)
        await self.released(RELEASE_TIMEOUT)
        await self._commands.close()

    # --- in the background

    def keep(self, terminal: Terminal, command: str, call_id: str, begun: float) -> str:
        """Lets a command go on; the id under which it can be asked for."""
        self._last_id += 1
        kept = BackgroundCommand(f"b{self._last_id}", command, terminal, call_id, begun, self._tell_growth)
        self._background[kept.id] = kept
        kept.when_ended(lambda: self._tell_end(kept))
        return kept.id

    def _tell_growth(self, command: BackgroundCommand) -> None:
        if self.on_growth is not None and command.id in self._background:
            self.on_growth(command)

    def _tell_end(self, command: BackgroundCommand) -> None:
        if self.on_end is not None and command.id in self._background:
            self.on_end(command)

    def need_room(self) -> None:
        """Raises WorkspaceError if there are enough of them."""
        if len(self._background) >= MOST_IN_BACKGROUND:
            raise WorkspaceError(
                f"There are already {MOST_IN_BACKGROUND} commands in the background.", remedy="Stop one first."
            )

    def background(self) -> list[BackgroundCommand]:
        """For the person, and for the model when it asks for one that is not there."""
        return list(self._background.values())

    def ends_to_tell(self) -> list[BackgroundCommand]:
        """The commands that have ended since the model was last asked, which it does not know yet: each once."""
        ended = [one for one in self._background.values() if one.exit is not None and not one.model_knows]
        for command in ended:
            command.model_knows = True
        return ended

    def find(self, id: str) -> BackgroundCommand:
        if id in self._background:
            return self._background[id]
        known = ", ".join(self._background) or "none"
        raise WorkspaceError(f"There is no background command {id[:20]!r}. There are: {known}.")

    async def stop(self, id: str) -> TerminalOutput:
        """Ends a command and lets go of it; the last of its output."""
        command = self.find(id)
        del self._background[id]
        command.forget()
        try:
            await command.terminal.kill()
            return await command.terminal.output()
        finally:
            self.release_soon(command.terminal)


# --- the folder for what a session's commands print beyond what is shown of it
#
# A folder is locked as long as its session lives; the lock goes with the agent, however that ends. So whoever finds
# one without a lock, which an agent that was killed has left, may take it away.

FRESH = 60
"""Seconds for which a folder is left alone: it may have been made a moment ago, and not be locked yet."""

_NAME = re.compile(r"crow-[0-9a-f]{12}-[0-9a-f]{16}")
_FILE = re.compile(r"[0-9a-f]{16}\.txt")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def outputs_folder(session_id: str) -> str:
    """Where what a session's commands print is kept for as long as it is open: nobody else's to read."""
    return os.path.join(temporary_folder(), f"crow-{session_id}")


def was_output(path: str) -> bool:
    """Whether the path is that of a command's output, which may be gone by now."""
    folder, name = os.path.split(path)
    return bool(_NAME.fullmatch(os.path.basename(folder)) and _FILE.fullmatch(name))


class OutputFolder:
    """Made when there is something to put into it; `make_for` is called on the threads that read the output."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._descriptor = -1
        self._names: list[str] = []
        self._is_over = False

    def make_for(self, name: str) -> str:
        """The path for a file of that name. Raises OSError."""
        with self._lock:
            if self._is_over:
                raise OSError(errno.ESHUTDOWN, "the session has ended")
            if self._descriptor < 0:
                os.makedirs(self.path, 0o700, exist_ok=True)
                self._descriptor = os.open(self.path, _FOLDER)
                with contextlib.suppress(OSError):  # a file system without locks; or somebody just looks at it
                    fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            self._names.append(name)
        return os.path.join(self.path, name)

    def remove(self) -> None:
        """Removes the folder with our files, and only those: the session may be open a second time."""
        with self._lock:
            self._is_over = True
            if self._descriptor >= 0:
                for name in self._names:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=self._descriptor)
                os.close(self._descriptor)
                self._descriptor = -1
                with contextlib.suppress(OSError):
                    os.rmdir(self.path)


def remove_left_behind(folder: str = "") -> None:
    """Takes away what agents that were killed have left in a folder for temporary files. Never fails."""
    folder = folder or temporary_folder()
    with contextlib.suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError):
                _remove_if_left_behind(os.path.join(folder, name), FRESH)


def remove_outputs(session_id: str) -> None:
    """Takes away what is left of a session that nobody has open, however fresh it is. Never fails."""
    if _NAME.fullmatch(f"crow-{session_id}"):
        with contextlib.suppress(OSError):
            _remove_if_left_behind(outputs_folder(session_id), 0)


def temporary_folder() -> str:
    return os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- `tempfile` would cost a tenth of our start-up to import


def _remove_if_left_behind(path: str, age: float) -> None:
    descriptor = os.open(path, _FOLDER)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < age:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: its session lives, or nobody can tell
        for name in filter(_FILE.fullmatch, os.listdir(descriptor)):
            os.unlink(name, dir_fd=descriptor)
        os.rmdir(path)  # should anything lie in it that is not ours, it stays
    finally:
        os.close(descriptor)
