"""Which calls of one reply run at the same time."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from crow.actions import Deed
from crow.events import CallSettled, Journal
from crow.files.base import Workspace
from crow.messages import ToolCall, ToolSpec
from crow.model.scripted import Call, reply
from crow.results import ToolKind, ToolResult
from crow.timeouts import timeout
from crow.tools.base import Action, Tool
from crow.turn.call_batch import MOST_AT_ONCE
from tests.support.patience import DEADLINE
from tests.support.work import lines_run
from tests.turn.talk import Talk


class Counter(Tool):
    """A tool that knows how many of its calls have run at the same time."""

    def __init__(self, kind: ToolKind, expected: int) -> None:
        self.spec = ToolSpec("count", "Counts.", {"type": "object"})
        self.kind = kind
        self.begun = 0
        self.running = 0
        self.most = 0
        self.expected = expected
        self.together = asyncio.Event()

    def title(self, arguments: dict[str, Any]) -> str:
        return "Count"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "Counting":
        return Counting(self)


class Counting(Action):
    title = "Count"

    def __init__(self, counter: Counter) -> None:
        self.deed = Deed("count", counter.kind)
        self._counter = counter

    async def perform(self, journal: Journal) -> ToolResult:
        self._counter.begun += 1
        self._counter.running += 1
        self._counter.most = max(self._counter.most, self._counter.running)
        if self._counter.most == self._counter.expected:
            self._counter.together.set()
        async with timeout(DEADLINE):
            await self._counter.together.wait()
        for _ in range(100):  # long enough for another one that must not run meanwhile
            await asyncio.sleep(0)
        self._counter.running -= 1
        return ToolResult(ok=True, text="counted")


class Idle(Counter):
    """The same, and its calls wait for nobody."""

    def __init__(self) -> None:
        super().__init__(ToolKind.READ, 0)
        self.together.set()


class Served:
    """Tools that come and go, as those of servers do."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools

    def offered(self) -> Sequence[Tool]:
        return self._tools

    def find_tool(self, name: str) -> Tool | None:
        return next((tool for tool in self._tools if tool.spec.name == name), None)


THREE = [reply(Call("count", {}), Call("count", {}), Call("count", {})), reply("Done.")]


@pytest.mark.parametrize(
    ("kind", "most"),
    [(ToolKind.READ, 3), (ToolKind.SEARCH, 3), (ToolKind.FETCH, 3), (ToolKind.EXECUTE, 1), (ToolKind.OTHER, 1)],
)
def test_calls_of_our_tools_that_only_look_run_side_by_side(tmp_path, kind, most):
    talk, counter = Talk(tmp_path, THREE), Counter(kind, most)
    talk.context.tools.add(counter)
    asyncio.run(talk.turn("Go."))
    assert counter.most == most
    assert [event.result.text for event in talk.of(CallSettled)] == ["counted"] * 3


@pytest.mark.parametrize("kind", [ToolKind.READ, ToolKind.SEARCH, ToolKind.FETCH])
def test_calls_of_a_servers_tool_run_one_after_the_other_whatever_it_says_of_itself(tmp_path, kind):
    talk, counter = Talk(tmp_path, THREE), Counter(kind, 1)
    talk.context.tools.more = Served(counter)
    asyncio.run(talk.turn("Go."))
    assert counter.most == 1
    assert [event.result.text for event in talk.of(CallSettled)] == ["counted"] * 3


def test_of_very_many_calls_only_some_run_at_once(tmp_path):
    many = 3 * MOST_AT_ONCE
    talk, counter = (
        Talk(tmp_path, [reply(*[Call("count", {})] * many), reply("Done.")]),
        Counter(ToolKind.READ, MOST_AT_ONCE),
    )
    talk.context.tools.add(counter)
    asyncio.run(talk.turn("Go."))
    assert counter.most == MOST_AT_ONCE
    assert [event.result.text for event in talk.of(CallSettled)] == ["counted"] * many


def test_the_work_grows_with_the_calls_of_a_reply_and_not_with_their_square(tmp_path):
    def work_of(calls: int) -> int:
        talk, counter = Talk(tmp_path, [reply(*[Call("count", {})] * calls), reply("Done.")], window=10**9), Idle()
        talk.context.tools.add(counter)
        return lines_run(lambda: asyncio.run(talk.turn("Go.")))

    assert work_of(400) < 5 * work_of(100)


def test_one_that_fails_begins_no_other(tmp_path):
    """What waits for its turn does not run after the turn was given up."""
    many = 2 * MOST_AT_ONCE
    talk, counter = Talk(tmp_path, [reply(*[Call("count", {})] * many)]), Counter(ToolKind.READ, MOST_AT_ONCE)
    talk.context.tools.add(counter)

    async def cancelled() -> None:
        turn = asyncio.create_task(talk.turn("Go."))
        async with timeout(DEADLINE):
            await counter.together.wait()
        turn.cancel()
        await asyncio.wait([turn])

    asyncio.run(cancelled())
    settled = [event.result.text for event in talk.of(CallSettled)]
    assert len(settled) == many
    assert counter.begun == MOST_AT_ONCE
