"""What a server asks of us: the folders we work in, and questions for the person. It gets no words of the model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from mcp.client import ClientRequestContext
from mcp_types import (
    ElicitRequestFormParams,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsResult,
    Root,
)
from pydantic import FileUrl

from crow.actions import Filled, Form, Link
from crow.visible import one_line

LONGEST_MESSAGE = 2000
MOST_FIELDS = 30
_DECLINED = ElicitResult(action="decline")


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

    async def elicit(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self._pause(True)  # noqa: FBT003 -- on or off
        try:
            match params:
                case ElicitRequestFormParams():
                    return await self._form(params)
                case ElicitRequestURLParams():
                    return await self._address(params)
        finally:
            self._pause(False)  # noqa: FBT003 -- on or off

    async def _form(self, params: ElicitRequestFormParams) -> ElicitResult:
        schema = flat(params.requested_schema)
        if schema is None:
            return _DECLINED
        filled = await self._asker.fill_in(Form(self._call_id(), self._said(params.message), schema))
        content = {name: value for name, value in (filled.content or {}).items() if name in schema["properties"]}
        return ElicitResult(action=filled.action, content=content if filled.action == "accept" else None)

    async def _address(self, params: ElicitRequestURLParams) -> ElicitResult:
        if not self._asker.can_visit or not params.url.startswith(("https://", "http://127.0.0.1", "http://localhost")):
            return _DECLINED
        link = Link(self._call_id(), self._said(params.message), params.url, params.elicitation_id or params.url)
        return ElicitResult(action="accept") if await self._asker.visit(link) else _DECLINED

    def _said(self, message: str) -> str:
        return f"The MCP server {one_line(self._server, 100)} asks: {message[:LONGEST_MESSAGE]}"


def flat(schema: Any) -> dict[str, Any] | None:
    """A form that any client can show: an object of plain fields. None if it is something else."""
    if not isinstance(schema, dict):
        return None
    properties: Any = cast("dict[str, Any]", schema).get("properties")
    if not isinstance(properties, dict) or not 0 < len(cast("dict[str, Any]", properties)) <= MOST_FIELDS:
        return None
    fields = cast("dict[str, Any]", properties)
    plain = ("string", "number", "integer", "boolean", "array")
    for field in fields.values():
        if not isinstance(field, dict) or cast("dict[str, Any]", field).get("type") not in plain:
            return None
    required: Any = cast("dict[str, Any]", schema).get("required", [])
    names = [name for name in cast("list[Any]", required) if name in fields] if isinstance(required, list) else []
    return {"type": "object", "properties": fields, **({"required": names} if names else {})}
