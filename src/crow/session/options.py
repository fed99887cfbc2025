"""What can be chosen for a session: its mode, its model, how long the model thinks. Stored with the session."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from crow.config.discovery import split_model
from crow.config.settings import Mode
from crow.errors import ConfigError, OptionUnknown, SetupNeeded, StorageFailed
from crow.events import Choice, Event, Notice, OptionChosen, OptionsChanged, SessionOption
from crow.model.base import Model
from crow.policy.base import Policy
from crow.session.models import ModelChoice, SessionSetup
from crow.session.session_model import SessionModel
from crow.timeouts import timeout
from crow.turn.requests import ContextWindow

logger = logging.getLogger(__name__)

_MODES: dict[Mode, Choice] = {
    "ask": Choice("ask", "Ask", "Asks before it changes a file or runs a command."),
    "edit": Choice("edit", "Edit", "Changes files of the workspace by itself; asks before it runs a command."),
    "plan": Choice("plan", "Plan", "Looks and plans; changes nothing."),
    "auto": Choice(
        "auto", "Auto", "Changes files and runs any command without asking: it trusts the model with this machine."
    ),
}

DEFAULT_LEVEL = "default"
_LEVEL_NAMES = {"xhigh": "Extra high", "max": "Maximum"}

LIST_PATIENCE = 5.0
"""Seconds that a provider gets to list its models for somebody who waits."""
QUIET = 1.0
"""Seconds after which providers are asked for their models: what the person came for goes first."""
MOST_NAMED = 20


class Options:
    """The options of a session. One that is changed during a turn counts from the next request to the model on."""

    def __init__(self, window: ContextWindow, policy: Policy, setup: SessionSetup) -> None:
        self._window = window
        self._live = window.requests.live
        self._journal = window.journal
        self._policy = policy
        self._setup = setup
        self._search: asyncio.Task[None] | None = None

    def all(self) -> tuple[SessionOption, ...]:
        options = [self._mode(), self._model()]
        if self._live.model.info.thought_levels:
            options.append(self._thought_level())
        return tuple(options)

    async def choose(self, option_id: str, value: str) -> None:
        """OptionUnknown if there is no such option or value, ConfigError if the model's key is missing, StorageFailed
        if the choice cannot be stored. Then nothing has changed.
        """
        before = self._check(option_id, value)
        choice = self._usable(value) if option_id == "model" else None
        try:
            await self._journal.record(OptionChosen(option_id, value))
        except StorageFailed:
            self._journal.append(OptionChosen(option_id, before))  # once there is room, both are stored
            raise
        match option_id:
            case "mode":
                self._policy.mode = cast("Mode", value)
            case "model" if choice is not None:
                await self._replace_model(choice)
            case _:
                self._live.thought_level = "" if value == DEFAULT_LEVEL else value
        self._journal.append(OptionsChanged(self.all()))

    async def choose_model(self, name: str) -> Model:
        """Chooses a model as `choose` does, and gives the one that answers from now on."""
        await self.choose("model", name)
        return self._live.model

    def restore(self, past: Sequence[Event]) -> list[Notice]:
        """Sets the options as they were when the session was last used: what was chosen last of each.

        A model that is no longer there gives way to the configured one, and the notice says so.
        """
        last = {event.option: event.value for event in past if isinstance(event, OptionChosen)}
        if (mode := last.get("mode", "")) in _MODES:
            self._policy.mode = mode
        notices = self._restore_model(last["model"]) if "model" in last else []
        if (level := last.get("thought_level", "")) in self._live.model.info.thought_levels:
            self._live.thought_level = level
        return notices

    def warm_up(self) -> None:
        """Loads what the model needs in the background, before the first prompt."""
        if isinstance(self._live.model, SessionModel):
            self._live.model.warm_up()

    def look_for_models(self, at_rest: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Completes the list of models in the background, once the session is at rest."""
        self._search = asyncio.get_running_loop().create_task(self._look_for_models(at_rest))
        return self._search

    async def close(self) -> None:
        if self._search is not None:
            self._search.cancel()
            await asyncio.wait([self._search])
        await self._live.model.close()

    # --- what there is

    def _mode(self) -> SessionOption:
        mode = self._policy.mode
        return SessionOption("mode", "Mode", "What Crow may do without asking.", mode, tuple(_MODES.values()))

    def _model(self) -> SessionOption:
        current = self._live.model.info.name
        names = [split_model(name) for name in self._setup.model_names(current)]
        grouped = len({provider for provider, _ in names}) > 1
        choices = [Choice(f"{provider}/{model}", model, group=provider if grouped else "") for provider, model in names]
        return SessionOption("model", "Model", "Who answers in this session.", current, tuple(choices))

    def _thought_level(self) -> SessionOption:
        levels = self._live.model.info.thought_levels
        choices = (
            Choice(DEFAULT_LEVEL, "Default", "As the provider does by itself."),
            *(Choice(level, _LEVEL_NAMES.get(level, level.capitalize())) for level in levels),
        )
        current = self._live.thought_level or DEFAULT_LEVEL
        return SessionOption("thought_level", "Thinking", "How long the model thinks.", current, choices)

    def _check(self, option_id: str, value: str) -> str:
        """The value that is chosen now. OptionUnknown if there is no such option or value."""
        options = self.all()
        option = next((option for option in options if option.id == option_id), None)
        if option is None:
            known = ", ".join(option.id for option in options)
            raise OptionUnknown(f"Unknown option {option_id[:100]!r}. Available: {known}.")
        values = [choice.value for choice in option.choices]
        if value not in values:
            raise OptionUnknown(f"Unknown {option_id} {value[:100]!r}. Available: {_listed(values)}.")
        return option.value

    # --- the model

    def _usable(self, name: str) -> ModelChoice:
        try:
            return self._setup.choose(name)
        except SetupNeeded as missing:  # of this one model: the session works, and nobody has to log in
            raise ConfigError(missing.message, remedy=missing.remedy) from missing

    async def _replace_model(self, choice: ModelChoice) -> None:
        old = self._live.model
        if old.info.name == choice.info.name:
            return
        level = self._live.thought_level
        self._use(choice)
        if self._live.thought_level != level:  # the new model does not have that one
            self._journal.append(OptionChosen("thought_level", DEFAULT_LEVEL))
        if self._window.requests.history.entries():
            self._window.tell_usage()  # the window may be another
        if isinstance(old, SessionModel):
            await old.retire()

    def _use(self, choice: ModelChoice) -> None:
        self._live.model = SessionModel(choice)
        if self._live.thought_level not in choice.info.thought_levels:
            self._live.thought_level = ""

    def _restore_model(self, name: str) -> list[Notice]:
        default = self._live.model.info.name
        if name == default:
            return []
        try:
            self._use(self._setup.choose_again(name))
        except (ConfigError, SetupNeeded) as error:
            title = f"{name}, which this session used, is no longer available. Continuing with {default}."
            return [Notice("warning", title, str(error))]
        return []

    async def find_window(self) -> None:
        """Asks the model's provider how large its window is, if that is not known."""
        if self._live.model.info.context_window is None:
            with contextlib.suppress(TimeoutError):
                async with timeout(LIST_PATIENCE):
                    await self._setup.ask_about(self._live.model.info.name)
            self._learn_listed_window()

    def _learn_listed_window(self) -> None:
        if isinstance(self._live.model, SessionModel):
            self._live.model.learn_listed_window(self._setup.describe(self._live.model.info.name).context_window)

    async def _look_for_models(self, at_rest: Callable[[], Awaitable[None]]) -> None:
        await asyncio.sleep(QUIET)
        await at_rest()
        before = self.all()
        try:
            await self._setup.look_for_models()
        except Exception:
            logger.exception("the list of models could not be completed")
        self._learn_listed_window()
        if self.all() != before:
            self._journal.append(OptionsChanged(self.all()))


def _listed(values: Sequence[str]) -> str:
    more = len(values) - MOST_NAMED
    return ", ".join(values[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
