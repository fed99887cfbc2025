"""Finds models without a configuration: by keys in the environment, and on model servers of this machine.

What a session begins with is decided here, and what variables such as CROW_MODE may hold.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import cast

import msgspec

from crow.config.hosts import shown_address
from crow.config.load import parse_allowed
from crow.config.settings import MODES, VENDORS, Mode, ProviderSettings, Settings, WebSettings
from crow.config.toml import explain
from crow.errors import ConfigError
from crow.visible import one_line

LOCAL_SERVERS = {"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000}
"""Where the usual model servers listen; the variable CROW_LOCAL_SERVERS ("name=port,name=port") says otherwise."""

MODEL = "CROW_MODEL"
"""The variable that names the model, whatever the configuration says."""
MODE = "CROW_MODE"
PATIENCE = "CROW_PATIENCE"
ALLOW = "CROW_ALLOW"
"""Holds what `crow run --allow` was given, one a line. No command gets to see it."""
MCP_TOKEN = "CROW_MCP_TOKEN"  # noqa: S105 -- the name of a variable
"""What the clients of `crow mcp --http` have to show."""
KNOWN = ("CROW_HOME", MODEL, MODE, "CROW_LOCAL_SERVERS", PATIENCE, ALLOW, MCP_TOKEN)

SHORTEST_PATIENCE = 0.05

HOW_TO_SET_UP = "Run `crow login` in a terminal, set a key such as ANTHROPIC_API_KEY, or start a local model server."

_OTHER_MODELS = re.compile(r"embed|rerank|moderation|whisper|transcribe|tts|realtime|dall-e|image", re.IGNORECASE)


class Discovery(msgspec.Struct, frozen=True):
    """The providers there are: configured ones first, then those of the environment, then servers on this machine."""

    providers: dict[str, ProviderSettings]
    local_models: dict[str, list[str]] = {}
    """What each server on this machine offers; a server without a model yet has an empty list."""
    default: str = ""
    """The model to use, `provider/model`; empty if none is known."""
    chosen_by: str = ""
    """What named the default, for people: a variable, the config file, or a server."""


def from_environment(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """Everything that can be known without asking anyone on the network."""
    providers = dict(settings.providers)
    for name, vendor in VENDORS.items():
        if name not in providers and (variable := vendor.variable_in(environ)):
            providers[name] = ProviderSettings(
                type=vendor.type, base_url=vendor.address_in(environ), api_key_env=variable
            )
    default, chosen_by = _default(settings, providers, environ)
    name = split_model(default)[0]
    servers = local_servers(environ)
    if name in servers and name not in providers:
        # A model of a server on this machine can be named without configuring the server.
        providers[name] = local_provider(servers[name])
    return Discovery(providers=providers, default=default, chosen_by=chosen_by)


async def discover(settings: Settings, environ: Mapping[str, str]) -> Discovery:
    """The same; and, if no model is known for certain yet, what the servers on this machine offer."""
    known = from_environment(settings, environ)
    if known.default and not _is_tentative(known):
        return known
    return await add_local_servers(known, environ)


async def add_local_servers(known: Discovery, environ: Mapping[str, str]) -> Discovery:
    servers = {name: port for name, port in local_servers(environ).items() if name not in known.providers}
    if not servers:
        return known
    found = await probe(servers)
    default, chosen_by, is_open = known.default, known.chosen_by, not known.default or _is_tentative(known)
    for name, models in found.items():
        usable = [model for model in models if can_chat(model)]
        if is_open and usable:
            is_open = False
            default, chosen_by = f"{name}/{usable[0]}", f"the server at 127.0.0.1:{servers[name]}"
    return Discovery(
        providers=known.providers | {name: local_provider(servers[name]) for name in found},
        local_models=found,
        default=default,
        chosen_by=chosen_by,
    )


def _is_tentative(known: Discovery) -> bool:
    """Whether the default is there only because of a key that may not be meant for models at all."""
    vendor = VENDORS.get(split_model(known.default)[0])
    return vendor is not None and vendor.key_has_other_uses and known.chosen_by in vendor.key_variables


def _default(settings: Settings, providers: dict[str, ProviderSettings], environ: Mapping[str, str]) -> tuple[str, str]:
    if environ.get(MODEL):
        return environ[MODEL], MODEL
    if settings.model:
        return settings.model, "the config file"
    for name, provider in providers.items():
        model = first_model(name, provider)
        if model and has_key(provider, environ):
            configured = name in settings.providers
            return f"{name}/{model}", "the config file" if configured else provider.api_key_env
    return "", ""


def first_model(name: str, provider: ProviderSettings) -> str:
    """The model to begin with: the first that the config describes, else the vendor's; empty if neither is there."""
    if provider.models:
        return next(iter(provider.models))
    vendor = VENDORS.get(name)
    return vendor.default_model if vendor and vendor.is_at(provider.base_url) else ""


