"""Steering: messages that the person sends into a running turn, from being accepted to being taken in or left over.

A message is accepted at any moment of a turn that the model answers, and taken in before the next request to the model
(`crow.turn.prompt.take_steering`). A message that waits keeps the turn from ending of itself; one that still waits when
the turn ends otherwise is left over, which the person is told.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from crow.errors import NothingToSteer
from crow.events import Sent, SentText, SteeringLeftOver
from crow.messages import StopReason
from crow.visible import one_line

NO_TURN = "No turn is running in this session."
SEND_AS_PROMPT = "Send it as a prompt."
LEFT_OVER = "The turn ended before the model got this message. Send it again if you still need it."


class Steered(NamedTuple):
    """A message that was accepted into a running turn."""

    message_id: str
    sent: tuple[Sent, ...]


class Steering:
    """The messages for one turn that the model has yet to get, in the order in which they came.

    Accepting and ending exclude each other, as each of them is one step of the event loop: `lets_end` is true only
    while no message waits, and from then on none is accepted.
    """

    def __init__(self, turn_id: str = "") -> None:
        self._turn_id = turn_id
        self._accepted = 0
        self._waiting: deque[Steered] = deque()
        self._refusal = ""
        """Why nothing is accepted for now; empty if messages are."""
        self._decided = asyncio.Event()
        self.is_closed = False
        """The turn ends: nothing more is accepted."""

    def open(self) -> None:
        """The model answers this turn: from now on messages are accepted."""
        self._refusal = ""
        self._decided.set()

    def refuse(self, why: str) -> None:
        """Crow answers this turn: nothing is accepted, unless it turns out that the model does."""
        self._refusal = why
        self._decided.set()

    async def decided(self) -> None:
        """Waits until it is known whether the turn accepts messages: it may have to wait for the turn before it."""
        await self._decided.wait()

    def accept(self, sent: Sequence[Sent]) -> Steered:
        """NothingToSteer if the turn takes no message now."""
        if self.is_closed or self._refusal:
            raise nothing_to_steer(NO_TURN if self.is_closed else self._refusal)
        self._accepted += 1
        message = Steered(f"{self._turn_id}-s{self._accepted}", tuple(sent))
        self._waiting.append(message)
        return message

    def withdraw(self, message: Steered) -> bool:
        """Takes a message back. False if it is too late: the model gets it, or it was left over."""
        try:
            self._waiting.remove(message)
        except ValueError:
            return False
        return True

    def take(self) -> Steered | None:
        """The next message for the model. Whoever takes it records it, whatever happens."""
        return self._waiting.popleft() if self._waiting else None

    def lets_end(self, stop_reason: StopReason) -> bool:
        """Whether a turn may end that would end for this reason. One that would end of itself goes on with what waits;
        one that was cut short does not."""
        if self._waiting and stop_reason is StopReason.END_TURN:
            return False
        self._close()
        return True

    def close(self) -> list[SteeringLeftOver]:
        """The turn is over: the messages that the model did not get."""
        self._close()
        waiting, self._waiting = self._waiting, deque()
        return [left_over(*message) for message in waiting]

    def _close(self) -> None:
        self.is_closed = True
        self._decided.set()


def nothing_to_steer(why: str = NO_TURN) -> NothingToSteer:
    return NothingToSteer(why, remedy=SEND_AS_PROMPT)


def left_over(message_id: str, sent: Sequence[Sent]) -> SteeringLeftOver:
    words = (item.text if isinstance(item, SentText) else f"[{one_line(item.label)}]" for item in sent)
    return SteeringLeftOver("warning", LEFT_OVER, "\n".join(words), message_id=message_id)
