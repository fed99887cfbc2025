"""Addresses that a server wants opened before it answers a call: told as an error, and the call is made again after it.

The person agrees to open each, and the server says when that is done, or the person does: not every server tells.
"""

import asyncio
from collections.abc import Sequence

from crow.actions import Form, Link
from crow.mcp.using.answering import Asker, question_of
from crow.mcp.using.calls import AskedIn
from crow.mcp.using.failures import Address, AddressesFirst, ServerFailed
from crow.mcp.using.forms import can_be_opened
from crow.visible import one_line

_IS_DONE = {
    "type": "object",
    "properties": {"done": {"type": "boolean", "title": "Done"}},
    "required": ["done"],
}


class Addresses:
    """For one server."""

    def __init__(self, server: str, asker: Asker) -> None:
        self._server = f"the MCP server {one_line(server, 100)}"
        self._asker = asker
        self._open: dict[str, asyncio.Event] = {}

    def complete(self, link_id: str) -> None:
        """The server said that all is done there."""
        self._asker.visited(link_id)
        if link_id in self._open:
            self._open[link_id].set()

    async def visit(self, wanted: AddressesFirst, asked_in: AskedIn) -> None:
        """Returns when the call can be made again; ServerFailed says why it cannot."""
        if not self._asker.can_visit or not wanted.addresses or not _can_all_be_opened(wanted.addresses):
            raise ServerFailed(wanted.message)
        for address in wanted.addresses:
            if not await self._visit(address, asked_in):
                raise ServerFailed(f"it wants {address.url} to be opened first, which was declined")

    async def _visit(self, address: Address, asked_in: AskedIn) -> bool:
        completed = self._open.setdefault(address.id, asyncio.Event())
        try:
            text = question_of(self._server, address.message)
            if not await self._asker.visit(Link(asked_in.call_id, text, address.url, address.id)):
                return False
            return await self._is_done(address, asked_in, completed)
        finally:
            self._open.pop(address.id, None)

    async def _is_done(self, address: Address, asked_in: AskedIn, completed: asyncio.Event) -> bool:
        """Whether it is, by whoever says so first."""
        text = question_of(self._server, f"Are you done at {address.url}?")
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


def _can_all_be_opened(addresses: Sequence[Address]) -> bool:
    return all(can_be_opened(address.url) for address in addresses)
