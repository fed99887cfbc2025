"""One, two or three cancels at any moment of a turn: it is `cancelled`, or it had ended; and every call is settled.

The moments are steps of the event loop. Nothing in here waits for time or for a thread, so that a seed is a schedule:
the log stores after a few steps, the tool works for some and needs some more to clean up.
"""

import asyncio
import os
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from msgspec.structs import replace

from crow.actions import Deed
from crow.events import (
    CallOpened,
    CallSettled,
    Event,
    Journal,
    ReplyEnded,
    SentText,
    TurnEnded,
    TurnIds,
    TurnStarted,
    UserSaid,
)
from crow.files.base import Workspace
from crow.messages import StopReason, ToolCall, ToolSpec
from crow.model.scripted import Call, Finish, ScriptedReply, reply
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind, ToolResult
from crow.session.journal import SessionJournal
from crow.session.running_turn import RunningTurn
from crow.store.base import Mark
from crow.tools.base import Action, Tool
from crow.turn.loop import run_turn, skip_turn
from tests.support import histories
from tests.support.recording import RecordingSink
from tests.support.work import counted
from tests.turn.talk import Talk

SEEDS = int(os.environ.get("CROW_CANCEL_SEEDS", "240"))
FIRST = int(os.environ.get("CROW_CANCEL_FIRST", "0"))

T = TypeVar("T")


async def steps(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


class SlowLog:
    """An event log on a disk that takes some steps for each write."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.added: list[Event] = []

    def add(self, event: Event) -> None:
        self.added.append(event)

    def mark(self) -> Mark:
        return Mark()

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        return asyncio.ensure_future(steps(self._chance.randrange(4)))

    async def release(self) -> None:
        pass


class SlowPolicy(RulePolicy):
    """A policy that takes some steps beside the loop, and no thread: how many steps that lasts is the machine's affair,
    and a turn that was counted on a busy one is too long for any cancel to come before the end of another."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        super().__init__([str(folder)])
        self._chance = chance

    async def run_off_loop(self, work: Callable[[], T]) -> T:
        await steps(self._chance.randrange(4))
        return work()


class Job(Tool):
    """A tool that works for a while, and cleans up however it is ended."""

    def __init__(self, name: str, kind: ToolKind, chance: random.Random) -> None:
        self.spec = ToolSpec(name, "Works.", {"type": "object"})
        self.kind = kind
        self.chance = chance
        self.begun = 0
        self.first = asyncio.Event()
        self.cleaned = 0

    def title(self, arguments: dict[str, Any]) -> str:
        return "Work"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "Working":
        await steps(1)
        return Working(self)


class Working(Action):
    title = "Work"

    def __init__(self, job: Job) -> None:
        self.deed = Deed(job.spec.name, ToolKind.READ)
        self._job = job

    async def perform(self, journal: Journal) -> ToolResult:
        self._job.begun += 1
        self._job.first.set()
        try:
            await steps(self._job.chance.randrange(6))
        except asyncio.CancelledError:
            await steps(3)
            self._job.cleaned += 1
            raise
        self._job.cleaned += 1
        return ToolResult(ok=True, text="worked")


SCRIPT = (
    reply("I will.", Call("job", {}), Call("job", {}), Call("solo", {}), Call("job", {})),
    reply("And now", Call("solo", {}), Call("solo", {}), Call("job", {}), Call("job", {})),
    reply("Cut off", Call("job", {}), Call("solo", {}), Call("job", {}), Finish(StopReason.MAX_TOKENS)),
)


class Cancelled:
    """One turn whose cancels come after so many steps each, and what came of it."""

    def __init__(self, folder: Path, seed: int, moments: list[int], script: tuple[ScriptedReply, ...] = SCRIPT) -> None:
        chance = random.Random(seed)
        self.talk = Talk(folder, script)
        self.sink = RecordingSink()
        self.journal = SessionJournal(SlowLog(chance))
        self.journal.subscribe(self.sink)
        self.jobs = [Job("job", ToolKind.READ, chance), Job("solo", ToolKind.EXECUTE, chance)]
        requests = replace(self.talk.context.requests, history=self.journal.history)
        policy = SlowPolicy(folder, chance)
        self._context = replace(self.talk.context, journal=self.journal, requests=requests, policy=policy)
        for job in self.jobs:
            self._context.tools.add(job)
        self._moments = moments
        self.length = 0

    async def run(self) -> StopReason:
        turn = RunningTurn("t1", self.journal, self.answer)
        turn.start(None)
        outcome = asyncio.ensure_future(turn.outcome())
        for self.length in count():
            for _ in range(self._moments.count(self.length)):
                turn.cancel()
            if outcome.done():
                return outcome.result()
            await asyncio.sleep(0)
        raise AssertionError

    async def answer(self, turn: RunningTurn, ids: TurnIds) -> StopReason:
        self.journal.append(TurnStarted(ids.turn_id))
        sent = (SentText("go"),)
        return (await (skip_turn if turn.cancelling else run_turn)(self._context, ids, sent)).stop_reason

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.sink.events if isinstance(event, kind)]

    def check(self, stop: StopReason) -> None:
        assert [event.stop_reason for event in self.of(TurnEnded)] == [stop]
        assert isinstance(self.sink.events[-1], TurnEnded)
        assert len(self.of(UserSaid)) == 1
        opened = [event.call_id for event in self.of(CallOpened)]
        assert sorted(event.call_id for event in self.of(CallSettled)) == sorted(opened)
        assert isinstance(self.sink.events[-2], ReplyEnded | UserSaid | TurnStarted)
        for job in self.jobs:
            assert job.begun == job.cleaned
        histories.assert_valid(msgspec.to_builtins(self.journal.history.messages()))


