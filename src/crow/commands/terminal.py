"""Runs a shell line on this machine: which shell, which environment (without keys), its output recorded, and all that
it starts ended.

Who watches over the processes is told in `supervisor.py`; what becomes of the output, in `terminal_recording.py`.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Collection, Mapping

from crow.commands.base import CommandRequest, Terminal, TerminalExit, TerminalOutput
from crow.commands.processes import MARK, ForkServer, Supervised, SupervisorKilled, kill_marked
from crow.commands.pty import ANSWERED_BY_NOBODY, DEFAULT_COLUMNS, Channel, open_channel
from crow.commands.supervisor import Request
from crow.commands.terminal_buffer import KeptOutput
from crow.commands.terminal_recording import Recording
from crow.disk import Disk
from crow.errors import FileSystemSilent, WorkspaceError
from crow.files.output_folder import OutputFolder, remove_left_behind
from crow.files.resolved_path import led_elsewhere, reason
from crow.paths import shown
from crow.threads import MAKE_ROOM, NO_MORE
from crow.timeouts import timeout

END_TIMEOUT = 0.9
"""Seconds that ending is waited for: a little more than the grace. It goes on by itself if that was not enough."""

LOOKUP_TIMEOUT = 5.0
"""Seconds that a disk gets on which something is looked for that a command can do without."""


class LocalCommands:
    def __init__(self, fork_server: ForkServer, folder: str, environ: Mapping[str, str]) -> None:
        """`environ` is the whole environment that commands get, without what is none of their business."""
        self._fork_server = fork_server
        self._folder = OutputFolder(folder)
        self._environ = environ
        self._has_looked_round = False
        self._disk = Disk(folder)

    async def open_terminal(self, request: CommandRequest) -> "LocalTerminal":
        if not self._has_looked_round:
            self._has_looked_round = True
            with contextlib.suppress(FileSystemSilent):
                await self._disk.run(lambda: remove_left_behind(os.path.dirname(self._folder.path)), LOOKUP_TIMEOUT)
        mark = os.urandom(8).hex()
        arguments = [os.fsencode(word) for word in (await self._shell(), "-c", request.command)]
        cwd = request.cwd
        try:
            channel = open_channel(columns=request.columns or DEFAULT_COLUMNS, takes_input=request.takes_input)
            variables = {**self._seen_on(channel), **_added(request, channel), "PWD": cwd, MARK: mark}
            encoded = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
            terminal = LocalTerminal(mark, channel, self._folder, request.output_limit)
            await terminal.start(self._fork_server, Request(os.fsencode(cwd), arguments, encoded))
        except SupervisorKilled:
            await asyncio.to_thread(kill_marked, mark)
            raise
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise WorkspaceError(f"{led_elsewhere(cwd).message} The command was not started.") from None
            if error.errno == errno.EAGAIN:
                raise WorkspaceError(f"The command could not be started: {NO_MORE}.", remedy=MAKE_ROOM) from None
            raise WorkspaceError(f"The command could not be started in {shown(cwd)}: {reason(error)}.") from None
        return terminal

    async def close(self) -> None:
        await asyncio.to_thread(self._folder.remove)

    def _seen_on(self, channel: Channel) -> dict[str, str]:
        """The environment of a command that writes there. Whatever names a pager names one that waits for no key."""
        seen = {name: value for name, value in self._environ.items() if name not in channel.withheld}
        pagers = dict.fromkeys((name for name in seen if name.endswith("PAGER")), "cat")
        return seen | pagers | dict(channel.variables)

    async def _shell(self) -> str:
        """Looked for beside the event loop: a folder of PATH may lie on a disk that hangs."""
        try:
            return await self._disk.run(lambda: find_shell(self._environ.get("PATH", "")), LOOKUP_TIMEOUT)
        except FileSystemSilent:
            return "/bin/sh"


def _added(request: CommandRequest, channel: Channel) -> dict[str, str]:
    """The variables of a request; of a command that can be typed into, without those that make programs ask nothing."""
    withheld = ANSWERED_BY_NOBODY if channel.takes_input else ()
    size = {"COLUMNS": str(request.columns)} if request.columns else {}
    return size | {name: value for name, value in request.environ.items() if name not in withheld}


class LocalTerminal(Terminal):
    def __init__(self, mark: str, channel: Channel, folder: OutputFolder, output_limit: int) -> None:
        self.mark = mark
        self._news = asyncio.Event()
        self._typing = asyncio.Lock()
        self._channel = channel
        self._recording = Recording(channel, folder, f"{mark}.txt", output_limit, self._news.set)
        self._process: Supervised | None = None
        self._ended: asyncio.Task[TerminalExit] | None = None

    async def start(self, fork_server: ForkServer, request: Request) -> None:
        try:
            self._recording.start()
            self._process = await fork_server.run(request, *self._channel.given)
        except BaseException:
            self._channel.close()
            self._recording.stop()
            raise
        self._channel.start()
        self._ended = asyncio.get_running_loop().create_task(self._follow(self._process))

    @property
    def kept(self) -> KeptOutput:
        return self._recording.kept

    @property
    def takes_input(self) -> bool:
        return self._channel.takes_input and self._process is not None and not self._is_over()

    async def write_input(self, data: bytes) -> None:
        async with self._typing:
            if not self.takes_input:
                raise WorkspaceError("Cannot type into the command: it takes no input or has ended.")
            writing = asyncio.ensure_future(self._channel.write_input(data))
            try:
                await asyncio.wait([writing, self._running()], return_when=asyncio.FIRST_COMPLETED)
                if not writing.done():
                    raise WorkspaceError("The command ended before it read everything that was typed.")
                writing.result()
            except OSError as error:
                raise WorkspaceError(f"Cannot type into the command: {reason(error)}.") from None
            finally:
                writing.cancel()

    def resize(self, columns: int, rows: int) -> None:
        self._channel.resize(columns, rows)

    async def _follow(self, process: Supervised) -> TerminalExit:
        ending = await process.exited
        await self._recording.drain()
        self.kept.is_running = False
        self._news.set()
        return ending

    async def grew(self) -> None:
        await self._news.wait()
        if not self._is_over():
            self._news.clear()
            self._recording.expect_growth()

    def glimpse(self) -> str:
        return self._recording.glimpse()

    def raw_growth(self, *, last: bool = False) -> str:
        return self._recording.raw.growth(last=last)

    async def wait(self) -> TerminalExit:
        return await asyncio.shield(self._running())

    async def output(self, since: int = 0) -> TerminalOutput:
        ending = self._running().result() if self._is_over() else None  # before the output: it is all there by then
        excerpt = await self._recording.excerpt(since)
        return TerminalOutput(excerpt.text, excerpt.truncated, ending, excerpt.end, excerpt.lines)

    async def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                async with timeout(END_TIMEOUT):
                    await self._process.end()
                    await self.wait()

    async def release(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                async with timeout(END_TIMEOUT):
                    await process.end()
        finally:
            # Whatever happened before: with its socket closed, the supervisor ends what may be left.
            process.close()
            self._channel.close()
            self._recording.stop()
        if process.vanished:
            await asyncio.to_thread(kill_marked, self.mark)
        await asyncio.wait([self._running()], timeout=END_TIMEOUT)

    def _running(self) -> asyncio.Task[TerminalExit]:
        if self._ended is None:
            raise RuntimeError("the terminal was never started")
        return self._ended

    def _is_over(self) -> bool:
        return self._ended is not None and self._ended.done()


def find_shell(path: str) -> str:
    """bash, wherever it is; what every system has where it is not."""
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, "bash")
        if folder and os.access(candidate, os.X_OK):
            return candidate
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


# --- which variables of our environment a command gets

CHANGE_MEANING = frozenset({"BASH_ENV", "ENV", "CDPATH"})
"""Variables that make a shell do something else than its line says, which is what was judged and approved."""
NAME_A_REPOSITORY = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    }
)
"""Left over from a hook that started the editor, they would lead git to another repository than the workspace's."""
_FOUND_FROM_FOLDER = frozenset({"RIPGREP_CONFIG_PATH"})
"""Files of options that name programs to run: a relative path would be a file of whatever folder a command runs in."""

