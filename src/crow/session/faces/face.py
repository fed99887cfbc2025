"""A face: one client's view of a live session (its sink, files, terminals and person), and what that client knows
already.
"""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from crow.actions import Person
from crow.events import Event
from crow.session.journal import Sink
from crow.session.replay import PastItem
from crow.workspace.base import Commands, Workspace


class ClientKnowledge(msgspec.Struct):
    """What a client knows by itself and need not be told: what it sent, what it runs, what was answered there."""

    name: str
    """The client's, for people; no two faces of a session have the same."""
    messages: set[str] = msgspec.field(default_factory=set[str])
    """The ids of the person's messages that came from here."""
    terminals: set[str] = msgspec.field(default_factory=set[str])
    """The ids of terminals that it runs. Another client's ids mean nothing to it."""
    columns: int = 0
    """How wide it shows the output of commands; 0 if it does not say."""
    can_type: bool = False
    """A person there can type into a command."""


class FaceSink(Sink, Protocol):
    """The sink through which a client learns of a session."""

    @property
    def unsent(self) -> int:
        """Bytes that the client has not read yet."""
        ...

    def remember(self, past: Iterable[Event]) -> None:
        """Counts what the session has cost before the sink was subscribed."""
        ...

    async def replay(self, items: Iterable[PastItem], *, in_turn: bool = False) -> None:
        """Shows what happened, at the client's pace. `in_turn`: a turn runs, whose open calls go on from there."""
        ...

    def close(self) -> None:
        """Nothing more is sent, nor what was held back for a moment."""
        ...


class Face(msgspec.Struct, eq=False):
    """`files` and `commands` are None where the client offers none. Nobody sits at one that is not `is_attended`: it
    answers by itself, and only where nobody else can."""

    known: ClientKnowledge
    sink: FaceSink
    person: Person
    files: Workspace | None = None
    commands: Commands | None = None
    is_attended: bool = True
    is_gone: Callable[[], bool] = lambda: False
    """Whether its client is no longer connected, though the face may not have left yet."""

    @property
    def name(self) -> str:
        return self.known.name
