"""Asking the person through their client. Nothing but the selection of an offered "allow" is a yes."""

from typing import Literal

from crow.acp import translate, wire
from crow.acp.connection import Connection, ConnectionLost
from crow.acp.jsonrpc import RpcError
from crow.actions import PermissionAnswer, PermissionQuestion
from crow.visible import one_line

_CHOICES: dict[str, Literal["once", "session", "reject"]] = {"once": "once", "session": "session", "reject": "reject"}


class ClientPerson:
    def __init__(self, connection: Connection, session_id: str) -> None:
        self._connection = connection
        self._session_id = session_id

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        request = translate.permission_request(self._session_id, question)
        try:
            response = await self._connection.request(
                "session/request_permission", request, wire.RequestPermissionResponse
            )
        except RpcError as error:
            return PermissionAnswer("reject", f"the editor could not ask the user ({one_line(error.message)}).")
        except ConnectionLost:
            return PermissionAnswer("reject", "the editor is gone, so the user could not be asked.")
        return _answer(response.outcome, request.options)


def _answer(outcome: wire.PermissionOutcome, options: list[wire.PermissionOption]) -> PermissionAnswer:
    if outcome.outcome == "cancelled":
        return PermissionAnswer("cancelled")
    offered = {option.option_id for option in options}
    if outcome.outcome == "selected" and outcome.option_id in offered:
        return PermissionAnswer(_CHOICES[outcome.option_id])
    return PermissionAnswer("reject", "the editor's answer was not one of the options, so it counts as a no.")
