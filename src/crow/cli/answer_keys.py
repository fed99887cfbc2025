"""Answering a permission request with one key, in `crow chat` and `crow run`: which key that is pressed is the answer.

A person may be typing when a request appears, or may begin to type a message at it. So a key answers only if it
stands alone: some time without any key before it, and none behind it. An answer that lasts (for the session, for the
project) needs Enter too.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crow.acp.wire import PermissionOption
from crow.visible import one_line

LETTERS = {"allow_once": "y", "allow_always": "ap", "reject_once": "n", "reject_always": "d"}
"""The keys of each kind of option: `a` for what lasts as long as the session, `p` for the project."""
QUIET = 0.7
"""Seconds without a key before a question takes one: what is typed when it appears was not meant for it."""
ALONE = 0.6
"""Seconds in which no other key follows the one that is an answer: a word that begins with it is none, however slowly
it is typed. Enter says at once that it is the answer."""
APART = 0.1
"""Seconds between a key and the Enter that confirms it: what comes at once was pasted."""
TYPING = "Keys ignored while you were typing"
"""The hint while a question takes no keys yet."""


class Choice(NamedTuple):
    key: str
    option: PermissionOption

    @property
    def is_lasting(self) -> bool:
        """Whether it answers later questions too."""
        return self.option.kind in ("allow_always", "reject_always")

    @property
    def how_to_confirm(self) -> str:
        return f"Enter: {one_line(self.option.name)} · Backspace: cancel"


class Answer(NamedTuple):
    option: PermissionOption | None
    """The one that was chosen, if one was."""
    words: str
    """What is written as the answer."""
    reason: str = ""
    """Why the person rejects it, in their words."""


Invite = Callable[[str], None]
"""Shows that an answer can be given now, with a hint on how, which may be empty."""


class Answerer:
    """Who answers a permission request."""

    def listening(self) -> contextlib.AbstractContextManager[None]:
        """Begins before the question is shown and lasts until it is answered."""
        return contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        raise NotImplementedError


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


class Nobody(Answerer):
    """Rejects what would have been asked, and counts it in `rejected`."""

    def __init__(self) -> None:
        self.rejected = 0

    async def choose(self, choices: Sequence[Choice], invite: Invite = lambda _: None) -> Answer:
        self.rejected += 1
        return Answer(rejection(choices), "rejected: no terminal to ask in")


def rejection(choices: Sequence[Choice]) -> PermissionOption | None:
    """The gentlest way to say no; None if there is only yes to choose from."""
    options = [choice.option for choice in choices]
    for kind in ("reject_once", "reject_always"):
        for option in options:
            if option.kind == kind:
                return option
    return None


class AnswerKeys(Answerer):
    """The keys that are pressed while a question is open.

    `changed` is called when it takes keys, when it no longer does, and when one was pressed. `insert` gets what turns
    out to be typing. While `has_text` says that the person has begun a message, no key is an answer. Where nothing is
    `at_stake`, each key answers at once.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        insert: Callable[[str], None] = lambda _: None,
        has_text: Callable[[], bool] = lambda: False,
        *,
        at_stake: bool = True,
    ) -> None:
        self.choices: Sequence[Choice] = ()
        """Of the question that is open; nothing if none is."""
        self.takes_keys = False
        """Whether the next key may be the answer."""
        self.pressed: Choice | None = None
        """The choice whose key was pressed, while another key may still follow."""
        self.takes_reason = False
        """Whether the question that is asked next, or now, can be rejected with a reason."""
        self.rejecting: Choice | None = None
        """The rejection for which a reason is being typed."""
        self._changed = changed
        self._insert = insert
        self._has_text = has_text
        self._at_stake = at_stake
        self._pressed_as = ""
        self._pressed_at = 0.0
        self._last_key = time.monotonic() - QUIET
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def choose(self, choices: Sequence[Choice], invite: Invite = lambda _: None) -> Answer:
        """Waits until one of these has been chosen; an answer without an option if nobody can choose any more."""
        self.choices = choices
        self._answer = asyncio.get_running_loop().create_future()
        self.open_when_quiet()
        try:
            return await self._answer
        finally:
            self.choices, self._answer, self.rejecting, self.takes_keys = (), None, None, False
            self._release()
            self._changed()

    @property
    def rejection(self) -> Choice | None:
        """The choice that can have a reason."""
        rejections = (choice for choice in self.choices if choice.option.kind == "reject_once")
        return next(rejections, None) if self.takes_reason else None

    def key_pressed(self) -> None:
        """Any key, wherever it goes: it may have emptied the input line."""
        self._last_key = time.monotonic()
        if self._answer is not None and self.pressed is None:
            self._wait(QUIET, self.open_when_quiet)

    def press(self, keys: str) -> None:
        """Keys that may be the answer. Arrows and the like are none, and say nothing here."""
        if not keys.isprintable():
            return
        choice = choice_for(keys, self.choices) if self.takes_keys and self.pressed is None else None
        if choice is None:
            self.type(keys)
            return
        self.pressed, self._pressed_as, self._pressed_at = choice, keys, time.monotonic()
        if not self._at_stake:
            self._settle()
        elif not choice.is_lasting:
            self._wait(ALONE, self._settle)
        self._changed()

    def type(self, text: str) -> None:
        """What is no answer, such as what was pasted. With what was pressed before it, it is typing."""
        typed = self._pressed_as + text
        self._release()
        self.open_when_quiet()
        self._insert(typed)

    def confirm(self) -> bool:
        """Enter was pressed. False if it is not about an answer."""
        if self.pressed is None:
            return False
        if time.monotonic() - self._pressed_at >= APART:
            self._settle()
        return True

    def take_back(self) -> bool:
        """Whatever was begun of an answer is none. False if nothing was."""
        if self.pressed is None and self.rejecting is None:
            return False
        self.rejecting = None
        self._release()
        self.open_when_quiet()
        return True

    def begin_reason(self) -> None:
        """From now on the reason of a rejection is typed, if the question takes one."""
        if self.pressed is None and self.rejection is not None:
            self.rejecting = self.rejection
            self.open_when_quiet()

    def reject(self, reason: str) -> None:
        """Rejects, with the reason that was typed."""
        self.answer(self.rejecting, reason.strip())

    def answer(self, choice: Choice | None, reason: str = "") -> None:
        """Ends the wait for a choice; None if nobody can choose any more."""
        if self._answer is None or self._answer.done():
            return
        if choice is None:
            self._answer.set_result(Answer(rejection(self.choices), "rejected"))
        else:
            words = f"{choice.option.name}: {one_line(reason)}" if reason else choice.option.name
            self._answer.set_result(Answer(choice.option, words, reason))

    def open_when_quiet(self) -> None:
        """Takes keys once none was pressed for a while, and as long as no message is begun."""
        if self._answer is None:
            return
        left = QUIET - (time.monotonic() - self._last_key) if self._at_stake else 0
        self.takes_keys = left <= 0 and not self._has_text() and self.rejecting is None
        if left > 0:
            self._wait(left, self.open_when_quiet)
        self._changed()

    def _release(self) -> None:
        self.pressed, self._pressed_as = None, ""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _settle(self) -> None:
        if self.pressed is not None:
            self.answer(self.pressed)

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)
