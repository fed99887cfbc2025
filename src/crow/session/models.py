"""Which models a session can use and which one it begins with: from configuration, environment and the providers'
lists, or the demo.

Providers and servers on this machine are asked which models they have, once in the life of the process, in the
background. Whoever does not answer has no further models.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from crow.config.discovery import (
    MODEL,
    Discovery,
    add_local_servers,
    can_chat,
    check_variables,
    discover,
    first_model,
    from_environment,
    has_key,
    how_to_choose,
    key_variables,
    local_provider,
    local_servers,
    mode_in,
    split_model,
    with_allowed,
)
from crow.config.load import load_settings
from crow.config.settings import Limits, Mode, ProviderSettings, Settings
from crow.errors import ConfigError, CrowError, SetupNeeded
from crow.model import catalog
from crow.model.base import Model, ModelInfo
from crow.model.facts import Facts, ListedModels, Windows, keep_listing, read_listings

if TYPE_CHECKING:
    from crow.disk import Disk
    from crow.model.listing import ServerReport

logger = logging.getLogger(__name__)

SILENT_AFTER = 10.0
"""Seconds that the disk with the configuration gets."""
NOTHING_SET_UP = "No model is set up."

_ProviderKey = tuple[str, ...]
"""What tells one provider from another that is called the same in a configuration that has changed since."""


class KnownModels:
    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = environ
        self._listings: dict[str, ListedModels] = {}
        self._heard: dict[str, Mapping[str, Facts]] = {}
        """The lists that this process was given, by address: those of servers nearby are kept nowhere else."""
        self._asking = asyncio.Lock()
        self._listed: dict[_ProviderKey, list[str]] = {}
        self._local_asked = False
        self.local: dict[str, ProviderSettings] = {}
        """The servers on this machine that answered."""
        self.windows = Windows(home)

    def of(self, name: str, provider: ProviderSettings) -> list[str]:
        """A provider's models, as far as they are known by now."""
        if provider.models:
            return list(provider.models)
        first = first_model(name, provider)
        return list(dict.fromkeys([*([first] if first else []), *self._listed.get(_provider_key(name, provider), [])]))

    def read(self) -> None:
        """What the vendors said of their models, today or before, and how large windows have proved to be. To be called
        beside the event loop."""
        self._listings = read_listings(self._home)
        self.windows.read()

    def facts(self, provider: ProviderSettings | None, model: str) -> Facts | None:
        """What the provider's own list says of a model; an old list says more than none."""
        if provider is None:
            return None
        listed = self._listings.get(provider.base_url)
        return self._heard.get(provider.base_url, listed.models if listed is not None else {}).get(model)

    async def ask_about(self, name: str, provider: ProviderSettings) -> None:
        """Asks a provider for its list, also one whose models are configured, unless it has given it by now."""
        async with self._asking:
            if (
                provider.type != "scripted"
                and provider.base_url not in self._heard
                and has_key(provider, self._environ)
            ):
                await self._ask_provider(name, provider)

    async def ask(self, providers: Mapping[str, ProviderSettings]) -> None:
        """Asks everyone who has not been asked yet. Failures are logged and otherwise pass in silence."""
        async with self._asking:
            await self._ask_local_servers(providers)
            async with asyncio.TaskGroup() as tasks:
                for name, provider in providers.items():
                    if self._is_unasked(name, provider):
                        tasks.create_task(self._ask_provider(name, provider))

    def _is_unasked(self, name: str, provider: ProviderSettings) -> bool:
        if provider.type == "scripted" or provider.models or not has_key(provider, self._environ):
            return False
        return _provider_key(name, provider) not in self._listed

    async def _ask_local_servers(self, providers: Mapping[str, ProviderSettings]) -> None:
        if self._local_asked:
            return
        self.learn(await add_local_servers(Discovery(dict(providers)), self._environ))

    def learn(self, found: Discovery) -> None:
        """What the servers on this machine said: they need not be asked again."""
        self._local_asked = True
        for name, models in found.local_models.items():
            provider = self.local[name] = found.providers[name]
            self._listed[_provider_key(name, provider)] = list(filter(can_chat, models))

    async def _ask_provider(self, name: str, provider: ProviderSettings) -> None:
        models: Collection[str] = ()
        try:
            models = await self._list(name, provider)
        except CrowError as error:
            logger.info("the models of %s could not be listed: %s", name, error)
        self._listed[_provider_key(name, provider)] = list(filter(can_chat, models))

    async def _list(self, name: str, provider: ProviderSettings) -> Collection[str]:
        """The models of a provider, as they were listed within the last day, else as the provider lists them now."""
        listed = self._listings.get(provider.base_url)
        if listed is not None and listed.is_fresh:
            return listed.models
        models = self._heard[provider.base_url] = await catalog.listed(name, provider, self._environ)
        try:
            await asyncio.to_thread(keep_listing, self._home, provider.base_url, models)
        except CrowError as error:
            logger.info("the list of models of %s is not kept: %s", name, error)
        return models


