"""Waits that the person is told of: after five seconds, and then ever less often."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from crow.events import CallProgressed, Notice, StillWaiting
from crow.messages import StopReason
from crow.model.base import Awaiting, Done, ModelEvent, ModelInfo, ModelRequest, Said, Waiting
from crow.model.scripted import Call, Say, Wait, reply
from crow.turn.waits import HeardJournal
from crow.turn.waits import Wait as NamedWait
from tests.support.recording import RecordingJournal
from tests.turn.talk import Someone, Talk


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time is what the test says: nothing is waited for."""

    now = 1000.0

    def time(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Runs what becomes due, each at its moment."""
        end = self.now + seconds
        while (due := self._next()) is not None and due <= end:
            self.now = max(self.now, due)
            self.run_until_complete(asyncio.sleep(0))
            self.run_until_complete(asyncio.sleep(0))
        self.now = end

    def _next(self) -> float | None:
        return min((handle.when() for handle in self._scheduled if not handle.cancelled()), default=None)  # pyright: ignore[reportAttributeAccessIssue] -- asyncio tells no other way


@pytest.fixture
def clock():
    loop = Clock()
    yield loop
    loop.close()


def begun(clock: Clock, journal: RecordingJournal, patience: float = 5.0) -> NamedWait:
    async def begin() -> NamedWait:
        return NamedWait(journal, "the model's answer", "", patience).__enter__()

    return clock.run_until_complete(begin())


def told(journal: RecordingJournal) -> list[int]:
    return [event.seconds for event in journal.events if isinstance(event, StillWaiting)]


def test_a_wait_is_named_after_5_15_30_and_60_seconds_and_then_each_minute(clock):
    journal = RecordingJournal()
    begun(clock, journal)
    clock.advance(4.9)
    assert told(journal) == []
    clock.advance(295.2)
    assert told(journal) == [5, 15, 30, 60, 120, 180, 240, 300]
    assert journal.events[0] == StillWaiting("the model's answer", 5)


def test_nothing_is_told_while_something_comes_and_a_gap_is_told(clock):
    journal = RecordingJournal()
    wait = begun(clock, journal)
    for _ in range(10):
        clock.advance(4)
        wait.heard()
    assert told(journal) == []
    clock.advance(16)
    assert told(journal) == [5, 15]
    wait.heard()
    clock.advance(13.9)
    assert told(journal) == [5, 15]
    clock.advance(0.2)
    assert told(journal) == [5, 15, 14], "no sooner than if nothing had come"


def test_what_drips_is_told_no_more_often_than_what_is_silent(clock):
    journal = RecordingJournal()
    wait = begun(clock, journal)
    for _ in range(100):
        clock.advance(6)
        wait.heard()
    assert len(told(journal)) <= 13
    assert set(told(journal)) == {5}, "each time after five seconds without a line"


def test_a_pause_that_was_announced_is_not_named_again(clock):
    journal = RecordingJournal()
    wait = begun(clock, journal)
    wait.rest(20)
    clock.advance(24)
    assert told(journal) == []
    clock.advance(2)
    assert told(journal) == [5]


def test_nothing_is_told_while_somebody_else_is_waited_for(clock):
    journal = RecordingJournal()
    wait = begun(clock, journal)
    with wait.paused():
        clock.advance(60)
    assert told(journal) == []
    clock.advance(5.1)
    assert told(journal) == [5]


def test_what_a_running_call_shows_is_heard(clock):
    journal = RecordingJournal()
    heard = HeardJournal(journal, begun(clock, journal))
    for _ in range(5):
        clock.advance(4)
        heard.append(CallProgressed("c1", ()))
    assert told(journal) == []


def test_a_wait_that_is_over_leaves_nothing_behind(clock):
    journal = RecordingJournal()
    wait = begun(clock, journal)
    wait.__exit__(None, None, None)
    clock.advance(100)
    assert journal.events == []


# --- who is waited for in a turn


def named(talk: Talk) -> list[str]:
    return [event.what for event in talk.of(StillWaiting)]


async def until(talk: Talk, what: str) -> None:
    await talk.sink.until(lambda event: isinstance(event, StillWaiting) and event.what == what)


def test_the_models_answer_is_waited_for_by_name(tmp_path):
    talk = Talk(tmp_path, [reply(Wait(0.2), Say("Well."))], patience=0.01)
    assert asyncio.run(talk.turn("Hi.")) is StopReason.END_TURN
    assert set(named(talk)) == {"the model's answer"}
    assert len(named(talk)) < 8, "ever less often"


def test_so_is_a_gap_in_the_middle_of_it(tmp_path):
    talk = Talk(tmp_path, [reply(Say("Well,"), Wait(0.1), Say(" fine."))], patience=0.01)
    asyncio.run(talk.turn("Hi."))
    kinds = [type(event).__name__ for event in talk.events]
    assert kinds.index("TextDelta") < kinds.index("StillWaiting")


def test_a_wait_for_the_person_is_never_named(tmp_path):
    async def hesitate() -> None:
        before = named(talk)
        await asyncio.sleep(0.2)  # twenty times the patience
        assert named(talk) == before

    talk = Talk(
        tmp_path,
        [reply(Call("write", {"path": "a.txt", "content": "x\n"})), reply("Done.")],
        person=Someone(permit=hesitate),
        patience=0.01,
    )
    asyncio.run(talk.turn("Write."))
    assert not [what for what in named(talk) if "your" in what]  # a busy machine may name others


def test_nor_is_what_waits_behind_a_question(clock):
    journal, asked = RecordingJournal(), True

    async def begin() -> NamedWait:
        return NamedWait(journal, "a server", "", 5.0, lambda: asked).__enter__()

    wait = clock.run_until_complete(begin())
    clock.advance(100)
    assert told(journal) == []
    asked = False
    clock.advance(10)
    assert told(journal) == [5]
    wait.__exit__(None, None, None)


def test_a_quick_turn_names_no_wait(tmp_path):
    talk = Talk(tmp_path, [reply(Call("read", {"path": "a.txt"})), reply("Done.")])
    asyncio.run(talk.turn("Hi."))
    assert named(talk) == []


class AfterItsKey:
    """A model whose key has to be printed first."""

    info = ModelInfo("scripted", "test")

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield Awaiting("the command that prints the key of house")
        await asyncio.sleep(0.1)
        yield Awaiting()
        await asyncio.sleep(0.2)
        yield Said("Fine.")
        yield Done(StopReason.END_TURN)

    async def close(self) -> None: ...


def test_what_comes_before_the_models_answer_is_waited_for_by_its_own_name(tmp_path):
    talk = Talk(tmp_path, AfterItsKey(), patience=0.01)
    asyncio.run(talk.turn("Hi."))
    assert list(dict.fromkeys(named(talk))) == ["the command that prints the key of house", "the model's answer"]


class Retrying:
    """A model whose first attempt failed: it pauses for long, as it has said."""

    info = ModelInfo("scripted", "test")

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield Waiting("It is overloaded.", seconds=1000, attempt=2)
        await asyncio.sleep(0.2)
        yield Said("Fine.")
        yield Done(StopReason.END_TURN)

    async def close(self) -> None:
        pass


def test_a_retry_has_its_own_words_and_no_others(tmp_path):
    talk = Talk(tmp_path, Retrying(), patience=0.01)
    asyncio.run(talk.turn("Hi."))
    [notice] = talk.of(Notice)
    assert "Trying again in 1000 s" in notice.title
    assert named(talk) == []
