"""The client's requests that are not answered yet, so that the end of its input does not cut them off."""

import asyncio

from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from crow.timeouts import timeout

Message = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError


class OpenRequests:
    def __init__(self) -> None:
        self._ids: set[object] = set()
        self._none_left = asyncio.Event()
        self._none_left.set()

    def received(self, message: Message) -> None:
        match message:
            case JSONRPCRequest(id=id):
                self._ids.add(id)
                self._none_left.clear()
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": str() | int() as id}):
                self._close(id)  # such a request is never answered
            case _:
                pass

    def sent(self, message: Message) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._close(message.id)

    async def all_answered(self, patience: float) -> None:
        """Returns when there are none left, or after so many seconds."""
        try:
            async with timeout(patience):
                await self._none_left.wait()
        except TimeoutError:
            pass  # whoever serves them cancels them

    def _close(self, id: object) -> None:
        self._ids.discard(id)
        if not self._ids:
            self._none_left.set()
