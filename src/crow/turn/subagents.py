"""Subagents: a turn of its own, with its own history and tools, in the session of the turn that sent it.

How many work at the same time; one of them from its task to its report; which tools and which system prompt it has.

A subagent has the model, workspace, policy and person of the session; its history and tools are its own. A tool that it
calls by name and does not have is refused with the reason.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from crow.actions import Answer, PermissionAnswer, PermissionQuestion, Person, Question
from crow.errors import CrowError, StorageFailed, TurnCancelled
from crow.events import CallDescribed, Journal, SentText, TurnEnded, TurnIds, TurnStarted
from crow.files.base import Workspace
from crow.messages import AssistantMessage, Message, StopReason, Text, ToolCall, UserMessage, without_middle
from crow.results import LOOKING, ToolKind, ToolResult
from crow.tools.base import Action, BadArguments, Tool, Toolbox
from crow.tools.task import Kind, SubagentTask
from crow.turn.context import TurnContext
from crow.turn.history import CUT_OFF
from crow.turn.requests import Requests
from crow.turn.subagent_journal import SubagentJournal, named
from crow.turn.subagent_steps import Steps
from crow.visible import can_be_seen

MOST_AT_ONCE = 4
"""Subagents of a session that work at the same time; the others wait for a place."""
LONGEST_REPORT = 16_000
"""Characters of its last words that the model is told."""
LONGEST_SHOWN = 4_000
"""Characters of its last words that the person is shown."""

PROMPT = """
# You are a subagent
Another agent gave you the task below, and gets nothing of your work but your last message. Do this task and no more. \
Nobody can be asked: decide, and say what you assumed. There is no `plan` and no `ask` for you. End with a report: \
what you found or did, files by path and line, what is left open.
"""
EXPLORE = """\
You can only look: read files, search them, look on the web. You can change nothing and run no command.
"""


class NamedPerson(Person):
    """The session's person, who is told which of several subagents asks."""

    def __init__(self, person: Person, task: SubagentTask, journal: Journal) -> None:
        self._person = person
        self._task = task
        self._journal = journal

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        return await self._person.permit(replace(question, title=named(self._task, question.title)))

    async def ask(self, question: Question) -> Answer | None:
        """Asks about the subagent as a whole: the editor does not know its calls."""
        task = self._task
        try:
            return await self._person.ask(replace(question, call_id=task.call_id, text=named(task, question.text)))
        finally:
            # A question is shown in the call's place: the call takes it back.
            self._journal.append(CallDescribed(task.call_id, ToolKind.OTHER, task.title))


class SubagentRun:
    def __init__(self, task: SubagentTask, parent: TurnContext, tools: Toolbox, subagents: "Subagents") -> None:
        self._task = task
        self._parent = parent
        self._tools = tools
        self._subagents = subagents
        self._steps = Steps()

    async def carry_out(self, journal: Journal) -> ToolResult:
        with SubagentJournal(journal, self._task, self._steps) as own:
            context = self._context(own, journal)
            try:
                with context.waiting("another subagent to end"):
                    await self._subagents.take_place(self._task)
                try:
                    stop_reason = await self._turn(context, own)
                finally:
                    self._subagents.leave_place(self._task)
            except StorageFailed:
                raise
            except CrowError as error:
                return self._failed(str(error), own)
        if stop_reason is StopReason.CANCELLED:
            raise TurnCancelled
        return self._ended(stop_reason, own)

    def interrupted(self, reason: str) -> ToolResult:
        text = f"{reason}{self._steps.steps_told()}{self._files()}"
        return ToolResult(ok=False, text=text, message=reason, display=self._steps.ended(reason))

    async def _turn(self, context: TurnContext, own: SubagentJournal) -> StopReason:
        from crow.turn.loop import run_turn  # few sessions send one

        ids = TurnIds(self._task.turn_id)
        own.append(TurnStarted(ids.turn_id))
        try:
            stop_reason, _ = await run_turn(context, ids, (SentText(self._task.prompt),))
        except CrowError as error:
            own.append(TurnEnded(ids.turn_id, None, str(error)))
            raise
        except asyncio.CancelledError:
            own.append(TurnEnded(ids.turn_id, StopReason.CANCELLED))
            raise
        own.append(TurnEnded(ids.turn_id, stop_reason))
        return stop_reason

    def _context(self, own: SubagentJournal, journal: Journal) -> TurnContext:
        requests = Requests(
            live=replace(self._parent.requests.live),
            tools=self._tools,
            history=own.history,
            system_prompt=self._system_prompt,
            cache_key=f"{self._parent.requests.cache_key}-{self._task.call_id}",
        )
        person = NamedPerson(self._parent.person, self._task, journal)
        return replace(self._parent, requests=requests, person=person, journal=own, prepare=None)

    def _system_prompt(self) -> str:
        return self._parent.requests.system_prompt() + PROMPT + (EXPLORE if self._task.kind == "explore" else "")

    # --- what is told of its end

    def _ended(self, stop_reason: StopReason, own: SubagentJournal) -> ToolResult:
        if stop_reason is not StopReason.END_TURN:
            return self._failed(self._why(stop_reason), own)
        words = _report(own.history.messages())
        if not words:
            return self._failed("it ended without a report.", own)
        display = self._steps.ended(without_middle(words, LONGEST_SHOWN))
        text = f"{without_middle(words, LONGEST_REPORT)}{self._files()}"
        return ToolResult(ok=True, text=text, message=self._counted(), display=display)

    def _why(self, stop_reason: StopReason) -> str:
        most = self._parent.requests.live.limits.model_calls
        if self._parent.budgets.why_stopped:
            return self._parent.budgets.why_stopped
        if stop_reason is not StopReason.MAX_TURN_REQUESTS:
            return f"{stop_reason.why}."
        return "it went round in circles." if self._steps.replies < most else f"{stop_reason.why} ({most})."

    def _failed(self, reason: str, own: SubagentJournal) -> ToolResult:
        told = f"The subagent did not finish: {reason}"
        words = next((text for said in reversed(own.history.messages()) if (text := _text_of(said))), "")
        if self._steps.has_said(words):
            words = ""
        last_words = f"\nIts last words were:\n{without_middle(words, LONGEST_REPORT)}" if words else ""
        text = f"{told}{self._steps.steps_told()}{last_words}{self._files()}"
        display = self._steps.ended(without_middle(words, LONGEST_SHOWN), told)
        return ToolResult(ok=False, text=text, message=told, display=display)

    def _files(self) -> str:
        return self._steps.files_told(self._parent.workspace.roots[0])

    def _counted(self) -> str:
        calls, files = self._steps.calls, len(self._steps.files)
        done = f"{calls} step{'' if calls == 1 else 's'}"
        return f"{done}, {files} file{'' if files == 1 else 's'} changed" if files else done


