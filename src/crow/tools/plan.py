"""`plan`: the model's list of steps, shown to the person as it is ticked off."""

from typing import Annotated, Any, Literal

import msgspec

from crow.actions import Deed
from crow.events import Journal, PlanChanged, PlanEntry
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, HiddenOutput, Location, ToolKind, ToolResult
from crow.tools.base import ArgumentReader, BadArguments
from crow.visible import title_line
from crow.workspace.base import Workspace

MOST_ENTRIES = 50
LONGEST_ENTRY = 500

DESCRIPTION = (
    "Show the user your plan for work of several steps, and tick it off as you go. "
    "Each call replaces the whole plan; an empty list clears it. Not for a single step."
)


class Entry(msgspec.Struct, frozen=True):
    content: Annotated[str, msgspec.Meta(min_length=1)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class PlanArguments(msgspec.Struct, frozen=True):
    entries: Annotated[list[Entry], msgspec.Meta(max_length=MOST_ENTRIES)]


_reader = ArgumentReader(PlanArguments)


class Plan:
    kind = ToolKind.THINK
    deed = Deed("plan", ToolKind.THINK)

    def __init__(self) -> None:
        self.spec = ToolSpec("plan", DESCRIPTION, _reader.schema())

    def title(self, arguments: dict[str, Any]) -> str:
        return "Plan"

    def announce(self, call: ToolCall) -> PlanChanged | None:
        try:
            arguments, _ = _reader.read(call)
        except BadArguments:
            return None
        return PlanChanged(_shown(arguments.entries))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "PlanAction":
        arguments, _ = _reader.read(call)
        return PlanAction(arguments.entries)


class PlanAction:
    def __init__(self, entries: list[Entry]) -> None:
        self._entries = _shown(entries)
        self.deed = Plan.deed
        self.locations: tuple[Location, ...] = ()
        self.display: tuple[DisplayBlock, ...] = ()

    @property
    def title(self) -> str:
        if not self._entries:
            return "Clear the plan"
        done = sum(entry.status == "completed" for entry in self._entries)
        return f"Plan: {done} of {len(self._entries)} done"

    async def perform(self, journal: Journal) -> ToolResult:
        journal.append(PlanChanged(self._entries))
        return ToolResult(ok=True, text="The user sees the plan.", message=self.title, display=(HiddenOutput(),))


def _shown(entries: list[Entry]) -> tuple[PlanEntry, ...]:
    return tuple(PlanEntry(title_line(entry.content, LONGEST_ENTRY), entry.status, entry.priority) for entry in entries)
