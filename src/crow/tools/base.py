"""What a tool is. The few types here are all that a tool and its callers know of each other."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import msgspec

from crow.actions import Deed, PermissionAnswer
from crow.events import Event, Journal
from crow.messages import ToolCall, ToolSpec, json_object
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind, ToolResult
from crow.tools.schemas import schema_of
from crow.visible import one_line
from crow.workspace.base import Workspace
from crow.workspace.place import ResolvedPath

MOST_LOCATIONS = 5
"""Places that a search leads the person to, of those that it found."""


class Action(Protocol):
    """A prepared call: it can show itself to the policy and to the person, and then be performed.

    Nothing has happened yet. What `perform` does is what was shown.
    """

    @property
    def title(self) -> str: ...

    @property
    def deed(self) -> Deed: ...

    @property
    def locations(self) -> tuple[Location, ...]: ...

    @property
    def display(self) -> tuple[DisplayBlock, ...]:
        """What is shown before it is done, such as a diff."""
        ...

    async def perform(self, journal: Journal) -> ToolResult: ...


class Tool(Protocol):
    """Something the model may do.

    `prepare` only looks: it checks the arguments and computes what would be done. It raises BadArguments if they
    make no sense, and another CrowError if what they name cannot be used.
    """

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def kind(self) -> ToolKind: ...

    def title(self, arguments: dict[str, Any]) -> str:
        """One line for the person from what is known of the arguments so far: verb and target."""
        ...

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action: ...


@runtime_checkable
class ShowsPartialCall(Protocol):
    """A tool of whose arguments one is worth showing while it is being written, such as a file's content."""

    def partial_display(self, arguments: dict[str, Any]) -> "TextBlock | tuple[DiffBlock, ...] | None":
        """As much of it as has arrived, or as many changes, whose paths are as the model wrote them; None if there is
        nothing yet."""
        ...


@runtime_checkable
class AnnouncesItself(Protocol):
    """A tool that does nothing but show something: it is shown as soon as all of it has arrived, and not as a call."""

    @property
    def deed(self) -> Deed: ...

    def announce(self, call: ToolCall) -> Event | None:
        """What is to be told; None if the arguments make no sense."""
        ...


@runtime_checkable
class MaySpeakForItself(Protocol):
    """A tool of whose calls nothing needs to be shown where all that they do is said in the chat."""

    @property
    def is_said_in_chat(self) -> bool: ...


class Look(msgspec.Struct, frozen=True):
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


@runtime_checkable
class LooksFirst(Protocol):
    """A tool whose `prepare` answers from a file's content: whether a text is in it must not be told unasked."""

    async def look(self, call: ToolCall, workspace: Workspace) -> Look | None:
        """None if the call changes nothing: it is then prepared as those of other tools are."""
        ...

    async def prepare_after(self, call: ToolCall, workspace: Workspace, look: Look) -> Action:
        """The same as `prepare`, for the very path that was looked at and judged."""
        ...


@runtime_checkable
class HasTwoYeses(Protocol):
    """An action that the person can agree to in two ways, of which nothing is remembered: it has its own words."""

    @property
    def yes(self) -> str: ...

    @property
    def broader_yes(self) -> str: ...

    def agreed(self, answer: PermissionAnswer) -> None:
        """The person agreed; the choice `session` stands for the broader yes."""
        ...


@runtime_checkable
class Delegates(Protocol):
    """A tool whose calls others do, by calls of their own: whatever its kind, anything may have changed after one."""

    @property
    def workers(self) -> str:
        """Who does them. Neighbouring calls that are done by the same run at once."""
        ...


@runtime_checkable
class Interruptible(Protocol):
    """An action that can tell what it had done when it was ended before its time."""

    def interrupted(self, reason: str) -> ToolResult: ...


@runtime_checkable
class NamesItsWait(Protocol):
    """An action that says what is waited for while it is performed; of others, that is their title."""

    @property
    def waits_for(self) -> str | None:
        """The end of a sentence that begins with "Waiting for"; None if it is not to be named, or if it names its waits
        one by one by itself."""
        ...


@runtime_checkable
class FitsOutput(Protocol):
    """An action that cuts its output by itself, at a good place, and tells the model how to get the rest."""

    def fit(self, most: int) -> None:
        """Told before it is performed: the bytes that there is room for."""
        ...


@runtime_checkable
class StandsForSeveral(Protocol):
    """A tool that others have and that does what several of ours do: the arguments say which one is meant."""

    def meant(self, call: ToolCall) -> "tuple[Tool, ToolCall, str] | None":
        """The tool that does the same, its call, and what the model is told of it; None if there is none."""
        ...


class BadArguments(Exception):
    """The arguments do not fit the tool's schema; the message says how, and what would."""


