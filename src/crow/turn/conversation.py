"""The few things that a turn may know."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Literal

import msgspec

from crow.actions import Person
from crow.config.settings import Limits
from crow.events import HistorySimplified, Journal, ModeTold, Remark
from crow.messages import ToolSpec
from crow.model.base import Model, ModelEvent, ModelRequest, Usage
from crow.policy.base import Policy
from crow.tools.leave_plan import PLAN_MODE, PLAN_MODE_OF_A_SUBAGENT, plan_mode_is_over
from crow.tools.small_set import SMALL_WINDOW, small_set
from crow.tools.toolbox import Toolbox
from crow.turn.history import History
from crow.turn.ids import TurnIds
from crow.turn.spending import Purse
from crow.workspace.base import Workspace


class Conversation(msgspec.Struct):
    """A session has one and hands it to each of its turns."""

    model: Model
    tools: Toolbox
    workspace: Workspace
    policy: Policy
    person: Person
    journal: Journal
    history: History
    limits: Limits
    system_prompt: Callable[[], str]
    """Asked before each request: the project may have changed what it says."""
    cache_key: str = ""
    """See `ModelRequest.cache_key`: the session's id."""
    thought_level: str = ""
    """How long the model is to think; empty leaves it to the provider."""
    dialog: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    """Held while the person is being asked: one question at a time, the others queue behind it."""
    prepare: Callable[[TurnIds], Awaitable[None]] | None = None
    """Done in each turn after the prompt was taken and before the model is asked, such as asking for trust.
    Whoever does it names the wait."""
    news: Callable[[], list[str]] = list
    """What has happened between the turns that the model should know, such as the end of a command: told once, with
    the next prompt."""
    left_open: Literal["", "question", "repetition", "budget"] = ""
    """What the last turn ended with, if it is for the person to go on: the model's question, a call that was made
    again and again, or a budget that is used up."""
    purse: Purse = msgspec.field(default_factory=Purse)
    """What was spent and may be: the session's and its subagents'."""
    choose_model: "Callable[[str], Awaitable[Model]] | None" = None
    """Another model takes over from the next request on."""
    told: set[str] = msgspec.field(default_factory=set[str])
    """The titles of the remarks that are made once."""
    patience: float = 5.0
    """Seconds after which a wait is named to the person."""

    def ask_model(
        self,
        without: HistorySimplified | None = None,
        *,
        paused: bool = False,
        unfinished: list[Usage] | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """`without`: the history is sent as it would be after this event. `paused`: the last reply is to go on.
        `unfinished` is written as `ModelRequest.unfinished`."""
        messages = self.history.to_send(without, paused=paused)
        request = ModelRequest(
            *(self.system_prompt(), messages, self.tool_specs(), self.thought_level, self.cache_key),
            unfinished=[] if unfinished is None else unfinished,
        )
        return self.model.reply(request)

    def tool_specs(self) -> list[ToolSpec]:
        """The tools that the next request offers: the same in every mode, and few to a model with a small window."""
        return small_set(self.tools.specs()) if self.has_small_window else self.tools.specs()

    @property
    def has_small_window(self) -> bool:
        window = self.model.info.context_window
        return window is not None and window < SMALL_WINDOW

    def tell_once(self, remark: Remark) -> None:
        """Something about the model or its server that the person need not hear twice in a session."""
        if remark.title not in self.told:
            self.told.add(remark.title)
            self.journal.append(remark)

    def mode_to_tell(self) -> ModeTold | None:
        """What the model must be told of the mode before the next request; None if it knows."""
        mode, told = self.policy.mode, self.history.told_mode
        if mode == "plan" and told != "plan":
            return ModeTold(mode, PLAN_MODE if "leave_plan" in self.tools else PLAN_MODE_OF_A_SUBAGENT)
        return ModeTold(mode, plan_mode_is_over(mode)) if mode != "plan" and told == "plan" else None
