"""What can be chosen for a session: its mode, its model, how long the model thinks. Stored with the session."""

from typing import cast, get_args

from crow.errors import CrowError
from crow.events import Choice, Event, OptionChosen, OptionsChanged, SessionOption
from crow.policy.base import Mode
from crow.session.journal import SessionJournal
from crow.turn.conversation import Conversation

MODES = (
    Choice("ask", "Ask", "Asks before it changes a file or runs a command."),
    Choice("edit", "Edit", "Changes files of the workspace by itself; asks before it runs a command."),
    Choice("plan", "Plan", "Looks and plans; changes nothing."),
    Choice("auto", "Auto", "Changes files and runs any command without asking: it trusts the model with this machine."),
)


class OptionUnknown(CrowError):
    """There is no such option, or it has no such value."""


class Options:
    """Changed during a turn, they apply from the next request to the model on."""

    def __init__(self, conversation: Conversation, journal: SessionJournal) -> None:
        self._conversation = conversation
        self._journal = journal

    def all(self) -> tuple[SessionOption, ...]:
        mode = self._conversation.policy.mode
        return (SessionOption("mode", "Mode", "What Crow may do without asking.", mode, MODES),)

    async def choose(self, option_id: str, value: str) -> None:
        """OptionUnknown if there is no such option or value."""
        if option_id != "mode" or value not in get_args(Mode):
            raise OptionUnknown(f"There is no option {option_id!r} with the value {value!r}.")
        self._conversation.policy.mode = cast("Mode", value)
        await self._journal.record(OptionChosen(option_id, value))
        self._journal.append(OptionsChanged(self.all()))

    def restore(self, past: list[Event]) -> None:
        """As they were when the session was last used: what was chosen last of each."""
        for event in past:
            if isinstance(event, OptionChosen) and event.option == "mode" and event.value in get_args(Mode):
                self._conversation.policy.mode = cast("Mode", event.value)
