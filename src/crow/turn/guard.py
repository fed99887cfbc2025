"""A model that goes round in circles: the same call with the same result, five times, and nothing changed between.

Waiting is no circle: while a background command is still running, its output may be asked for as often as need be,
with the same pauses between.
"""

import asyncio

import msgspec

from crow.actions import Person, Question
from crow.errors import TurnCancelled
from crow.messages import StopReason, ToolCall, json_object
from crow.results import CHANGING, ToolResult
from crow.tools.base import Delegates
from crow.tools.toolbox import Toolbox
from crow.visible import one_line

TIMES = 5
MOST_GO_ONS = 2
"""How often a turn may go on with the same call after the person was asked: who always says so is no person."""
GO_ON = "Go on"
STOP = "Stop"


class Stop(msgspec.Struct, frozen=True):
    """The end of a turn that went round in circles."""

    last_words: str
    """They name the call that was repeated."""
    reason: StopReason


class LoopGuard:
    """Watches the calls of one turn. `dialog` is held while the person is asked."""

    def __init__(self, tools: Toolbox, person: Person, dialog: asyncio.Lock) -> None:
        self._tools = tools
        self._person = person
        self._dialog = dialog
        self._last: dict[str, tuple[bool, str]] = {}
        """Of each call: its last result."""
        self._times: dict[str, int] = {}
        """And how often that came in a row, with nothing new done between."""
        self._went_on: dict[str, int] = {}
        """How often the turn went on with a call after the person was asked."""
        self._deeds: set[tuple[str, bool, str]] = set()
        """Everything that was done in this turn: only what is not among it is new."""

    async def check(self, outcomes: list[tuple[ToolCall, ToolResult]]) -> Stop | None:
        """None if the turn may go on."""
        for call, result in outcomes:
            if self._count(call, result) < TIMES:
                continue
            answer = await self._ask(call) if self._went_on.get(_canonical(call), 0) < MOST_GO_ONS else ""
            if answer != GO_ON:
                last_words = (
                    f"I stopped: {self._named(call)} was called {TIMES} times with the same result, "
                    "and nothing had changed. Tell me how to go on."
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
        return tool.kind in CHANGING or isinstance(tool, Delegates)

    async def _ask(self, call: ToolCall) -> str:
        """The person's answer; empty if there is none."""
        text = f"{self._named(call)} was called {TIMES} times with the same result. Shall it go on?"
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
    try:
        arguments = msgspec.json.encode(msgspec.json.decode(call.arguments or "{}"), order="deterministic").decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        arguments = call.arguments
    return f"{call.name} {arguments}"
