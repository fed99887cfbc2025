"""What `crow doctor` checks of providers, the default model and MCP servers: asks each provider for its models and
starts each server.

All providers are asked at the same time, for a few seconds. Each MCP server is started, asked for its tools, and ended;
`crow mcp list` and `crow mcp test` use the same.
"""

import asyncio
import os
import shlex
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from crow.actions import Filled, Form, Link
from crow.cli.models import TIME_LIMIT, if_listed
from crow.cli.pick import is_same_model, named
from crow.cli.process import in_a_folder
from crow.cli.render_screen import counted
from crow.config.discovery import Discovery, has_key, how_to_choose, split_model, variables_of, without_a_model
from crow.config.hosts import shown_address
from crow.config.settings import Limits, McpServerSettings, ProviderSettings, Settings
from crow.config.toml import toml_key, toml_string
from crow.errors import CrowError
from crow.mcp.client.configured import ConfiguredServer, Origin, shown_name
from crow.model.base import ModelInfo
from crow.model.endpoint import find_endpoint
from crow.visible import one_line

if TYPE_CHECKING:
    from crow.mcp.client.hub import ServerStatus


class Check(msgspec.Struct, frozen=True):
    """The result of a check: what was found, and how to fix it."""

    outcome: Literal["fine", "warn", "failed"]
    text: str
    remedy: str = ""


def fine(text: str, remedy: str = "") -> Check:
    return Check("fine", text, remedy)


def warn(text: str, remedy: str) -> Check:
    return Check("warn", text, remedy)


def failed(text: str, remedy: str) -> Check:
    return Check("failed", text, remedy)


# --- models

USUAL_WINDOW = 65536


ProviderCheck = tuple[Check, list[ModelInfo] | None]
"""What came of asking a provider, and its models; None if it was not asked, failed, or has no list."""
ModelsByProvider = Mapping[str, list[ModelInfo] | None]
"""What each provider lists."""


async def check_models(found: Discovery, settings: Settings, *, offline: bool, ask: bool = False) -> list[Check]:
    """With `ask`, the default model is asked for an answer too, which costs a few tokens."""
    main = split_model(found.default)[0]
    answers = await asyncio.gather(
        *(
            _check_provider(name, provider, needed=name == main, offline=offline)
            for name, provider in found.providers.items()
        )
    )
    models = dict(zip(found.providers, (listed for _, listed in answers), strict=True))
    checks = [check for check, _ in answers]
    checks += _check_default(found, models, settings) if found.default else [_nothing_chosen(found, models)]
    if ask and not offline and found.default and not any(check.outcome == "failed" for check in checks):
        checks.append(await _try_default(found))
    return [_without_secrets(check, found, settings) for check in checks]


async def _check_provider(name: str, provider: ProviderSettings, *, needed: bool, offline: bool) -> ProviderCheck:
    from crow.model.listing import list_models

    # What the default model does not depend on is worth a warning only.
    bad = failed if needed else warn
    place = f"{name} at {shown_address(provider.base_url)}"
    if provider.type == "scripted":
        is_there = os.path.isfile(provider.script)
        missing = bad(f"{name}: script not found: {provider.script}", "Fix the path in the config.")
        return (fine(f"{name} plays {provider.script}") if is_there else missing), None
    if not has_key(provider, os.environ):
        remedy = f"Set it where crow is started, or store a key: crow login --provider {name}"
        return bad(f"{name} has no key: the variable {provider.api_key_env} is not set", remedy), None
    try:
        find_endpoint(name, provider, os.environ)
        if offline:
            return fine(f"{place} (not asked){_key_note(provider)}"), None
        models = await if_listed(list_models(name, provider, os.environ))
    except TimeoutError:
        return bad(f"{place} did not answer within {TIME_LIMIT} s", "Check the network and the address."), None
    except CrowError as error:
        return bad(f"{name}: {error.message}", error.remedy or f"crow login --provider {name}"), None
    if models is None:
        remedy = "Some servers have none. If this one should, check base_url.\nTo test the model: crow doctor --try"
        return warn(f"{place} has no list of models", remedy), None
    return fine(f"{place} lists {counted(len(models), 'model')}{_key_note(provider)}"), models


def _key_note(provider: ProviderSettings) -> str:
    if provider.api_key_command:
        return "; key from api_key_command"
    if not provider.api_key_env:
        return ""
    return f"; key in the variable {provider.api_key_env}, which an editor started from the desktop may not see"


def _nothing_chosen(found: Discovery, models: ModelsByProvider) -> Check:
    remedy = how_to_choose(found, os.environ)
    name = without_a_model(found, os.environ)
    if listed := models.get(name):
        remedy += "\n" + named(name, [info.model for info in listed])
    return failed("no model is set up", remedy)


