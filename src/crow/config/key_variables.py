"""The variables that hold keys of ours: no command and no server gets to see them."""

from collections.abc import Iterable

from crow.config.load import ALLOW
from crow.config.settings import ProviderSettings, WebSettings
from crow.config.vendors import VENDORS

MCP_TOKEN = "CROW_MCP_TOKEN"  # noqa: S105 -- the name of a variable
"""What the clients of `crow mcp --http` have to show."""


def key_variables(providers: Iterable[ProviderSettings], web: WebSettings) -> set[str]:
    configured = {provider.api_key_env for provider in providers} | {web.api_key_env}
    vendors = {vendor.key_variable for vendor in VENDORS.values()}
    return {name for name in configured if name} | vendors | {MCP_TOKEN, ALLOW}
