"""The tool calls of one reply: which of them run in parallel, their end however the turn goes on; and stopping a model
that repeats its calls.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from types import TracebackType
from typing import Self

import msgspec
from msgspec.structs import replace

from crow import events
from crow.actions import Person, Question
from crow.errors import StorageFailed, TurnCancelled
from crow.messages import StopReason, ToolCall, has_too_many_values, json_object
from crow.policy.base import Allow
from crow.results import CHANGING, LOOKING, HiddenOutput, ToolResult
from crow.tools.arguments import ReadCall
from crow.tools.base import Action, Tool, Toolbox
from crow.turn.call import INTERRUPTED, Call, PolicyPermission, settle_all
from crow.turn.context import TurnContext
from crow.turn.partial_call import PartialCall
from crow.turn.requests import OutputRoom, fitted_output
from crow.visible import one_line

CUT_OFF = "Not run: the model's reply was cut off before the call was complete."
ANNOUNCED = ToolResult(ok=True, text="The user sees it.", display=(HiddenOutput(),))
"""The result of a call that does nothing but show something, which was shown before the turn broke off."""
MOST_AT_ONCE = 32
"""Calls of one reply that run side by side: with thousands, each turn of the event loop would take seconds."""
TIMES = 5
"""Calls with the same arguments and the same result, after which a model goes round in circles."""
MOST_GO_ONS = 2
"""How often a turn may go on with the same call after the person was asked: who always says so is no person."""
GO_ON = "Go on"
STOP = "Stop"


class ModelCall(Call):
    """A call of the model's: `partial` has its arguments, and its output is cut to what the window has room for."""

    def __init__(self, partial: PartialCall, context: TurnContext, room: OutputRoom, *, from_text: bool) -> None:
        permission = PolicyPermission(
            context.policy, context.person, context.journal, context.dialog, from_text=from_text
        )
        super().__init__(partial.id, context.journal, permission, waiting=context.waiting)
        self.partial = partial
        self._room = room

    async def perform(self, action: Action) -> ToolResult:
        most = self._room.claim(self.id)
        if most is not None:
            action.fit(most)
        return fitted_output(await super().perform(action), action.deed.kind, most)

    def cut_short(self, why: str) -> ToolResult:
        """The result of a call that was left before it had one."""
        return ANNOUNCED if self.partial.is_announced else self.interrupted(why, self.partial.changes)


class CallBatch:
    """Settles every call it has seen when it is left, whatever the reason."""

    def __init__(self, context: TurnContext) -> None:
        self._context = context
        self._journal = context.journal
        self._calls: dict[str, ModelCall] = {}
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
        return sum(call.partial.written for call in self._calls.values())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        why = INTERRUPTED if isinstance(error, asyncio.CancelledError | TurnCancelled) else CUT_OFF
        left = [(call, call.cut_short(why)) for call in self._calls.values() if not call.is_settled]
        try:
            with contextlib.suppress(StorageFailed):  # told by whoever ends the turn
                await self._settle(left)
        finally:
            self._journal.append(events.ReplyEnded())

    def follow(self, event: events.Event) -> None:
        """Follows the calls in the reply; what else is in it is none of theirs."""
        if isinstance(event, events.ArgumentsGrew):
            news = self._calls[event.call_id].partial.grow(event.fragment, anew=event.anew)
            if news is not None:
                self._journal.append(news)
        elif isinstance(event, events.CallOpened):
            if self._calls:  # with the next call, the arguments of the last are usually complete
                self._preview(next(reversed(self._calls.values())))
            tool = self._context.tools.find(event.tool)
            partial = PartialCall(
                event.call_id, event.tool, tool, self._context.workspace, may_announce=self._may_announce(tool)
            )
            self._calls[event.call_id] = ModelCall(partial, self._context, self._room, from_text=event.from_text)

    def _preview(self, call: ModelCall) -> None:
        if (preview := call.partial.last_preview()) is not None:
            self._journal.append(preview)

    def _may_announce(self, tool: Tool) -> bool:
        deed = tool.announced_as
        return deed is not None and isinstance(self._context.policy.judge(deed, reread=False), Allow)

    async def run(self) -> None:
        """Reads side by side, subagents too, the rest one after the other, in the order that the model gave."""
        calls = [self._read(call) for call in self._calls.values()]
        for company, group in groupby(calls, lambda read: self._parallel_group(read.call)):
            if company:
                await _all_of([partial(self._run, read) for read in group])
            else:
                for read in group:
                    await self._run(read)

    def _read(self, call: ModelCall) -> ReadCall:
        """The call as it will be judged and run. The model gets back what it wrote, if that was an object."""
        read = call.partial.read()
        if (preview := call.partial.preview_of(read)) is not None:
            self._journal.append(preview)
        arguments = read.call.arguments
        is_used = arguments != read.returned and not has_too_many_values(arguments)
        read_as = arguments if is_used else ""
        self._journal.append(events.CallRequested(call.id, read.call.name, read.returned, read_as=read_as))
        return read

    def _parallel_group(self, call: ToolCall) -> str:
        """Neighbours that keep the same company run at once; empty if a call runs alone."""
        tools = self._context.tools
        tool = tools.find(call.name)
        if tool.delegates_to:
            return tool.delegates_to
        # Those that only look cannot get in each other's way. What a server says of its tools is no promise.
        return "looks" if tool.kind in LOOKING and call.name in tools else ""

    async def _run(self, read: ReadCall) -> None:
        call = self._calls[read.call.id]
        result = await call.run(self._context.tools.find(read.call.name), read.call, self._context.workspace)
        if read.note:
            result = replace(result, text=f"{result.text}\n{read.note}")
        self.outcomes.append((read.call, result))
        await self._settle([(call, result)])
        self._room.release(call.id, result)

    async def _settle(self, results: Sequence[tuple[Call, ToolResult]]) -> None:
        for _, result in results:
            self.last_words = result.says or self.last_words
        await settle_all(self._journal, results)


