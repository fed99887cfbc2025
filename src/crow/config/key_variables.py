"""The variables that hold keys of ours: no command and no server gets to see them."""

import re
from collections.abc import Iterable

from crow.config.settings import ProviderSettings, WebSettings
from crow.config.variables import ALLOW, MCP_TOKEN
from crow.config.vendors import VENDORS


def variables_of(provider: ProviderSettings) -> set[str]:
    """The variables that the provider's key and headers are taken from."""
    named = {name for value in provider.headers.values() for name in re.findall(r"\$\{(\w+)\}", value)}
    return named | ({provider.api_key_env} if provider.api_key_env else set[str]())


def key_variables(providers: Iterable[ProviderSettings], web: WebSettings) -> set[str]:
    configured = {web.api_key_env}.union(*map(variables_of, providers))
    vendors = {name for vendor in VENDORS.values() for name in vendor.key_variables}
    return {name for name in configured if name} | vendors | {MCP_TOKEN, ALLOW}
