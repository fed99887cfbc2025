"""`leave_plan`: shows the person a plan and, if they agree, ends the mode in which nothing may be changed."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec

from crow.actions import Deed, PermissionAnswer
from crow.config.settings import Mode
from crow.events import Journal, ModeTold
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.base import ArgumentReader, BadArguments
from crow.visible import prose, warning_about_prose
from crow.workspace.base import Workspace

DESCRIPTION = (
    "Only in plan mode: show the user your plan, in Markdown, and ask to carry it out. It must be complete: "
    "what will be changed where, in which order, and how it will be checked."
)

PLAN_MODE = (
    "[Plan mode is on: the user wants to agree to a plan before anything is changed. Look around and think; ask where "
    "the task leaves a choice open. Calls that change something are refused, so do not try. When the plan is complete, "
    "call `leave_plan` with it. If the user rejects it, find out what they want changed. A question that needs no "
    "change is simply answered.]"
)
"""Told to the model when the mode becomes `plan`: in a message, so that the request before it stays a prefix of the
next one, which providers' caches live on. The tools stay the same for the same reason."""
PLAN_MODE_OF_A_SUBAGENT = "[Plan mode is on: calls that change something are refused, so do not try. Only look.]"


def plan_mode_is_over(mode: Mode) -> str:
    return f"[Plan mode is over: the mode is `{mode}` now.]"


class LeavePlanArguments(msgspec.Struct, frozen=True):
    plan: Annotated[str, msgspec.Meta(min_length=1)]


_reader = ArgumentReader(LeavePlanArguments)


class LeavePlan:
    kind = ToolKind.SWITCH_MODE

    def __init__(self, mode: Callable[[], Mode], switch: Callable[[Mode], Awaitable[None]]) -> None:
        self.spec = ToolSpec("leave_plan", DESCRIPTION, _reader.schema())
        self._mode = mode
        self._switch = switch

    def title(self, arguments: dict[str, Any]) -> str:
        return "Carry out the plan"

    def growing(self, arguments: dict[str, Any]) -> TextBlock | None:
        plan = arguments.get("plan")
        return TextBlock(plan, prose=True) if isinstance(plan, str) else None

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "LeavePlanAction":
        if self._mode() != "plan":
            raise BadArguments(f"The mode is `{self._mode()}`, not `plan`: go on with the work.")
        arguments, _ = _reader.read(call)
        return LeavePlanAction(arguments.plan, self._switch)


class LeavePlanAction:
    """There are two ways to agree: to be asked about each change, or only about commands."""

    title = "Carry out the plan"
    deed = Deed("leave_plan", ToolKind.SWITCH_MODE)
    locations: tuple[Location, ...] = ()
    yes = "Yes, and ask before each change"
    broader_yes = "Yes, and edit files without asking"

    def __init__(self, plan: str, switch: Callable[[Mode], Awaitable[None]]) -> None:
        remark = warning_about_prose(plan)
        self.display: tuple[DisplayBlock, ...] = (
            TextBlock(prose(plan), prose=True),
            *((TextBlock(remark, prose=True),) if remark else ()),
        )
        self._switch = switch
        self._mode: Mode = "ask"

    def agreed(self, answer: PermissionAnswer) -> None:
        self._mode = "edit" if answer.choice == "session" else "ask"

    async def perform(self, journal: Journal) -> ToolResult:
        await self._switch(self._mode)
        journal.append(ModeTold(self._mode, ""))
        text = f"The user agreed to the plan. The mode is now `{self._mode}`: carry it out."
        return ToolResult(ok=True, text=text, message=f"Agreed; the mode is now {self._mode}.", display=self.display)
