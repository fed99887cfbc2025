"""Answers what an MCP server asks during a call: our folders (roots), a form for the person, a URL to open; the call's
clock stops meanwhile.

A server gets no words of the model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from mcp.client import ClientRequestContext
from mcp_types import (
    INVALID_PARAMS,
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Root,
)
from pydantic import FileUrl

from crow.actions import Filled, Form, Link
from crow.mcp.client.forms import can_be_opened, labels, validated_form, words
from crow.mcp.client.server_errors import RequiredUrl, ServerFailed, UrlElicitationRequired
from crow.results import ToolKind
from crow.timeouts import Timeout
from crow.visible import capitalised, hidden_characters, one_line, remark_on

LONGEST_MESSAGE = 2000
MOST_TOLD = 20
"""Addresses of one server that the person is told of in words."""
MOST_WAITING = 4
"""Questions of one server outside any call: one may be open, the others wait for it. Any more are declined."""
T = TypeVar("T")
_DECLINED = ElicitResult(action="decline")
_NO_FORM = ErrorData(
    code=INVALID_PARAMS,
    message="The person was not asked: the form must be an object of plain fields, as the protocol describes them, "
    "and no name or value in it may hold characters that cannot be seen.",
)
_NO_ADDRESS = ErrorData(
    code=INVALID_PARAMS,
    message="The person was not asked: the address must be an https URL without credentials, or http to this machine.",
)
_left: "set[asyncio.Future[Any]]" = set()
"""Cancelled work that is still ending and that nobody waits for: the event loop alone would not keep a reference."""
_IS_DONE = {
    "type": "object",
    "properties": {"done": {"type": "boolean", "title": "Done"}},
    "required": ["done"],
}


# --- the calls that a server is working on: when each is over, and what is left at once then


class AskingCall(msgspec.Struct, frozen=True):
    """The call in which a server asks something, as the person sees it; empty if it is in none."""

    call_id: str = ""
    title: str = ""
    kind: ToolKind = ToolKind.OTHER


class RunningCall:
    def __init__(self, asked_in: AskingCall, clock: Timeout) -> None:
        self.asked_in = asked_in
        self.clock = clock
        self.over = asyncio.Event()


class RunningCalls:
    """`limit` is how many seconds a call may take."""

    def __init__(self, limit: Callable[[], float]) -> None:
        self._limit = limit
        self._running: list[RunningCall] = []
        self._questions = 0

    @contextmanager
    def running(self, asked_in: AskingCall, clock: Timeout) -> Generator[None]:
        call = RunningCall(asked_in, clock)
        self._running.append(call)
        try:
            yield
        finally:
            self._running.remove(call)
            call.over.set()

    def running_calls(self) -> tuple[RunningCall, ...]:
        """The running calls; a server's question belongs to one of them, but the protocol does not name it."""
        return tuple(self._running)

    @contextmanager
    def clocks_paused(self) -> Generator[None]:
        """While the person is asked, the clock of no call runs."""
        self._questions += 1
        self._set_clocks(None)
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._set_clocks(asyncio.get_running_loop().time() + self._limit())

    def _set_clocks(self, end: float | None) -> None:
        for call in self._running:
            if not call.clock.expired():
                call.clock.reschedule(end)


