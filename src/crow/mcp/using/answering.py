"""What a server asks of us: the folders we work in, and questions for the person. It gets no words of the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

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
from crow.mcp.using.forms import can_be_opened, flat, labels, words
from crow.mcp.using.hidden import hidden_characters, remark_on
from crow.results import ToolKind
from crow.visible import one_line

LONGEST_MESSAGE = 2000
MOST_TOLD = 20
"""Addresses of one server that the person is told of in words."""
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


class AskedIn(msgspec.Struct, frozen=True):
    """The call in which a server asks something, as the person sees it; empty if it is in none."""

    call_id: str = ""
    title: str = ""
    kind: ToolKind = ToolKind.OTHER


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
    """For one server. `running` says which call runs; `pause` stops its clock meanwhile; `warn` tells the person."""

    def __init__(
        self,
        server: str,
        roots: Sequence[str],
        asker: Asker,
        running: Callable[[], AskedIn],
        pause: Callable[[bool], None],
        warn: Callable[[str], None],
    ) -> None:
        self._server = server
        self._roots = roots
        self._asker = asker
        self._running = running
        self._pause = pause
        self._warn = warn
        self._told: set[str] = set()

    async def roots(self, context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(
            roots=[Root(uri=FileUrl(Path(root).as_uri()), name=Path(root).name or "/") for root in self._roots]
        )

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        self._pause(True)  # noqa: FBT003 -- on or off
        try:
            match params:
                case ElicitRequestFormParams():
                    return await self._form(params)
                case ElicitRequestURLParams():
                    return await self._address(params)
        finally:
            self._pause(False)  # noqa: FBT003 -- on or off

    async def _form(self, params: ElicitRequestFormParams) -> ElicitResult | ErrorData:
        schema = flat(params.requested_schema)
        if schema is None:
            return _NO_FORM
        running, text = self._running(), self._said(params.message, labels(params.requested_schema))
        filled = await self._asker.fill_in(Form(running.call_id, text, schema, running.title, running.kind))
        content = {name: value for name, value in (filled.content or {}).items() if name in schema["properties"]}
        return ElicitResult(action=filled.action, content=content if filled.action == "accept" else None)

    async def _address(self, params: ElicitRequestURLParams) -> ElicitResult | ErrorData:
        if not can_be_opened(params.url):
            return _NO_ADDRESS
        if not self._asker.can_visit:
            self._tell_of(params.url, params.message)
            return _DECLINED
        text = self._said(params.message)
        link = Link(self._running().call_id, text, params.url, params.elicitation_id or params.url)
        return ElicitResult(action="accept") if await self._asker.visit(link) else _DECLINED

    def _tell_of(self, url: str, message: str) -> None:
        if url not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(url)
            said = f" It said: {one_line(message, 500)}" if message else ""
            self._warn(f"It wants you to open {url}. Your editor cannot show addresses, so it was told no.{said}")

    def _said(self, message: str, labels: str = "") -> str:
        message = message[: LONGEST_MESSAGE + 1]
        asked = f"The MCP server {one_line(self._server, 100)} asks: {words(message, LONGEST_MESSAGE)}"
        remark = remark_on(hidden_characters(message + labels))
        return f"{asked}\n{remark}" if remark else asked