def _report(messages: Sequence[Message]) -> str:
    """What the model said last: pieces between which the connection broke off, or the model paused, are one report."""
    first = len(messages) - 1
    while first > 0 and _goes_on(messages[first - 1]):
        first -= 1
    return _text_of(*messages[first:])


def _goes_on(message: Message) -> bool:
    """Whether the message behind it goes on with what was being said."""
    if isinstance(message, AssistantMessage):
        return not message.calls
    return isinstance(message, UserMessage) and message.parts == (Text(CUT_OFF),)


def _text_of(*messages: Message) -> str:
    """What the model said in them; empty if none is the model's, or nothing that can be seen."""
    parts = (part for message in messages if isinstance(message, AssistantMessage) for part in message.parts)
    words = "".join(part.text for part in parts if isinstance(part, Text)).strip()
    return words if can_be_seen(words) else ""


class Subagents:
    """Makes subagents, lets a few of them work at the same time, and knows the task of each that is at work.

    `parent` gives the context of the turn that runs. `fresh` makes tools that know nothing of what others have read.
    """

    def __init__(self, parent: Callable[[], TurnContext], fresh: Callable[[], Sequence[Tool]]) -> None:
        self._parent = parent
        self._fresh = fresh
        self._free = asyncio.Semaphore(MOST_AT_ONCE)
        self._at_work: dict[str, SubagentTask] = {}
        """The tasks of the subagents at work, by the call that each works for."""

    def subagent_for(self, task: SubagentTask) -> SubagentRun:
        """A subagent that is ready to go. Its task is not known to `task_of` before it works."""
        parent = self._parent()
        tools = tools_for(task.kind, parent.tools, self._fresh())
        return SubagentRun(task, parent, tools, self)

    async def take_place(self, task: SubagentTask) -> None:
        """Waits until there is a free place for the subagent."""
        await self._free.acquire()
        self._at_work[task.call_id] = task

    def leave_place(self, task: SubagentTask) -> None:
        del self._at_work[task.call_id]
        self._free.release()

    def task_of(self, call_id: str) -> SubagentTask | None:
        """The task of the subagent at work that makes this call; None if the call is the session's own."""
        return next((task for task in self._at_work.values() if task.makes(call_id)), None)


# --- its tools

WITHHELD = frozenset({"task", "ask", "plan", "leave_plan"})
"""Tools that a subagent never has: it sends nobody, and the person's attention is the agent's that sent it."""

NOT_FOR_ANY = ("No subagent has the tool `{}`.", "Do the task without it, or say in your report what is missing.")
NOT_FOR_EXPLORERS = (
    "`{}` was not called: a subagent of kind `explore` can only read, search and look on the web.",
    "Say in your report what should be done.",
)
"""What is told, and advice for the model."""


def tools_for(kind: Kind, session: Toolbox, fresh: Sequence[Tool]) -> Toolbox:
    """`session` are the tools of the one that sends it; `fresh` take the place of those that remember something."""
    new = {tool.spec.name: tool for tool in fresh}
    tools = [new.get(tool.spec.name, tool) for tool in session.lasting() if _has(kind, tool)]
    toolbox = Toolbox(tools)
    toolbox.more = _More(kind, session)
    return toolbox


def _has(kind: Kind, tool: Tool) -> bool:
    return tool.spec.name not in WITHHELD and (kind == "work" or tool.kind in LOOKING)


class _More:
    """What comes and goes is of servers: not for explorers, as what a server says of its tools is no promise."""

    def __init__(self, kind: Kind, session: Toolbox) -> None:
        self._kind = kind
        self._session = session

    def offered(self) -> Sequence[Tool]:
        more = self._session.more
        return more.offered() if more is not None and self._kind == "work" else ()

    def find_tool(self, name: str) -> Tool | None:
        """Asked for what is not among the subagent's lasting tools."""
        if name in WITHHELD:
            return _Refused(self._session.find(name), *NOT_FOR_ANY)
        more = self._session.more
        served = more.find_tool(name) if more is not None else None
        if self._kind == "work":
            return served
        known = served is not None or name in self._session
        return _Refused(self._session.find(name), *NOT_FOR_EXPLORERS) if known else None


class _Refused(Tool):
    """Stands for a tool that the subagent does not have, with its title: the person reads what was wanted."""

    def __init__(self, tool: Tool, reason: str, advice: str) -> None:
        self.spec = tool.spec
        self.kind = tool.kind
        self._tool = tool
        self._reason = reason
        self._advice = advice

    def title(self, arguments: dict[str, Any]) -> str:
        return self._tool.title(arguments)

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise BadArguments(self._reason.format(self.spec.name), advice=self._advice)
