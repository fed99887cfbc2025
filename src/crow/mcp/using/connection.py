"""The life of one server: started, asked what it has, used, lost, started again."""

import asyncio
import contextlib
import enum
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeVar

import msgspec
from mcp.client import Transport
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    CallToolResult,
    ElicitCompleteNotification,
    Implementation,
    PromptListChangedNotification,
    ToolListChangedNotification,
)

from crow import __version__
from crow.actions import Link
from crow.config.settings import Limits
from crow.events import Notice
from crow.mcp.using.answering import Answering, AskedIn, Asker
from crow.mcp.using.errors_said import ErrorsSaid, errors_path
from crow.mcp.using.failures import LoginNeeded, ServerFailed, TimedOut, as_failure, first_of
from crow.mcp.using.inventory import Inventory
from crow.mcp.using.lines import Stdio, Talk
from crow.mcp.using.login import log_in, with_stored_tokens
from crow.mcp.using.message_guard import MessageGuard
from crow.mcp.using.program import start_program
from crow.mcp.using.remote import Remote, has_own_key
from crow.mcp.using.retries import Retries
from crow.mcp.using.telling import Telling
from crow.mcp.using.wanted import Wanted
from crow.workspace.processes import Keeper
from mcp import Client, MCPError

logger = logging.getLogger(__name__)

GOODBYES = (2.0, 0.5, 0.5)
"""Seconds to end in. Each time that was not enough, what is still waited for is cut off."""

T = TypeVar("T")


class State(enum.StrEnum):
    """The value is how a person reads it."""

    STARTING = "starting"
    READY = "ready"
    WAITING_FOR_LOGIN = "waiting for your login"
    STARTING_AGAIN = "waiting to be started again"
    TIMED_OUT = "timed out"
    FAILED = "failed"


AT_REST = (State.FAILED, State.TIMED_OUT, State.STARTING_AGAIN)
"""Nothing of it runs, until it is started again."""


class Around(msgspec.Struct, frozen=True):
    """What every server of a session is given."""

    keeper: Keeper
    home: str
    roots: Sequence[str]
    environ: Mapping[str, str]
    asker: Asker
    limits: Callable[[], Limits]
    tell: Callable[[Notice], None]