def _provider_key(name: str, provider: ProviderSettings) -> _ProviderKey:
    return name, provider.base_url, provider.api_key_env, provider.api_key, provider.api_key_command


class SessionSetup:
    """What the configuration and the environment have for a session: settings, and providers with their models."""

    def __init__(
        self,
        settings: Settings,
        providers: Mapping[str, ProviderSettings],
        default: str,
        environ: Mapping[str, str],
        known: KnownModels,
    ) -> None:
        self.settings = settings
        self._default = default
        self._environ = environ
        self._providers = providers
        self._known = known
        self.first = self.choose(default)
        """The model to begin with."""

    @property
    def providers(self) -> dict[str, ProviderSettings]:
        """The configured providers, and the servers on this machine that were found."""
        found = {name: local for name, local in self._known.local.items() if name not in self._providers}
        return {**self._providers, **found}

    @property
    def mode(self) -> Mode:
        """The mode to begin with. The variable CROW_MODE, which `crow run --mode` sets, wins over the configuration."""
        return mode_in(self._environ) or self.settings.mode

    @property
    def key_variables(self) -> set[str]:
        return key_variables(self._providers.values(), self.settings.web)

    def model_names(self, current: str) -> list[str]:
        """All models that are known by now, each provider's together; the current one is always among them."""
        names: dict[str, list[str]] = {}
        for name in (current, self._default):
            names.setdefault(split_model(name)[0], []).append(name)
        for name, provider in self.providers.items():
            names.setdefault(name, []).extend(f"{name}/{model}" for model in self._known.of(name, provider))
        return [name for group in names.values() for name in dict.fromkeys(group)]

    async def look_for_models(self) -> None:
        await self._known.ask(self._providers)

    async def ask_about(self, name: str) -> None:
        """Asks the model's provider for what it says of its models."""
        provider = split_model(name)[0]
        if (settings := self._providers_with(name).get(provider)) is not None:
            await self._known.ask_about(provider, settings)

    def describe(self, name: str) -> ModelInfo:
        """What is known of a model that can be chosen."""
        providers = self._providers_with(name)
        return catalog.describe(name, providers, self._listed(name, providers))

    def _listed(self, name: str, providers: Mapping[str, ProviderSettings]) -> Facts | None:
        provider, model = split_model(name)
        return self._known.facts(providers.get(provider), model)

    def cheaper_than(self, current: ModelInfo) -> str:
        """Of the models of the same provider that cost less, the one that costs most; empty if there is none."""
        if current.price is None:
            return ""
        names = [name for name in self.model_names(current.name) if split_model(name)[0] == current.provider]
        prices = {name: info.price for name in names if (info := self.describe(name)).price is not None}
        cheaper = {
            name: price.output
            for name, price in prices.items()
            if price and price.currency == current.price.currency and price.output < current.price.output
        }
        return max(cheaper, key=lambda name: cheaper[name], default="")

    def choose(self, name: str) -> "ModelChoice":
        """ConfigError if the model cannot be used: it is not there, or its key is missing."""
        providers, known = self._providers_with(name), self._known
        return ModelChoice(
            name, providers, self.settings.limits, self._environ, known.windows, self._listed(name, providers)
        )

    def choose_again(self, name: str) -> "ModelChoice":
        """Chooses a model that was chosen long ago. ConfigError also if it is no longer among the configured ones."""
        provider, model = split_model(name)
        configured = self._providers_with(name).get(provider)
        if configured is not None and configured.models and model not in configured.models and name != self._default:
            raise ConfigError(f"{name} is no longer in the configuration.")
        return self.choose(name)

    def _providers_with(self, name: str) -> dict[str, ProviderSettings]:
        """The providers, with a server on this machine that the name may mean before it was found."""
        provider = split_model(name)[0]
        ports = local_servers(self._environ)
        if provider in self.providers or provider not in ports:
            return self.providers
        return {**self.providers, provider: local_provider(ports[provider])}


