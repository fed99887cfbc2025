"""The tools that turn to the person: `ask` (a question), `leave_plan` (consent to leave plan mode), `plan` (shows what
is done).
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

import msgspec

from crow.actions import Deed, PermissionAnswer, Person, Question
from crow.config.settings import Mode
from crow.errors import TurnCancelled
from crow.events import Journal, ModeTold, PlanChanged, PlanEntry
from crow.files.base import Workspace
from crow.messages import ToolCall, ToolSpec
from crow.results import DisplayBlock, HiddenOutput, TextBlock, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader
from crow.tools.base import Action, BadArguments, Tool
from crow.visible import one_line, prose, title_line, warning, warning_about_prose

MOST_OPTIONS = 6

ASK_DESCRIPTION = (
    "Ask the user when you cannot go on without their decision. Give short options where there are some. "
    "Not for permission (that is asked for by itself), and not for what you can find out."
)
WAITING = "The question was shown to the user. Their answer is the next message: stop here."
NUMBERED = "The options have numbers there, from 1 in your order, so that a number alone is an answer."

UNANSWERED = "not answered yet"


class AskArguments(msgspec.Struct, frozen=True):
    question: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    options: Annotated[list[str], msgspec.Meta(max_length=MOST_OPTIONS)] = []


_ask_reader = ArgumentReader(AskArguments)


class Ask(Tool):
    """A question to the person, in whatever way their client can put it."""

    def __init__(self, person: Person) -> None:
        self.spec = ToolSpec("ask", ASK_DESCRIPTION, _ask_reader.schema())
        self._person = person

    @property
    def is_said_in_chat(self) -> bool:
        """The question is the end of the turn's text then; a call that repeats it, and is over, would mislead."""
        return not self._person.has_dialogs

    def title(self, arguments: dict[str, Any]) -> str:
        question = arguments.get("question")
        return question if isinstance(question, str) and question else "Question"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "AskAction":
        arguments, _ = _ask_reader.read(call)
        # The answer is what the person saw, not what hid behind it.
        options = tuple(dict.fromkeys(one_line(option.strip()) for option in arguments.options if option.strip()))
        remark = warning(*arguments.options) or warning_about_prose(arguments.question)
        text = prose(arguments.question) + (f"\n\n{remark}" if remark else "")
        return AskAction(self._person, Question(call.id, text, options))


class AskAction(Action):
    is_wait_named = False
    """A wait for the person is theirs: they are not told of it."""

    def __init__(self, person: Person, question: Question) -> None:
        self._person = person
        self._question = question
        self.title = question.text
        self.deed = Deed("ask", ToolKind.OTHER)

    async def perform(self, journal: Journal) -> ToolResult:
        answer = await self._person.ask(self._question)
        if answer is None:
            told = f"{WAITING} {NUMBERED}" if self._question.options else WAITING
            return ToolResult(ok=True, text=told, message=UNANSWERED, says=self._in_words(), brief=UNANSWERED)
        if answer.cancelled:
            raise TurnCancelled
        if not answer.text:
            return ToolResult.failed("The user did not answer the question.", "not answered")
        return ToolResult(
            ok=True, text=f"The user answered: {answer.text}", message=answer.text, display=(TextBlock(answer.text),)
        )

    def _in_words(self) -> str:
        options = "".join(f"\n{number}. {option}" for number, option in enumerate(self._question.options, start=1))
        return f"{self._question.text}{options}"


LEAVE_PLAN_DESCRIPTION = (
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


_leave_plan_reader = ArgumentReader(LeavePlanArguments)


class LeavePlan(Tool):
    """Shows the person a plan and, if they agree, ends the mode in which nothing may be changed."""

    kind = ToolKind.SWITCH_MODE

    def __init__(self, mode: Callable[[], Mode], switch: Callable[[Mode], Awaitable[None]]) -> None:
        self.spec = ToolSpec("leave_plan", LEAVE_PLAN_DESCRIPTION, _leave_plan_reader.schema())
        self._mode = mode
        self._switch = switch

    def title(self, arguments: dict[str, Any]) -> str:
        return "Carry out the plan"

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | None:
        plan = arguments.get("plan")
        return TextBlock(prose(plan), prose=True) if isinstance(plan, str) else None

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "LeavePlanAction":
        if self._mode() != "plan":
            raise BadArguments(f"The mode is `{self._mode()}`, not `plan`.", advice="Go on with the work.")
        arguments, _ = _leave_plan_reader.read(call)
        return LeavePlanAction(arguments.plan, self._switch)


class LeavePlanAction(Action):
    """There are two ways to agree: to be asked about each change, or only about commands."""

    title = "Carry out the plan"
    deed = Deed("leave_plan", ToolKind.SWITCH_MODE)
    yes_once = "Yes, and ask before each change"
    yes_for_session = "Yes, and edit files without asking"

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
        return ToolResult(
            ok=True, text=text, message=f"Plan approved; the mode is now {self._mode}.", display=self.display
        )


MOST_ENTRIES = 50
LONGEST_ENTRY = 500

PLAN_DESCRIPTION = (
    "Show the user your plan for work of several steps, and tick it off as you go. "
    "Each call replaces the whole plan; an empty list clears it. Not for a single step."
)


class Entry(msgspec.Struct, frozen=True):
    content: Annotated[str, msgspec.Meta(min_length=1)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class PlanArguments(msgspec.Struct, frozen=True):
    entries: Annotated[list[Entry], msgspec.Meta(max_length=MOST_ENTRIES)]


_plan_reader = ArgumentReader(PlanArguments)


PLANNING = Deed("plan", ToolKind.THINK)


class Plan(Tool):
    kind = ToolKind.THINK
    announced_as = PLANNING

    def __init__(self) -> None:
        self.spec = ToolSpec("plan", PLAN_DESCRIPTION, _plan_reader.schema())

    def title(self, arguments: dict[str, Any]) -> str:
        return "Plan"

    def announce(self, call: ToolCall) -> PlanChanged | None:
        try:
            arguments, _ = _plan_reader.read(call)
        except BadArguments:
            return None
        return PlanChanged(_shown(arguments.entries))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "PlanAction":
        arguments, _ = _plan_reader.read(call)
        return PlanAction(arguments.entries)


class PlanAction(Action):
    def __init__(self, entries: list[Entry]) -> None:
        self._entries = _shown(entries)
        self.deed = PLANNING
        done = sum(entry.status == "completed" for entry in entries)
        self.title = f"Plan: {done} of {len(entries)} done" if entries else "Clear the plan"

    async def perform(self, journal: Journal) -> ToolResult:
        journal.append(PlanChanged(self._entries))
        return ToolResult(ok=True, text="The user sees the plan.", message=self.title, display=(HiddenOutput(),))


def _shown(entries: list[Entry]) -> tuple[PlanEntry, ...]:
    return tuple(PlanEntry(title_line(entry.content, LONGEST_ENTRY), entry.status, entry.priority) for entry in entries)