class Connection:
    """`known_as` is the server's name in those of its tools, in rules and in files: no other server has it.

    `on_change` is called when what the server offers has changed, and when its state has.
    """

    def __init__(
        self, wanted: Wanted, known_as: str, around: Around, on_change: "Callable[[Connection], None]"
    ) -> None:
        self.wanted = wanted
        self.known_as = known_as
        self.state = State.STARTING
        self.cause = ""
        """Why it is not ready, in words."""
        self._around = around
        self._on_change = on_change
        self._telling = Telling(wanted, around.tell)
        self._errors = ErrorsSaid(errors_path(around.home, known_as))
        self._talk = Talk(self._errors)
        self._client: Client | None = None
        self._mode: Literal["legacy", "auto"] = "legacy"
        self._calls: dict[str, tuple[AskedIn, asyncio.Timeout]] = {}
        self._unauthorised = False
        self._was_ready = False
        self._is_awaited = False
        """The person knows that it is not ready, and is told when it is."""
        self._settled = asyncio.Event()
        self._lost = asyncio.Event()
        self._failure: ServerFailed | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.has = Inventory(self._lost, self._telling.warn)

    @property
    def name(self) -> str:
        return self.wanted.name

    @property
    def shown_name(self) -> str:
        return self.wanted.shown_name

    # --- for whoever uses it

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def settled(self) -> None:
        """Returns when it is ready, has failed, or waits for the person longer than they may want to."""
        await self._settled.wait()

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def restart(self) -> None:
        self._is_awaited = True
        self._settled.clear()
        self._wake.set()
        if self.state is State.READY:
            self._end(ServerFailed("it is started again"))
        elif self.state not in AT_REST and self._task is not None:
            self._task.cancel()
            self._task = asyncio.get_running_loop().create_task(self._run_after(self._task))

    async def close(self) -> None:
        """Ends it, and everything that it started, whether or not it says goodbye."""
        if self._task is None:
            return
        for seconds in GOODBYES:
            self._task.cancel()
            ended, _ = await asyncio.wait([self._task], timeout=seconds)
            if ended:
                return
        logger.warning("the MCP server %r could not be left in time", self.name)

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        asked_in: AskedIn,
        on_progress: ProgressFnT,
        check: Callable[[], None],
    ) -> CallToolResult:
        """ServerFailed says why there is no result. `check` may raise it, once the server is there to be called."""

        def call(client: Client) -> Awaitable[CallToolResult]:
            check()
            return client.call_tool(tool, arguments, progress_callback=on_progress)

        return await self.ask(call, asked_in)

    @property
    def answers_in(self) -> float:
        limit = self.wanted.settings.mcp_call
        return self._around.limits().mcp_call if limit is None else limit

    async def ask(self, question: Callable[[Client], Awaitable[T]], asked_in: AskedIn) -> T:
        """Anything, within the limit of a call. `asked_in`: where the server's own questions belong meanwhile."""
        client = await self._usable()
        self._unauthorised = False
        try:
            async with asyncio.timeout(self.answers_in) as clock:
                with self._calling(asked_in, clock):
                    return await question(client)
        except TimeoutError:
            raise ServerFailed(f"it did not answer within {self.answers_in:g} s") from None
        except Exception as error:  # noqa: BLE001 -- the edge of a library: its failure becomes ours
            raise self._went_wrong(error) from None

    async def _usable(self) -> Client:
        if self._client is None:
            if self.state in AT_REST:
                self.restart()
            await self.settled()
        if self._client is None:
            raise ServerFailed(self.cause or f"it is {self.state}")
        return self._client

    @contextmanager
    def _calling(self, asked_in: AskedIn, clock: asyncio.Timeout) -> Generator[None]:
        self._calls[asked_in.call_id] = asked_in, clock
        try:
            yield
        finally:
            self._calls.pop(asked_in.call_id, None)

    def _went_wrong(self, error: Exception) -> ServerFailed:
        first = first_of(error)
        if self._needs_login:
            self._end(LoginNeeded())
            return ServerFailed(self._telling.cause(LoginNeeded()))
        if isinstance(first, MCPError) and (first.code == CONNECTION_CLOSED or self._lost.is_set()):
            self._end(as_failure(error))
            return ServerFailed(f"it was lost during the call: {(self._failure or as_failure(error)).message}")
        return as_failure(error)

    # --- its life

    async def _run(self) -> None:
        retries = Retries()
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._wake.clear()
            failure = await self._live()
            if self._wake.is_set() and self.state is State.READY:
                retries.forget()  # somebody wanted it to be started again
                self._change(State.STARTING)
                continue
            if isinstance(failure, LoginNeeded) and await self._logged_in():
                continue
            if self._was_ready:
                retries.has_run(loop.time() - began)
            is_first, pause = retries.is_first, retries.next_pause(failure)
            self._is_down(failure, given_up=pause is None, first=is_first)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            if pause is None:
                retries.forget()
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
        """From its start to its end; why it ended."""
        self._lost.clear()
        self._failure = None
        self._unauthorised = False
        clock = asyncio.timeout(self._start_limit)
        try:
            async with clock, self._connected() as client:
                await self.has.take(client)
                clock.reschedule(None)
                self._is_ready(client)
                await self.has.follow(client, lambda: self.answers_in, lambda: self._on_change(self))
        except Exception as error:  # noqa: BLE001 -- the edge of a library: whatever it is, it costs this server alone
            if clock.expired():
                failure = TimedOut(self._start_limit, self._talk.remark())
            elif self._can_be_newer(error):
                return await self._live()
            else:
                failure = LoginNeeded() if self._needs_login else self._failure or as_failure(error)
            logger.info("the MCP server %r: %s", self.name, failure.message)
        else:
            failure = self._failure or ServerFailed("it ended")
        finally:
            self._client = None
        return failure

    @property
    def _needs_login(self) -> bool:
        return self._unauthorised and not has_own_key(self.wanted.settings)

    def _can_be_newer(self, error: Exception) -> bool:
        """A server may speak only a version of the protocol that begins differently."""
        first = first_of(error)
        newer = isinstance(first, MCPError) and first.code in (UNSUPPORTED_PROTOCOL_VERSION, METHOD_NOT_FOUND)
        if not newer or self._mode == "auto" or self._client is not None:
            return False
        self._mode = "auto"
        return True

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Client]:
        around = self._around
        answering = Answering(self.name, around.roots, around.asker, self._calling_now, self._pause, self._telling.warn)
        async with Client(
            self._transport(),
            mode=self._mode,
            elicitation_callback=answering.elicit,
            list_roots_callback=answering.roots,
            message_handler=self._heard,
            client_info=Implementation(name="crow", title="Crow", version=__version__),
            cache=None,
        ) as client:
            yield client

    def _transport(self) -> Transport:
        settings = self.wanted.settings
        guard = MessageGuard(asyncio.get_running_loop().time, self.has.leave_out)
        if settings.url:
            auth = None if has_own_key(settings) else with_stored_tokens(self._around.home, settings.url)
            return Remote(settings, auth, guard, self._is_unauthorised, self._end)
        around = self._around
        folder, environ = around.roots[0], around.environ
        stdio = Stdio(lambda: start_program(around.keeper, settings, folder, environ), self._errors, guard, self._end)
        self._talk = stdio.talk
        return stdio

    async def _logged_in(self) -> bool:
        """Through the person's client, where it can show an address."""
        asker = self._around.asker
        if not asker.can_visit:
            return False
        self._change(State.WAITING_FOR_LOGIN)
        late = asyncio.get_running_loop().call_later(self._start_limit, self._login_is_late)
        link_id = f"login-{self.known_as}"

        async def show(url: str) -> None:
            link = Link("", f"Log in to the MCP server {self.shown_name}.", url, link_id)
            if not await asker.visit(link):
                raise ServerFailed("you did not log in", lasting=True)

        try:
            await log_in(self.wanted.settings, self._around.home, show)
        except ServerFailed as failed:
            self._telling.warn(f"The login did not work: {failed.message}.")
            return False
        finally:
            late.cancel()
        asker.visited(link_id)
        self._change(State.STARTING)
        return True

    # --- what happens to it

    async def _heard(self, message: object) -> None:
        match message:
            case ToolListChangedNotification() | PromptListChangedNotification():
                self.has.has_changed()
            case ElicitCompleteNotification():
                self._around.asker.visited(message.params.elicitation_id)
            case _:
                pass

    def _end(self, failure: ServerFailed) -> None:
        if not self._lost.is_set():
            self._failure = failure
            self._lost.set()

    def _is_unauthorised(self, now: bool) -> None:
        self._unauthorised = now

    def _calling_now(self) -> AskedIn:
        running = next(reversed(self._calls.values()), None)
        return AskedIn() if running is None else running[0]

    def _pause(self, asking: bool) -> None:
        """While the person is asked, the clock of no call runs."""
        now = asyncio.get_running_loop().time()
        for _, clock in self._calls.values():
            clock.reschedule(None if asking else now + self.answers_in)

    def _is_ready(self, client: Client) -> None:
        self._client = client
        self._unauthorised = False
        if self._is_awaited:
            self._telling.is_ready_now()
        self._was_ready = True
        self._is_awaited = False
        self._settled.set()
        self._change(State.READY)

    def _is_down(self, failure: ServerFailed, *, given_up: bool, first: bool) -> None:
        self._is_awaited = True
        self.cause = self._telling.cause(failure)
        if first:
            self._telling.has_failed(failure, was_ready=self._was_ready, given_up=given_up)
        elif given_up:
            self._telling.is_given_up(failure)
        self._settled.set()
        if not given_up:
            self._change(State.STARTING_AGAIN)
        else:
            self._change(State.TIMED_OUT if isinstance(failure, TimedOut) else State.FAILED)

    def _login_is_late(self) -> None:
        if not self._settled.is_set():
            self._is_awaited = True
            self._telling.waits_for_login()
            self._settled.set()

    def _change(self, state: State) -> None:
        self.state = state
        if state not in AT_REST:
            self.cause = ""
        self._on_change(self)

    @property
    def _start_limit(self) -> float:
        limit = self.wanted.settings.mcp_start
        return self._around.limits().mcp_start if limit is None else limit
