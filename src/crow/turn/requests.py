"""What the model is sent: the parts of which each request is made, and the settings that may change between two."""

from collections.abc import AsyncGenerator, Callable

import msgspec

from crow.config.settings import Limits, Mode
from crow.events import HistorySimplified, ModeTold
from crow.messages import ToolSpec
from crow.model.base import Model, ModelEvent, ModelInfo, ModelRequest, Usage
from crow.tools.ask import PLAN_MODE, PLAN_MODE_OF_A_SUBAGENT, plan_mode_is_over
from crow.tools.toolbox import SMALL_WINDOW, Toolbox, small_set
from crow.turn.history import History


class LiveSettings(msgspec.Struct):
    """The settings that may change while a turn runs: a change counts from the next request to the model on.

    A session has one and shares it with its turns; a subagent gets a copy when it begins. The person chooses the model
    and the thought level, also while a turn runs; a project that they trust lowers the limits.
    """

    model: Model
    limits: Limits
    thought_level: str = ""
    """How long the model is to think; empty leaves it to the provider."""


class Requests(msgspec.Struct, frozen=True):
    """The parts of which each request to the model is made."""

    live: LiveSettings
    tools: Toolbox
    history: History
    system_prompt: Callable[[], str]
    """Called for each request: the project may have changed what it says."""
    cache_key: str = ""
    """See `ModelRequest.cache_key`: the session's id."""

    @property
    def model(self) -> Model:
        return self.live.model

    @property
    def info(self) -> ModelInfo:
        return self.live.model.info

    def send(
        self,
        without: HistorySimplified | None = None,
        *,
        paused: bool = False,
        unfinished: list[Usage] | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """The model's reply to the history as it is now.

        `without`: the history is sent as it would be after this event. `paused`: the last reply is to go on.
        `unfinished` is written as `ModelRequest.unfinished`.
        """
        messages = self.history.to_send(without, paused=paused)
        request = ModelRequest(
            *(self.system_prompt(), messages, self.tool_specs(), self.live.thought_level, self.cache_key),
            unfinished=[] if unfinished is None else unfinished,
        )
        return self.model.reply(request)

    def tool_specs(self) -> list[ToolSpec]:
        """The tools that the next request offers: the same in every mode, and few to a model with a small window."""
        return small_set(self.tools.specs()) if has_small_window(self.info) else self.tools.specs()

    def mode_to_tell(self, mode: Mode) -> ModeTold | None:
        """What the model must be told of the mode before the next request; None if it knows."""
        told = self.history.told_mode
        if mode == "plan" and told != "plan":
            return ModeTold(mode, PLAN_MODE if "leave_plan" in self.tools else PLAN_MODE_OF_A_SUBAGENT)
        return ModeTold(mode, plan_mode_is_over(mode)) if mode != "plan" and told == "plan" else None


def has_small_window(info: ModelInfo) -> bool:
    return info.context_window is not None and info.context_window < SMALL_WINDOW