def without_a_model(found: Discovery, environ: Mapping[str, str]) -> str:
    """The first provider that could be used if somebody chose a model of it; empty if there is none."""
    usable = (name for name, provider in found.providers.items() if provider.type != "scripted")
    return next((name for name in usable if has_key(found.providers[name], environ)), "")


def how_to_choose(found: Discovery, environ: Mapping[str, str]) -> str:
    """What to do where there is no default model."""
    name = without_a_model(found, environ)
    if not name:
        return HOW_TO_SET_UP
    provider = found.providers[name]
    what = f"{provider.api_key_env} is set for" if provider.api_key_env else f"{name} is set up at"
    return (
        f"{what} {shown_address(provider.base_url)}, but no model is chosen. Run `crow login --provider {name}`, or "
        f"set {MODEL}={name}/NAME."
    )


def has_key(provider: ProviderSettings, environ: Mapping[str, str]) -> bool:
    """False if the provider wants its key from a variable that is not set."""
    return not provider.api_key_env or bool(environ.get(provider.api_key_env, "").strip())


def can_chat(model: str) -> bool:
    """False for what servers list beside their language models."""
    return not _OTHER_MODELS.search(model)


def split_model(name: str) -> tuple[str, str]:
    """`provider/model` in two; a model's own name may hold further slashes."""
    provider, _, model = name.partition("/")
    return provider, model


def local_provider(port: int) -> ProviderSettings:
    return ProviderSettings(type="openai", base_url=f"http://127.0.0.1:{port}/v1")


def local_servers(environ: Mapping[str, str]) -> dict[str, int]:
    """The table above, or what CROW_LOCAL_SERVERS says; empty means that none is looked for."""
    text = environ.get("CROW_LOCAL_SERVERS")
    if text is None:
        return LOCAL_SERVERS
    servers: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, port = item.partition("=")
        if not re.fullmatch(r"[\w.-]+", name) or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ConfigError(f'CROW_LOCAL_SERVERS: expected "name=port,name=port", found "{item}".')
        servers[name] = int(port)
    return servers


# --- asking the servers on this machine which models they have

# It runs while an editor waits for its session, so it costs next to nothing: one plain HTTP/1.1 request per port on
# asyncio's own streams, all at once. Whatever answers there and is no model server is passed over in silence.

PROBE_TIMEOUT = 0.2
"""Seconds, for all servers together."""
LARGEST_ANSWER = 256 * 1024


class _Entry(msgspec.Struct):
    id: str


class _ModelList(msgspec.Struct):
    data: list[_Entry]


class _NoModelServer(Exception):
    pass


async def probe(servers: dict[str, int]) -> dict[str, list[str]]:
    """The models of each server (name to port) that answered in time, in the given order."""
    tasks = {name: asyncio.create_task(_list_models(port)) for name, port in servers.items()}
    try:
        await asyncio.wait(tasks.values(), timeout=PROBE_TIMEOUT)
    finally:
        for task in tasks.values():
            task.cancel()
        answers = await asyncio.gather(*tasks.values(), return_exceptions=True)
    return {name: answer for name, answer in zip(tasks, answers, strict=True) if isinstance(answer, list)}


