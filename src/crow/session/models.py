"""Which model a new session talks to: what is configured, what the environment offers, or the demo."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from typing import cast, get_args

from crow.config.discovery import discover, from_environment
from crow.config.load import load_settings
from crow.config.settings import ProviderSettings, Settings
from crow.config.vendors import VENDORS
from crow.errors import ConfigError, SetupNeeded
from crow.model import catalog
from crow.model.base import Model, ModelEvent, ModelInfo, ModelRequest
from crow.policy.base import Mode

logger = logging.getLogger(__name__)

NOTHING_SET_UP = "No model is set up."
HOW_TO_SET_UP = "Run `crow login` in a terminal, set a key such as ANTHROPIC_API_KEY, or start a local model server."


class ModelChoice:
    """A model that was found fit to use. Its adapter is imported in the background, before the first prompt."""

    def __init__(
        self, name: str, providers: Mapping[str, ProviderSettings], settings: Settings, environ: Mapping[str, str]
    ) -> None:
        catalog.check(name, providers, environ)
        self.info = catalog.describe(name, providers)
        self.settings = settings
        self._name = name
        self._providers = providers
        self._environ = environ

    @property
    def mode(self) -> Mode:
        """As configured; the variable CROW_MODE, which `crow run --mode` sets, wins."""
        wanted = self._environ.get("CROW_MODE", "")
        return cast("Mode", wanted) if wanted in get_args(Mode) else self.settings.mode

    @property
    def key_variables(self) -> set[str]:
        """The variables that hold providers' keys: no command and no server gets to see them."""
        named = {provider.api_key_env for provider in self._providers.values() if provider.api_key_env}
        return named | {vendor.key_variable for vendor in VENDORS.values()}

    def create(self) -> Model:
        return catalog.create(self._name, self._providers, self.settings.limits, self._environ)

    def warm_up(self) -> None:
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, self._import_adapter)

    def _import_adapter(self) -> None:
        try:
            catalog.warm(self._name, self._providers)
        except Exception:
            logger.exception("the adapter of %s could not be loaded ahead", self._name)


class LateModel:
    """A model that is created with its first request, so that opening a session costs next to nothing."""

    def __init__(self, choice: ModelChoice) -> None:
        self._choice = choice
        self._model: Model | None = None

    @property
    def info(self) -> ModelInfo:
        return self._choice.info

    def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if self._model is None:
            self._model = self._choice.create()
        return self._model.reply(request)

    async def close(self) -> None:
        if self._model is not None:
            await self._model.close()


class Models:
    """Reads the configuration anew for each session, so that a mended file needs no restart."""

    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = environ
        self._demo = False

    def use_demo(self) -> None:
        """From now on new sessions talk to the script, also if a model is configured: that one may not work."""
        self._demo = True

    def use_configured(self) -> None:
        self._demo = False

    async def choose(self) -> ModelChoice:
        """The model for a new session; SetupNeeded if there is none, ConfigError if the configuration is wrong."""
        if self._demo:
            return ModelChoice(catalog.DEMO, {}, Settings(), self._environ)
        settings = load_settings(self._home)
        found = await discover(settings, self._environ)
        if not found.default:
            raise SetupNeeded(NOTHING_SET_UP, remedy=HOW_TO_SET_UP)
        return ModelChoice(found.default, found.providers, settings, self._environ)

    def may_see(self) -> bool:
        """Whether pictures make sense: only a model that is known not to see rules them out."""
        info = self._configured()
        return info is None or info.images

    def may_hear(self) -> bool:
        info = self._configured()
        return info is not None and info.audio

    def _configured(self) -> ModelInfo | None:
        try:
            settings = load_settings(self._home)
            found = from_environment(settings, self._environ)
            return catalog.describe(found.default, found.providers) if found.default else None
        except ConfigError:
            return None  # said when a session is opened: the client can show it then
