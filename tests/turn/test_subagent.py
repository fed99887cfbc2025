"""A subagent's turn: what of it reaches the session's journal, and that everything about it is bounded."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from crow import events
from crow.errors import StorageFailed
from crow.messages import StopReason, ToolMessage
from crow.model.base import CallBegan, CallGrew, Done, ModelEvent, ModelInfo, ModelRequest, Said
from crow.model.scripted import Call, Fail, ScriptedReply, reply
from crow.results import DiffBlock, DisplayBlock, TextBlock, ToolKind, ToolResult
from crow.tools.read import Read, ReadTracker
from crow.tools.task import SubagentTask, Task
from crow.tools.write import Write
from crow.turn.message_building import PRUNED
from crow.turn.subagent_steps import LARGEST_DIFFS, MOST_AT_END, MOST_LIVE, Steps
from crow.turn.subagents import MOST_AT_ONCE, Subagents
from tests.support.recording import RecordingSink
from tests.turn.talk import Someone, Talk

TASK = "read the numbers"


def sends(prompt: str = TASK, kind: str = "work") -> Call:
    return Call("task", {"prompt": prompt, "kind": kind})


def talk_with_tasks(folder: Path, script: Any, **more: Any) -> Talk:
    talk = Talk(folder, script, **more)
    seen = ReadTracker()
    subagents = Subagents(lambda: talk.context, lambda: [Read(seen), Write(seen)])
    talk.context.tools.add(Task(subagents.subagent_for, lambda: talk.context.policy.mode))
    return talk


def to_subagent(*replies: ScriptedReply) -> list[ScriptedReply]:
    return [ScriptedReply(each.events, when=TASK) for each in replies]


def did(talk: Talk, kind: type) -> list[Any]:
    return [event.what for event in talk.of(events.SubagentDid) if isinstance(event.what, kind)]


def result_of(talk: Talk, call_id: str = "t1-c1") -> ToolResult:
    [result] = [event.result for event in talk.of(events.CallSettled) if event.call_id == call_id]
    return result


# --- what reaches the session's journal


def test_all_that_it_does_is_kept_and_none_of_it_is_the_sessions_history(tmp_path):
    (tmp_path / "numbers.txt").write_text("1\n")
    talk = talk_with_tasks(
        tmp_path,
        [
            reply(sends()),
            *to_subagent(reply("I look.", Call("read", {"path": "numbers.txt"})), reply("It is one.")),
            reply("Thanks."),
        ],
    )
    assert asyncio.run(talk.turn("Go.")) is StopReason.END_TURN
    kinds = [type(event.what).__name__ for event in talk.of(events.SubagentDid)]
    assert kinds == [
        *("TurnStarted", "UserSaid", "TextDelta", "CallOpened", "CallRequested", "CallDescribed"),
        *("CallStarted", "CallSettled", "ReplyEnded", "TextDelta", "ReplyEnded", "TurnEnded"),
    ]
    assert {event.call_id for event in talk.of(events.SubagentDid)} == {"t1-c1"}
    assert [event.call_id for event in did(talk, events.CallSettled)] == ["t1-c1_t1-c1"]
    _, _, answer, _ = talk.history.messages()
    assert isinstance(answer, ToolMessage)
    assert answer.text == "It is one."


def test_a_report_in_which_the_connection_broke_off_is_told_whole(tmp_path):
    [broken] = to_subagent(reply("There are ", Fail()))
    script = [reply(sends()), broken, reply("two numbers: ", Fail()), reply("1 and 2."), reply("Thanks.")]
    talk = talk_with_tasks(tmp_path, script)
    asyncio.run(talk.turn("Go."))
    told = talk.history.messages()[2]
    assert isinstance(told, ToolMessage)
    assert told.text == "There are two numbers: 1 and 2."


def test_its_words_are_kept_in_few_pieces(tmp_path):
    words = "word " * 2000
    talk = talk_with_tasks(tmp_path, [reply(sends()), *to_subagent(reply(words)), reply("Thanks.")])
    asyncio.run(talk.turn("Go."))
    pieces = did(talk, events.TextDelta)
    assert "".join(piece.text for piece in pieces) == words
    assert len(pieces) < 100


def test_before_it_writes_the_former_text_is_with_the_sessions_own(tmp_path):
    talk = talk_with_tasks(
        tmp_path,
        [
            reply(sends()),
            *to_subagent(reply(Call("write", {"path": "a.txt", "content": "x"})), reply("Done.")),
            reply("Ok."),
        ],
    )
    asyncio.run(talk.turn("Go."))
    path = str(tmp_path / "a.txt")
    assert talk.of(events.FileBackedUp) == [events.FileBackedUp("t1-c1_t1-c1", path, None)]
    assert [event.path for event in talk.of(events.FileWritten)] == [path]
    assert talk.history.essentials.files == [path], "a summary of the session's history names it"


def test_what_cannot_be_stored_is_not_done_and_ends_the_turn(tmp_path, monkeypatch):
    talk = talk_with_tasks(
        tmp_path,
        [
            reply(sends()),
            *to_subagent(reply(Call("write", {"path": "a.txt", "content": "x"})), reply("Done.")),
            reply("Ok."),
        ],
    )
    record = talk.journal.record

    async def full(*recorded: events.Event) -> None:
        if any(isinstance(event, events.FileBackedUp) for event in recorded):
            raise StorageFailed("The disk is full.")
        await record(*recorded)

    monkeypatch.setattr(talk.journal, "record", full)
    with pytest.raises(StorageFailed):
        asyncio.run(talk.turn("Go."))
    assert not (tmp_path / "a.txt").exists()
    assert not result_of(talk).ok


def test_room_is_made_in_its_own_history(tmp_path):
    line = "a line of some text, neither long nor short\n"
    (tmp_path / "big.txt").write_text(line * 70)
    reads = [reply(Call("read", {"path": "big.txt", "offset": number + 1})) for number in range(12)]
    script = [reply(sends()), *to_subagent(*reads, reply("I have read it.")), reply("Thanks.")]
    talk = talk_with_tasks(tmp_path, script, window=16_000)
    assert asyncio.run(talk.turn("Go.")) is StopReason.END_TURN
    assert did(talk, events.OutputsPruned)
    assert talk.of(events.OutputsPruned) == []
    its_last = next(request for request in reversed(talk.model.requests) if len(request.messages) > 5)
    assert any(isinstance(message, ToolMessage) and message.text == PRUNED for message in its_last.messages)
    assert result_of(talk).text == "I have read it."


class Lagging(RecordingSink):
    """A sink that has room once each time when somebody waits for it, and then none."""

    def __init__(self) -> None:
        super().__init__()
        self._is_awaited = False

    @property
    def has_room(self) -> bool:
        has, self._is_awaited = self._is_awaited, False
        return has

    async def room(self) -> None:
        self._is_awaited = True


def test_a_client_that_does_not_keep_up_misses_steps_and_gets_the_end(tmp_path):
    steps = [reply(Call("read", {"path": "a.txt"})), reply("Done.")]  # a first step is shown at once
    talk = talk_with_tasks(tmp_path, [reply(sends()), *to_subagent(*steps), reply("Ok.")])
    talk.journal.unsubscribe(talk.sink)
    talk.sink = Lagging()
    talk.journal.subscribe(talk.sink)
    asyncio.run(talk.turn("Go."))
    assert talk.of(events.CallProgressed) == []
    assert result_of(talk).ok


# --- several at once


class Crowd:
    """A model that sends many subagents, each of which waits until as many as may are there."""

    info = ModelInfo("crowd", "test")

    def __init__(self, size: int) -> None:
        self._size = size
        self._present = 0
        self.most = 0
        self._full = asyncio.Event()
        self._sent = False

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if "subagent" not in request.system:
            for index in range(0 if self._sent else self._size):
                yield CallBegan(index, "task")
                yield CallGrew(index, f'{{"prompt": "number {index}", "kind": "explore"}}')
            self._sent = True
        else:
            self._present += 1
            self.most = max(self.most, self._present)
            if self._present == MOST_AT_ONCE:
                self._full.set()
            await self._full.wait()
            self._present -= 1
            yield Said("Here.")
        yield Done(StopReason.END_TURN)

    async def close(self) -> None:
        pass


def test_only_so_many_work_at_the_same_time_and_all_get_their_turn(tmp_path):
    async def play() -> tuple[Talk, Crowd]:
        model = Crowd(MOST_AT_ONCE * 2 + 1)
        talk = talk_with_tasks(tmp_path, model)
        await talk.turn("Go.")
        return talk, model

    talk, model = asyncio.run(play())
    assert model.most == MOST_AT_ONCE
    assert [event.result.ok for event in talk.of(events.CallSettled)] == [True] * (MOST_AT_ONCE * 2 + 1)


def test_it_is_known_whose_a_call_is_only_while_the_subagent_works(tmp_path):
    task = SubagentTask("t1-c1", "work", "write", TASK)
    its_call = f"{task.turn_id}-c1"
    known = []

    async def permit() -> None:
        known.extend(subagents.task_of(call_id) for call_id in (its_call, "t1-c1", "t1-c2", "t1-c10_t1-c1"))

    writes = reply(Call("write", {"path": "a.txt", "content": "x"}))
    talk = Talk(tmp_path, [writes, reply("Done.")], person=Someone(permit=permit))
    subagents = Subagents(lambda: talk.context, list)
    subagent = subagents.subagent_for(task)
    assert subagents.task_of(its_call) is None, "it has not begun"
    assert asyncio.run(subagent.carry_out(talk.journal)).ok
    assert known == [task, None, None, None]
    assert subagents.task_of(its_call) is None, "it has ended"


# --- what is shown of it is bounded


def texts(display: tuple[DisplayBlock, ...]) -> list[str]:
    return [block.text for block in display if isinstance(block, TextBlock)]


def after(count: int, result: ToolResult) -> Steps:
    """So many calls of a subagent, each with this result."""
    steps = Steps()
    for number in range(count):
        steps.apply(events.CallOpened(f"c{number}", "edit", ToolKind.EDIT, f"Edit {number}"))
        steps.apply(events.CallSettled(f"c{number}", result))
    return steps


def test_of_many_steps_the_last_are_shown_and_the_others_counted():
    steps = after(1000, ToolResult(ok=True, text="", message="m" * 1000))
    [live] = texts(steps.now())
    assert live.splitlines()[0] == f"({1000 - MOST_LIVE} earlier steps)"
    assert len(live.splitlines()) == MOST_LIVE + 1
    assert live.splitlines()[-1].startswith("✓ Edit 999 (mmm")
    assert len(live) < MOST_LIVE * 110
    [ended] = texts(steps.ended())
    assert len(ended.splitlines()) == MOST_AT_END + 1


def test_of_large_diffs_those_that_fit_are_shown_and_the_others_counted():
    diff = DiffBlock("/a", "modify", "x" * 10_000, "y" * 10_000)
    display = after(10, ToolResult(ok=True, text="", display=(diff,))).ended()
    shown = [block for block in display if isinstance(block, DiffBlock)]
    assert len(shown) == LARGEST_DIFFS // 20_000
    assert texts(display)[-1] == "(7 more changes: too much to be shown here)"


def test_of_its_words_the_last_are_shown_while_it_speaks_and_each_saying_is_a_step():
    steps = Steps()
    for _ in range(1000):
        steps.apply(events.TextDelta("m1", "a word or two "))
    assert len(texts(steps.now())[0]) <= 500
    steps.apply(events.CallOpened("c1", "read", ToolKind.READ, "Read a"))
    [live] = texts(steps.now())
    said, reads = live.splitlines()
    assert said.startswith("· a word or two a word")
    assert len(said) < 200
    assert reads == "… Read a"
