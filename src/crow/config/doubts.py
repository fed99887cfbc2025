"""What a configuration may say, as far as its types go, and what cannot work all the same.

Such a part costs only itself: a session is opened without the server, and told so. Whoever asks whether the file is
right wants to know before.
"""

import re
from collections.abc import Iterator

from crow.config.hosts import check_url, is_header_name, is_header_value
from crow.config.load import unquoted
from crow.config.settings import McpServerSettings, PermissionRule, ProviderSettings, Settings
from crow.config.toml import toml_key
from crow.visible import one_line


def doubts(settings: Settings) -> Iterator[str]:
    """Each as `key: what is wrong`. Whether an address or a key can be used is known to those who use them."""
    for name, provider in settings.providers.items():
        yield from _about_provider(f"providers.{toml_key(name)}", provider)
    for name, server in settings.mcp_servers.items():
        key = f"mcp_servers.{toml_key(name)}"
        if server.url:
            yield from _about_address(key, server)
        else:
            yield from _about_program(key, server)
    for number, rule in enumerate(settings.permission.rules):
        yield from about_rule(f"permission.rules[{number}]", rule)


_OF_SERVERS = (
    *("base_url", "api_key", "api_key_env", "api_key_command", "api_key_header"),
    *("headers", "extra_body", "wire"),
)
"""What only a provider that is reached over the network makes use of."""


def _about_provider(key: str, provider: ProviderSettings) -> Iterator[str]:
    scripted = provider.type == "scripted"
    unused = [*_OF_SERVERS] if scripted else ["script", "record"]
    if provider.type == "anthropic":
        unused.append("wire")
    for name in unused:
        if getattr(provider, name):
            yield f'{key}.{name}: without effect, as the type is "{provider.type}"'


def _about_address(key: str, server: McpServerSettings) -> Iterator[str]:
    try:
        check_url(f"{key}.url", server.url)
    except ValueError as error:
        yield str(error)
    if server.type == "stdio":
        yield f'{key}.type: expected "http" or "sse" beside url, found "stdio"'
    for unused in ("args", "env"):
        if getattr(server, unused):
            yield f"{key}.{unused}: expected only beside command; a server with a url is not started by Crow"
    for name, value in server.headers.items():
        if not is_header_name(name):
            yield f"{key}.headers: expected the name of a header, found {one_line(name, 100)!r}"
        elif not is_header_value(value):
            yield f"{key}.headers.{toml_key(name)}: expected plain ASCII text without line breaks"


def _about_program(key: str, server: McpServerSettings) -> Iterator[str]:
    if server.type in ("http", "sse"):
        yield f'{key}.type: expected "stdio" beside command, found "{server.type}"'
    if server.headers:
        yield f"{key}.headers: expected only beside url; a program is given variables, in env"
    if not server.command.strip() or "\0" in "".join((server.command, *server.args, *server.env.values())):
        yield f"{key}: expected a program and arguments without null characters"
    for name in server.env:
        if not name or "=" in name or "\0" in name:
            yield f"{key}.env: expected the name of a variable, found {one_line(name, 100)!r}"


def about_rule(key: str, rule: PermissionRule) -> Iterator[str]:
    """A `*` that somebody may have meant to stand for more than itself; within quotes it is meant as it is."""
    fixed = re.sub(r"\s\*\s*\Z", "", unquoted(rule.command or ""))
    if "*" in fixed.strip() and fixed.strip() != "*":
        yield (
            f'{key}.command: the * in "{one_line(rule.command or "", 100)}" stands for itself alone; expected it as a '
            "last word of its own, which stands for any further words, or in quotes"
        )
