"""What a server asks of us: the folders we work in, and questions for the person. It gets no words of the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

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
from crow.mcp.using.forms import can_be_opened, flat, words
from crow.visible import one_line

LONGEST_MESSAGE = 2000
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
    """For one server. `call_id` says which call is running, if one is; `pause` stops its clock meanwhile."""

    def __init__(
        self, server: str, roots: Sequence[str], asker: Asker, call_id: Callable[[], str], pause: Callable[[bool], None]
    ) -> None:
        self._server = server
        self._roots = roots
        self._asker = asker
        self._call_id = call_id
        self._pause = pause

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
        filled = await self._asker.fill_in(Form(self._call_id(), self._said(params.message), schema))
        content = {name: value for name, value in (filled.content or {}).items() if name in schema["properties"]}
        return ElicitResult(action=filled.action, content=content if filled.action == "accept" else None)

    async def _address(self, params: ElicitRequestURLParams) -> ElicitResult | ErrorData:
        if not can_be_opened(params.url):
            return _NO_ADDRESS
        if not self._asker.can_visit:
            return _DECLINED
        link = Link(self._call_id(), self._said(params.message), params.url, params.elicitation_id or params.url)
        return ElicitResult(action="accept") if await self._asker.visit(link) else _DECLINED

    def _said(self, message: str) -> str:
        return f"The MCP server {one_line(self._server, 100)} asks: {words(message, LONGEST_MESSAGE)}"
