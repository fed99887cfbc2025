"""Which models there are beyond the configured ones: what providers and servers on this machine say they have.

They are asked once in the life of the process, in the background. Whoever does not answer has no further models.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping

from crow.config.discovery import Discovery, add_local_servers, can_chat, first_model, has_key
from crow.config.settings import ProviderSettings
from crow.errors import CrowError
from crow.model import catalog
from crow.model.facts import Facts
from crow.model.listings import ListedModels, keep_listing, read_listings
from crow.model.windows import Windows

logger = logging.getLogger(__name__)

_Place = tuple[str, ...]
"""What tells one provider from another that is called the same in a configuration that has changed since."""


class KnownModels:
    def __init__(self, home: str, environ: Mapping[str, str]) -> None:
        self._home = home
        self._environ = environ
        self._listings: dict[str, ListedModels] = {}
        self._asking = asyncio.Lock()
        self._listed: dict[_Place, list[str]] = {}
        self._local_asked = False
        self.local: dict[str, ProviderSettings] = {}
        """The servers on this machine that answered."""
        self.windows = Windows(home)

    def of(self, name: str, provider: ProviderSettings) -> list[str]:
        """A provider's models, as far as they are known by now."""
        if provider.models:
            return list(provider.models)
        first = first_model(name, provider)
        return list(dict.fromkeys([*([first] if first else []), *self._listed.get(_place(name, provider), [])]))

    def read(self) -> None:
        """What the vendors said of their models, today or before, and how large windows have proved to be. To be called
        beside the event loop."""
        self._listings = read_listings(self._home)
        self.windows.read()

    def facts(self, provider: ProviderSettings | None, model: str) -> Facts | None:
        """What the provider's own list says of a model; an old list says more than none."""
        listed = self._listings.get(provider.base_url) if provider is not None else None
        return listed.models.get(model) if listed is not None else None

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
        return _place(name, provider) not in self._listed

    async def _ask_local_servers(self, providers: Mapping[str, ProviderSettings]) -> None:
        if self._local_asked:
            return
        self.learn(await add_local_servers(Discovery(dict(providers)), self._environ))

    def learn(self, found: Discovery) -> None:
        """What the servers on this machine said: they need not be asked again."""
        self._local_asked = True
        for name, models in found.local_models.items():
            provider = self.local[name] = found.providers[name]
            self._listed[_place(name, provider)] = list(filter(can_chat, models))

    async def _ask_provider(self, name: str, provider: ProviderSettings) -> None:
        models: Collection[str] = ()
        try:
            models = await self._list(name, provider)
        except CrowError as error:
            logger.info("the models of %s could not be listed: %s", name, error)
        self._listed[_place(name, provider)] = list(filter(can_chat, models))

    async def _list(self, name: str, provider: ProviderSettings) -> Collection[str]:
        """As it was listed within the last day, else anew."""
        listed = self._listings.get(provider.base_url)
        if listed is not None and listed.is_fresh:
            return listed.models
        models = await catalog.listed(name, provider, self._environ)
        try:
            await asyncio.to_thread(keep_listing, self._home, provider.base_url, models)
        except CrowError as error:
            logger.info("the list of models of %s is not kept: %s", name, error)
        return models


def _place(name: str, provider: ProviderSettings) -> _Place:
    return name, provider.base_url, provider.api_key_env, provider.api_key, provider.api_key_command
