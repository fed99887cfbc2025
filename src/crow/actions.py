"""What an action is about to do, and asking the person about it: plain data that policy, turn and editor share."""

from typing import Literal, Protocol

import msgspec

from crow.results import DisplayBlock, Location, ToolKind


class Deed(msgspec.Struct, frozen=True):
    """An action in the terms that rules speak of: the policy judges this, never a tool's code."""

    tool: str
    kind: ToolKind
    reads: tuple[str, ...] = ()
    """Resolved, absolute paths."""


class PermissionQuestion(msgspec.Struct, frozen=True):
    """Everything the person needs to decide: what would be done, shown as it will be done, and why they are asked."""

    call_id: str
    kind: ToolKind
    title: str
    reason: str
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()
    session_scope: str = ""
    """What "allow for this session" would cover, in words; empty if that is not on offer."""


class PermissionAnswer(msgspec.Struct, frozen=True):
    choice: Literal["once", "session", "reject", "cancelled"]
    """`cancelled`: the person ended the turn instead of answering."""
    reason: str = ""

    @property
    def allowed(self) -> bool:
        return self.choice in ("once", "session")


class Person(Protocol):
    """Whoever can be asked. Nothing but a clear yes is a yes: a broken answer or an absent person is a rejection."""

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer: ...
