"""The life of a call of Crow's own: which events it has, and how it is settled, whatever ends it."""

import asyncio
from typing import Any

import pytest

from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.events import CallDescribed, CallOpened, CallSettled, CallStarted, Event, Journal
from crow.policy.base import Allow, Deny
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import Action, ReadNeeded
from crow.turn.call import INTERRUPTED, Call, Rejected

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
    assert settled(journal) == ToolResult.refused("it is protected.")


def test_what_the_person_rejected_stays_to_be_seen():
    journal = Events()
    asyncio.run(life(journal, Deletion(), permission=Says(Rejected("asked", "no.", words="not that one"))))
    result = settled(journal)
    assert (result.ok, result.brief) == (False, "rejected")
    assert result.display == (DIFF, TextBlock("Rejected: not that one", prose=True))


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
