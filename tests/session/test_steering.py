"""Messages into a running turn at any moment of it, with a cancel or without: each of them reaches the model once, in
the order in which they came, or is left over; what was refused is nowhere; and the journal tells the same again.

As in `test_running.py` the moments are steps of the event loop, and a seed is a schedule.
"""

import asyncio
import contextlib
import os
import random
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from crow.actions import Deed
from crow.errors import NothingToSteer, StorageFailed, StoreSilent
from crow.events import (
    Event,
    SentText,
    SteeringLeftOver,
    SteeringReceived,
    TurnEnded,
    TurnIds,
    TurnStarted,
    UserSaid,
)
from crow.files.base import Workspace
from crow.messages import Message, StopReason, Text, ToolCall, UserMessage
from crow.model.scripted import Call, Finish, ScriptedModel, ScriptedReply, reply
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind
from crow.session.journal import SessionJournal
from crow.session.recovery import missing_ends
from crow.session.replay import PastPrompt, PastRemark, replayed
from crow.session.running_turn import RunningTurn
from crow.turn.history import History
from crow.turn.loop import run_turn, skip_turn
from crow.turn.prompt import take_steering
from crow.turn.steering import Steered as AcceptedMessage
from tests.live.test_faces import Pipe, Stage, face
from tests.session.test_running import Job, SlowLog, Working, steps
from tests.support import histories
from tests.support.recording import RecordingSink
from tests.turn.talk import Someone, Talk

SEEDS = int(os.environ.get("CROW_STEERING_SEEDS", "60"))
FIRST = int(os.environ.get("CROW_STEERING_FIRST", "0"))

ROUNDS = (
    reply("I will.", Call("job", {}), Call("solo", {})),
    reply("And now", Call("solo", {}), Call("asking", {})),
    reply(Call("job", {}), Call("job", {})),
    reply("That was it."),
)
MORE = reply("As you say.", Call("solo", {}))
SCRIPTS: dict[str, tuple[ScriptedReply, ...]] = {
    "words": (reply("A first word and a second one."), *[reply("As you say.")] * 9),
    "calls": (*ROUNDS, *[MORE, reply("Well, then.")] * 5),
    "cut": (*ROUNDS[:2], reply("Cut o", Call("job", {}), Finish(StopReason.MAX_TOKENS)), *[reply("Fine.")] * 9),
    "refused": (*ROUNDS[:1], reply("No", Finish(StopReason.REFUSAL)), *[reply("Fine.")] * 9),
}


class PolicyOnLoop(RulePolicy):
    """Judges in a step of the event loop, where others use a thread."""

    async def run_off_loop(self, work: Callable[[], Any]) -> Any:
        await steps(1)
        return work()


class AskingJob(Job):
    """Another one, which the person is asked about first."""

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Working:
        working = Working(self)
        working.deed = Deed(self.spec.name, ToolKind.READ, reads=("/etc/hostname",))
        return working


