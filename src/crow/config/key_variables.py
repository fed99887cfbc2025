"""The variables that hold keys of ours: no command and no server gets to see them."""

from collections.abc import Iterable

from crow.config.settings import ProviderSettings, WebSettings
from crow.config.variables import ALLOW, MCP_TOKEN
from crow.config.vendors import VENDORS


def key_variables(providers: Iterable[ProviderSettings], web: WebSettings) -> set[str]:
    configured = {provider.api_key_env for provider in providers} | {web.api_key_env}
    vendors = {vendor.key_variable for vendor in VENDORS.values()}
    return {name for name in configured if name} | vendors | {MCP_TOKEN, ALLOW}
