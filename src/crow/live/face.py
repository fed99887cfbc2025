"""A face: one client's view of a live session (its sink, files, terminals and person), what that client knows
already, and whether it is trusted.

A command that the person let run once can connect like any other client. So who comes after a command has run only
watches, until its person has typed a code there that is shown to those who are trusted already.
"""

import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from crow.actions import Person
from crow.commands.base import Commands
from crow.events import Event, Notice, SessionOption
from crow.files.base import Workspace
from crow.session.journal import Sink
from crow.session.replay import PastItem
from crow.store.base import SessionEntry

CODE_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that are easily mistaken for others."""
CODE_LENGTH = 8
MOST_TRIES = 5
"""Wrong codes, after which no code is right."""


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

    def know(self, options: Iterable[SessionOption]) -> None:
        """An answer tells the client what is chosen in the session."""
        ...

    def send_title(self, entry: SessionEntry) -> None:
        """The title of a session that was loaded, once the client knows of it."""
        ...

    def send_usage(self) -> None:
        """How full the window is, and what the session has cost."""
        ...

    def tell_at_once(self, notice: Notice) -> None:
        """Shows a notice now, also to a client that has to take it for a message outside of any turn."""
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
    code: str = ""
    """What its person has to type before it is more than a spectator; empty if it is trusted."""
    wrong_codes: int = 0

    @property
    def name(self) -> str:
        return self.known.name

    @property
    def is_trusted(self) -> bool:
        """It may take part: it is asked, its files and terminal are used, and what it wants is done."""
        return not self.code

    def distrust(self) -> None:
        code = "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))
        self.code = f"{code[:4]}-{code[4:]}"

    def try_code(self, text: str) -> bool:
        """Whether a text is the code, however it is written: the face is trusted from then on."""
        written = "".join(character for character in text.upper() if character.isalnum())
        if len(written) != CODE_LENGTH or self.wrong_codes >= MOST_TRIES:
            return False
        if hmac.compare_digest(written.encode(), self.code.replace("-", "").encode()):
            self.code = ""
            return True
        self.wrong_codes += 1
        return False