class ReadCall(NamedTuple):
    """A call whose arguments are complete, read once for all that follows: what is judged and shown is what runs."""

    call: ToolCall
    arguments: dict[str, Any]
    """As they are in the call; empty if they cannot be read."""
    returned: str
    """The arguments that the model gets back as its own: what it wrote, if that was an object."""
    note: str = ""
    """What the model is told of how they were read."""


def read_call_of(call: ToolCall, tool: Tool) -> ReadCall:
    """The call as its tool can read it; of a tool that stands for several, as a call of the one that is meant."""
    if not isinstance(tool, StandsForSeveral) or (meant := tool.meant(call)) is None:
        return read_call(call, tool.spec)
    one, its_call, remark = meant
    read = read_call(its_call, one.spec)
    # The model gets back a call that this tool knows, so that it makes the next one like that.
    return read._replace(returned=read.call.arguments, note=" ".join(filter(None, (remark, read.note))))


def read_call(call: ToolCall, spec: ToolSpec) -> ReadCall:
    """The call as its tool can read it. What cannot be read stays as it is: the tool says why."""
    given = json_object(call.arguments)
    if given is not None and _has_one_meaning(given, call.arguments, spec.schema):
        return ReadCall(call, given, call.arguments)
    from crow.tools.lenient.reading import read_leniently  # for those that are not as they should be

    read = read_leniently(call, spec)
    if read is None:
        return ReadCall(call, given or {}, call.arguments)
    returned = read.arguments if given is None else call.arguments
    run = msgspec.structs.replace(call, arguments=read.arguments)
    return ReadCall(run, json_object(read.arguments) or {}, returned, read.note)


_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def is_plain(given: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    """Whether arguments have the names and types that the schema asks for, so that nothing is left to be understood."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    if any(name not in given for name in schema.get("required", ())):
        return False
    for name, value in given.items():
        about = properties.get(name)
        if about is None:
            if properties and not schema.get("additionalProperties"):
                return False
        elif not _is_plain_value(value, about):
            return False
    return True


def _is_plain_value(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = _TYPES.get(cast("str", schema.get("type"))) if isinstance(schema.get("type"), str) else None
    if kind is None:
        return True
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    if kind is dict:
        return is_plain(value, schema)
    if kind is list and isinstance(items := schema.get("items"), dict):
        about = cast("dict[str, Any]", items)
        return all(_is_plain_value(item, about) for item in cast("list[Any]", value))
    return True


def _has_one_meaning(given: Mapping[str, Any], text: str, schema: Mapping[str, Any]) -> bool:
    """Whether arguments that were read from a text are plain, and no name in it has two values, of which the decoder
    takes the last without a word."""
    if not is_plain(given, schema):
        return False
    import jiter  # only models that call tools need it

    try:
        # Less work than reading the text was: counting names in it takes several times as long.
        jiter.from_json((text or "{}").encode(), catch_duplicate_keys=True, cache_mode="none")
    except ValueError:  # a name that stands twice may have the same value both times
        from crow.tools.lenient.json_repair import doubled_name

        return doubled_name(text) is None
    return True


def arguments_for(call: ToolCall, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool whose schema is another's, such as a server's: BadArguments if some are missing, or if
    there is no reading them. Whether their values fit is for the other to say."""
    given = json_object(call.arguments)
    if given is not None and _has_one_meaning(given, call.arguments, schema):
        return given
    from crow.tools.lenient.reading import fit_call

    return fit_call(call, schema, check_values=False).values


Arguments = TypeVar("Arguments", bound=msgspec.Struct)


class ArgumentReader(Generic[Arguments]):
    """Reads a model's arguments into a struct: strict about meaning, lenient about form (`"5"` is 5)."""

    def __init__(self, kind: type[Arguments]) -> None:
        self._kind = kind

    def schema(self) -> dict[str, Any]:
        """The JSON schema that the model is given."""
        return schema_of(self._kind)

    def read(self, call: ToolCall) -> tuple[Arguments, tuple[str, ...]]:
        """The arguments, and the names of those that the tool does not know."""
        given = json_object(call.arguments)
        if given is not None and _has_one_meaning(given, call.arguments, self.schema()):
            with contextlib.suppress(msgspec.ValidationError):
                return msgspec.convert(given, self._kind), ()
        from crow.tools.lenient.reading import fit_call, misfit

        fitted = fit_call(call, self.schema())
        try:
            return msgspec.convert(fitted.values, self._kind), tuple(fitted.unknown)
        except msgspec.ValidationError as error:
            raise misfit(call, self.schema(), str(error)) from None


def ignored_arguments(unknown: Sequence[str]) -> list[str]:
    """A line for the model that names the arguments its tool does not know; none if it knew all of them."""
    return [f"(ignored unknown arguments: {one_line(', '.join(unknown), 300)})"] if unknown else []


def verb_and_path(verb: str, arguments: Mapping[str, Any]) -> str:
    """The title of a call about one file, as far as the arguments have arrived."""
    path = arguments.get("path")
    return f"{verb} {path}" if isinstance(path, str) and path else verb
