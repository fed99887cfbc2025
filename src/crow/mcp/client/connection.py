"""The life of one MCP server: started, asked what it has, called, lost, logged in to, started again."""

import asyncio
import contextlib
import enum
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolResult,
    ElicitCompleteNotification,
    PromptListChangedNotification,
    ToolListChangedNotification,
)

from crow.mcp.client.changes import PastChanges
from crow.mcp.client.configured import ConfiguredServer, place_of_key
from crow.mcp.client.elicitation import (
    AskingCall,
    RunningCalls,
    ServerRequestHandler,
    UrlElicitations,
    abandoned_on_cancel,
)
from crow.mcp.client.inventory import ClientOpener, ConnectionContext, Inventory
from crow.mcp.client.login import log_in_through
from crow.mcp.client.server_errors import (
    KeyRefused,
    LoginNeeded,
    NotCalled,
    ServerFailed,
    ServerNotices,
    SessionExpired,
    TimedOut,
    UrlElicitationRequired,
    as_failure,
    first_of,
    is_lost,
)
from crow.mcp.client.stdio import StderrLog, stderr_path
from crow.timeouts import timeout
from mcp import Client, MCPError

logger = logging.getLogger(__name__)

ENDING = 1.0
"""Seconds in which one that failed at its start should be gone, so that the cause can be told before work goes on."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before each further try; after the last one the server is given up until somebody asks for it."""
STABLE_AFTER = 60.0
"""Seconds that a server must have run for its failures to be forgotten."""
CLOSE_TIMEOUTS = (2.0, 0.5, 0.5)
"""Seconds to end in. Each time that was not enough, what is still waited for is cut off."""

PATIENCE_OF_A_CALL = 10.0
"""Seconds more, beyond those of a prompt, that a call waits for a server that starts: without it there is no result."""

T = TypeVar("T")


class State(enum.StrEnum):
    """What a server is doing. The value is shown to the person."""

    STARTING = "starting"
    READY = "ready"
    WAITING_FOR_LOGIN = "waiting for you to log in"
    STARTING_AGAIN = "waiting to restart"
    TIMED_OUT = "timed out"
    FAILED = "failed"


AT_REST = (State.FAILED, State.TIMED_OUT, State.STARTING_AGAIN)
"""States in which no part of the server runs, until it is started again."""


_NOT_YET = {
    State.STARTING: "it is still starting",
    State.WAITING_FOR_LOGIN: "it is waiting for you to log in on the page that your editor was asked to open",
}


