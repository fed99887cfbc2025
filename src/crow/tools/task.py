"""The tool `task`: gives a piece of work to a subagent, which has a conversation of its own and gives back its last
words.

How a subagent works is not known here: `crow.turn.subagents` brings that.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

import msgspec

from crow.actions import Deed
from crow.config.settings import Mode
from crow.events import Journal
from crow.files.base import Workspace
from crow.messages import ToolCall, ToolSpec
from crow.results import TextBlock, ToolKind, ToolResult
from crow.tools.arguments import ArgumentReader
from crow.tools.base import Action, BadArguments, Tool
from crow.visible import one_line, prose

LONGEST_NAME = 60
"""Characters of its title, or of its prompt where it has none, by which the person knows a subagent."""

DESCRIPTION = (
    "Give a piece of work to a subagent and get its report. It has a context of its own and knows nothing of this "
    "conversation: say all that it needs. `explore` can only read, search and look on the web; `work` can also change "
    "files and run commands. Several in one reply run at once: give them different files. "
    "Not for what a few calls of your own would do."
)

Kind = Literal["explore", "work"]
VERBS: dict[str, str] = {"explore": "Explore", "work": "Work"}


class TaskArguments(msgspec.Struct, frozen=True, kw_only=True):
    title: Annotated[str, msgspec.Meta(description="a few words for the user")] = ""
    """Comes first, so that it is known while the prompt is written."""
    kind: Kind
    prompt: Annotated[str, msgspec.Meta(min_length=1)]


_reader = ArgumentReader(TaskArguments)


class SubagentTask(msgspec.Struct, frozen=True):
    """What a subagent is to do, and for which call."""

    call_id: str
    kind: Kind
    name: str
    prompt: str

    @property
    def title(self) -> str:
        return f"{VERBS[self.kind]}: {self.name}"

    @property
    def turn_id(self) -> str:
        """Of the subagent's only turn: of letters that every provider takes in the ids of calls."""
        return f"{self.call_id}_t1"

    def makes(self, call_id: str) -> bool:
        """Whether that is a call of the subagent's: its id begins with that of the turn."""
        return call_id.startswith(f"{self.turn_id}-")


class Subagent(Protocol):
    """Whoever does one task."""

    async def carry_out(self, journal: Journal) -> ToolResult:
        """Does it, and shows each step in `journal` as the progress of the task's call."""
        ...

    def interrupted(self, reason: str) -> ToolResult:
        """What is told of a task that was ended before it was done."""
        ...


class Task(Tool):
    delegates_to = "subagents"

    def __init__(self, subagent_for: Callable[[SubagentTask], Subagent], mode: Callable[[], Mode]) -> None:
        self.spec = ToolSpec("task", DESCRIPTION, _reader.schema())
        self._subagent_for = subagent_for
        self._mode = mode

    def title(self, arguments: dict[str, Any]) -> str:
        verb = VERBS.get(str(arguments.get("kind", "")), "Task")
        name = _name(str(arguments.get("title") or ""), str(arguments.get("prompt") or ""))
        return f"{verb}: {name}" if name else verb

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | None:
        prompt = arguments.get("prompt")
        return TextBlock(prose(prompt), prose=True) if isinstance(prompt, str) else None

    async def prepare(self, call: ToolCall, workspace: Workspace) -> "TaskAction":
        arguments, _ = _reader.read(call)
        if not arguments.prompt.strip():
            raise BadArguments("`prompt` is empty.")
        if arguments.kind == "work" and self._mode() == "plan":
            raise BadArguments("In `plan` mode only tasks of kind `explore` can run.")
        task = SubagentTask(call.id, arguments.kind, _name(arguments.title, arguments.prompt), arguments.prompt)
        return TaskAction(task, self._subagent_for(task))


class TaskAction(Action):
    """It needs no permission: each call of the subagent is judged by itself."""

    deed = Deed("task", ToolKind.OTHER)
    is_wait_named = False

    def __init__(self, task: SubagentTask, subagent: Subagent) -> None:
        self.title = task.title
        self._subagent = subagent

    async def perform(self, journal: Journal) -> ToolResult:
        return await self._subagent.carry_out(journal)

    def interrupted(self, reason: str) -> ToolResult:
        return self._subagent.interrupted(reason)


def _name(title: str, prompt: str) -> str:
    return one_line(" ".join((title.strip() or prompt).split()), LONGEST_NAME)