def _check_default(found: Discovery, models: ModelsByProvider, settings: Settings) -> Iterable[Check]:
    from crow.model.catalog import describe

    try:
        info = describe(found.default, found.providers)
    except CrowError as error:
        yield failed(f"the model {found.default} (from {found.chosen_by}): {error.message}", error.remedy)
        return
    listed = models.get(info.provider)
    same = [other for other in listed or [] if is_same_model(other.model, info.model)]
    if listed is not None and not same:
        yield failed(
            f"the model {found.default} (from {found.chosen_by}) is not in the list of {info.provider}",
            named(info.provider, [other.model for other in listed], info.model)
            + f"\nChoose one: crow login --provider {info.provider}",
        )
        return
    # Listed is not the same as answering: some lists are public, and see no key.
    known = f"; {info.provider} lists it" if same else ""
    yield fine(f"the model is {found.default} (from {found.chosen_by}){known}")
    if info.context_window is None and not any(other.context_window for other in same):
        yield warn(
            f"the context window of {found.default} is unknown",
            f"Set it in the config:\n{_of_provider(info.provider, found, settings)}"
            f"[providers.{toml_key(info.provider)}.models.{toml_key(info.model)}]\ncontext_window = {USUAL_WINDOW}",
        )


def _of_provider(name: str, found: Discovery, settings: Settings) -> str:
    """What the config must have before a model of the provider can be described in it; nothing if it has it."""
    if name in settings.providers:
        return ""
    provider = found.providers[name]
    lines = [f"[providers.{toml_key(name)}]", f'type = "{provider.type}"']
    if shown := shown_address(provider.base_url):
        hidden = "" if shown == provider.base_url else "  # with what is hidden here"
        lines.append(f"base_url = {toml_string(shown)}{hidden}")
    lines += [f"api_key_env = {toml_string(provider.api_key_env)}"] if provider.api_key_env else []
    return "\n".join(lines) + "\n"


async def _try_default(found: Discovery) -> Check:
    from crow.model.listing import try_model

    try:
        await try_model(found.default, found.providers, os.environ)
    except CrowError as error:
        return failed(f"{found.default} does not answer: {error.message}", error.remedy)
    return fine(f"{found.default} answers")


def _without_secrets(check: Check, found: Discovery, settings: Settings) -> Check:
    """Providers may quote what they were sent."""
    from crow.model.credentials import scrub

    providers = (*found.providers.values(), *settings.providers.values())
    keys = [provider.api_key or os.environ.get(provider.api_key_env, "").strip() for provider in providers]
    keys += [os.environ.get(name, "").strip() for provider in providers for name in variables_of(provider)]
    return Check(check.outcome, scrub(check.text, keys), scrub(check.remedy, keys))


# --- MCP servers


def check_servers(settings: Settings, home: str, *, offline: bool) -> Iterable[Check]:
    """A broken server costs only its own tools; but whoever asks a doctor wants to know."""
    servers = settings.mcp_servers
    if offline:
        yield from (fine(f"the MCP server {shown_name(name)} (not started)") for name in servers)
        return
    for server in try_servers(servers, settings.limits, home):
        yield check_of(server, servers[server.name], home)


def check_of(server: "ServerStatus", settings: McpServerSettings, home: str) -> Check:
    name = f"the MCP server {shown_name(server.name)}"
    if server.state == "ready":
        return fine(f"{name} has {counted(len(server.tools), 'tool')}")
    cause = one_line(server.cause or server.state, 500)
    if server.wants_login:
        return warn(f"{name}: {cause}", "Then it can be used.")
    from crow.mcp.client.stdio import stderr_path

    place = "Address:" if settings.url else "Command:"
    remedy = f"{server.remedy}\n" if server.remedy else ""
    printed = f"Its output: {stderr_path(home, server.known_as)}\n" if server.has_printed else ""
    return failed(
        f"{name}: {cause}",
        f"{place} {shown_settings(settings)}\n{remedy}{printed}"
        f"Fix [mcp_servers.{toml_key(server.name)}] in the config, "
        f"then run: crow mcp test {shlex.quote(server.name)}",
    )


def shown_settings(settings: McpServerSettings) -> str:
    """How a server is reached, without what may be secret in it."""
    if settings.url:
        return shown_address(settings.url)
    return one_line(shlex.join([settings.command, *settings.args]), 500)


def try_servers(servers: Mapping[str, McpServerSettings], limits: Limits, home: str) -> "list[ServerStatus]":
    """Starts all of them at once, waits until each is ready or has failed, and ends them."""
    return asyncio.run(_try(servers, limits, home)) if servers else []


PATIENCE = 10.0
"""Seconds that a server has at least: no prompt waits for it here."""


async def _try(servers: Mapping[str, McpServerSettings], limits: Limits, home: str) -> "list[ServerStatus]":
    from crow.commands.processes import ForkServer
    from crow.mcp.client.hub import Hub
    from crow.mcp.client.inventory import ConnectionContext
    from crow.mcp.client.server_errors import silence_library

    silence_library()
    patient = msgspec.structs.replace(limits, mcp_start=max(limits.mcp_start, PATIENCE))
    fork_server = ForkServer()
    around = ConnectionContext(
        fork_server=fork_server,
        home=home,
        roots=(os.getcwd() if in_a_folder() else home,),
        environ=os.environ,
        asker=_Nobody(),
        limits=lambda: patient,
        tell=lambda notice: None,
    )
    hub = Hub(around, lambda: None)
    try:
        hub.use({name: ConfiguredServer(name, Origin.CONFIG, settings) for name, settings in servers.items()})
        await hub.settled()
        return hub.status()
    finally:
        await hub.close()
        await fork_server.close()


class _Nobody:
    """Nobody answers a server that is only tried."""

    can_visit = False

    async def fill_in(self, form: Form) -> Filled:
        return Filled("cancel")

    async def visit(self, link: Link) -> bool:
        return False

    def visited(self, link_id: str) -> None:
        pass