class ServerConnection:
    """The connection to one server, and to its successor whenever it is started again.

    `known_as` is the server's name in those of its tools, in rules and in files: no other server has it.

    `on_change` is called when what the server offers has changed, and when its state has.
    """

    def __init__(
        self,
        server: ConfiguredServer,
        known_as: str,
        context: ConnectionContext,
        on_change: "Callable[[ServerConnection], None]",
    ) -> None:
        self.server = server
        self.known_as = known_as
        self.title = ""
        """What the server calls itself; empty if it does not say."""
        self.state = State.STARTING
        self._down: ServerFailed | None = None
        """Why the server is not ready; None if it is."""
        self._context = context
        self._on_change = on_change
        self._notices = ServerNotices(server, context.tell)
        self._log = StderrLog(stderr_path(context.home, known_as))
        self._client: Client | None = None
        self._calls = RunningCalls(lambda: self.answer_timeout)
        self._url_elicitations = UrlElicitations(server.name, context.asker)
        self._unauthorised = False
        self._was_ready = False
        self._is_awaited = False
        """Whether the person was told that the server is not ready, and so is told when it is."""
        self._settled = asyncio.Event()
        """Set when no prompt waits for it: it is ready, has failed, or is late."""
        self._settling: asyncio.TimerHandle | None = None
        self._has_started = asyncio.Event()
        """Set while it is not starting, whether it is ready or has failed."""
        self._lost = asyncio.Event()
        self._left = asyncio.Event()
        """Set when the process or connection of the last start has ended."""
        self._failure: ServerFailed | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.past = PastChanges()
        """What its running program could take back."""
        self.inventory = Inventory(self._lost, self._notices.warn)
        requests = ServerRequestHandler(server.name, context.roots, context.asker, self._calls, self._notices.warn)
        self._opener = ClientOpener(
            server.settings,
            context,
            requests,
            self.inventory,
            self._log,
            on_message=self._hear,
            on_end=self._end,
            on_leave=self._settle_soon,
            on_unauthorised=self._note_unauthorised,
        )

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def shown_name(self) -> str:
        return self.server.shown_name

    @property
    def shown_state(self) -> State:
        """For a person: a server that is lost, or restarted, is not ready any more, though it is still ending."""
        return State.STARTING_AGAIN if self.state is State.READY and self._lost.is_set() else self.state

    @property
    def cause(self) -> str:
        """Why it is not ready, in words for the person."""
        return self._down.message if self._down is not None else ""

    @property
    def remedy(self) -> str:
        return self._down.remedy if self._down is not None else ""

    @property
    def has_printed(self) -> bool:
        return self._log.has_some

    @property
    def wants_login(self) -> bool:
        return isinstance(self._down, LoginNeeded)

    # --- for whoever uses it

    def start(self) -> None:
        self._let_prompts_wait()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def settled(self) -> None:
        """Returns when it is ready, has failed, or has been waited for as long as a prompt may wait."""
        await self._settled.wait()

    async def started(self) -> None:
        """The same for a call, which waits longer."""
        await self.settled()
        with contextlib.suppress(TimeoutError):
            async with timeout(PATIENCE_OF_A_CALL):
                await self._has_started.wait()

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def restart(self) -> None:
        self._is_awaited = True
        self._let_prompts_wait()
        self._wake.set()
        if self.state is State.READY:
            self._end(ServerFailed("it is restarting"))
        elif self.state not in AT_REST and self._task is not None:
            self._task.cancel()
            self._task = asyncio.get_running_loop().create_task(self._run_after(self._task))

    async def close(self) -> None:
        """Ends it, and everything that it started, whether or not it says goodbye."""
        self._settle()
        if self._task is None:
            return
        for seconds in CLOSE_TIMEOUTS:
            self._task.cancel()
            ended, _ = await asyncio.wait([self._task], timeout=seconds)
            if ended:
                return
        logger.warning("the MCP server %r could not be left in time", self.name)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        asked_in: AskingCall,
        on_progress: ProgressFnT,
        check: Callable[[], None],
    ) -> CallToolResult:
        """ServerFailed says why there is no result. `check` may raise it, once the server is there to be called."""
        is_over = False

        async def show(progress: float, total: float | None, message: str | None) -> None:
            if not is_over:
                await on_progress(progress, total, message)

        def call(client: Client) -> Awaitable[CallToolResult]:
            check()
            return client.call_tool(tool, arguments, progress_callback=show)

        try:
            return await self.ask(call, asked_in)
        except UrlElicitationRequired as wanted:
            await self._url_elicitations.visit(wanted, asked_in)
            return await self.ask(call, asked_in)
        finally:
            is_over = True

    @property
    def answer_timeout(self) -> float:
        limit = self.server.settings.mcp_call
        return self._context.limits().mcp_call if limit is None else limit

    async def ask(self, question: Callable[[Client], Awaitable[T]], asked_in: AskingCall) -> T:
        """Anything, within the limit of a call. `asked_in`: where the server's own questions belong meanwhile."""
        try:
            return await self._ask_once(question, asked_in)
        except SessionExpired:
            return await self._ask_once(question, asked_in)

    async def _ask_once(self, question: Callable[[Client], Awaitable[T]], asked_in: AskingCall) -> T:
        client = await self._usable()
        self._unauthorised = False
        try:
            async with timeout(self.answer_timeout) as clock:
                with self._calls.running(asked_in, clock):
                    return await abandoned_on_cancel(question(client))
        except TimeoutError:
            raise ServerFailed(f"it did not answer within {self.answer_timeout:g} s") from None
        except Exception as error:  # noqa: BLE001 -- the edge of a library: its failure becomes ours
            logger.debug("a question to the MCP server %r failed: %s", self.name, type(first_of(error)).__name__)
            raise self._went_wrong(error) from None

    async def _usable(self) -> Client:
        if self._lost.is_set():
            await self._left.wait()
        if self._client is None:
            if self.state in AT_REST:
                self.restart()
            await self.started()
        if self._client is None:
            why = self._down or ServerFailed(_NOT_YET.get(self.state, f"it is {self.state}"))
            raise NotCalled(why.message, for_model=why.for_model)
        return self._client

    def _went_wrong(self, error: Exception) -> ServerFailed:
        first = first_of(error)
        if self._is_kept_out(first):
            failure = self._not_let_in()
            if isinstance(failure, LoginNeeded):
                self._end(failure)
            return failure
        if isinstance(failure := as_failure(error), SessionExpired):
            self._end(failure)
            return failure
        if is_lost(first) or (isinstance(first, MCPError) and self._lost.is_set()):
            self._end(as_failure(error))
            return ServerFailed(
                f"the connection was lost during the call: {(self._failure or as_failure(error)).for_model}"
            )
        return as_failure(error)

    # --- its life

    async def _run(self) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._wake.clear()
            failure = await self._live()
            if self._wake.is_set() and self.state is State.READY:
                failures = 0  # somebody wanted it to be started again
                self._change(State.STARTING)
                continue
            if isinstance(failure, LoginNeeded) and await self._log_in():
                continue
            if self._was_ready and loop.time() - began > STABLE_AFTER:
                failures = 0
            pause = None if failure.lasting or failures >= len(PAUSES) else PAUSES[failures]
            self._go_down(failure, given_up=pause is None, first=failures == 0)
            with contextlib.suppress(TimeoutError):
                async with timeout(pause):
                    await self._wake.wait()
            failures = 0 if pause is None else failures + 1
            self._change(State.STARTING)

    async def _run_after(self, before: asyncio.Task[None]) -> None:
        """Whatever happens, the process of the former life is gone before this one begins, or ends."""
        cancelled: asyncio.CancelledError | None = None
        while not before.done():
            try:
                await asyncio.wait([before])
            except asyncio.CancelledError as error:
                cancelled = error
                before.cancel()
        if cancelled is not None:
            raise cancelled
        self._change(State.STARTING)
        await self._run()

    async def _live(self) -> ServerFailed:
        """Runs the server from its start to its end, and returns why it ended."""
        self._lost.clear()
        self._left.clear()
        self._failure = None
        self._unauthorised = False
        limit = self._start_limit + self._context.limits().mcp_late
        clock = timeout(limit)
        try:
            async with clock, self._opener.open() as client:
                await self.inventory.take(client)
                clock.reschedule(None)
                self._become_ready(client)
                await self.inventory.follow(client, lambda: self.answer_timeout, lambda: self._on_change(self))
        except Exception as error:  # noqa: BLE001 -- the edge of a library: whatever it is, it costs this server alone
            if clock.expired():
                failure = TimedOut(limit, self._opener.remark())
            elif self._client is None and self._opener.switch_to_newer_protocol(error):
                if not self.is_settled:
                    self._let_prompts_wait()
                return await self._live()
            else:
                failure = self._not_let_in() if self._is_kept_out(first_of(error)) else self._why(error)
            logger.info("the MCP server %r: %s", self.name, failure.message)
        else:
            failure = self._failure or ServerFailed("it ended")
        finally:
            self._client = None
            self._left.set()
        return failure

    def _why(self, error: Exception) -> ServerFailed:
        """The cause of a failure: an answer of the server's, rather than the end of the connection that followed it."""
        first = first_of(error)
        is_answer = isinstance(first, MCPError) and not is_lost(first)
        return as_failure(error) if is_answer or self._failure is None else self._failure

    def _is_kept_out(self, error: BaseException) -> bool:
        return self._unauthorised or isinstance(error, LoginNeeded)

    def _not_let_in(self) -> ServerFailed:
        place = place_of_key(self.server.settings)
        return KeyRefused(place) if place else self._notices.login_needed()

    async def _log_in(self) -> bool:
        """Through the person's client, where it can show an address. Whether it worked."""
        asker = self._context.asker
        if not asker.can_visit:
            return False
        self._change(State.WAITING_FOR_LOGIN)
        if self.is_settled:
            self._go_on_without_it()
        try:
            await log_in_through(asker, self.server, self.known_as, self._context.home)
        except ServerFailed as failed:
            self._notices.warn(f"Login failed: {failed.message}.")
            return False
        self._change(State.STARTING)
        return True

    # --- what happens to it

    async def _hear(self, message: object) -> None:
        match message:
            case ToolListChangedNotification() | PromptListChangedNotification():
                self.inventory.has_changed()
            case ElicitCompleteNotification():
                self._url_elicitations.complete(message.params.elicitation_id)
            case _:
                pass

    def _end(self, failure: ServerFailed) -> None:
        if not self._lost.is_set():
            self._failure = failure
            self._lost.set()

    def _let_prompts_wait(self) -> None:
        """Until it is ready or has failed, and no longer than it may take to start."""
        self._settled.clear()
        self._settle_after(self._start_limit, self._be_late)

    def _be_late(self) -> None:
        self._go_on_without_it()
        self._settle()

    def _settle(self) -> None:
        if self._settling is not None:
            self._settling.cancel()
        self._settled.set()

    def _settle_soon(self) -> None:
        """It failed, and is being ended, for which nobody waits; or it is started again, and that is waited for."""
        if not self._wake.is_set() and not self.is_settled:
            self._settle_after(ENDING, self._settle)

    def _settle_after(self, seconds: float, settle: Callable[[], None]) -> None:
        if self._settling is not None:
            self._settling.cancel()
        self._settling = asyncio.get_running_loop().call_later(seconds, settle)

    def _note_unauthorised(self, now: bool) -> None:
        self._unauthorised = now

    def _become_ready(self, client: Client) -> None:
        self._client = client
        self.title = (client.server_info.title if client.server_info is not None else None) or ""
        self.past.clear()
        self._unauthorised = False
        if self._is_awaited:
            self._notices.is_ready_now(was_ready=self._was_ready)
        self._was_ready = True
        self._is_awaited = False
        self._settle()
        self._change(State.READY)

    def _go_down(self, failure: ServerFailed, *, given_up: bool, first: bool) -> None:
        self._is_awaited = True
        self._down = failure
        if first:
            self._notices.has_failed(failure, was_ready=self._was_ready, given_up=given_up)
        elif given_up:
            self._notices.is_given_up(failure, was_ready=self._was_ready)
        self._settle()
        if not given_up:
            self._change(State.STARTING_AGAIN)
        else:
            self._change(State.TIMED_OUT if isinstance(failure, TimedOut) else State.FAILED)

    def _go_on_without_it(self) -> None:
        self._is_awaited = True
        if self.state is State.WAITING_FOR_LOGIN:
            self._notices.waits_for_login()
        else:
            self._notices.is_late(self._start_limit, self._opener.remark())

    def _change(self, state: State) -> None:
        self.state = state
        if state is State.STARTING:
            self._has_started.clear()
        else:
            self._has_started.set()
        if state not in AT_REST:
            self._down = None
        self._on_change(self)

    @property
    def _start_limit(self) -> float:
        limit = self.server.settings.mcp_start
        return self._context.limits().mcp_start if limit is None else limit
