"""Reads and validates the user's config.toml: what is wrong is said in one sentence, with file, line or key, and what
was expected.

`doubts` are about what the file may say, as far as its types go, and what cannot work all the same. Such a part costs
only itself: a session is opened without the server, and told so. Whoever asks whether the file is right wants to know
before.
"""

import os
import re
from collections.abc import Iterator

import msgspec

from crow.config.home import config_path, read_file, refuse_link_to_nowhere, tighten, unreadable
from crow.config.hosts import check_host, check_url, is_header_name, is_header_value
from crow.config.settings import (
    KEY_HEADERS,
    TOOLS,
    VENDORS,
    McpServerSettings,
    ModelSettings,
    PermissionRule,
    ProviderSettings,
    Settings,
    amounts_of,
)
from crow.config.toml import explain, parse_toml, toml_key
from crow.errors import ConfigError
from crow.messages import SERVER_TOOL
from crow.visible import one_line


def load_settings(home: str) -> Settings:
    """What the user's file says, checked and completed; the defaults if there is none."""
    tighten(home)
    path = config_path(home)
    text = read_config(path)
    return Settings() if text is None else parse_settings(text, path)


def read_config(path: str) -> str | None:
    """The file's text, or None where there is no file."""
    try:
        return read_file(path).decode("utf-8-sig")
    except FileNotFoundError:
        refuse_link_to_nowhere(os.path.dirname(path))
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}, line {line}: expected UTF-8 text, found a byte that is not.") from error


def parse_settings(text: str, path: str) -> Settings:
    """`path` is named in errors, and is what relative paths in the text are relative to."""
    table = parse_toml(text, path)
    try:
        settings = msgspec.convert(table, Settings)
    except msgspec.ValidationError:
        raise ConfigError(f"{path}: {explain(table, Settings)}.") from None
    try:
        _check(settings)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}.") from None
    folder = os.path.dirname(path)
    providers = {name: _complete(name, provider, folder) for name, provider in settings.providers.items()}
    return msgspec.structs.replace(settings, providers=providers)


# --- rules for one start

_SCOPES = {"terminal": "command", "web_fetch": "host", "web_search": "host"}
"""What a rule for the tool names; a path for all others."""


def parse_allowed(written: str) -> PermissionRule:
    """`terminal:npm test *`: a tool, and what a rule for it would name; ConfigError says what was expected."""
    tool, colon, scope = (part.strip() for part in written.partition(":"))
    if re.match(r"\w+\(", written):
        raise ConfigError(
            f'{written!r}: {_no_tool(written)}. Put what it is about after a colon: "terminal:npm test *".'
        )
    if not re.fullmatch(r"[\w-]+\*?", tool) or (colon and not scope):
        raise ConfigError(f'{written!r} allows nothing: expected a tool, like "edit", or "terminal:npm test *".')
    if scope and tool.startswith(SERVER_TOOL):
        raise ConfigError(f"{written!r}: expected the tool alone: MCP tools can only be allowed as a whole.")
    if not _is_tool(tool):
        raise ConfigError(f"{_no_tool(tool)}.")
    rule = PermissionRule(tool, "allow", **({_SCOPES.get(tool, "path"): scope} if scope else {}))
    try:
        _check_rule(repr(written), rule)
    except ValueError as error:
        raise ConfigError(f"{error}.") from None
    return rule


# --- what the types alone cannot say


def _check(settings: Settings) -> None:
    if settings.model and not re.fullmatch(r"[^\s/][^/\n]*/\S[^\n]*", settings.model):
        raise ValueError(f'model: expected provider/model, like "local/qwen3-coder", found {settings.model[:100]!r}')
    for name, provider in settings.providers.items():
        _check_provider(f"providers.{toml_key(name)}", name, provider)
    for number, rule in enumerate(settings.permission.rules):
        _check_rule(f"permission.rules[{number}]", rule)
    for number, host in enumerate(settings.web.allow_private):
        check_host(f"web.allow_private[{number}]", host)
    _check_variable("web.api_key_env", settings.web.api_key_env)
    if settings.web.url:
        check_url("web.url", settings.web.url)
    amounts_of(settings.budget)
    for name, server in settings.mcp_servers.items():
        if bool(server.command) == bool(server.url):
            raise ValueError(f"mcp_servers.{toml_key(name)}: expected either command or url")