async def until_calls_end(work: Awaitable[T], calls: Sequence[RunningCall]) -> T | None:
    """The result of the work; None if all these calls ended before it did, and then the work is cancelled."""

    async def end_of_calls() -> None:
        for call in calls:
            await call.over.wait()

    working = asyncio.ensure_future(work)
    ending = asyncio.ensure_future(end_of_calls())
    try:
        await asyncio.wait([working, ending], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        ending.cancel()


async def abandoned_on_cancel(work: Awaitable[T]) -> T:
    """Cancelling does not wait for the work's end: to tell a server so, the library waits for one that never reads."""
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait([working])
        return working.result()
    finally:
        if not working.done():
            working.cancel()
            _left.add(working)
            working.add_done_callback(_forget)


def _forget(work: "asyncio.Future[Any]") -> None:
    _left.discard(work)
    if not work.cancelled():
        work.exception()  # looked at, so that nobody reports it


# --- questions for the person


class Asker(Protocol):
    """Whoever brings a server's question to the person."""

    @property
    def can_visit(self) -> bool:
        """Whether the person can be shown an address to open."""
        ...

    async def fill_in(self, form: Form) -> Filled: ...

    async def visit(self, link: Link) -> bool:
        """Whether the person agreed to open the address."""
        ...

    def visited(self, link_id: str) -> None:
        """Tells the person's client that what was to be done at the address is done."""
        ...


class ServerRequestHandler:
    """For one server, whose calls are `calls`; `warn` tells the person.

    A question ends with its call, however that ends; and each with the connection, which the library sees to. While
    several calls run, nobody knows whose it is: it is asked in the server's name alone, and ends with the last of them.
    """

    def __init__(
        self, server: str, roots: Sequence[str], asker: Asker, calls: RunningCalls, warn: Callable[[str], None]
    ) -> None:
        self._server = f"the MCP server {one_line(server, 100)}"
        self._roots = roots
        self._asker = asker
        self._calls = calls
        self._warn = warn
        self._told: set[str] = set()
        self._waiting = 0

    async def roots(self, context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(
            roots=[Root(uri=FileUrl(Path(root).as_uri()), name=Path(root).name or "/") for root in self._roots]
        )

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        with self._calls.clocks_paused():
            match params:
                case ElicitRequestFormParams():
                    return await self._form(params)
                case ElicitRequestURLParams():
                    return await self._address(params)

    async def _form(self, params: ElicitRequestFormParams) -> ElicitResult | ErrorData:
        schema = validated_form(params.requested_schema)
        if schema is None:
            return _NO_FORM
        text = self._said(params.message, labels(params.requested_schema))

        def fill_in(place: AskingCall) -> Awaitable[Filled]:
            return self._asker.fill_in(Form(place.call_id, text, schema, place.title, place.kind))

        filled = await self._ask(fill_in, Filled("decline")) or Filled("cancel")
        content = {name: value for name, value in (filled.content or {}).items() if name in schema["properties"]}
        return ElicitResult(action=filled.action, content=content if filled.action == "accept" else None)

    async def _address(self, params: ElicitRequestURLParams) -> ElicitResult | ErrorData:
        if not can_be_opened(params.url):
            return _NO_ADDRESS
        if not self._asker.can_visit:
            self._tell_of(params.url, params.message)
            return _DECLINED
        text, link_id = self._said(params.message), params.elicitation_id or params.url

        def visit(place: AskingCall) -> Awaitable[bool]:
            return self._asker.visit(Link(place.call_id, text, params.url, link_id))

        is_agreed = await self._ask(visit, False)  # noqa: FBT003 -- the answer where nobody is asked
        return ElicitResult(action="accept") if is_agreed else _DECLINED

    async def _ask(self, question: Callable[[AskingCall], Awaitable[T]], declined: T) -> T | None:
        """The person's answer; None if no call that may have led to it runs any more."""
        calls = self._calls.running_calls()
        if calls:
            place = calls[0].asked_in if len(calls) == 1 else AskingCall()
            return await until_calls_end(question(place), calls)
        if self._waiting >= MOST_WAITING:
            return declined
        self._waiting += 1
        try:
            return await question(AskingCall())
        finally:
            self._waiting -= 1

    def _tell_of(self, url: str, message: str) -> None:
        if url not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(url)
            said = f" It said: {one_line(message, 500)}" if message else ""
            self._warn(f"It asks you to open {url}. Your editor cannot open links, so the request was declined.{said}")

    def _said(self, message: str, labels: str = "") -> str:
        message = message[: LONGEST_MESSAGE + 1]
        asked = question_of(self._server, message)
        remark = remark_on(hidden_characters(message + labels))
        return f"{asked}\n{remark}" if remark else asked


def question_of(server: str, message: str) -> str:
    return f"{capitalised(server)} asks: {words(message, LONGEST_MESSAGE)}"


# --- pages to open before a call is answered


class UrlElicitations:
    """Addresses that one server wants opened before it answers a call: an error names them, and the call is made again.

    The person agrees to open each, and the server says when that is done, or the person does: not every server tells.
    """

    def __init__(self, server: str, asker: Asker) -> None:
        self._server = f"the MCP server {one_line(server, 100)}"
        self._asker = asker
        self._open: dict[str, asyncio.Event] = {}

    def complete(self, link_id: str) -> None:
        """Notes that the server has announced the end of what was to be done at an address."""
        self._asker.visited(link_id)
        if link_id in self._open:
            self._open[link_id].set()

    async def visit(self, wanted: UrlElicitationRequired, asked_in: AskingCall) -> None:
        """Returns when the call can be made again; ServerFailed says why it cannot."""
        if not self._asker.can_visit or not wanted.addresses or not _can_all_be_opened(wanted.addresses):
            raise ServerFailed(wanted.message)
        for address in wanted.addresses:
            if not await self._visit(address, asked_in):
                raise ServerFailed(f"it needs you to open {address.url} first, which was declined")

    async def _visit(self, address: RequiredUrl, asked_in: AskingCall) -> bool:
        completed = self._open.setdefault(address.id, asyncio.Event())
        try:
            text = question_of(self._server, address.message)
            if not await self._asker.visit(Link(asked_in.call_id, text, address.url, address.id)):
                return False
            return await self._is_done(address, asked_in, completed)
        finally:
            self._open.pop(address.id, None)

    async def _is_done(self, address: RequiredUrl, asked_in: AskingCall, completed: asyncio.Event) -> bool:
        """Whether the visit to an address is over, by the word of the server or of the person, whoever is first."""
        text = question_of(self._server, f"Have you finished at {address.url}?")
        form = Form(asked_in.call_id, text, _IS_DONE, asked_in.title, asked_in.kind)
        told, asked = asyncio.ensure_future(completed.wait()), asyncio.ensure_future(self._asker.fill_in(form))
        try:
            await asyncio.wait([told, asked], return_when=asyncio.FIRST_COMPLETED)
            if told.done():
                return True
            filled = asked.result()
            return filled.action == "accept" and (filled.content or {}).get("done") is True
        finally:
            told.cancel()
            asked.cancel()


def _can_all_be_opened(addresses: Sequence[RequiredUrl]) -> bool:
    return all(can_be_opened(address.url) for address in addresses)
