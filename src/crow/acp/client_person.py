"""Asks the person through one client: permission requests, forms, links; decides which answer of the client is a yes.

Nothing but the selection of an offered "allow" is a yes of the person's.
"""

from typing import Literal

import msgspec
from msgspec.structs import replace

from crow.acp import crow_meta, translate, wire
from crow.actions import Answer, Filled, Form, Link, PermissionAnswer, PermissionQuestion, Person, Question
from crow.rpc.connection import Connection, ConnectionLost
from crow.rpc.jsonrpc import RpcError
from crow.timeouts import timeout
from crow.visible import one_line

_CHOICES: dict[str, Literal["once", "session", "project", "reject"]] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "reject": "reject",
}
"""By the ids that `translate.permission_request` gives its options: an id is text from outside, a choice is ours."""
FOR_A_REASON = 120.0
"""Seconds that the person has to say why they rejected something, before the turn goes on without it."""
LONGEST_REASON = 4000
WITHOUT_OUR_LABELS = ("codecompanion",)
"""Clients, by the beginning of their names, that show words of their own for each kind of option: two options of one
kind look the same there."""


class ClientPerson(Person):
    """`client` is the name of the program that asks them; empty if it does not say it. With `has_choices` it shows
    forms that are one choice among words, whatever other forms it does not show. With `takes_changes` it is told which
    lines of a diff are changed. With `sends_reasons` its rejections can have a reason. With `can_type` the person
    there can type into commands."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        *,
        has_forms: bool,
        has_links: bool = False,
        has_choices: bool = False,
        takes_changes: bool = False,
        sends_reasons: bool = False,
        can_type: bool = False,
        client: str = "",
    ) -> None:
        self._has_forms = has_forms
        self._has_choices = has_choices or has_forms
        self._has_links = has_links
        self._takes_changes = takes_changes
        self._sends_reasons = sends_reasons
        self._can_type = can_type
        self._shows_labels = not client.casefold().startswith(WITHOUT_OUR_LABELS)
        self._connection = connection
        self._session_id = session_id

    @property
    def has_dialogs(self) -> bool:
        return self._has_forms

    @property
    def can_visit(self) -> bool:
        return self._has_links

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        request = translate.permission_request(
            self._session_id,
            question,
            one_of_each_kind=not self._shows_labels,
            with_changes=self._takes_changes,
            takes_reason=self._sends_reasons and question.takes_reason,
        )
        try:
            response = await self._connection.request(
                "session/request_permission", request, wire.RequestPermissionResponse
            )
        except RpcError as error:
            return _unclear(f"the editor could not ask for permission ({one_line(error.message)}).")
        except ConnectionLost:
            return _unclear("the editor is gone, so that nobody could be asked.")
        answer = _answer(response, request)
        facts = crow_meta.read(wire.AnswerFacts, response.meta)
        if facts.reason and answer.is_clear and not answer.allowed and question.takes_reason:
            return replace(answer, words=facts.reason.strip()[:LONGEST_REASON])
        return replace(answer, opens_input=True) if facts.input == "open" and self._can_type else answer

    async def ask(self, question: Question) -> Answer | None:
        """By a form where the client has forms, else not at all: then the question goes into the chat.

        Never as a permission to be given: a client that approves everything would answer in the person's name.
        """
        return await self._ask(question) if self.has_dialogs else None

    async def choose(self, question: Question) -> Answer | None:
        return await self._ask(question) if self._has_choices else None

    async def _ask(self, question: Question) -> Answer | None:
        form = translate.question_as_form(self._session_id, question)
        try:
            return _filled_in(await self._connection.request("elicitation/create", form, wire.FormResponse))
        except (RpcError, ConnectionLost):
            return None

    async def explain(self, question: PermissionQuestion) -> str:
        """The turn does not wait for ever for an explanation."""
        if not (self.has_dialogs and question.takes_reason):
            return ""
        form = translate.reason_form(self._session_id, question)
        try:
            async with timeout(FOR_A_REASON):
                response = await self._connection.request("elicitation/create", form, wire.FormResponse)
        except (RpcError, ConnectionLost, TimeoutError):
            return ""
        reason = (response.content or {}).get("reason") if response.action == "accept" else ""
        return reason.strip()[:LONGEST_REASON] if isinstance(reason, str) else ""

    async def fill_in(self, form: Form) -> Filled | None:
        if not self.has_dialogs:
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
    text = answer if form.action == "accept" and isinstance(answer, str) else ""
    return Answer(text, dismissed=form.action == "cancel")


def _unclear(reason: str) -> PermissionAnswer:
    return PermissionAnswer("reject", reason, is_clear=False)


def _answer(response: wire.RequestPermissionResponse, request: wire.RequestPermissionRequest) -> PermissionAnswer:
    outcome = response.outcome
    if outcome.outcome == "cancelled":
        return PermissionAnswer("cancelled", is_clear=False)
    offered = {option.option_id for option in request.options}
    if outcome.outcome != "selected" or outcome.option_id not in offered:
        return _unclear("the editor's answer was not one of the options, so it counts as a no.")
    answer = PermissionAnswer(_CHOICES[outcome.option_id])
    accepted = crow_meta.read(wire.AnswerFacts, response.meta).accepted
    if accepted is None or not answer.allowed:
        return answer
    count = translate.count_changes(request.tool_call.content or ())
    numbers = _numbers(accepted, count)
    if numbers is None:
        return _unclear("the editor accepted changes that were not shown, so it counts as a no.")
    if len(numbers) == count:
        return answer
    if request.meta is None or not request.meta.crow.partial or answer.choice != "once":
        return _unclear("the editor accepted a part of what can only be done as a whole, so it counts as a no.")
    return replace(answer, accepted=numbers)


def _numbers(accepted: object, count: int) -> tuple[int, ...] | None:
    """The changes that were accepted, each once and in order; None if it is anything but numbers of changes."""
    try:
        numbers = msgspec.convert(accepted, list[int])
    except msgspec.ValidationError:
        return None
    if not numbers or not all(0 <= number < count for number in numbers):
        return None
    return tuple(sorted(set(numbers)))
