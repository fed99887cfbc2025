"""Asking the person through their client. Nothing but the selection of an offered "allow" is a yes."""

from typing import Literal

from crow.acp import translate, wire
from crow.acp.connection import Connection, ConnectionLost
from crow.acp.jsonrpc import RpcError
from crow.actions import Answer, Filled, Form, Link, PermissionAnswer, PermissionQuestion, Person, Question
from crow.visible import one_line

_CHOICES: dict[str, Literal["once", "session", "project", "reject"]] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "reject": "reject",
}
"""By the ids that `translate.permission_request` gives its options: an id is text from outside, a choice is ours."""


class ClientPerson(Person):
    def __init__(self, connection: Connection, session_id: str, *, has_forms: bool, has_links: bool = False) -> None:
        self.can_visit = has_links
        self._connection = connection
        self._session_id = session_id
        self._has_forms = has_forms

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

    async def ask(self, question: Question) -> Answer | None:
        """By a form where the client has forms, else by options to choose from, else not at all."""
        try:
            if self._has_forms:
                form = translate.question_as_form(self._session_id, question)
                return _filled_in(await self._connection.request("elicitation/create", form, wire.FormResponse))
            if not question.options:
                return None
            choice = translate.question_as_options(self._session_id, question)
            response = await self._connection.request(
                "session/request_permission", choice, wire.RequestPermissionResponse
            )
        except (RpcError, ConnectionLost):
            return None
        return _chosen(response.outcome, question)

    async def fill_in(self, form: Form) -> Filled | None:
        if not self._has_forms:
            return None
        request = translate.form_request(self._session_id, form)
        try:
            response = await self._connection.request("elicitation/create", request, wire.FormResponse)
        except (RpcError, ConnectionLost):
            return None
        match response.action:
            case "accept":
                return Filled("accept", response.content or {})
            case "cancel":
                return Filled("cancel")
            case _:
                return Filled("decline")

    async def visit(self, link: Link) -> bool:
        if not self.can_visit:
            return False
        request = translate.link_request(self._session_id, link)
        try:
            response = await self._connection.request("elicitation/create", request, wire.FormResponse)
        except (RpcError, ConnectionLost):
            return False
        return response.action == "accept"

    def visited(self, link_id: str) -> None:
        if self.can_visit:
            self._connection.notify("elicitation/complete", wire.LinkDone(elicitation_id=link_id))


def _filled_in(form: wire.FormResponse) -> Answer:
    answer = (form.content or {}).get("answer")
    return Answer(answer if form.action == "accept" and isinstance(answer, str) else "")


def _chosen(outcome: wire.PermissionOutcome, question: Question) -> Answer:
    if outcome.outcome == "cancelled":
        return Answer("", cancelled=True)
    answers = {f"answer-{number}": option for number, option in enumerate(question.options)}
    return Answer(answers.get(outcome.option_id or "", "") if outcome.outcome == "selected" else "")


def _answer(outcome: wire.PermissionOutcome, options: list[wire.PermissionOption]) -> PermissionAnswer:
    if outcome.outcome == "cancelled":
        return PermissionAnswer("cancelled")
    offered = {option.option_id for option in options}
    if outcome.outcome == "selected" and outcome.option_id in offered:
        return PermissionAnswer(_CHOICES[outcome.option_id])
    return PermissionAnswer("reject", "the editor's answer was not one of the options, so it counts as a no.")
