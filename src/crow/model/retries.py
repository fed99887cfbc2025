"""How long is waited between the attempts at one reply, and when there are no more.

Once something of a reply was shown, the same request sent again would show it twice. So the turn asks the model to go
on from where its reply ended (`crow.turn.reply`), with pauses out of the same budget.
"""

from collections.abc import Callable
from typing import NamedTuple

from crow.errors import ModelError, ModelUnavailable, ReplyBroken

FEW_ATTEMPTS = 5
"""For what rarely mends itself, such as an address where nothing listens."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
A_MOMENT = 0.001
"""Seconds that are too few to wait for."""


def chance() -> float:
    import random  # for a failure, not for the beginning of every session

    return random.random()  # noqa: S311 -- spreads waits, guards nothing


class Pause(NamedTuple):
    seconds: float
    attempt: int
    """The number of the attempt that comes after it."""


class ReplyRetries:
    """The pauses between the attempts at one reply: ever longer ones, `budget` seconds in all."""

    def __init__(self, budget: float, chance: Callable[[], float] = chance) -> None:
        self._budget = budget
        self._chance = chance
        self.reset()

    def reset(self) -> None:
        """The next attempt is the first one at another reply."""
        self._left = self._budget
        self._attempt = 1

    def pause_after(self, error: ModelUnavailable | ReplyBroken) -> Pause:
        """How long to wait before the next attempt; raises the error when there will be none."""
        asked = error.retry_after if isinstance(error, ModelUnavailable) else None
        first = min(FIRST_WAIT, self._budget / 16)
        backoff = min(first * 2 ** (self._attempt - 1), LONGEST_WAIT)
        # Jitter only shortens: many clients that failed together must not come back together.
        wanted = max(backoff * (0.5 + self._chance() / 2), asked or 0.0)
        is_hopeless = error.is_lasting and self._attempt >= FEW_ATTEMPTS
        if is_hopeless or self._left < A_MOMENT or (asked or 0.0) > self._left:
            self._give_up(error, asked)
        seconds = min(wanted, self._left)
        self._left -= seconds
        self._attempt += 1
        return Pause(seconds, self._attempt)

    def _give_up(self, error: ModelError, asked: float | None) -> None:
        if asked is not None and asked > self._left:
            error.message += f" It asks to wait {asked:.0f} s, longer than the {self._left:.0f} s that Crow would wait."
        if self._attempt > 1:
            error.message = f"Gave up after {self._attempt} attempts: {error.message}"
        raise error
