"""Plain data that policy, turn and client share: a `Deed` (what an action is about to do), permission questions, forms,
and the `Person` who is asked.
"""

from typing import Any, Literal, Protocol

import msgspec

from crow.results import DisplayBlock, Location, ToolKind


class Deed(msgspec.Struct, frozen=True):
    """An action in the terms that rules speak of: the policy judges this, never a tool's code."""

    tool: str
    kind: ToolKind
    reads: tuple[str, ...] = ()
    """Resolved, absolute paths."""
    read_as: tuple[str, ...] = ()
    """What these were called, where links in the names led elsewhere: a secret stays one if its name is a link."""
    writes: tuple[str, ...] = ()
    """Paths like `reads`: what would be created, changed or removed."""
    command: str = ""
    """A shell line that would be run; the policy parses it."""
    cwd: str = ""
    """Where it would be run: resolved, absolute."""
    beside: tuple[str, ...] = ()
    """The shell lines of the session that still run, in the background for example."""
    host: str = ""
    """A host that would be asked over the network."""
    digest: str = ""
    """Of what the tool says of itself and who says it, where that may change: another digest is another tool."""
    from_text: bool = False
    """The model wrote the call as text, which may be a quotation of what it read."""


class PermissionQuestion(msgspec.Struct, frozen=True):
    """Everything the person needs to decide: what would be done, shown as it will be done, and why they are asked."""

    call_id: str
    kind: ToolKind
    title: str
    reason: str
    """Why they are asked; empty if what would be done is reason enough."""
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()
    yes: str = "Allow once"
    """The words for a plain yes."""
    session_scope: str = ""
    """What "allow for this session" would cover, in words; empty if that is not on offer."""
    project_scope: str = ""
    """The same for "allow in this project", which outlives the session."""
    takes_reason: bool = False
    """Somebody wants to know why, if it is rejected."""
    is_divisible: bool = False
    """The changes that it shows can be accepted one by one."""


class PermissionAnswer(msgspec.Struct, frozen=True):
    choice: Literal["once", "session", "project", "reject", "cancelled"]
    """`cancelled`: the person ended the turn instead of answering."""
    reason: str = ""
    """Why not, for the model."""
    words: str = ""
    """What the person themselves gave as the reason."""
    is_clear: bool = True
    """Somebody has chosen: nothing went wrong, and the question was not merely dismissed."""
    by: str = ""
    """The name of the face at which it was given."""
    accepted: tuple[int, ...] | None = None
    """The changes that were accepted, counted from 0 over all diffs of the question; None if it is all of them."""
    opens_input: bool = False
    """The person wants to type into the command."""

    @property
    def allowed(self) -> bool:
        return self.choice in ("once", "session", "project")


class Question(msgspec.Struct, frozen=True):
    """Something the model wants to know, about one of its calls."""

    call_id: str
    text: str
    options: tuple[str, ...] = ()


class Answer(msgspec.Struct, frozen=True):
    text: str
    """What was chosen or written; empty if the person declined."""
    cancelled: bool = False
    """The person ended the turn instead of answering."""
    dismissed: bool = False
    """The dialog was closed, which is no answer while others can be asked."""


class Form(msgspec.Struct, frozen=True):
    """Several things that somebody wants to know at once, such as a server."""

    call_id: str
    """The call in which it is asked; empty if it is in none."""
    text: str
    schema: dict[str, Any]
    """JSON schema of an object with plain fields."""
    title: str = ""
    """The call's own, and its kind: a plain question is shown in their place, and they come back after it."""
    kind: ToolKind = ToolKind.OTHER


class Filled(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None

    @property
    def is_clear(self) -> bool:
        return self.action != "cancel"


class Link(msgspec.Struct, frozen=True):
    """An address that the person is to open, such as a page to log in on."""

    call_id: str
    text: str
    url: str
    id: str
    """Unique among those that are open."""


class Person(Protocol):
    """Whoever can be asked. Nothing but a clear yes is a yes: a broken answer or an absent person is a rejection.

    Whoever is shown no more than questions inherits from this: what they cannot do is answered here.
    """

    @property
    def has_dialogs(self) -> bool:
        """Whether a question is put to them in a dialog of its own, and not in the chat."""
        return False

    @property
    def can_visit(self) -> bool:
        """Whether they can be shown an address to open."""
        return False

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer: ...

    async def explain(self, question: PermissionQuestion) -> str:
        """Why they rejected it, in their own words; empty if they cannot be asked, or do not say."""
        return ""

    async def ask(self, question: Question) -> Answer | None:
        """Their answer; None if they cannot be asked in a dialog, so that the question has to go into the chat."""
        ...

    async def choose(self, question: Question) -> Answer | None:
        """One of the question's options, for what Crow itself has to know; None if they cannot be shown a choice."""
        return await self.ask(question)

    async def fill_in(self, form: Form) -> Filled | None:
        """None if they cannot be shown a form."""
        return None

    async def visit(self, link: Link) -> bool:
        """Whether they agreed to open the address; what they do there is another matter."""
        return False

    def visited(self, link_id: str) -> None:
        """What was to be done there is done."""
