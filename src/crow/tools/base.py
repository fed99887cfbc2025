"""What a `Tool` and its `Action` are, the toolbox that finds a tool by its name, and the smaller set of tools for small
windows. The few types here are all that a tool and its callers know of each other. Looking a tool up always gives one:
an unknown name gives one that says so.
"""

import functools
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from crow.actions import Deed, PermissionAnswer
from crow.errors import CrowError
from crow.events import Event, Journal
from crow.files.base import Workspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import SERVER_TOOL, ToolCall, ToolSpec
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.visible import one_line

MOST_LOCATIONS = 5
"""Places that a search leads the person to, of those that it found."""


class Action:
    """A prepared call: it can show itself to the policy and to the person, and then be performed.

    Nothing has happened yet. What `perform` does is what was shown.
    """

    title: str
    deed: Deed
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()
    """What is shown before it is done, such as a diff."""
    is_wait_named: bool = True
    """While it is performed, the person is told that it is waited for; not so if the wait is theirs, or if the action
    names its waits one by one."""
    yes_once: str = ""
    yes_for_session: str = ""
    """The words of two ways to agree, if the action has its own: then no rule is made of the answer."""

    def fit(self, most: int) -> None:
        """Told before it is performed: the bytes that there is room for. For one that cuts its output by itself, at a
        good place, and tells the model how to get the rest; the output of others is cut behind them."""

    @property
    def is_divisible(self) -> bool:
        """Whether the person can accept some of its changes and refuse others."""
        return False

    async def accept(self, accepted: Collection[int]) -> None:
        """From now on the action makes these of its changes alone, counted from 0 over all diffs that it shows."""

    def agreed(self, answer: PermissionAnswer) -> None:
        """The person agreed to it, perhaps in one of the action's own ways, or wants to type into its command."""

    async def perform(self, journal: Journal) -> ToolResult:
        raise NotImplementedError

    def interrupted(self, reason: str) -> ToolResult | None:
        """What it had done when it was ended before its time; None if it cannot tell."""


class ReadNeeded(msgspec.Struct, frozen=True):
    """What must be looked at before it can be said what would be done: judged and asked about like an action.

    Where nothing lies, there is nothing to be seen, and nobody has to be asked.
    """

    path: ResolvedPath
    title: str
    deed: Deed
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()
    note: str = ""
    """What the model is told of how the path was read."""


class Tool:
    """Something the model may do. The defaults are those of a plain tool, which has a spec, a title and `prepare`."""

    spec: ToolSpec
    kind: ToolKind = ToolKind.OTHER
    announced_as: Deed | None = None
    """The deed of a tool that only shows something: it is shown as soon as all of it has arrived, and not as a call."""
    delegates_to: str = ""
    """Who does its calls, by calls of their own: anything may have changed after one, whatever the tool's kind.
    Neighbouring calls that are done by the same run at once."""

    @property
    def is_said_in_chat(self) -> bool:
        """Whether all that its calls do is said in the chat, so that they need not be shown."""
        return False

    def title(self, arguments: dict[str, Any]) -> str:
        """One line for the person from what is known of the arguments so far: verb and target."""
        raise NotImplementedError

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock | tuple[DiffBlock, ...] | None:
        """What is worth showing of arguments that are still being written: a text, or changes whose paths are as the
        model wrote them; None if there is nothing yet."""

    def announce(self, call: ToolCall) -> Event | None:
        """What a tool that only shows something tells; None if the arguments make no sense."""

    def meant(self, call: ToolCall) -> "tuple[Tool, ToolCall, str] | None":
        """Where a name stands for several of our tools: the one that is meant, its call, and what the model is told."""

    async def look(self, call: ToolCall, workspace: Workspace) -> ReadNeeded | None:
        """What `prepare` reads: whether a text is in a file must not be told unasked. None if nothing changes."""

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        """Only looks: checks the arguments and computes what would be done. Raises BadArguments if they make no sense,
        and another CrowError if what they name cannot be used."""
        raise NotImplementedError

    async def prepare_once_read(self, call: ToolCall, workspace: Workspace, look: ReadNeeded) -> Action:
        """The same as `prepare`, for the very path that was looked at and judged."""
        raise NotImplementedError


class BadArguments(Exception):
    """The arguments do not fit the tool's schema: the message says how, and the advice, which is for the model, what
    would."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        between = "\n" if "\n" in self.message else " "
        return f"{self.message}{between}{self.advice}" if self.advice else self.message


def verb_and_path(verb: str, arguments: Mapping[str, Any]) -> str:
    """The title of a call about one file, as far as the arguments have arrived."""
    path = arguments.get("path")
    return f"{verb} {path}" if isinstance(path, str) and path else verb


class Advice(msgspec.Struct, frozen=True):
    """The defaults name a session's tools. Whoever offers the tools under other names has other words."""

    read_first: str = "Read it first."
    read_again: str = "Read it again."
    read_all: str = "Read all of it first, or change part of it with `edit`."
    change_a_part: str = "Change it with `edit`."
    make_a_file: str = "To make a new file use `write`."
    look_for_it: str = "Search for it by name with `find`."
    make_it_unique: str = "Add lines around it until it is unique, or set `all` to replace every one."
    go_on: str = "go on with offset {line}"
    fetch_no_files: str = "For files of the project use `read`."
    fetch_otherwise: str = "Download it with a command if it is needed."
    change_otherwise: str = "Use a command instead."
    run_no_files: str = "Not for reading, searching or changing files: there are tools for that."
    search_no_files: str = "Not for the project's own files: use `search` for these."