async def _all_of(work: Iterable[Callable[[], Awaitable[None]]]) -> None:
    """Runs so many at once; if one fails or we are cancelled, those that run are ended before the error goes on.

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

    async def run_next_ones() -> None:
        # The same for all of us: each takes what nobody has begun.
        while failure is None and (item := next(items, None)) is not None:
            try:
                await item()
            except BaseException as error:  # noqa: BLE001 -- it goes on below, once the others have ended
                # At once: one that waits for its question to be asked must not ask it after the turn was given up.
                end_all(error)

    waiting = list(work)
    items = iter(waiting)
    tasks += [asyncio.create_task(run_next_ones()) for _ in waiting[:MOST_AT_ONCE]]
    running: set[asyncio.Task[None]] = set(tasks)
    while running:
        try:
            _, running = await asyncio.wait(running)
        except asyncio.CancelledError as error:
            end_all(error)
            running = {task for task in running if not task.done()}
    if failure is not None:
        raise failure


# --- a model that goes round in circles


class Stop(msgspec.Struct, frozen=True):
    """The end of a turn that went round in circles."""

    last_words: str
    """What is said to the person: it names the call that was repeated."""
    reason: StopReason


class LoopGuard:
    """Watches the calls of one turn for the same call with the same result, five times, and nothing changed between.

    Waiting is no circle: while a background command is still running, its output may be asked for as often as need be,
    with the same pauses between. `dialog` is held while the person is asked.
    """

    def __init__(self, tools: Toolbox, person: Person, dialog: asyncio.Lock) -> None:
        self._tools = tools
        self._person = person
        self._dialog = dialog
        self._last: dict[str, tuple[bool, str]] = {}
        """The last result of each call: whether it was well, and its text."""
        self._times: dict[str, int] = {}
        """How often each call gave its last result in a row, with nothing new done between."""
        self._went_on: dict[str, int] = {}
        """How often the turn went on with a call after the person was asked."""
        self._deeds: set[tuple[str, bool, str]] = set()
        """Everything that was done in this turn: only what is not among it is new."""

    def forget(self) -> None:
        """Something new was said: the same call may be what the person wants."""
        self._times.clear()

    async def check(self, outcomes: list[tuple[ToolCall, ToolResult]]) -> Stop | None:
        """Why the turn has to stop; None if it may go on."""
        for call, result in outcomes:
            if self._count(call, result) < TIMES:
                continue
            answer = await self._ask(call) if self._went_on.get(_canonical(call), 0) < MOST_GO_ONS else ""
            if answer != GO_ON:
                last_words = (
                    f"I stopped: {self._named(call)} ran {TIMES} times with the same result, "
                    "and nothing changed. Tell me how to continue."
                )
                # Only a person can say that this was enough; with nobody there, the work was broken off.
                return Stop(last_words, StopReason.END_TURN if answer == STOP else StopReason.MAX_TURN_REQUESTS)
            self._went_on[_canonical(call)] = self._went_on.get(_canonical(call), 0) + 1
        return None

    def _count(self, call: ToolCall, result: ToolResult) -> int:
        if result.still_running:
            self._times.clear()
            return 0
        key, outcome = _canonical(call), (result.ok, result.text)
        if self._last.get(key) != outcome:
            self._times.pop(key, None)
        if result.ok and (key, *outcome) not in self._deeds and self._changes_something(call):
            self._times.clear()
        self._deeds.add((key, *outcome))
        self._last[key] = outcome
        self._times[key] = self._times.get(key, 0) + 1
        return self._times[key]

    def _changes_something(self, call: ToolCall) -> bool:
        """After such a call the same question may have another answer."""
        tool = self._tools.find(call.name)
        return tool.kind in CHANGING or bool(tool.delegates_to)

    async def _ask(self, call: ToolCall) -> str:
        """The person's answer; empty if there is none."""
        text = f"{self._named(call)} ran {TIMES} times with the same result. Continue?"
        async with self._dialog:
            answer = await self._person.ask(Question(call.id, text, (GO_ON, STOP)))
        if answer is not None and answer.cancelled:
            raise TurnCancelled
        self._times.clear()
        return answer.text if answer is not None else ""

    def _named(self, call: ToolCall) -> str:
        return f"“{one_line(self._tools.find(call.name).title(json_object(call.arguments) or {}), 120)}”"


def _canonical(call: ToolCall) -> str:
    """The call's name and arguments, however the model spaced and ordered them."""
    if has_too_many_values(call.arguments):
        return f"{call.name} {call.arguments}"
    try:
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments or "{}"), order="deterministic").decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = call.arguments
    return f"{call.name} {arguments}"
