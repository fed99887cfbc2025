"""Tests once whether a client's terminal runs commands exactly as they are sent; where it does not, commands run on
this machine.

Some clients join command and arguments and hand the line to a shell, unquoted: then other commands run than those that
the person agreed to. So one harmless command tests that arguments, folder, environment and exit code arrive. What came
of it is stored for each client and version in `$CROW_HOME/terminals.json`; a client that does not say who it is, is
tested on every connection.
"""

import asyncio
import contextlib
import logging
import os
import secrets
from collections.abc import Generator

import msgspec

from crow.acp.terminal import ClientCommands, TerminalNotOpened
from crow.commands.base import CommandRequest, Terminal, TerminalExit
from crow.commands.terminal import LocalCommands
from crow.config.home import Versioned, locked, read_versioned, write_versioned
from crow.disk import Disk
from crow.errors import ConfigError
from crow.files.output_folder import temporary_folder
from crow.files.resolved_path import refuse_link
from crow.timeouts import timeout

logger = logging.getLogger(__name__)

FILE_NAME = "terminals.json"
_VERSION = 1
MOST_STORED = 100
"""Clients and versions that are remembered; the oldest are tested again."""

TEST_TIMEOUT = 10.0
"""Seconds for the whole test. A client that takes longer is not trusted on this connection."""
EXIT_CODES = range(11, 111)
"""One of them, by chance, says that all is well: a client that always reports the same would pass for one that reports
the truth. Nothing is printed, since a terminal that has printed something is shown by some (Toad)."""
VALUE = 'two  blanks; "quotes" $HOME * \\'
"""What a shell takes apart if it is not quoted."""
NO_TERMINAL = "The editor has no terminal that can run commands"
LINE = (
    f"Crow_tests_this_terminal_once='{VALUE}'; "
    '[ "$Crow_tests_this_terminal_once" = "$CROW_CHECK_VALUE" ] && [ "$(pwd -P)" = "$CROW_CHECK_FOLDER" ] && '
    'exit "$CROW_CHECK_CODE"; exit 1'
)
"""Harmless however it is taken apart: it assigns, compares, and writes nothing. The name is for the person, whom a
client may show what runs in its terminals."""


class Finding(msgspec.Struct, frozen=True):
    """What a test of a client's terminal has found."""

    as_sent: bool
    """Commands arrive as they are sent."""
    trouble: str = ""
    """What went wrong, as the beginning of a sentence; empty if the person knows already."""
    lasting: bool = False
    """It will be the same the next time: worth storing."""


class _Stored(Versioned, frozen=True):
    clients: dict[str, bool]
    """Whether commands arrive as they are sent, by the client's name and version."""


class TerminalCheck:
    """The test of one connection's client. `client` is its name and version; empty if it does not say them."""

    def __init__(self, home: str, client: str) -> None:
        self._path = os.path.join(home, FILE_NAME)
        self._disk = Disk(home)
        self._client = client
        self._known: Finding | None = None
        self._testing: asyncio.Task[Finding] | None = None
        self._told = False

    async def passes(self, commands: ClientCommands) -> bool:
        """Whether the client runs commands as they are sent; found out now if it is not known. TerminalNotOpened if
        the test was refused: then so is every command.

        Whoever waits may be cancelled: the test goes on and serves the next one.
        """
        if self._known is None:
            if self._testing is None:
                self._testing = asyncio.get_running_loop().create_task(self._find_out(commands))
                self._testing.add_done_callback(self._learn)
            return (await asyncio.shield(self._testing)).as_sent
        return self._known.as_sent

    def give_up(self, trouble: str) -> None:
        """For the rest of this connection: the client has shown that its terminal does not work."""
        self._known = Finding(as_sent=False, trouble=trouble)

    def remark(self) -> str:
        """A sentence for the person about a terminal that is not used; empty if they have had it."""
        if self._told or self._known is None or not self._known.trouble:
            return ""
        self._told = True
        return f"{self._known.trouble}. Crow runs them itself instead."

    def _learn(self, test: "asyncio.Task[Finding]") -> None:
        self._testing = None
        if not test.cancelled() and test.exception() is None:
            self._known = self._known or test.result()

    async def _find_out(self, commands: ClientCommands) -> Finding:
        stored = await self._disk.run(self._stored) if self._client else None
        if stored is not None:
            return Finding(as_sent=stored)
        found = await _test(commands)
        if self._client and found.lasting:
            await self._disk.run(lambda: self._store(as_sent=found.as_sent))
        return found

    def _stored(self) -> bool | None:
        try:
            return self._read().clients.get(self._client)
        except ConfigError as error:
            logger.warning("%s", error)
            return None

    def _store(self, *, as_sent: bool) -> None:
        try:
            with locked(self._path):
                others = {name: known for name, known in self._read().clients.items() if name != self._client}
                kept = dict(list(others.items())[-MOST_STORED + 1 :])
                write_versioned(self._path, _Stored(_VERSION, {**kept, self._client: as_sent}))
        except ConfigError as error:  # it is tested again the next time
            logger.warning("%s", error)

    def _read(self) -> _Stored:
        return read_versioned(self._path, _Stored(_VERSION, {}), "the terminals of clients are tested anew")