OF_A_SESSION = Advice()


logger = logging.getLogger(__name__)


class MoreTools(Protocol):
    """Tools that come and go while the session lives, such as those of servers."""

    def offered(self) -> Sequence[Tool]:
        """Those that the model is told of in its next request."""
        ...

    def find_tool(self, name: str) -> Tool | None:
        """Also one that is not offered."""
        ...


class Toolbox:
    def __init__(self, tools: Iterable[Tool], more: MoreTools | None = None) -> None:
        """`tools` is gone through when one is first asked for: a session is open before they are imported."""
        self.more = more
        self._first = tools
        self._added: dict[str, Tool] = {}

    @functools.cached_property
    def _tools(self) -> dict[str, Tool]:
        return {**{tool.spec.name: tool for tool in self._first}, **self._added}

    def add(self, tool: Tool) -> None:
        """Another one; said before the first is asked for."""
        self._added[tool.spec.name] = tool

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def lasting(self) -> list[Tool]:
        """Those that are there as long as the session is."""
        return list(self._tools.values())

    def all(self) -> list[Tool]:
        """Those that may be offered now."""
        return [*self._tools.values(), *(self.more.offered() if self.more is not None else ())]

    def specs(self) -> list[ToolSpec]:
        return [tool.spec for tool in self.all()]

    def find(self, name: str) -> Tool:
        """The tool of that name, or the only one of those on offer that can be meant by it."""
        if (found := self._find(name)) is not None:
            return found
        # for names that are not as they should be
        from crow.tools.lenient.names import hint, near, resolve, several

        known = [tool.spec.name for tool in self.all()]
        meant = resolve(name, known)
        found = self._find(meant) if meant is not None else None
        return (
            found or several(name, known, self._find) or _UnknownTool(name, known, near(name, known), hint(name, known))
        )

    def _find(self, name: str) -> Tool | None:
        return self._tools.get(name) or (self.more.find_tool(name) if self.more is not None else None)


class _UnknownTool(Tool):
    def __init__(self, name: str, known: list[str], near: list[str], hint: str) -> None:
        self.spec = ToolSpec(name, "", {})
        self._known = known
        self._near = near
        self._hint = hint

    def title(self, arguments: dict[str, Any]) -> str:
        return f"Unknown tool {self.spec.name[:100]}"

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        near = " or ".join(f"`{name}`" for name in self._near)
        meant = f"{self._hint} " if self._hint else f"Did you mean {near}? " if near else ""
        known = f"Available: {', '.join(self._known)}."
        raise BadArguments(f"Unknown tool `{one_line(call.name, 100)}`.", advice=f"{meant}{known}")


def failure(call: ToolCall, error: Exception) -> ToolResult:
    """What went wrong in a tool, told to both. An unforeseen error is logged; only its name is shown."""
    match error:
        case CrowError():
            return ToolResult.failed(str(error), error.for_person)
        case BadArguments():
            return ToolResult.failed(str(error), error.message)
        case _:
            logger.error("tool %s crashed", call.name, exc_info=error)
            text = f"`{call.name}` failed unexpectedly ({type(error).__name__}). See the log for details."
            return ToolResult.failed(text)


# --- the tools of a model with a small window: the few that work cannot do without, described in a few words
#
# All tools with their full descriptions take about 3,000 tokens of every request. That is nothing to a window of
# 200,000, and most of one of 8,192.

SMALL_WINDOW = 16_000
"""Tokens: below it, a model gets the small set."""

DESCRIPTIONS = {
    "read": "Read a file as numbered lines, or list a folder. For more, go on with `offset`.",
    "write": "Write a whole file. An existing one must have been read in full: else use `edit`.",
    "edit": "Replace text in a file. `old` is copied exactly from the file, without line numbers, and must be unique.",
    "find": "Find files by name or glob.",
    "search": "Search files for a regular expression.",
    "terminal": "Run a shell command.",
    "ask": "Ask the user, if you cannot go on without an answer.",
    "leave_plan": "In plan mode: show the complete plan and ask to carry it out.",
}

LEFT_OUT = {
    "write": ("append",),
    "search": ("context", "mode"),
    "terminal": ("background", "cwd"),
}
"""Arguments that the model is not told of."""


def small_set(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Those of the tools that belong to it, and all that are not Crow's own: whoever added a server wants its tools."""
    return [_small(spec) if spec.name in DESCRIPTIONS else spec for spec in specs if _belongs(spec.name)]


def _belongs(name: str) -> bool:
    return name in DESCRIPTIONS or name.startswith(SERVER_TOOL) or name in ("find_tools", "mcp_resources")


@functools.cache
def _small_schema(name: str, schema: bytes) -> dict[str, Any]:
    """The same for the same tool: it is asked for before each request."""
    bare = _bare(msgspec.json.decode(schema, type=dict[str, Any]))
    for left_out in LEFT_OUT.get(name, ()):
        bare["properties"].pop(left_out, None)
    return bare


def _small(spec: ToolSpec) -> ToolSpec:
    return ToolSpec(spec.name, DESCRIPTIONS[spec.name], _small_schema(spec.name, msgspec.json.encode(spec.schema)))


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an object with nothing but the names and types of its properties."""
    bare: dict[str, Any] = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if "properties" in schema:
        bare["properties"] = {name: _bare(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        bare["items"] = _bare(schema["items"])
    return bare