class Steered:
    """One turn into which messages are said after so many steps each, and what came of them."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        script: Sequence[ScriptedReply],
        moments: Sequence[int] = (),
        cancel: int | None = None,
    ) -> None:
        chance = random.Random(seed)

        async def hesitate() -> None:
            await steps(chance.randrange(4))

        model = ScriptedModel(script, sleep=lambda seconds: steps(1))
        self.talk = Talk(folder, model, person=Someone(permit=hesitate))
        self.model = model
        self.sink = RecordingSink()
        self.log = SlowLog(chance)
        self.journal = SessionJournal(self.log)
        self.journal.subscribe(self.sink)
        requests = replace(self.talk.context.requests, history=self.journal.history)
        policy = PolicyOnLoop([str(folder)])
        self._context = replace(self.talk.context, journal=self.journal, requests=requests, policy=policy)
        jobs = Job("job", ToolKind.READ, chance), Job("solo", ToolKind.EXECUTE, chance)
        for job in (*jobs, AskingJob("asking", ToolKind.READ, chance)):
            self._context.tools.add(job)
        self._moments = moments
        self._cancel = cancel
        self.turn = RunningTurn("t1", self.journal, self._answer)
        self.accepted: dict[str, str] = {}
        """The messages that were acknowledged: ids and texts."""
        self.refused: list[str] = []
        self.length = 0

    async def run(self) -> StopReason:
        self.turn.start(None)
        outcome = asyncio.ensure_future(self._outcome())
        senders: list[asyncio.Task[None]] = []
        for self.length in count():
            for number, moment in enumerate(self._moments):
                if moment == self.length:
                    senders.append(asyncio.ensure_future(self._send(f"message {number} of {len(self._moments)}")))
            if self.length == self._cancel:
                self.turn.cancel()
            if outcome.done() and self.length > max(self._moments, default=0):
                await asyncio.gather(*senders)
                return outcome.result()
            await asyncio.sleep(0)
        raise AssertionError

    async def _outcome(self) -> StopReason:
        try:
            return await self.turn.outcome()
        finally:
            self.acknowledged_by_then = set(self.accepted)

    async def _send(self, text: str) -> None:
        try:
            self.accepted[await self.turn.steer((SentText(text),))] = text
        except NothingToSteer:
            self.refused.append(text)

    async def _answer(self, turn: RunningTurn, ids: TurnIds) -> StopReason:
        with contextlib.suppress(asyncio.CancelledError):  # the turn is skipped then
            await steps(2)
        turn.steering.open()
        self.journal.append(TurnStarted(ids.turn_id))
        context = replace(self._context, steering=turn.steering)
        sent = (SentText("go"),)
        return (await (skip_turn if turn.cancelling else run_turn)(context, ids, sent)).stop_reason

    # --- what must be true of it

    def check(self, stop: StopReason) -> None:
        said = [event for event in self.sink.events if isinstance(event, UserSaid)][1:]
        left = [event for event in self.sink.events if isinstance(event, SteeringLeftOver)]
        order = [event.message_id for event in self.sink.events if isinstance(event, SteeringReceived)]
        assert set(order) == set(self.accepted) == self.acknowledged_by_then, "each was answered before the prompt was"
        assert [event.message_id for event in (*said, *left)] == order, "each once, in order"
        assert [event.message_id for event in self.turn.left_over] == [event.message_id for event in left]
        assert [event.description for event in left] == [self.accepted[event.message_id] for event in left]
        assert not left or stop is not StopReason.END_TURN, "a turn ends of itself only when it has taken in everything"
        assert isinstance(self.sink.events[-1], TurnEnded)
        self._check_requests([self.accepted[event.message_id] for event in said])
        self._check_journal(said)

    def _check_requests(self, taken: list[str]) -> None:
        before: list[str] = []
        for request in self.model.requests:
            found = said_in(request.messages)
            assert found[: len(before)] == before, "what was sent once is sent again, in its place"
            assert found == taken[: len(found)], "each once, in order, and nothing else"
            before = found
            histories.assert_valid(msgspec.to_builtins(request.messages))

    def _check_journal(self, said: list[UserSaid]) -> None:
        past = self.log.added
        again = History()
        for event in past:
            again.apply(event)
        assert again.messages() == self.journal.history.messages()
        shown = [item.message_id for item in replayed(past) if isinstance(item, PastPrompt)]
        assert shown == ["t1-m1", *(event.message_id for event in said)]
        remarks = "".join(item.text for item in replayed(past) if isinstance(item, PastRemark))
        assert all(event.description in remarks for event in self.turn.left_over)
        for cut, event in enumerate(past, start=1):
            if isinstance(event, UserSaid | SteeringReceived | SteeringLeftOver):
                check_cut([*past[:cut], *missing_ends(past[:cut])])


def check_cut(past: list[Event]) -> None:
    """Killed at this point and loaded again, each message that was accepted is either in the history or left over."""
    received = [event.message_id for event in past if isinstance(event, SteeringReceived)]
    said = [event.message_id for event in past if isinstance(event, UserSaid) and "-s" in event.message_id]
    left = [event.message_id for event in past if isinstance(event, SteeringLeftOver)]
    assert said + left == received
    assert not missing_ends(past)


def said_in(messages: Sequence[Message]) -> list[str]:
    texts = (
        part.text
        for message in messages
        if isinstance(message, UserMessage)
        for part in message.parts
        if isinstance(part, Text)
    )
    return [text for text in texts if text.startswith("message ")]


def length_of(folder: Path, script: str) -> int:
    """The steps of a turn into which nothing is said."""
    turn = Steered(folder, 0, SCRIPTS[script])
    asyncio.run(turn.run())
    return turn.length


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_message_at_any_moment_is_taken_in_or_left_over(tmp_path, script):
    last = length_of(tmp_path, script) + 8
    fates = {"taken": 0, "left over": 0, "refused": 0}
    for seed in range(FIRST, FIRST + SEEDS):
        chance = random.Random(f"{script} {seed}")
        moments = [chance.randrange(last) for _ in range(chance.randrange(1, 5))]
        cancel = chance.choice([None, None, chance.randrange(last), moments[0]])
        turn = Steered(tmp_path, seed, SCRIPTS[script], moments, cancel)
        try:
            stop = asyncio.run(turn.run())
            turn.check(stop)
        except BaseException as error:
            raise AssertionError(f"seed {seed}, said after {moments}, cancelled after {cancel}: {error!r}") from error
        fates["refused"] += len(turn.refused)
        fates["left over"] += len(turn.turn.left_over)
        fates["taken"] += len(turn.accepted) - len(turn.turn.left_over)
    assert all(fates.values()), fates


def test_at_every_single_step_of_a_turn(tmp_path):
    """One message, by itself or with a cancel in the same step."""
    for moment in range(length_of(tmp_path, "calls") + 3):
        for cancel in (None, moment):
            turn = Steered(tmp_path, 7, SCRIPTS["calls"], [moment], cancel)
            turn.check(asyncio.run(turn.run()))


# --- several faces


def test_all_faces_but_the_one_it_came_from_are_shown_a_message_and_all_are_told_what_is_left_over(tmp_path):
    async def play() -> None:
        async with Stage(tmp_path) as stage:
            (zed, in_zed, _), (phone, on_phone, _) = face("zed"), face("phone")
            for one in (zed, phone):
                stage.faces.add(one)
                stage.faces.welcome(one)

            async def answer(turn: RunningTurn, ids: TurnIds) -> StopReason:
                turn.steering.open()
                stage.journal.append(TurnStarted(ids.turn_id))
                context = replace(Talk(tmp_path, ()).context, journal=stage.journal, steering=turn.steering)
                await asyncio.gather(
                    *(turn.steer((SentText(text),), phone.known.messages.add) for text in ("one", "two"))
                )
                assert await take_steering(context)
                await turn.steer((SentText("three"),), zed.known.messages.add)
                return StopReason.MAX_TOKENS

            turn = RunningTurn("t1", stage.journal, answer)
            turn.start(None)
            assert await turn.outcome() is StopReason.MAX_TOKENS
            assert prompts(in_zed) == [("t1-s1", "one"), ("t1-s2", "two")]
            assert prompts(on_phone) == []
            for pipe in (in_zed, on_phone):
                assert "> three" in pipe.updates[-1]["content"]["text"]

    asyncio.run(play())


def prompts(pipe: Pipe) -> list[tuple[str, str]]:
    chunks = [update for update in pipe.updates if update["sessionUpdate"] == "user_message_chunk"]
    return [(chunk["messageId"], chunk["content"]["text"]) for chunk in chunks]


# --- a disk that fails or does not answer


class BadLog(SlowLog):
    """Stores nothing: each wait for it lasts until the test ends it, with an error or without."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))
        self.waits: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        wait: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waits.put_nowait(wait)
        return wait