class CheckedCommands:
    """Commands in the client's terminal, once that has shown to run them as they are sent; else on this machine."""

    def __init__(self, client: ClientCommands, local: LocalCommands, check: TerminalCheck) -> None:
        self._client = client
        self._local = local
        self._check = check

    async def open_terminal(self, request: CommandRequest) -> Terminal:
        await self._client.disk.run(lambda: refuse_link(request.cwd))  # it was judged as what it was then
        if await self._check.passes(self._client):
            try:
                return await self._client.open_terminal(request)
            except TerminalNotOpened as error:
                if error.why == "silent":  # it may yet be started there: it must not run twice
                    self._check.give_up("The editor's terminal did not answer when it was to run commands")
                if error.why != "unknown":
                    raise
                self._check.give_up(NO_TERMINAL)
        terminal = await self._local.open_terminal(request)
        terminal.remark = self._check.remark()
        return terminal

    async def close(self) -> None:
        await self._client.close()
        await self._local.close()


async def _test(commands: ClientCommands) -> Finding:
    """Runs the harmless command in the client's terminal. TerminalNotOpened if that was refused."""
    try:
        async with timeout(TEST_TIMEOUT):
            return await _run_harmless_command(commands)
    except TimeoutError:
        return Finding(as_sent=False, trouble="The editor's terminal did not answer when it was to run commands")
    except (TerminalNotOpened, OSError) as error:
        if isinstance(error, TerminalNotOpened) and error.why in ("refused", "gone"):
            raise
        logger.warning("the client's terminal could not be tested: %s", error)
        return Finding(as_sent=False, trouble=NO_TERMINAL)


async def _run_harmless_command(commands: ClientCommands) -> Finding:
    code = secrets.choice(EXIT_CODES)
    with _folder() as folder:
        variables = {"CROW_CHECK_VALUE": VALUE, "CROW_CHECK_FOLDER": folder, "CROW_CHECK_CODE": str(code)}
        terminal = await commands.open_terminal(CommandRequest(LINE, cwd=folder, environ=variables, output_limit=4096))
        try:
            ending = await terminal.wait()
            output = await terminal.output()
        finally:
            commands.release_soon(terminal)
    if ending == TerminalExit():
        return Finding(as_sent=False, trouble="The editor's terminal does not say how commands end")
    as_sent = ending.code == code
    if not as_sent:
        logger.warning("the client's terminal altered the test: %r, %r", ending, output.text[:1000])
    trouble = "" if as_sent else "The editor's terminal does not run commands as they are sent"
    return Finding(as_sent, trouble, lasting=True)


@contextlib.contextmanager
def _folder() -> Generator[str]:
    """A folder that no client would run a command in by itself, with a blank in its name."""
    folder = os.path.join(os.path.realpath(temporary_folder()), f"crow terminal test {os.urandom(8).hex()}")
    os.mkdir(folder, 0o700)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(folder)
