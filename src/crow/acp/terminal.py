"""Runs commands in the client's own terminals, where the person watches: create, wait, read the output, kill, and
release each exactly once.

The order that clients need, since some forget a terminal the moment it is released: create, show it in the tool
call, wait, kill if need be, output, the call's last update, release. Whatever happens on the way, and whenever we are
cancelled: every terminal that the client created is released exactly once.
"""

import asyncio
import logging
import os
from collections.abc import Collection, Mapping
from functools import partial
from typing import Literal

from crow.acp import wire
from crow.commands import terminal_text as texts
from crow.commands.base import CommandRequest, Terminal, TerminalExit, TerminalOutput
from crow.commands.processes import MARK, end_marked
from crow.disk import Disk
from crow.errors import WorkspaceError
from crow.files.resolved_path import refuse_link
from crow.rpc.connection import BadAnswer, Connection, ConnectionLost
from crow.rpc.jsonrpc import ErrorCode, RpcError, reason_of
from crow.timeouts import timeout
from crow.visible import one_line

logger = logging.getLogger(__name__)

CREATION = 30
"""Seconds until a client that does not create the terminal is given up; it may have to ask the person."""
ANSWER = 5
"""Seconds for every other request. Only the wait for the exit has no bound of its own; its caller has one."""
AFTER_KILL = 2
"""Seconds to wait for the exit of a killed command: a client may never report it, if a child holds the terminal."""
KEPT_BY_CLIENT = 4 * 1024 * 1024
"""Bytes that the client keeps: a client drops the beginning, so that it should hardly ever have to. Six times as many
still fit into a message, if each of them is a control character."""
FIRST_LOOK = 0.03
LONGEST_PAUSE = 4.0
"""Seconds until a running command's output is looked at, and then between two looks, until its beginning is known."""
LARGE = 256 * 1024
"""Characters of output from which on only the parts that may be shown are looked at."""


