"""Sends a failed model request again after a pause, for as long as the settings allow.

Once something of a reply was shown, the same request sent again would show it twice. So the error goes up, and the turn
asks the model to go on from where its reply ended (`crow.turn.cut_replies`), with pauses out of the same budget.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable

from crow.config.settings import Limits
from crow.errors import ModelUnavailable, ReplyBroken
from crow.model.base import Awaiting, Model, ModelEvent, ModelRequest, ModelWrapper, Noticed, Waiting
from crow.model.pauses import ReplyRetries, chance


class RetryingModel(ModelWrapper):
    """Waits `limits.retry_wait` seconds at most for one reply to begin, between all of its attempts."""

    def __init__(
        self,
        model: Model,
        limits: Limits,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = chance,
    ) -> None:
        super().__init__(model)
        self._budget = limits.retry_wait
        self._sleep = sleep
        self._chance = chance

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        retries = request.retries or ReplyRetries(self._budget, self._chance)
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
                if shown and not request.unseen:
                    raise
                reason, pause = error.message, retries.pause_after(error)
            else:
                return
            yield Waiting(reason, *pause)
            await self._sleep(pause.seconds)
