"""Which models there are beyond the configured ones: what providers and servers on this machine say they have.

They are asked once in the life of the process, in the background. Whoever does not answer has no further models.
"""

import asyncio
import logging
from collections.abc import Mapping

from crow.config.discovery import Discovery, add_local_servers, can_chat, first_model, has_key
from crow.config.settings import ProviderSettings
from crow.errors import CrowError
from crow.model import catalog

logger = logging.getLogger(__name__)

_Place = tuple[str, ...]
"""What tells one provider from another that is called the same in a configuration that has changed since."""


class KnownModels:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._asking = asyncio.Lock()
        self._listed: dict[_Place, list[str]] = {}
        self._local_asked = False
        self.local: dict[str, ProviderSettings] = {}
        """The servers on this machine that answered."""
        self.windows: dict[str, int] = {}
        """What servers, or their refusals, said of the windows of their models; see `ModelChoice`."""

    def of(self, name: str, provider: ProviderSettings) -> list[str]:
        """A provider's models, as far as they are known by now."""
        if provider.models:
            return list(provider.models)
        first = first_model(name, provider)
        return list(dict.fromkeys([*([first] if first else []), *self._listed.get(_place(name, provider), [])]))

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
        try:
            models = await catalog.listed(name, provider, self._environ)
        except CrowError as error:
            logger.info("the models of %s could not be listed: %s", name, error)
            models = []
        self._listed[_place(name, provider)] = list(filter(can_chat, models))


def _place(name: str, provider: ProviderSettings) -> _Place:
    return name, provider.base_url, provider.api_key_env, provider.api_key, provider.api_key_command