class TerminalNotOpened(WorkspaceError):
    """The client opened no terminal: it said no, knows no terminals, said nothing that could be read, or is gone."""

    def __init__(self, why: Literal["refused", "unknown", "silent", "gone"], message: str, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.why = why


class ClientCommands:
    """`withheld` are variables of the client's environment that commands must not see, `added` those they get. The ids
    of the terminals that the client opens are added to `ids`."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        withheld: Collection[str] = (),
        added: Mapping[str, str] | None = None,
        root: str = "/",
        *,
        ids: set[str] | None = None,
    ) -> None:
        self.disk = Disk(root)
        self._ids: set[str] = set() if ids is None else ids
        self._connection = connection
        self._session_id = session_id
        self._withheld = withheld
        self._added = added or {}
        self._late: set[asyncio.Task[None]] = set()

    async def open_terminal(self, request: CommandRequest) -> "ClientTerminal":
        await self.disk.run(lambda: refuse_link(request.cwd))  # it was judged as what it was then
        mark = os.urandom(16).hex()
        # The list cannot take a variable away, but it can empty it.
        variables = dict.fromkeys(self._withheld, "") | dict(self._added) | dict(request.environ) | {MARK: mark}
        wanted = wire.CreateTerminalRequest(
            session_id=self._session_id,
            command="bash",  # with arguments: some clients run a bare command line by a shell, some by none
            args=["-c", request.command],
            env=[wire.EnvVariable(name=name, value=value) for name, value in variables.items()],
            cwd=request.cwd,
            output_byte_limit=max(request.output_limit, KEPT_BY_CLIENT),
        )
        creation = asyncio.get_running_loop().create_task(self._create(wanted, mark, request.output_limit))
        try:
            async with timeout(CREATION):
                return await asyncio.shield(creation)
        except TimeoutError:
            self._release_when_created(creation)
            late = f"The editor did not open a terminal within {CREATION} seconds."
            raise TerminalNotOpened("silent", late) from None
        except asyncio.CancelledError:
            self._release_when_created(creation)
            raise
        except RpcError as error:
            raise _not_opened(error) from None
        except ConnectionLost:
            raise TerminalNotOpened("gone", "The editor is gone: no terminal could be opened.") from None

    async def close(self) -> None:
        """Nothing to do: a terminal that comes late is released even now, and with the connection all waiting ends."""

    def release_soon(self, terminal: "ClientTerminal") -> None:
        """Releases a terminal in the background, for whoever has no time to wait for it."""
        task = asyncio.get_running_loop().create_task(terminal.release())
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def _create(self, request: wire.CreateTerminalRequest, mark: str, output_limit: int) -> "ClientTerminal":
        answer = await self._connection.request("terminal/create", request, wire.CreateTerminalResponse)
        self._ids.add(answer.terminal_id)
        return ClientTerminal(self._connection, self._session_id, answer.terminal_id, mark, output_limit)

    def _release_when_created(self, creation: "asyncio.Task[ClientTerminal]") -> None:
        """We have given up; if the terminal comes after all, nobody else knows of it."""

        async def release() -> None:
            try:
                terminal = await creation
            except (RpcError, ConnectionLost):
                return
            await terminal.release()

        task = asyncio.get_running_loop().create_task(release())
        self._late.add(task)
        task.add_done_callback(self._late.discard)


def _not_opened(error: RpcError) -> TerminalNotOpened:
    """Whatever an error's words are, it is a no: only an editor that has no such method has not decided anything."""
    if isinstance(error, BadAnswer):
        return TerminalNotOpened("silent", f"The editor's answer says of no terminal: {one_line(error.message, 200)}.")
    if error.code == ErrorCode.METHOD_NOT_FOUND:
        return TerminalNotOpened("unknown", "The editor has no terminals.")
    told = f"The editor did not open a terminal, so the command was not run: {reason_of(error)}."
    return TerminalNotOpened("refused", told, "Only the user can allow it.")


class ClientTerminal(Terminal):
    """A command in a terminal of the client's.

    `mark` is in the command's environment. Clients often end the shell alone when they are told to kill it; what still
    carries the mark then, and runs on this machine, is ended from here.
    """

    def __init__(self, connection: Connection, session_id: str, terminal_id: str, mark: str, output_limit: int) -> None:
        self.client_id = terminal_id
        self._connection = connection
        self._request = wire.TerminalRequest(session_id=session_id, terminal_id=terminal_id)
        self._mark = mark
        self._limit = output_limit
        self._may_run = True
        self._beginning = ""
        """What the command printed first, as long as the client still had it."""
        self._looking = asyncio.get_running_loop().create_task(self._keep_beginning())
        self._exit: asyncio.Task[TerminalExit] | None = None
        self._releasing: asyncio.Task[None] | None = None

    async def grew(self) -> None:
        await self.wait()

    def glimpse(self) -> str:
        """The person already sees it; this is what was last looked at."""
        return texts.without_escapes(self._beginning)

    async def wait(self) -> TerminalExit:
        return await asyncio.shield(self._waiting())

    async def output(self, since: int = 0) -> TerminalOutput:
        answer = await self._fetch()
        if answer is None:
            return TerminalOutput(f"[… {self._why_silent()} …]\n", truncated=True, exit=self._known())
        beginning = self._beginning if since == 0 else ""
        readable = partial(_readable, answer, since, self._limit, beginning)
        is_short = len(answer.output) <= texts.QUICK
        ending = _as_exit(answer.exit_status) if answer.exit_status is not None else self._known()
        text, truncated = readable() if is_short else await asyncio.to_thread(readable)
        return TerminalOutput(text, truncated, ending, len(answer.output))

    def _why_silent(self) -> str:
        if self._connection.is_lost:
            return "the editor is gone, and its terminal with it"
        return "the editor did not hand over the output"

    async def kill(self) -> None:
        if self._may_run and self._releasing is None:
            self._may_run = False
            await self._ask("terminal/kill")
            await asyncio.to_thread(end_marked, self._mark)
            await asyncio.wait([self._waiting()], timeout=AFTER_KILL)

    async def release(self) -> None:
        if self._releasing is None:
            self._releasing = asyncio.get_running_loop().create_task(self._release())
        await asyncio.shield(self._releasing)  # once begun, it goes on without us

    async def _release(self) -> None:
        self._looking.cancel()
        if self._may_run:
            await self._ask("terminal/kill")
        if self._exit is not None:
            self._exit.cancel()  # which tells the client that we wait no longer
        await self._ask("terminal/release")
        await asyncio.to_thread(end_marked, self._mark)

    async def _fetch(self) -> wire.TerminalOutputResponse | None:
        """The output that the client has now; None if it does not say."""
        try:
            async with timeout(ANSWER):
                answer = await self._connection.request("terminal/output", self._request, wire.TerminalOutputResponse)
        except (RpcError, ConnectionLost, TimeoutError) as error:
            logger.warning("no output from the client's terminal: %r", error)
            return None
        if answer.exit_status is not None:
            self._may_run = False
        return answer

    async def _keep_beginning(self) -> None:
        """A client that has to drop something drops the beginning, so it is fetched while it is there."""
        enough, pause = 2 * self._limit, FIRST_LOOK
        while len(self._beginning) < enough:
            await asyncio.sleep(pause)
            if not self._may_run:
                return
            answer = await self._fetch()
            if answer is None or answer.truncated:
                return
            self._beginning = answer.output[:enough]
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _ask(self, method: str) -> None:
        """Something whose answer tells us nothing, be it null or an error."""
        try:
            async with timeout(ANSWER):
                await self._connection.request(method, self._request, object)
        except (RpcError, ConnectionLost, TimeoutError) as error:
            logger.warning("%s failed: %r", method, error)

    def _waiting(self) -> asyncio.Task[TerminalExit]:
        """One request for the exit, however many want to know it."""
        if self._exit is None:
            self._exit = asyncio.get_running_loop().create_task(self._wait_for_exit())
        return self._exit

    async def _wait_for_exit(self) -> TerminalExit:
        try:
            status = await self._connection.request("terminal/wait_for_exit", self._request, wire.TerminalExitStatus)
        except (RpcError, ConnectionLost) as error:
            logger.warning("the client did not say how the command ended: %r", error)
            return TerminalExit()
        except asyncio.CancelledError:
            return TerminalExit()  # released: whoever still waits must not believe that they were cancelled
        self._may_run = False
        return _as_exit(status)

    def _known(self) -> TerminalExit | None:
        if self._exit is None or not self._exit.done() or self._exit.cancelled():
            return None
        return self._exit.result()


def _as_exit(status: wire.TerminalExitStatus) -> TerminalExit:
    return TerminalExit(status.exit_code, status.signal or None)


def _readable(answer: wire.TerminalOutputResponse, since: int, limit: int, beginning: str) -> tuple[str, bool]:
    """The output as text within the limit, and whether something of it was left out."""
    if answer.truncated:
        # Positions mean nothing any more once the client has begun to drop the beginning.
        return _without_middle(beginning, answer.output, limit), True
    output = answer.output[since:]
    if len(output) > LARGE:
        left_out = texts.size_text(len(output.encode("utf-8", "replace")) - limit)
        return texts.joined(_both_ends(output, output, limit), f"about {left_out} left out here"), True
    text = texts.without_escapes(output)
    pieces = texts.split_to_fit(text, limit)
    if pieces is None:
        return text, False
    left_out = len(text.encode("utf-8", "replace")) - sum(len(piece.encode("utf-8", "replace")) for piece in pieces)
    return texts.joined(pieces, f"{texts.size_text(left_out)} left out here"), True


def _without_middle(beginning: str, end: str, limit: int) -> str:
    """What came first and last, of an output that the client did not keep as a whole."""
    if not beginning:
        note = "the beginning was left out by the terminal"
        return texts.joined(("", texts.last_part(texts.without_escapes(end[-4 * limit :]), limit)), note)
    return texts.joined(_both_ends(beginning, end, limit), "what came here was left out by the terminal")


def _both_ends(first: str, last: str, limit: int) -> texts.Pieces:
    beginning = texts.first_part(texts.without_escapes(first[: 4 * limit]), limit // 2)
    return beginning, texts.last_part(texts.without_escapes(last[-4 * limit :]), limit // 2)