class ModelChoice:
    """A model that was found fit to use. Its adapter is imported in the background, before the first prompt."""

    def __init__(
        self,
        name: str,
        providers: Mapping[str, ProviderSettings],
        limits: Limits,
        environ: Mapping[str, str],
        windows: Windows,
        listed: Facts | None = None,
    ) -> None:
        """`windows`: those that servers have told of by now; `listed`: what the vendor's own list says."""
        catalog.check(name, providers, environ)
        self.info = catalog.to_be_used(name, providers, listed)
        self.has_configured_window = catalog.has_configured_window(name, providers)
        self.windows = windows
        self.limits = limits
        self._providers = providers
        self._environ = environ
        self._importing: asyncio.Future[None] | None = None

    def create(self) -> Model:
        return catalog.create(self.info.name, self._providers, self.limits, self._environ, self.info)

    @property
    def known_window(self) -> int | None:
        """The size of the window: as configured, else as the server last said, else as it is generally known."""
        learned = None if self.has_configured_window else self.windows.get(self.info)
        return learned or self.info.context_window

    async def ask_server(self) -> "ServerReport | None":
        await asyncio.shield(self.warm_up())
        return await catalog.ask_server(self.info.name, self._providers, self._environ)

    def warm_up(self) -> asyncio.Future[None]:
        """Imports the model's adapter in a thread; once that is done, `create` holds up nobody."""
        if self._importing is None:
            self._importing = asyncio.get_running_loop().run_in_executor(None, self._import_adapter)
        return self._importing

    def _import_adapter(self) -> None:
        try:
            catalog.warm(self.info.name, self._providers)
        except Exception:
            logger.exception("the adapter of %s could not be loaded ahead", self.info.name)


class SetupReader:
    """Reads the setup of each session from the configuration, which needs no restart when it was changed."""

    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._home = home
        self._disk: Disk | None = None
        self._environ = environ
        self._known = KnownModels(home, environ)
        self._demo = False

    def use_demo(self) -> None:
        """From now on new sessions talk to the script if no model is set up, or its key is missing: the script never
        takes the place of one that can be used."""
        self._demo = True

    def use_configured(self) -> None:
        self._demo = False

    async def setup(self) -> SessionSetup:
        """What the next session is set up with. SetupNeeded if there is no model, ConfigError if the configuration is
        wrong, or a variable that goes before it."""
        check_variables(self._environ)
        try:
            return await self._configured_setup()
        except SetupNeeded:
            if not self._demo:
                raise
        return SessionSetup(Settings(), {}, catalog.DEMO, self._environ, self._known)

    async def _configured_setup(self) -> SessionSetup:
        from crow.disk import Disk  # needed by sessions only: `initialize` is answered before

        self._disk = self._disk or Disk(self._home)
        read = await self._disk.run(self._read, SILENT_AFTER)
        settings = with_allowed(read, self._environ)
        found = await discover(settings, self._environ)
        if not found.default:
            raise SetupNeeded(NOTHING_SET_UP, remedy=how_to_choose(found, self._environ))
        if found.local_models:
            self._known.learn(found)
        try:
            return SessionSetup(settings, found.providers, found.default, self._environ, self._known)
        except ConfigError as error:
            if found.chosen_by != MODEL or split_model(found.default)[0] in found.providers:
                raise
            raise ConfigError(f"{MODEL}: {error.message}", remedy=error.remedy) from None

    def _read(self) -> Settings:
        self._known.read()
        return load_settings(self._home)

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