class Unstored:
    """A turn that runs until it is cancelled, on such a disk, and a message that is being accepted."""

    def __init__(self) -> None:
        self.log = BadLog()
        self.turn = RunningTurn("t1", SessionJournal(self.log), self._answer)
        self.turn.start(None)
        self.steer = asyncio.ensure_future(self.turn.steer((SentText("message"),)))

    async def _answer(self, turn: RunningTurn, ids: TurnIds) -> StopReason:
        turn.steering.open()
        await asyncio.Event().wait()
        return StopReason.END_TURN

    async def cancel(self) -> None:
        self.turn.cancel()
        (await self.log.waits.get()).set_result(None)
        await self.turn.ended()


def test_a_message_that_waits_for_the_turn_is_not_overtaken_by_the_next_one():
    async def play() -> list[AcceptedMessage | None]:
        async def answer(turn: RunningTurn, ids: TurnIds) -> StopReason:
            await asyncio.Event().wait()
            return StopReason.END_TURN

        turn = RunningTurn("t1", SessionJournal(SlowLog(random.Random(0))), answer)
        turn.start(None)
        first = asyncio.ensure_future(turn.steer((SentText("first"),)))
        await steps(3)  # it waits by now
        second = asyncio.ensure_future(turn.steer((SentText("second"),)))
        turn.steering.open()  # in the step in which the second one comes
        await asyncio.gather(first, second)
        taken = [turn.steering.take(), turn.steering.take()]
        turn.cancel()
        await turn.ended()
        return taken

    assert asyncio.run(play()) == [("t1-s1", (SentText("first"),)), ("t1-s2", (SentText("second"),))]


def test_what_cannot_be_stored_is_not_accepted():
    async def play() -> None:
        it = Unstored()
        (await it.log.waits.get()).set_exception(StorageFailed("The disk is full."))
        with pytest.raises(StorageFailed):
            await it.steer
        await it.cancel()
        assert it.turn.left_over == []

    asyncio.run(play())


def test_what_the_model_has_got_by_then_is_accepted_all_the_same():
    async def play() -> None:
        it = Unstored()
        stored = await it.log.waits.get()
        assert it.turn.steering.take() is not None
        stored.set_exception(StorageFailed("The disk is full."))
        assert await it.steer == "t1-s1"
        await it.cancel()

    asyncio.run(play())


def test_a_request_that_is_withdrawn_takes_the_message_back():
    async def play() -> None:
        it = Unstored()
        await it.log.waits.get()
        it.steer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await it.steer
        await it.cancel()
        assert it.turn.left_over == []

    asyncio.run(play())


def test_a_disk_that_does_not_answer_holds_up_neither_the_cancel_nor_the_order_of_the_answers():
    """When the turn's end is no longer waited for, nor is the message."""

    async def play() -> None:
        it = Unstored()
        await it.log.waits.get()
        outcome = asyncio.ensure_future(it.turn.outcome())
        it.turn.cancel()
        (await it.log.waits.get()).set_exception(StoreSilent("The disk does not answer."))
        done, _ = await asyncio.wait([outcome, it.steer], return_when=asyncio.FIRST_COMPLETED)
        assert done == {it.steer}
        assert await it.steer == "t1-s1"
        assert await outcome is StopReason.CANCELLED
        assert [message.message_id for message in it.turn.left_over] == ["t1-s1"]

    asyncio.run(play())