_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def seen_by_commands(environ: Mapping[str, str], secrets: Collection[str]) -> dict[str, str]:
    """`secrets` are the names of the variables that hold keys of ours."""
    withheld = CHANGE_MEANING | NAME_A_REPOSITORY | frozenset(secrets)
    withheld |= {name for name in _FOUND_FROM_FOLDER if not os.path.isabs(environ.get(name, "/"))}
    seen = {name: value for name, value in environ.items() if name not in withheld}
    return seen | {"PATH": search_path(environ)} | git_settings(environ)


def given_to_terminals(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a client's terminal is given besides its own environment, which is like ours."""
    path = search_path(environ)
    return git_settings(environ) | ({} if environ.get("PATH", path) == path else {"PATH": path})


def search_path(environ: Mapping[str, str]) -> str:
    """PATH without what is not absolute: `.` or an empty entry is a folder of whatever project a command runs in.

    Without a PATH some shells look there too, so that there always is one.
    """
    home = environ.get("HOME", "")
    entries = environ.get("PATH", "").split(os.pathsep)
    # Shells read the `~` as the home, other programs as a folder of this name.
    spelled = (home + entry[1:] if entry == "~" or entry.startswith("~/") else entry for entry in entries)
    return os.pathsep.join(entry for entry in spelled if os.path.isabs(entry)) or _USUAL_PATH


def git_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables by which git obeys no bare repository that it comes across, beside the settings that are there.

    Any folder of a project can look like one, and its configuration names programs to run. All of the settings are
    given: a client's environment may lack some, and git refuses to work if one that was counted is missing.
    """
    settings = [*_settings_in(environ), ("safe.bareRepository", "explicit")]
    numbered = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        numbered |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return numbered


def _settings_in(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    count = environ.get("GIT_CONFIG_COUNT", "")
    number = int(count) if count.isascii() and count.isdecimal() and len(count) < 5 else 0
    names = ((f"GIT_CONFIG_KEY_{at}", f"GIT_CONFIG_VALUE_{at}") for at in range(number))
    return [(environ[key], environ[value]) for key, value in names if key in environ and value in environ]
