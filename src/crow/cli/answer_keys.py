"""Decides which key that is pressed at a permission question is the answer, for `crow chat` and `crow run`.

A person may be typing when a question appears, or may begin to type a message at it. So a key answers only if it
stands alone: some time without any key before it, and none behind it. An answer that lasts (for the session, for the
project) needs Enter too.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crow.acp.wire import PermissionOption
from crow.visible import one_line

LETTERS = {"allow_once": "y", "allow_always": "ap", "reject_once": "n", "reject_always": "d"}
"""The keys of each kind of option: `a` for what lasts as long as the session, `p` for the project."""
LASTING = ("allow_always", "reject_always")
"""The kinds of options that answer later questions too."""
QUIET = 0.7
"""Seconds without a key before a question takes one: what is typed when it appears was not meant for it."""
ALONE = 0.6
"""Seconds in which no other key follows the one that is an answer: a word that begins with it is none, however slowly
it is typed. Enter says at once that it is the answer."""
APART = 0.1
"""Seconds between a key and the Enter that confirms it: what comes at once was pasted."""


TYPING = "a moment: you were typing"


class Choice(NamedTuple):
    key: str
    option: PermissionOption

    @property
    def is_lasting(self) -> bool:
        return self.option.kind in LASTING

    @property
    def how_to_confirm(self) -> str:
        return f"Enter: {one_line(self.option.name)} · Backspace: no"


def choices_of(options: Sequence[PermissionOption]) -> list[Choice]:
    """Each option with its key: a letter that says what it does; numbers for all where letters do not suffice."""
    keys: list[str] = []
    for option in options:
        free = [letter for letter in LETTERS.get(option.kind, "") if letter not in keys]
        keys.append(free[0] if free else "")
    if not all(keys):
        keys = [str(number) for number in range(1, len(options) + 1)]
    return [Choice(key, option) for key, option in zip(keys, options, strict=True)]


def choice_for(key: str, choices: Sequence[Choice]) -> Choice | None:
    """What a key stands for: its letter, or its number in the list."""
    for number, choice in enumerate(choices, start=1):
        if key.lower() in (choice.key, str(number)):
            return choice
    return None


class AnswerKeys:
    """The keys that are pressed while a question is open.

    `changed` is told when it takes keys, when it no longer does, and when one was pressed. While `has_text` says that
    the person has begun a message, no key is an answer. Where nothing is `at_stake`, each key answers at once.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        has_text: Callable[[], bool] = lambda: False,
        *,
        at_stake: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.choices: Sequence[Choice] = ()
        """Of the question that is open; nothing if none is."""
        self.takes_keys = False
        """Whether the next key may be the answer."""
        self.pressed: Choice | None = None
        """The choice whose key was pressed, while another key may still follow."""
        self._changed = changed
        self._has_text = has_text
        self._at_stake = at_stake
        self._clock = clock
        self._pressed_as = ""
        self._pressed_at = 0.0
        self._last_key = -QUIET
        self._answer: asyncio.Future[Choice | None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def choose(self, choices: Sequence[Choice]) -> Choice | None:
        """Waits until one of these has been chosen; None if nobody can choose any more."""
        self.choices = choices
        self._answer = asyncio.get_running_loop().create_future()
        self.open_when_quiet()
        try:
            return await self._answer
        finally:
            self.choices, self._answer = (), None
            self.close()

    def key_pressed(self) -> None:
        """Any key, wherever it goes: it may have emptied the input line."""
        self._last_key = self._clock()
        if self._answer is not None and self.pressed is None:
            self._wait(QUIET, self.open_when_quiet)

    def press(self, keys: str) -> str:
        """Keys that may be the answer, if it is one. What turns out to be typing is returned."""
        choice = choice_for(keys, self.choices) if self.takes_keys and self.pressed is None else None
        if choice is None:
            return self.type(keys)
        self.pressed, self._pressed_as, self._pressed_at = choice, keys, self._clock()
        if not self._at_stake:
            self._settle()
        elif not choice.is_lasting:
            self._wait(ALONE, self._settle)
        self._changed()
        return ""

    def type(self, text: str) -> str:
        """What is no answer, such as what was pasted. With what was pressed before it, it is typing."""
        typed = self._pressed_as + text
        self._release()
        self.open_when_quiet()
        return typed

    def confirm(self) -> bool:
        """Enter was pressed. False if it is not about an answer."""
        if self.pressed is None:
            return False
        if self._clock() - self._pressed_at >= APART:
            self._settle()
        return True

    def take_back(self) -> bool:
        """The key that was pressed last is no answer. False if there is none."""
        if self.pressed is None:
            return False
        self._release()
        self.open_when_quiet()
        return True

    def open_when_quiet(self) -> None:
        """Takes keys once none was pressed for a while, and as long as no message is begun."""
        if self._answer is None:
            return
        left = QUIET - (self._clock() - self._last_key) if self._at_stake else 0
        self.takes_keys = left <= 0 and not self._has_text()
        if left > 0:
            self._wait(left, self.open_when_quiet)
        self._changed()

    def close(self) -> None:
        """Takes no keys."""
        self.takes_keys = False
        self._release()
        self._changed()

    def _release(self) -> None:
        self.pressed, self._pressed_as = None, ""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def answer(self, choice: Choice | None) -> None:
        """Ends the wait for a choice."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(choice)

    def _settle(self) -> None:
        if self.pressed is not None:
            self.answer(self.pressed)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)
