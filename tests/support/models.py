"""A model as a session talks to it, around one that is there already."""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from crow.config.settings import Limits
from crow.model.base import Model, chance
from crow.model.facts import Windows
from crow.session.models import ModelChoice
from crow.session.session_model import SessionModel


class ReadyChoice(ModelChoice):
    """The choice of a model that needs no configuration and no import."""

    def __init__(self, model: Model, limits: Limits) -> None:
        window = model.info.context_window or 100_000  # a known one: none is guessed from a refusal
        self.info = replace(model.info, context_window=window)
        self.limits = limits
        self.windows = Windows("")
        self.has_configured_window = True
        self._model = model

    def create(self) -> Model:
        return self._model

    def warm_up(self) -> asyncio.Future[None]:
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done


def session_model(
    model: Model,
    limits: Limits,
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    chance: Callable[[], float] = chance,
) -> SessionModel:
    return SessionModel(ReadyChoice(model, limits), sleep=sleep, chance=chance)
