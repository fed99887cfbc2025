"""Permission questions in `crow chat`: which key is the answer, and when a key counts as typing and goes into the input
line instead.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence

from crow.cli.interactive_client import Answer, Choice, choice_for

QUIET = 0.7
"""Seconds without a key before a question takes one: what is typed when it appears was not meant for it."""
ALONE = 0.2
"""Seconds in which no other key follows the one that is an answer: a word that begins with it is none."""


class Questions:
    """Answers permission requests with the keys that the person presses; see `Answerer`.

    `insert` gets what turns out to be typing: it goes into the input line.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        insert: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.choices: Sequence[Choice] = ()
        """Of the question that is open; nothing if none is."""
        self.takes_keys = False
        """Whether the next key is the answer. Until then it goes where the person was typing."""
        self._changed = changed
        self._insert = insert
        self._clock = clock
        self._last_key = -QUIET
        self._answer: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._pressed: Choice | None = None
        """The choice whose key was pressed, while another key may still follow."""

    def key_pressed(self) -> None:
        """Any key, wherever it goes."""
        self._last_key = self._clock()

    def press(self, key: str) -> None:
        """A key that may be the answer. Arrows and the like are none, and say nothing here."""
        choice = choice_for(key, self.choices)
        if choice is not None and self._pressed is None:
            self._pressed = choice
            self._wait(ALONE, self._settle)
        elif key.isprintable():
            self.type(key)

    def type(self, text: str) -> None:
        """Text that is no answer, such as what was pasted."""
        typed = (self._pressed.key if self._pressed else "") + text
        self._pressed = None
        self._open_when_quiet()
        self._insert(typed)

    def _settle(self) -> None:
        if self._answer is not None and not self._answer.done() and self._pressed is not None:
            self._answer.set_result((self._pressed.option, self._pressed.option.name))

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice]) -> Answer:
        self.choices = choices
        self._answer = asyncio.get_running_loop().create_future()
        self._open_when_quiet()
        try:
            return await self._answer
        finally:
            self.choices, self.takes_keys, self._answer, self._pressed = (), False, None, None
            if self._timer is not None:
                self._timer.cancel()
            self._changed()

    def _open_when_quiet(self) -> None:
        left = QUIET - (self._clock() - self._last_key)
        if left > 0:
            self._wait(left, self._open_when_quiet)
        self.takes_keys = left <= 0
        self._changed()
