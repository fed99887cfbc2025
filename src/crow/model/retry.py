"""Trying again, in one place: wraps a model and is one.

What can be retried is an error that came before any part of the reply did. Once something was shown, a second
attempt would show it twice, so the error goes up and the text stays.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable

from crow.config.settings import Limits
from crow.errors import ModelError, ModelUnavailable, ReplyBroken
from crow.model.base import Awaiting, Model, ModelEvent, ModelInfo, ModelRequest, Noticed, Waiting

ATTEMPTS = 5
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0


class RetryingModel:
    """At most ATTEMPTS requests and `limits.retry_wait` seconds of waiting for one reply."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.model = model
        self._budget = limits.retry_wait
        self._sleep = sleep
        self._chance = chance

    @property
    def info(self) -> ModelInfo:
        return self.model.info

    async def close(self) -> None:
        await self.model.close()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        waited = 0.0
        attempt = 1
        while True:
            shown = False
            try:
                async with contextlib.aclosing(self.model.reply(request)) as events:
                    async for event in events:
                        shown = shown or not isinstance(event, Noticed | Awaiting)
                        yield event
            except (ModelUnavailable, ReplyBroken) as error:
                if shown:
                    error.message = f"The reply broke off: {error.message}"
                    raise
                seconds = self._pause(error, attempt, self._budget - waited)
                reason = error.message
            else:
                return
            attempt += 1
            yield Waiting(reason=reason, seconds=seconds, attempt=attempt, attempts=ATTEMPTS)
            await self._sleep(seconds)
            waited += seconds

    def _pause(self, error: ModelError, attempt: int, budget: float) -> float:
        """How long to wait before the next attempt; raises the error when there will be none."""
        asked = error.retry_after if isinstance(error, ModelUnavailable) else None
        backoff = min(FIRST_WAIT * 2 ** (attempt - 1), LONGEST_WAIT)
        # Jitter only shortens: many clients that failed together must not come back together.
        seconds = max(backoff * (0.5 + self._chance() / 2), asked or 0.0)
        if attempt < ATTEMPTS and seconds <= budget:
            return seconds
        if asked is not None and asked > budget:
            error.message += f" It asks to wait {asked:.0f} s, longer than the {budget:.0f} s that Crow would wait."
        if attempt > 1:
            error.message = f"Gave up after {attempt} attempts: {error.message}"
        raise error
