"""The life of a call of Crow's own: which events it has, and how it is settled, whatever ends it."""

import asyncio
from typing import Any

import pytest

from crow.actions import Deed, PermissionAnswer, PermissionQuestion
from crow.errors import WorkspaceError
from crow.events import (
    CallDescribed,
    CallOpened,
    CallSettled,
    CallStarted,
    Event,
    Journal,
    PermissionAnswered,
    PermissionAsked,
)
from crow.policy.base import Allow, Deny
from crow.policy.rule_policy import RulePolicy
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import Action, ReadNeeded
from crow.turn.call import INTERRUPTED, Call, PolicyPermission, Rejected
from tests.turn.talk import Someone

DONE = ToolResult(ok=True, text="done")
DIFF = DiffBlock("/a", "add", "", "text")


class Events:
    """A journal that is a list."""

    has_room = True

    def __init__(self) -> None:
        self.all: list[Event] = []

    def append(self, event: Event) -> None:
        self.all.append(event)

    async def record(self, *events: Event) -> None:
        self.all += events

    async def room(self) -> None:
        pass


class Deletion(Action):
    title = "Delete a"
    deed = Deed("delete", ToolKind.DELETE, writes=("/a",))
    locations = (Location("/a"),)
    display: tuple[DisplayBlock, ...] = (DIFF,)

    def __init__(self, fault: BaseException | None = None) -> None:
        self._fault = fault

    async def perform(self, journal: Journal) -> ToolResult:
        if self._fault is not None:
            raise self._fault
        return DONE


class Says:
    def __init__(self, verdict: Allow | Deny) -> None:
        self._verdict = verdict

    async def verdict_on(self, call_id: str, action: Action | ReadNeeded) -> Allow | Deny:
        return self._verdict


async def life(journal: Events, action: Deletion, **more: Any) -> None:
    async with Call("c1", journal, **more) as call:
        call.open("delete", ToolKind.DELETE, "Delete")
        await call.settle(await call.carry_out(action))


def settled(journal: Events) -> ToolResult:
    (result,) = (event.result for event in journal.all if isinstance(event, CallSettled))
    return result


def test_a_call_is_opened_described_started_and_settled_in_this_order():
    journal = Events()
    asyncio.run(life(journal, Deletion()))
    assert [type(event) for event in journal.all] == [CallOpened, CallDescribed, CallStarted, CallSettled]
    assert settled(journal) == DONE


def test_a_call_that_is_denied_never_starts():
    journal = Events()
    asyncio.run(life(journal, Deletion(), permission=Says(Deny("a rule", "it is protected."))))
    assert [type(event) for event in journal.all] == [CallOpened, CallDescribed, CallSettled]
    result = settled(journal)
    assert (result.text, result.message) == ("Not done: it is protected.", "It is protected.")


def test_what_the_person_rejected_stays_to_be_seen():
    journal = Events()
    asyncio.run(life(journal, Deletion(), permission=Says(Rejected("asked", "no.", words="not that one"))))
    result = settled(journal)
    assert (result.ok, result.brief) == (False, "rejected")
    assert result.display == (DIFF, TextBlock("Rejected: not that one", prose=True))


# --- what is acted on is stored first


class Disk(Events):
    """A journal whose disk takes a moment: what is recorded is stored once `record` returns, and no sooner."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[type[Event]] = []

    async def record(self, *events: Event) -> None:
        self.all += events
        for _ in range(3):
            await asyncio.sleep(0)
        self.stored += map(type, events)


class Asked(Someone):
    """A person who answers, and looks what is stored when they are asked."""

    def __init__(self, disk: Disk, answer: PermissionAnswer) -> None:
        super().__init__()
        self.stored_when_asked: list[type[Event]] = []
        self._disk = disk
        self._answer = answer

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        self.stored_when_asked = list(self._disk.stored)
        return self._answer


class WatchedDeletion(Deletion):
    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.stored_when_performed: list[type[Event]] | None = None
        self._disk = disk

    async def perform(self, journal: Journal) -> ToolResult:
        self.stored_when_performed = list(self._disk.stored)
        return await super().perform(journal)


def asked_and_answered(answer: PermissionAnswer) -> tuple[Disk, Asked, WatchedDeletion]:
    async def talk() -> tuple[Disk, Asked, WatchedDeletion]:
        disk = Disk()
        person, action = Asked(disk, answer), WatchedDeletion(disk)
        permission = PolicyPermission(RulePolicy(["/"]), person, disk, asyncio.Lock())
        await life(disk, action, permission=permission)
        return disk, person, action

    return asyncio.run(talk())


def test_the_question_the_answer_and_the_start_are_stored_before_anything_is_done():
    disk, person, action = asked_and_answered(PermissionAnswer("once"))
    assert person.stored_when_asked == [PermissionAsked]
    assert action.stored_when_performed == [PermissionAsked, PermissionAnswered, CallStarted]
    assert disk.stored == [PermissionAsked, PermissionAnswered, CallStarted, CallSettled]


def test_a_rejection_is_stored_and_nothing_is_done():
    disk, _, action = asked_and_answered(PermissionAnswer("reject", "no."))
    assert action.stored_when_performed is None
    assert disk.stored == [PermissionAsked, PermissionAnswered, CallSettled]


@pytest.mark.parametrize(
    ("fault", "more", "shown"),
    [
        (WorkspaceError("The disk is full."), {}, "The disk is full."),
        (asyncio.CancelledError(), {}, INTERRUPTED),
        (asyncio.CancelledError(), {"unfinished": ToolResult.failed("Not answered.")}, "Not answered."),
        (WorkspaceError("Gone."), {"unfinished": ToolResult.failed("Not answered.")}, "Gone."),
    ],
)
def test_a_call_is_settled_whatever_ends_it(fault: BaseException, more: dict[str, Any], shown: str):
    journal = Events()
    with pytest.raises(type(fault)):
        asyncio.run(life(journal, Deletion(fault), **more))
    result = settled(journal)
    assert (result.ok, result.message) == (False, shown)