async def _list_models(port: int) -> list[str] | None:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LARGEST_ANSWER)
    except OSError:
        return None
    try:
        writer.write(
            f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            "Accept: application/json\r\nConnection: close\r\n\r\n".encode()
        )
        body = await _read_body(reader)
        return [entry.id for entry in msgspec.json.decode(body, type=_ModelList).data]
    except (_NoModelServer, OSError, EOFError, ValueError, asyncio.LimitOverrunError):
        return None
    finally:
        writer.close()


async def _read_body(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    if not re.match(r"http/1\.[01] 200\b", head):
        raise _NoModelServer
    if re.search(r"\r\ntransfer-encoding:[^\r]*\bchunked\b", head):
        return await _read_chunks(reader)
    if length := re.search(r"\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n", head):
        return await _read_exactly(reader, int(length[1]))
    return await _read_to_end(reader)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += await _read_exactly(reader, size, already=len(body))
        await reader.readexactly(2)
    return body


async def _read_exactly(reader: asyncio.StreamReader, size: int, *, already: int = 0) -> bytes:
    if not 0 <= size <= LARGEST_ANSWER - already:
        raise _NoModelServer
    return await reader.readexactly(size)


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while piece := await reader.read(64 * 1024):
        body += piece
        if len(body) > LARGEST_ANSWER:
            raise _NoModelServer
    return body


# --- what the variables may hold: a value that cannot be used is an error, as in the configuration


def mode_in(environ: Mapping[str, str]) -> Mode | None:
    """The mode that sessions begin with, whatever the configuration says; None if the variable is not set."""
    wanted = environ.get(MODE, "")
    if wanted and wanted not in MODES:
        raise ConfigError(f"{explain(wanted, Mode, MODE)}.")
    return cast("Mode", wanted) or None


def patience_in(environ: Mapping[str, str], default: float) -> float:
    """Seconds after which a wait is named."""
    written = environ.get(PATIENCE, "")
    if not written.strip():
        return default
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f'{PATIENCE}: expected seconds, a number above 0, found "{one_line(written, 100)}".')
    return max(seconds, SHORTEST_PATIENCE)


def check_model(environ: Mapping[str, str]) -> None:
    """Whether it is written as a model is. Which there are, only the providers know."""
    written = environ.get(MODEL, "")
    if written and not all(split_model(written)):
        raise ConfigError(
            f'{MODEL}: expected provider/model, found "{one_line(written, 100)}".',
            remedy="`crow models` lists the models available.",
        )


def with_allowed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The settings with what is allowed for this start."""
    try:
        rules = [parse_allowed(line) for line in environ.get(ALLOW, "").splitlines() if line.strip()]
    except ConfigError as error:
        raise ConfigError(f"{ALLOW}: {error}") from None
    if not rules:
        return settings
    permission = msgspec.structs.replace(settings.permission, rules=[*settings.permission.rules, *rules])
    return msgspec.structs.replace(settings, permission=permission)


def mistakes(environ: Mapping[str, str]) -> Iterator[ConfigError]:
    """What is wrong with each variable."""
    checks: tuple[Callable[[], object], ...] = (
        lambda: mode_in(environ),
        lambda: patience_in(environ, SHORTEST_PATIENCE),
        lambda: check_model(environ),
        lambda: local_servers(environ),
        lambda: with_allowed(Settings(), environ),
    )
    for check in checks:
        try:
            check()
        except ConfigError as error:
            yield error


def check_variables(environ: Mapping[str, str]) -> None:
    """ConfigError says what is wrong with the first that cannot be used."""
    for mistake in mistakes(environ):
        raise mistake


# --- the variables that hold keys of ours: no command and no server gets to see them


def variables_of(provider: ProviderSettings) -> set[str]:
    """The variables that the provider's key and headers are taken from."""
    named = {name for value in provider.headers.values() for name in re.findall(r"\$\{(\w+)\}", value)}
    return named | ({provider.api_key_env} if provider.api_key_env else set[str]())


def key_variables(providers: Iterable[ProviderSettings], web: WebSettings) -> set[str]:
    configured = {web.api_key_env}.union(*map(variables_of, providers))
    vendors = {name for vendor in VENDORS.values() for name in vendor.key_variables}
    return {name for name in configured if name} | vendors | {MCP_TOKEN, ALLOW}
