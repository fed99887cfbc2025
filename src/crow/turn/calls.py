"""The tool calls of one reply: followed while they arrive, judged, run, and settled, however the turn goes on."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from crow import events
from crow.errors import StorageFailed, TurnCancelled
from crow.messages import ToolCall, json_object
from crow.policy.base import Allow, Deny
from crow.results import LOOKING, HiddenOutput, TextBlock, ToolResult
from crow.tools.base import (
    Action,
    AnnouncesItself,
    Delegates,
    FitsOutput,
    Interruptible,
    Look,
    LooksFirst,
    NamesItsWait,
    Tool,
)
from crow.tools.toolbox import failure
from crow.turn.arriving import ArrivingCall
from crow.turn.budget import OutputRoom, fitted_output
from crow.turn.context import TurnContext
from crow.turn.permission import Refusal, verdict_on
from crow.turn.waits import HeardJournal
from crow.visible import one_line

INTERRUPTED = "Interrupted by the user before it was done."
CUT_OFF = "Not run: the model's reply was cut off before the call was complete."
ANNOUNCED = ToolResult(ok=True, text="The user sees it.", display=(HiddenOutput(),))
"""Of a call that does nothing but show something, which was shown before the turn broke off."""


class CallBatch:
    """Settles every call it has seen when it is left, whatever the reason."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._journal = context.journal
        self._calls: dict[str, ArrivingCall] = {}
        self._judged: dict[str, Action | Look] = {}
        """What each call would do, from the moment on in which somebody may be asked about it."""
        self._performed: dict[str, Action] = {}
        self._notes: dict[str, str] = {}
        """What the model is told of how the arguments of its calls were read."""
        self._settled: set[str] = set()
        self._room = OutputRoom(context.window)
        self.outcomes: list[tuple[ToolCall, ToolResult]] = []
        """What was run, and what came of it, in the order in which it ended."""
        self.last_words = ""
        """What one of the calls leaves for the person to answer, as the end of the turn."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    @property
    def written(self) -> int:
        """Characters of the arguments that have arrived."""
        return sum(call.written for call in self._calls.values())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        why = INTERRUPTED if isinstance(error, asyncio.CancelledError | TurnCancelled) else CUT_OFF
        left = [call_id for call_id in self._calls if call_id not in self._settled]
        try:
            # All in one step: a cancel that comes now finds nothing left to be settled.
            with contextlib.suppress(StorageFailed):  # told by whoever ends the turn
                await self._settle({call_id: self._cut_short(call_id, why) for call_id in left})
        finally:
            self._journal.append(events.ReplyEnded())

    def follow(self, event: events.Event) -> None:
        match event:
            case events.ArgumentsGrew():
                news = self._calls[event.call_id].grow(event.fragment, anew=event.anew)
                if news is not None:
                    self._journal.append(news)
            case events.CallOpened():
                if self._calls:  # with the next call, the arguments of the last are usually complete
                    self._preview(next(reversed(self._calls)))
                tool = self._context.tools.find(event.tool)
                self._calls[event.call_id] = ArrivingCall(
                    event.call_id, event.tool, tool, self._context.workspace, may_announce=self._may_announce(tool)
                )
            case _:
                pass

    def _preview(self, call_id: str) -> None:
        if (preview := self._calls[call_id].last_preview()) is not None:
            self._journal.append(preview)

    def _may_announce(self, tool: Tool) -> bool:
        policy = self._context.policy
        return isinstance(tool, AnnouncesItself) and isinstance(policy.judge(tool.deed, anew=False), Allow)

    async def run(self) -> None:
        """Reads side by side, subagents too, the rest one after the other, in the order that the model gave."""
        calls = [self._read(call) for call in self._calls.values()]
        for company, group in groupby(calls, self._company):
            if company:
                await _all_of([partial(self._run, call) for call in group])
            else:
                for call in group:
                    await self._run(call)

    def _read(self, arrived: ArrivingCall) -> ToolCall:
        """The call as it will be judged and run. The model gets back what it wrote, if that was an object."""
        read = arrived.read()
        if (preview := arrived.preview_of(read)) is not None:
            self._journal.append(preview)
        call = read.call
        read_as = call.arguments if call.arguments != read.returned else ""
        self._journal.append(events.CallRequested(call.id, call.name, read.returned, read_as=read_as))
        if read.note:
            self._notes[call.id] = read.note
        return call

    def _company(self, call: ToolCall) -> str:
        """Neighbours that keep the same company run at once; empty if a call runs alone."""
        tools = self._context.tools
        tool = tools.find(call.name)
        if isinstance(tool, Delegates):
            return tool.workers
        # Those that only look cannot get in each other's way. What a server says of its tools is no promise.
        return "looks" if tool.kind in LOOKING and call.name in tools else ""

    async def _run(self, call: ToolCall) -> None:
        try:
            result = await self._result_of(call)
        except (TurnCancelled, StorageFailed):
            raise
        except Exception as error:  # noqa: BLE001 -- the edge of a tool: its failure is a result, not ours
            result = failure(call, error)
        if (note := self._notes.get(call.id)) is not None:
            result = replace(result, text=f"{result.text}\n{note}")
        self.outcomes.append((call, result))
        await self._settle({call.id: result})
        self._room.release(call.id)

    async def _result_of(self, call: ToolCall) -> ToolResult:
        """Prepare, judge, ask if need be, perform: in this order, and nothing is done before it was allowed."""
        action = await allowed_action(self._context, call, self._judged)
        if isinstance(action, Refusal):
            return action.as_result()
        await self._journal.record(events.CallStarted(call.id))
        most = self._room.claim(call.id)
        if isinstance(action, FitsOutput) and most is not None:
            action.fit(most)
        self._performed[call.id] = action
        return fitted_output(await perform(self._context, call.id, action), action.deed.kind, most)

    def _cut_short(self, call_id: str, why: str) -> ToolResult:
        if self._calls[call_id].is_announced:
            return ANNOUNCED
        action = self._performed.get(call_id)
        if isinstance(action, Interruptible):
            return action.interrupted(why)
        judged = self._judged.get(call_id)
        # What would be changed stays to be seen, as it does after a no.
        display = self._calls[call_id].changes if judged is None else judged.display
        if not display:
            return ToolResult.failed(why)
        brief = "interrupted" if why == INTERRUPTED else ""
        return ToolResult(ok=False, text=why, message=why, display=(*display, TextBlock(why, prose=True)), brief=brief)

    async def _settle(self, results: Mapping[str, ToolResult]) -> None:
        """Settles the calls with these ids."""
        for call_id, result in results.items():
            self._settled.add(call_id)
            self.last_words = result.says or self.last_words
        if results:
            await self._journal.record(*(events.CallSettled(call_id, result) for call_id, result in results.items()))


async def allowed_action(context: TurnContext, call: ToolCall, judged: dict[str, Action | Look]) -> Action | Refusal:
    """What the call is to do, once the policy or the person has said yes to it; until then it is among `judged`."""
    tool = context.tools.find(call.name)
    look = await tool.look(call, context.workspace) if isinstance(tool, LooksFirst) else None
    if look is not None and look.path.existed:
        judged[call.id] = look
        verdict = await verdict_on(context, call, look)
        if isinstance(verdict, Deny):
            return Refusal(verdict, look)
    with context.waiting(_named(tool.title(json_object(call.arguments) or {})), call.id):
        if look is not None and isinstance(tool, LooksFirst):
            action = await tool.prepare_after(call, context.workspace, look)
        else:
            action = await tool.prepare(call, context.workspace)
    context.journal.append(events.CallDescribed(call.id, action.deed.kind, action.title, action.locations))
    judged[call.id] = action
    verdict = await verdict_on(context, call, action)
    return Refusal(verdict, action) if isinstance(verdict, Deny) else action


async def perform(context: TurnContext, call_id: str, action: Action) -> ToolResult:
    """Does it, and names the wait for it if that is long."""
    what = action.waits_for if isinstance(action, NamesItsWait) else _named(action.title)
    if what is None:
        return await action.perform(context.journal)
    with context.waiting(what, call_id) as wait:
        return await action.perform(HeardJournal(context.journal, wait))


def _named(title: str) -> str:
    return f"“{one_line(title, 120)}”"


async def _all_of(work: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Runs all at once; if one fails or we are cancelled, the others are ended before the error goes on.

    Each is cancelled once, so that nothing interrupts what it does to end.
    """
    tasks: list[asyncio.Task[None]] = []
    failure: BaseException | None = None

    def end_all(error: BaseException) -> None:
        nonlocal failure
        if failure is None:
            failure = error
            for task in tasks:
                if task is not asyncio.current_task():
                    task.cancel()

    async def run(item: Callable[[], Awaitable[None]]) -> None:
        try:
            await item()
        except BaseException as error:  # noqa: BLE001 -- it goes on below, once the others have ended
            # At once: one that waits for its question to be asked must not ask it after the turn was given up.
            end_all(error)

    tasks += [asyncio.create_task(run(item)) for item in work]
    running: set[asyncio.Task[None]] = set(tasks)
    while running:
        try:
            _, running = await asyncio.wait(running)
        except asyncio.CancelledError as error:
            end_all(error)
            running = {task for task in running if not task.done()}
    if failure is not None:
        raise failure