def _check_provider(key: str, name: str, provider: ProviderSettings) -> None:
    if not name or "/" in name:
        raise ValueError(f'{key}: expected a name without "/", as models are called provider/model')
    keys = [field for field in ("api_key", "api_key_env", "api_key_command") if getattr(provider, field)]
    if len(keys) > 1:
        raise ValueError(f"{key}: expected one of api_key, api_key_env and api_key_command, not several")
    _check_headers(key, provider, has_key=bool(keys))
    match provider.type:
        case "scripted":
            if not provider.script:
                raise ValueError(f'{key}.script: expected the path of a script, as the type is "scripted"')
        case "openai":
            if not provider.base_url and not _is_vendor(name, provider):
                raise ValueError(f'{key}.base_url: expected the server\'s address, like "http://127.0.0.1:8080/v1"')
        case "anthropic":
            pass
    if provider.base_url:
        check_url(f"{key}.base_url", provider.base_url)
    _check_variable(f"{key}.api_key_env", provider.api_key_env)
    for model, settings in provider.models.items():
        _check_model(f"{key}.models.{toml_key(model)}", settings)


def _check_headers(key: str, provider: ProviderSettings, *, has_key: bool) -> None:
    """The values are not repeated: they may be secrets."""
    if provider.api_key_header and not is_header_name(provider.api_key_header):
        raise ValueError(f"{key}.api_key_header: expected the name of a header, like api-key")
    for name, value in provider.headers.items():
        if not is_header_name(name):
            raise ValueError(f"{key}.headers: expected the name of a header, found {one_line(name, 100)!r}")
        if not is_header_value(value):
            raise ValueError(f"{key}.headers.{toml_key(name)}: expected plain ASCII text without line breaks")
        if has_key and name.lower() in (provider.api_key_header.lower(), *KEY_HEADERS):
            raise ValueError(f"{key}.headers.{toml_key(name)}: remove this header or the key: both carry credentials")


def _check_variable(key: str, name: str) -> None:
    """What stands there by mistake is not repeated: it may be the key."""
    if name and not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{key}: expected the name of a variable, like LOCAL_KEY; put a key itself in api_key")


def _check_model(key: str, model: ModelSettings) -> None:
    if (model.price_input is None) != (model.price_output is None):
        raise ValueError(f"{key}: expected price_input and price_output together")
    if model.price_input is None and (model.price_cached is not None or model.price_cache_write is not None):
        raise ValueError(f"{key}: expected price_input and price_output beside the prices of the cache")
    if not re.fullmatch(r"[A-Z]{3}", model.currency):
        raise ValueError(f'{key}.currency: expected three capital letters, like "EUR"')


def _check_rule(key: str, rule: PermissionRule) -> None:
    scopes = [name for name in ("command", "path", "host") if getattr(rule, name) is not None]
    if len(scopes) > 1:
        raise ValueError(f"{key}: expected at most one of command, path and host, found {' and '.join(scopes)}")
    if not _is_tool(rule.tool):
        raise ValueError(f"{key}.tool: {_no_tool(rule.tool)}")
    for scope in scopes:
        _check_scope(key, rule, scope)
    if rule.digest is not None:
        raise ValueError(f"{key}.digest: expected only command, path or host; leave it out")
    if rule.host == "*":
        raise ValueError(f"{key}.host: expected a host; leave it out to mean every host")
    if rule.host is not None:
        check_host(f"{key}.host", rule.host)


_TOOLS_WITH = {
    "command": ("terminal",),
    "path": ("read", "write", "edit", "find", "search"),
    "host": ("web_fetch", "web_search"),
}
"""The tools whose calls have such a thing. What the tools of servers have is not known."""


def _check_scope(key: str, rule: PermissionRule, scope: str) -> None:
    """A rule that refuses must not be without effect because it is about something that the tool does not have."""
    if not getattr(rule, scope).strip() and scope != "host":
        raise ValueError(f"{key}.{scope}: expected a {scope}; leave it out to mean every call of the tool")
    if scope == "command":
        _check_command(f"{key}.command", rule.command or "")
    tools = _TOOLS_WITH[scope]
    beginning = rule.tool.removesuffix("*")
    if rule.tool in tools or beginning.startswith(SERVER_TOOL):
        return
    if not (rule.tool.endswith("*") and any(tool.startswith(beginning) for tool in tools)):
        raise ValueError(
            f"{key}: {rule.tool} has no {scope}, so the rule would have no effect; expected one of the tools that have "
            f"one: {', '.join(tools)}"
        )


