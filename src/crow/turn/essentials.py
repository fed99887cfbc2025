"""What a summary must not lose, whoever writes it: the person's own words, and which files were changed.

Kept turn by turn beside the model's history, so that it outlives any number of compactions.
"""

import msgspec

from crow import events
from crow.cutting import without_middle
from crow.messages import Text

LONGEST_PROMPT = 20_000
"""Characters that are kept of one prompt: its beginning and its end."""


class TurnEssentials(msgspec.Struct):
    turn_id: str
    prompt: str = ""
    files: dict[str, None] = {}
    """Paths, in the order of their first change."""


class Essentials:
    def __init__(self) -> None:
        self._turns: list[TurnEssentials] = []

    def apply(self, event: events.TurnStarted | events.UserSaid | events.FileWritten) -> None:
        match event:
            case events.TurnStarted():
                self._turns.append(TurnEssentials(event.turn_id))
            case events.UserSaid():
                turn = self._current()
                turn.prompt = without_middle(f"{turn.prompt}\n{_own_words(event)}".strip(), LONGEST_PROMPT)
            case events.FileWritten():
                self._current().files[event.path] = None

    def forget(self, turn_id: str) -> None:
        self._turns = [turn for turn in self._turns if turn.turn_id != turn_id]

    def forget_all(self) -> None:
        self._turns = []

    @property
    def prompts(self) -> list[str]:
        """Oldest first."""
        return [turn.prompt for turn in self._turns if turn.prompt]

    @property
    def files(self) -> list[str]:
        """What the model has changed; what a command of the person's own wrote is not among it."""
        return list(dict.fromkeys(path for turn in self._turns if turn.prompt for path in turn.files))

    def _current(self) -> TurnEssentials:
        if not self._turns:
            self._turns.append(TurnEssentials(""))
        return self._turns[-1]


def _own_words(said: events.UserSaid) -> str:
    """What was typed, without what was attached; if something longer was meant by it, that."""
    texts = [part.text for part in said.parts if isinstance(part, Text)]
    typed = {item.text for item in said.sent if isinstance(item, events.SentText)}
    return "\n".join([text for text in texts if text in typed] or texts)