def test_a_seed_is_a_schedule(tmp_path):
    turns = [Cancelled(tmp_path, 0, []) for _ in range(5)]
    for turn in turns:
        asyncio.run(turn.run())
    assert len({turn.length for turn in turns}) == 1


def test_a_turn_that_nobody_cancels_ends_as_the_model_says(tmp_path):
    turn = Cancelled(tmp_path, 0, [])
    stop = asyncio.run(turn.run())
    turn.check(stop)
    assert stop is StopReason.MAX_TOKENS
    assert len(turn.of(CallSettled)) == 11


@pytest.mark.parametrize("part", range(4))
def test_however_often_and_whenever_it_is_cancelled_a_turn_ends_in_order(tmp_path, part):
    stops: set[StopReason] = set()
    untouched = Cancelled(tmp_path, part, [])
    asyncio.run(untouched.run())
    for seed in range(FIRST + part, FIRST + SEEDS, 4):
        chance = random.Random(seed)
        first = chance.randrange(untouched.length + 5)
        moments = [first, *(first + chance.choice((0, 1, 2, 3, 5, 9)) for _ in range(seed % 3))]
        turn = Cancelled(tmp_path, seed, moments)
        try:
            stop = asyncio.run(turn.run())
            turn.check(stop)
        except BaseException as error:
            raise AssertionError(f"seed {seed}, cancelled after {moments} steps: {error!r}") from error
        assert stop in (StopReason.CANCELLED, StopReason.MAX_TOKENS)
        stops.add(stop)
    assert StopReason.CANCELLED in stops


async def cost_of_cancelling(folder: Path, calls: int) -> int:
    """The lines that run from the cancel to the end of a turn whose calls all run at once."""
    waiting = Cancelled(folder, 0, [], (reply(*[Call("job", {})] * calls),))
    turn = RunningTurn("t1", waiting.journal, waiting.answer)
    turn.start(None)
    await waiting.jobs[0].first.wait()
    with counted() as work:
        turn.cancel()
        assert await turn.outcome() is StopReason.CANCELLED
    return work.lines


def test_cancelling_many_calls_costs_as_much_for_each_as_cancelling_few(tmp_path):
    few, many = (asyncio.run(cost_of_cancelling(tmp_path, calls)) for calls in (50, 500))
    assert many < 20 * few  # ten times as many; each that ends the others would make it a hundred