_OPERATOR = re.compile(r"(?:^|\s)(?:\|\|?|&&?|[<>]>?)(?=\s|$)|;(?=\s|$)|\n")


def _check_command(key: str, command: str) -> None:
    if found := _OPERATOR.search(unquoted(command)):
        what = f'"{found[0].strip()}"' if found[0].strip() else "a line break"
        raise ValueError(f"{key}: expected a single command, found {what}; write one rule for each")


def unquoted(command: str) -> str:
    """The parts of a command that a shell would read as it does, and not as mere text."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\\.", "", command)


def _is_tool(name: str) -> bool:
    """Whether a rule can be about anything. Which tools a server will have is not known before it runs."""
    if not name.endswith("*"):
        return name in TOOLS or re.fullmatch(rf"{SERVER_TOOL}[\w-]+?__[\w-]+", name) is not None
    beginning = name[:-1]
    return beginning.startswith(SERVER_TOOL) or any(tool.startswith(beginning) for tool in (*TOOLS, SERVER_TOOL))


_ELSEWHERE = {"bash": "terminal", "shell": "terminal", "grep": "search", "glob": "find", "webfetch": "web_fetch"}
"""What other agents call them."""


def _no_tool(name: str) -> str:
    """A rule that refuses must not be without effect because of a slip of the pen."""
    from difflib import get_close_matches

    plain = re.match(r"\w*", name.casefold())
    near = get_close_matches(plain[0] if plain else "", (*TOOLS, *_ELSEWHERE), n=1)
    hint = f' (did you mean "{_ELSEWHERE.get(near[0], near[0])}"?)' if near else ""
    return (
        f'unknown tool "{one_line(name, 100)}"{hint}. Available: '
        f"{', '.join(TOOLS)}; and those of MCP servers, such as {SERVER_TOOL}server__tool or {SERVER_TOOL}server__*"
    )


# --- what may be left out


def _complete(name: str, provider: ProviderSettings, folder: str) -> ProviderSettings:
    """Paths become absolute; a vendor's address and usual key variable need not be spelled out."""
    base_url, api_key_env = provider.base_url, provider.api_key_env
    vendor_name = "anthropic" if provider.type == "anthropic" else name
    if not base_url and _is_vendor(vendor_name, provider):
        vendor = VENDORS[vendor_name]
        base_url = vendor.base_url
        # Only for the vendor's own address: its key must never travel to another server by default.
        if not provider.has_credentials:
            api_key_env = vendor.key_variable
    return msgspec.structs.replace(
        provider,
        base_url=base_url,
        api_key_env=api_key_env,
        script=_absolute(provider.script, folder),
        record=_absolute(provider.record, folder),
    )


def _is_vendor(name: str, provider: ProviderSettings) -> bool:
    return name in VENDORS and VENDORS[name].type == provider.type


def _absolute(path: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path))) if path else ""


# --- what may be written, and cannot work


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
            yield f'{key}.{name}: has no effect with type "{provider.type}"'


def _about_address(key: str, server: McpServerSettings) -> Iterator[str]:
    try:
        check_url(f"{key}.url", server.url)
    except ValueError as error:
        yield str(error)
    if server.type == "stdio":
        yield f'{key}.type: expected "http" or "sse" beside url, found "stdio"'
    for unused in ("args", "env"):
        if getattr(server, unused):
            yield f"{key}.{unused}: expected only with command; Crow does not start a server with a url"
    for name, value in server.headers.items():
        if not is_header_name(name):
            yield f"{key}.headers: expected the name of a header, found {one_line(name, 100)!r}"
        elif not is_header_value(value):
            yield f"{key}.headers.{toml_key(name)}: expected plain ASCII text without line breaks"


def _about_program(key: str, server: McpServerSettings) -> Iterator[str]:
    if server.type in ("http", "sse"):
        yield f'{key}.type: expected "stdio" beside command, found "{server.type}"'
    if server.headers:
        yield f"{key}.headers: expected only with url; for a program, use env"
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
            f'{key}.command: the * in "{one_line(rule.command or "", 100)}" only stands for itself; expected it as the '
            "last word of its own, which stands for any further words, or in quotes"
        )
