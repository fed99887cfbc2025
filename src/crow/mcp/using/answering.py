"""What a server asks of us: the folders we work in, and questions for the person. It gets no words of the model."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

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
from crow.mcp.using.calls import AskedIn, RunningCalls, unless_over
from crow.mcp.using.forms import can_be_opened, flat, labels, words
from crow.visible import hidden_characters, one_line, remark_on

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
        """What was to be done there is done."""
        ...


class Answering:
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
        with self._calls.standing_still():
            match params:
                case ElicitRequestFormParams():
                    return await self._form(params)
                case ElicitRequestURLParams():
                    return await self._address(params)

    async def _form(self, params: ElicitRequestFormParams) -> ElicitResult | ErrorData:
        schema = flat(params.requested_schema)
        if schema is None:
            return _NO_FORM
        text = self._said(params.message, labels(params.requested_schema))

        def fill_in(place: AskedIn) -> Awaitable[Filled]:
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

        def visit(place: AskedIn) -> Awaitable[bool]:
            return self._asker.visit(Link(place.call_id, text, params.url, link_id))

        is_agreed = await self._ask(visit, False)  # noqa: FBT003 -- the answer where nobody is asked
        return ElicitResult(action="accept") if is_agreed else _DECLINED

    async def _ask(self, question: Callable[[AskedIn], Awaitable[T]], declined: T) -> T | None:
        """The person's answer; None if no call that may have led to it runs any more."""
        calls = self._calls.now()
        if calls:
            place = calls[0].asked_in if len(calls) == 1 else AskedIn()
            return await unless_over(question(place), calls)
        if self._waiting >= MOST_WAITING:
            return declined
        self._waiting += 1
        try:
            return await question(AskedIn())
        finally:
            self._waiting -= 1

    def _tell_of(self, url: str, message: str) -> None:
        if url not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(url)
            said = f" It said: {one_line(message, 500)}" if message else ""
            self._warn(f"It wants you to open {url}. Your editor cannot show addresses, so it was told no.{said}")

    def _said(self, message: str, labels: str = "") -> str:
        message = message[: LONGEST_MESSAGE + 1]
        asked = question_of(self._server, message)
        remark = remark_on(hidden_characters(message + labels))
        return f"{asked}\n{remark}" if remark else asked


def question_of(server: str, message: str) -> str:
    return f"{server[:1].upper()}{server[1:]} asks: {words(message, LONGEST_MESSAGE)}"
