"""Calls a person who has not typed for a while, by a bell or a desktop notification, when they are asked or a turn has
ended.
"""

from collections.abc import Callable, Mapping

from crow.config.settings import ChatSettings
from crow.visible import one_line

LONGEST = 200


def attention_sequence(settings: ChatSettings, words: str, environment: Mapping[str, str]) -> str:
    """What is written to the terminal: a bell, or a notification that the terminal shows on the desktop."""
    if settings.notify == "off":
        return ""
    if settings.notify == "bell":
        return "\a"
    text = one_line(words, LONGEST).replace(";", ",")
    # Two ways are common: urxvt's, which foot and the terminals of GNOME know too, and iTerm's, which most others know.
    is_urxvt = environment.get("VTE_VERSION") or environment.get("TERM", "").startswith(("rxvt", "foot"))
    sequence = f"\x1b]777;notify;Crow;{text}\x1b\\" if is_urxvt else f"\x1b]9;{text}\x1b\\"
    if environment.get("TMUX"):  # passed on to the terminal that tmux runs in, if it is allowed to
        escaped = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{escaped}\x1b\\\a"
    return sequence


class Attention:
    """Calls the person, if they have not touched the keyboard for a while."""

    def __init__(
        self, write: Callable[[str], None], environment: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self.settings = ChatSettings()
        self._write = write
        self._environment = environment
        self._clock = clock
        self._last_key = clock()

    def key_pressed(self) -> None:
        self._last_key = self._clock()

    def call(self, words: str) -> None:
        if self._clock() - self._last_key >= self.settings.notify_after:
            self._write(attention_sequence(self.settings, words, self._environment))
