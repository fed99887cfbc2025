"""The life of one server: started, asked what it has, used, lost, started again with ever longer pauses."""

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
    Prompt,
    PromptListChangedNotification,
    Tool,
    ToolListChangedNotification,
)

from crow import __version__
from crow.actions import Link
from crow.config.settings import Limits
from crow.events import Notice
from crow.mcp.using.answering import Answering, Asker
from crow.mcp.using.errors_said import ErrorsSaid, errors_path
from crow.mcp.using.failures import LoginNeeded, ServerFailed, as_failure, first_of
from crow.mcp.using.lines import Stdio, Talk
from crow.mcp.using.login import log_in, with_stored_tokens
from crow.mcp.using.program import start_program
from crow.mcp.using.remote import Remote, has_own_key
from crow.mcp.using.tapped import Tap
from crow.mcp.using.wanted import Origin, Wanted
from crow.visible import one_line
from crow.workspace.processes import Keeper
from mcp import Client, MCPError

logger = logging.getLogger(__name__)

PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds before each further try; after the last one the server is given up until somebody asks for it."""
LONG_ENOUGH = 60.0
"""Seconds that a server must have run for its failures to be forgotten."""
MOST_TOOLS = 2000
MOST_PAGES = 100
GOODBYE = 4.5
"""Seconds until everything of a server is gone."""
BETWEEN_LISTINGS = 0.2
"""Seconds: a server that announces changes all the time is asked this often."""

T = TypeVar("T")


class State(enum.StrEnum):
    """The value is how a person reads it."""

    STARTING = "starting"
    READY = "ready"
    WAITING_FOR_LOGIN = "waiting for your login"
    STARTING_AGAIN = "waiting to be started again"
    FAILED = "failed"


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
    """`on_change` is called when what the server offers has changed, and when its state has."""

    def __init__(self, wanted: Wanted, around: Around, on_change: "Callable[[Connection], None]") -> None:
        self.wanted = wanted
        self.state = State.STARTING
        self.cause = ""
        """Why it is not ready, in words."""
        self.tools: list[Tool] = []
        self.prompts: list[Prompt] = []
        self.has_resources = False
        self._around = around
        self._on_change = on_change
        self._errors = ErrorsSaid(errors_path(around.home, wanted.name))
        self._talk = Talk(self._errors)
        self._client: Client | None = None
        self._mode: Literal["legacy", "auto"] = "legacy"
        self._calls: dict[str, asyncio.Timeout] = {}
        self._unauthorised = False
        self._was_ready = False
        self._is_awaited = False
        """The person knows that it is not ready, and is told when it is."""
        self._left_out: dict[str, str] = {}
        self._settled = asyncio.Event()
        self._lost = asyncio.Event()
        self._failure: ServerFailed | None = None
        self._wake = asyncio.Event()
        self._relist = asyncio.Event()
        self._late: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.wanted.name

    # --- for whoever uses it

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(self._start_limit, self._is_late)
        self._task = loop.create_task(self._run())

    async def settled(self) -> None:
        """Returns when it is ready, has failed, or has taken longer than the limit."""
        await self._settled.wait()

    @property
    def is_settled(self) -> bool:
        return self._settled.is_set()

    def restart(self) -> None:
        self._is_awaited = True
        self._settled.clear()
        if self._late is not None:
            self._late.cancel()
        self._late = asyncio.get_running_loop().call_later(self._start_limit, self._is_late)
        self._wake.set()
        if self.state is State.READY:
            self._end(ServerFailed("it is started again"))
        elif self.state in (State.STARTING, State.WAITING_FOR_LOGIN) and self._task is not None:
            self._task.cancel()
            self._task = asyncio.get_running_loop().create_task(self._run_after(self._task))

    async def close(self) -> None:
        """Ends it, and everything that it started."""
        if self._late is not None:
            self._late.cancel()
        if self._task is not None:
            self._task.cancel()
            _, stuck = await asyncio.wait([self._task], timeout=GOODBYE)
            if stuck:  # it still waits for a server on the network that does not say goodbye
                self._task.cancel()
                await asyncio.wait([self._task], timeout=GOODBYE)

    async def call(
        self, tool: str, arguments: dict[str, Any], call_id: str, on_progress: ProgressFnT
    ) -> CallToolResult:
        """ServerFailed says why there is no result."""
        return await self.ask(lambda client: client.call_tool(tool, arguments, progress_callback=on_progress), call_id)

    @property
    def answers_in(self) -> float:
        limit = self.wanted.settings.mcp_call
        return self._around.limits().mcp_call if limit is None else limit

    async def ask(self, question: Callable[[Client], Awaitable[T]], call_id: str) -> T:
        """Anything, within the limit of a call."""
        client = await self._usable()
        self._unauthorised = False
        try:
            async with asyncio.timeout(self.answers_in) as clock:
                with self._calling(call_id, clock):
                    return await question(client)
        except TimeoutError:
            raise ServerFailed(f"it did not answer within {self.answers_in:g} s") from None
        except Exception as error:  # noqa: BLE001 -- the edge of a library: its failure becomes ours
            raise self._went_wrong(error) from None

    async def _usable(self) -> Client:
        if self._client is None:
            if self.state in (State.FAILED, State.STARTING_AGAIN):
                self.restart()
            await self.settled()
        if self._client is None:
            raise ServerFailed(self.cause or "it is not ready yet")
        return self._client

    @contextmanager
    def _calling(self, call_id: str, clock: asyncio.Timeout) -> Generator[None]:
        self._calls[call_id] = clock
        try:
            yield
        finally:
            self._calls.pop(call_id, None)

    def _went_wrong(self, error: Exception) -> ServerFailed:
        first = first_of(error)
        if self._needs_login:
            self._end(LoginNeeded())
            return LoginNeeded()
        if isinstance(first, MCPError) and (first.code == CONNECTION_CLOSED or self._lost.is_set()):
            self._end(as_failure(error))
            return ServerFailed(f"it was lost during the call: {(self._failure or as_failure(error)).message}")
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
            if isinstance(failure, LoginNeeded) and await self._logged_in():
                continue
            if self._was_ready and loop.time() - began > LONG_ENOUGH:
                failures = 0
            given_up = failure.lasting or failures >= len(PAUSES)
            self._is_down(failure, given_up=given_up, first=failures == 0)
            if given_up:
                await self._wake.wait()
                failures = 0
            else:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PAUSES[failures]):
                        await self._wake.wait()
                failures += 1
            self._change(State.STARTING)

    async def _run_after(self, before: asyncio.Task[None]) -> None:
        """Whatever happens, the process of the former life is gone before this one begins, or ends."""
        try:
            await asyncio.wait([before])
        except asyncio.CancelledError:
            await asyncio.wait([before])
            raise
        self._change(State.STARTING)
        await self._run()

    async def _live(self) -> ServerFailed:
        """From its start to its end; why it ended."""
        self._lost.clear()
        self._failure = None
        self._unauthorised = False
        try:
            async with self._connected() as client:
                await self._list_all(client)
                self._is_ready(client)
                await self._stay(client)
        except Exception as error:  # noqa: BLE001 -- the edge of a library: whatever it is, it costs this server alone
            if self._can_be_newer(error):
                return await self._live()
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
        answering = Answering(self.name, self._around.roots, self._around.asker, self._calling_now, self._pause)
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
        tap = Tap(asyncio.get_running_loop().time, self._leave_out)
        if settings.url:
            auth = None if has_own_key(settings) else with_stored_tokens(self._around.home, settings.url)
            return Remote(settings, auth, tap, self._is_unauthorised, self._end)
        around = self._around
        folder, environ = around.roots[0], around.environ
        stdio = Stdio(lambda: start_program(around.keeper, settings, folder, environ), self._errors, tap, self._end)
        self._talk = stdio.talk
        return stdio

    async def _stay(self, client: Client) -> None:
        """Until it is lost; whenever it says that it has changed, it is asked again what it has."""
        lost = asyncio.create_task(self._lost.wait())
        try:
            while True:
                changed = asyncio.create_task(self._relist.wait())
                try:
                    await asyncio.wait([lost, changed], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    changed.cancel()
                if lost.done():
                    return
                await asyncio.sleep(BETWEEN_LISTINGS)
                self._relist.clear()
                async with asyncio.timeout(self.answers_in):
                    await self._list_all(client)
                self._on_change(self)
        finally:
            lost.cancel()

    async def _list_all(self, client: Client) -> None:
        has = client.server_capabilities
        self._left_out = {}
        tools = await _all_pages(client.list_tools, lambda page: page.tools) if has.tools is not None else []
        self.tools = tools[:MOST_TOOLS]
        self.prompts = await self._list_prompts(client) if has.prompts is not None else []
        self.has_resources = has.resources is not None
        for name, fault in self._left_out.items():
            self._warn(f"Its tool {one_line(name, 100)} is left out: {fault}.")

    async def _list_prompts(self, client: Client) -> list[Prompt]:
        try:
            return await _all_pages(client.list_prompts, lambda page: page.prompts)
        except Exception as error:
            if self._lost.is_set():
                raise
            self._warn(f"Its prompts cannot be used: {as_failure(error).message}.")
            return []

    # --- what happens to it

    async def _heard(self, message: object) -> None:
        match message:
            case ToolListChangedNotification() | PromptListChangedNotification():
                self._relist.set()
            case ElicitCompleteNotification():
                self._around.asker.visited(message.params.elicitation_id)
            case _:
                pass

    def _end(self, failure: ServerFailed) -> None:
        if not self._lost.is_set():
            self._failure = failure
            self._lost.set()

    def _is_unauthorised(self) -> None:
        self._unauthorised = True

    def _leave_out(self, tool: str, fault: str) -> None:
        self._left_out[tool] = fault

    def _calling_now(self) -> str:
        return next(reversed(self._calls), "")

    def _pause(self, asking: bool) -> None:
        """While the person is asked, the clock of no call runs."""
        now = asyncio.get_running_loop().time()
        for clock in self._calls.values():
            clock.reschedule(None if asking else now + self.answers_in)

    def _is_ready(self, client: Client) -> None:
        self._client = client
        self._unauthorised = False
        if self._is_awaited:
            self._around.tell(Notice("info", f"The MCP server {self._shown} is ready now."))
        self._was_ready = True
        self._is_awaited = False
        self._settle()
        self._change(State.READY)

    def _is_down(self, failure: ServerFailed, *, given_up: bool, first: bool) -> None:
        self._is_awaited = True
        self.cause = failure.message
        if isinstance(failure, LoginNeeded):
            self.cause += f": run `crow mcp login {self._login_name}`"
        again = "" if given_up else " It is started again."
        if first:
            verb = "has stopped" if self._was_ready else "cannot be used"
            self._around.tell(
                Notice("warning", f"The MCP server {self._shown} {verb}: {self.cause.rstrip('.')}.{again}")
            )
        elif given_up:
            self._warn(f"It is given up for now: {self.cause.rstrip('.')}. `/mcp restart {self.name}` tries again.")
        self._settle()
        self._change(State.FAILED if given_up else State.STARTING_AGAIN)

    def _is_late(self) -> None:
        if self._settled.is_set():
            return
        self._is_awaited = True
        self.cause = f"it has not answered within {self._start_limit:g} s.{self._talk.remark()}"
        if self.state is State.WAITING_FOR_LOGIN:
            self.cause = "it waits for you to log in"
        text = f"The MCP server {self._shown} is not ready: {self.cause.rstrip('.')}. Its tools come when it is."
        self._around.tell(Notice("warning", text))
        self._settled.set()

    def _settle(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._settled.set()

    def _change(self, state: State) -> None:
        self.state = state
        if state is State.READY:
            self.cause = ""
        self._on_change(self)

    async def _logged_in(self) -> bool:
        """Through the person's client, where it can show an address."""
        asker = self._around.asker
        if not asker.can_visit:
            return False
        self._change(State.WAITING_FOR_LOGIN)
        link_id = f"login-{self.name}"

        async def show(url: str) -> None:
            link = Link("", f"Log in to the MCP server {one_line(self.name, 100)}.", url, link_id)
            if not await asker.visit(link):
                raise ServerFailed("you did not log in", lasting=True)

        try:
            await log_in(self.wanted.settings, self._around.home, show)
        except ServerFailed as failed:
            self._warn(f"The login did not work: {failed.message}.")
            return False
        asker.visited(link_id)
        self._change(State.STARTING)
        return True

    # --- words

    @property
    def _start_limit(self) -> float:
        limit = self.wanted.settings.mcp_start
        return self._around.limits().mcp_start if limit is None else limit

    @property
    def _shown(self) -> str:
        return f"`{one_line(self.name, 100)}` (from {self.wanted.origin})"

    @property
    def _login_name(self) -> str:
        return self.name if self.wanted.origin is Origin.CONFIG else self.wanted.settings.url

    def _warn(self, text: str) -> None:
        self._around.tell(Notice("warning", f"The MCP server {self._shown}: {text}"))


async def _all_pages(listing: Callable[..., Awaitable[Any]], items: Callable[[Any], list[T]]) -> list[T]:
    found: list[T] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await listing(cursor=cursor)
        found += items(page)
        cursor = page.next_cursor
        if not cursor or len(found) > MOST_TOOLS:
            break
    return found
