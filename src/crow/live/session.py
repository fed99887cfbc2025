"""A session that lives in this process: the session, the clients that watch it, and what it has of this machine."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from crow.commands.terminal import LocalCommands
from crow.events import Sent, TurnIds
from crow.files.base import Workspace
from crow.live.face import Face
from crow.live.faces import Faces
from crow.session.running_turn import RunningTurn
from crow.session.session import Session


class LiveSession(msgspec.Struct, frozen=True, eq=False):
    session: Session
    faces: Faces
    workspace: Workspace
    """This machine's files."""
    commands: LocalCommands
    """Commands in terminals of Crow's own."""
    environ: Mapping[str, str]
    withheld: Sequence[str]
    """The variables of our environment that commands must not see."""
    uses_client_terminal: bool

    @property
    def id(self) -> str:
        return self.session.id

    @property
    def roots(self) -> Sequence[str]:
        return self.workspace.roots

    @property
    def is_at_work(self) -> bool:
        """Whether a turn runs, something is asked, or a command runs in the background."""
        running = any(command.exit is None for command in self.session.terminals.background())
        return running or self.faces.state != "idle"

    def welcome(self, face: Face) -> None:
        """The client of a face knows of the session now: it is told what else there is to know."""
        self.session.begin()
        self.faces.welcome(face)

    def start_turn(self, sent: Sequence[Sent], face: Face) -> RunningTurn:
        """As in `Session`; the face leads from now on."""
        turn = self.session.start_turn(sent, face.name)
        self.faces.prompted(face, TurnIds.of_prompt(turn.id))
        return turn

    def steer(self, sent: Sequence[Sent], face: Face) -> Awaitable[str]:
        """As in `Session`. All faces but this one are shown the message where the model gets it."""
        return self.session.steer(sent, face.known.messages.add)


class Place(NamedTuple):
    """A connection's place in a live session."""

    live: LiveSession
    face: Face
