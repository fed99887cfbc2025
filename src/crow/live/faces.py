"""All faces of a session: who is there, who leads, joining and leaving, and the state that each is told."""

import hmac
import os
import secrets
from collections.abc import Callable, Sequence
from typing import Literal

from crow.commands.base import Commands
from crow.errors import NotTrusted, StorageFailed
from crow.events import (
    Event,
    Notice,
    StateChanged,
    SteeringLeftOver,
    TurnEnded,
    TurnStarted,
    milliseconds_now,
)
from crow.files.base import Workspace
from crow.live.commands import FacesCommands
from crow.live.face import MOST_TRIES, Face
from crow.live.feed import Feed, SessionStream
from crow.live.files import FacesWorkspace
from crow.live.questions import Questions
from crow.session.recovery import CUT_OFF
from crow.session.replay import PastCall, PastItem, replayed
from crow.session.running_turn import Turns
from crow.visible import code

LONGEST_NAME = 60
"""Characters of a client's name beside its code: a command that connects can give itself any."""


class Faces:
    """A session is given `workspace`, `commands` and `person`, and never knows how many faces stand behind them.

    `workspace` and `commands` are this machine's, for whatever no client offers. A session with a `question_timeout`
    goes on without any face: its questions wait for so many seconds until one comes, and none ever holds it up.
    """

    def __init__(self, workspace: Workspace, commands: Commands, question_timeout: float = 0.0) -> None:
        self._goes_on_alone = question_timeout > 0
        self._feeds: dict[Face, Feed] = {}
        self._joining: set[Face] = set()
        """The faces that are still shown what was."""
        self._by_prompt: list[Face] = []
        """The one with the newest prompt last."""
        self._stream: SessionStream | None = None
        self._turns = Turns()
        self.workspace = FacesWorkspace(workspace, self._editors)
        self.commands = FacesCommands(commands, lambda: self.present, self._lead, self._append)
        self.person = Questions(self._asked, self.tell_state, question_timeout)
        self.on_change: Callable[[], None] = lambda: None
        """Called after each change of what the session does."""
        self.show_at_home: Callable[[str], str] = lambda _: ""
        """Shows the person a line where this process runs, and says where that is; empty if there is no such place."""
        self._home = ""
        """Where that was, when it last was done."""
        self.key = secrets.token_hex(16)
        """What trusted clients know, to be trusted when they come back, or by the next owner: see `proof_for`."""
        self._known_state: str = "idle"
        self.since = milliseconds_now()
        """When the state began that the session is in."""

    def begin(self, stream: SessionStream, turns: Turns) -> None:
        """The session is put together: from now on faces can be added."""
        self._stream = stream
        self._turns = turns

    @property
    def present(self) -> Sequence[Face]:
        return list(self._feeds)

    @property
    def state(self) -> Literal["running", "asks", "idle"]:
        if self.person.is_open:
            return "asks"
        return "idle" if self._turns.begun is None else "running"

    @property
    def begun_at(self) -> str:
        """The name of the face at which the turn that runs was begun; empty if none runs."""
        return self._turns.begun.begun_at if self._turns.begun is not None else ""

    # --- coming and going

    def add(self, face: Face) -> None:
        """A face that is there from the beginning. Nobody is told of it before `welcome`."""
        self._enter(face).begin()

    def enter(self, face: Face) -> None:
        """A face that comes later. It is told of nothing before `show`."""
        self._enter(face)
        self._joining.add(face)

    async def show(self, face: Face, *, replay: bool, past: Sequence[Event] | None = None) -> None:
        """Shows a face that has entered what was, then what comes. `replay`: all of it, else what is going on.

        `past` is what was, if it is known; else it is read. Whatever is asked is put to the face by `welcome`, once the
        client knows of the session. If this fails or is cancelled, the face has left.
        """
        feed = self._feeds[face]

        async def show(past: Sequence[Event]) -> None:
            face.sink.remember(past)
            items: Sequence[PastItem] = list(replayed(past))
            if not replay:
                items = [item for item in items if isinstance(item, PastCall) and item.result is None]
            await face.sink.replay(items, in_turn=_turn_is_open(past))
            if not replay:
                for event in _cut_off_messages(past):
                    face.sink.take(event)

        try:
            await feed.join(show, past)
        except StorageFailed as failed:
            # A session that no disk takes can be joined all the same.
            face.sink.take(Notice("warning", f"What happened in this session before is not shown. {failed}"))
            feed.begin()
        except BaseException:
            self.leave(face)
            raise

    def welcome(self, face: Face) -> None:
        """The client of a face knows of the session now: it is asked what others are asked, and the others of it."""
        if face not in self._feeds:
            return
        if face in self._joining:
            self._joining.discard(face)
            if self._stream is not None and (commands := self._stream.journal.passing.commands) is not None:
                face.sink.take(commands)
            self.commands.face_joined()
            if face in self._asked():
                self.person.put_open_to(face)
            self._show_codes(face)
        self.tell_state()

    def leave(self, face: Face) -> None:
        feed = self._feeds.pop(face, None)
        if feed is None:
            return
        feed.close()
        self._joining.discard(face)
        if face in self._by_prompt:
            self._by_prompt.remove(face)
        face.known.terminals.clear()
        self.tell_state()

    def _enter(self, face: Face) -> Feed:
        if self._stream is None:
            raise RuntimeError("the session is not put together yet")
        face.known.name = self._unique(face.known.name)
        feed = self._feeds[face] = Feed(face.sink, self._stream, self._goes_on_without)
        return feed

    def _goes_on_without(self) -> bool:
        """Whether nobody needs to wait for a face that does not keep up."""
        return self._goes_on_alone or len(self._feeds) > 1

    def _unique(self, name: str) -> str:
        taken = {face.name for face in self._feeds}
        if name not in taken:
            return name
        return next(other for number in range(2, 1000) if (other := f"{name} ({number})") not in taken)

    # --- who is trusted

    def is_proved(self, proof: str) -> bool:
        """Whether who sends this knows the session's key."""
        return hmac.compare_digest(proof.encode("utf-8", "replace"), proof_for(os.getpid(), self.key).encode())

    def trust(self, face: Face, text: str) -> None:
        """A spectator's person has typed this there; NotTrusted if it is not the code."""
        if not face.try_code(text):
            raise NotTrusted(self._how_to_be_trusted(face))
        face.sink.tell_at_once(Notice("info", "From now on you take part in this session."))
        self.tell_others(face, Notice("info", f"{face.name} takes part in this session from now on."))
        if face in self._asked():
            self.person.put_open_to(face)
        self._show_codes(face)

    def check_trusted(self, face: Face) -> None:
        """NotTrusted if the face may watch only."""
        if not face.is_trusted:
            raise NotTrusted(self._how_to_be_trusted(face))

    def _how_to_be_trusted(self, face: Face) -> str:
        if face.wrong_codes >= MOST_TRIES:
            return "Too many wrong codes were sent. Load the session again for another one."
        return f"You only watch this session. To take part, send the code that is shown in {self._trusted_places()}."

    def _trusted_places(self) -> str:
        names = [face.name for face in self._feeds if face.is_trusted]
        return " and ".join(filter(None, (*names, self._home))) or "the first client that joins after you"

    def _show_codes(self, newcomer: Face) -> None:
        """Shows a newcomer's code to those who are trusted; a trusted newcomer, the codes of all who watch."""
        if newcomer.is_trusted:
            for face in self._feeds:
                if not face.is_trusted:
                    newcomer.sink.tell_at_once(Notice("warning", _code_of(face)))
            return
        for face in self._feeds:
            if face.is_trusted:
                face.sink.tell_at_once(Notice("warning", _code_of(newcomer)))
        self._home = self.show_at_home(_code_of(newcomer))
        newcomer.sink.tell_at_once(Notice("warning", self._how_to_be_trusted(newcomer)))

    # --- taking part

    def tell_others(self, face: Face, notice: Notice) -> None:
        """Tells all but this face, whose client knows."""
        for other in self._feeds:
            if other is not face:
                other.sink.take(notice)

    def prompted(self, face: Face, message_id: str) -> None:
        """A prompt has come from the face, which leads from now on."""
        face.known.messages.add(message_id)
        if face in self._by_prompt:
            self._by_prompt.remove(face)
        self._by_prompt.append(face)

    def _lead(self) -> Face | None:
        return self._by_prompt[-1] if self._by_prompt else None

    def _editors(self) -> Sequence[Face]:
        """The faces that offer files: the one with the newest prompt first, then those that came first."""
        editors = [face for face in self._feeds if face.files is not None and face.is_trusted]
        return sorted(editors, key=self._age_of_prompt)

    def _age_of_prompt(self, face: Face) -> int:
        return len(self._by_prompt) - self._by_prompt.index(face) if face in self._by_prompt else len(self._feeds) + 1

    def _asked(self) -> Sequence[Face]:
        """The faces that can be asked: the clients of those that are still joining do not know the session. Those at
        which nobody sits are asked if there are no others."""
        present = [face for face in self._feeds if face not in self._joining and face.is_trusted]
        return [face for face in present if face.is_attended] or present

    def tell_state(self, ended: TurnEnded | None = None, left_open: str = "") -> None:
        """Tells every face what the session does now, and, if a turn has just ended, how and what it left open."""
        turn = self._turns.begun
        turn_id, by = (turn.id, turn.begun_at) if turn is not None else ("", "")
        if self.state != self._known_state:
            self._known_state, self.since = self.state, milliseconds_now()
        names = tuple(face.name for face in self._feeds)
        self._append(StateChanged(self.state, turn_id, by, names, ended, left_open))
        self.changed()

    def changed(self) -> None:
        """What a list of sessions shows of this one has changed."""
        self.on_change()

    def _append(self, event: Event) -> None:
        if self._stream is not None:
            self._stream.journal.append(event)


def proof_for(process: int, key: str) -> str:
    """What tells a process that its client knows the key, and gives the key to nobody: who claims to be the owner of a
    session may be a command, and must not be able to show to the next owner what it is shown."""
    return hmac.new(key.encode(), str(process).encode(), "sha256").hexdigest()


def _code_of(face: Face) -> str:
    """Its name is what it calls itself, and no part of the sentence."""
    name = code(face.name, LONGEST_NAME)
    return f"{name} watches this session. If that is you, type this code there: {face.code}"


def _cut_off_messages(past: Sequence[Event]) -> Sequence[SteeringLeftOver]:
    """The messages into the last turn that the model did not get because its process ended: untold so far."""
    began = next((at for at in range(len(past) - 1, -1, -1) if isinstance(past[at], TurnStarted)), len(past))
    last_turn = past[began:]
    if not any(isinstance(event, TurnEnded) and event.error == CUT_OFF for event in last_turn):
        return []
    return [event for event in last_turn if isinstance(event, SteeringLeftOver)]


def _turn_is_open(past: Sequence[Event]) -> bool:
    last = next((event for event in reversed(past) if isinstance(event, TurnStarted | TurnEnded)), None)
    return isinstance(last, TurnStarted)
