"""What a project would start or load (MCP servers, commands, skills, settings), laid out for the question of trust.

Nothing of it has an effect before it is trusted, and the person is shown all of it before they are asked. Its config
can ask for more caution than the user's, never for less: how a provider is reached, and whose key goes there, is the
user's alone to say.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from shlex import quote
from typing import Any, cast

import msgspec

from crow.config.load import parse_settings
from crow.config.settings import Amount, Limits, McpServerSettings, Mode, PermissionRule, amounts_of
from crow.config.toml import parse_toml
from crow.errors import ConfigError
from crow.paths import shown
from crow.project.folder_files import OF_PROJECT, PromptFiles, Snapshot, prompt_files_in
from crow.results import TextBlock
from crow.visible import every_line, one_line, warning

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]{0,500}))?\}")

LONGEST_LINE = 64 * 1024
"""The end of a line is where it hurts: none is cut, as no file is larger than this."""


CAUTION: tuple[Mode, ...] = ("plan", "ask", "edit", "auto")
"""The modes, the most careful first."""

USERS_ALONE = (
    *("providers", "web", "terminal.use_client"),
    *("limits.retry_wait", "limits.stream_idle", "limits.first_token"),
)


class ProjectConfig(msgspec.Struct, frozen=True):
    """The settings of `.crow/config.toml` that may count. None or empty: the file does not set it."""

    rules: tuple[PermissionRule, ...] = ()
    mode: Mode | None = None
    model: str = ""
    limits: dict[str, float] = {}
    budgets: dict[str, tuple[Amount, ...]] = {}
    terminal_timeout: float | None = None
    servers: dict[str, McpServerSettings] = {}
    passed_over: tuple[str, ...] = ()
    """Keys that are the user's alone to set."""

    def lowered(self, limits: Limits) -> Limits:
        """The user's limits, each lowered where the project wants less."""
        lower = {name: min(value, getattr(limits, name)) for name, value in self.limits.items()}
        return msgspec.structs.replace(limits, **lower)


def read_project_config(content: bytes, path: str) -> ProjectConfig:
    """Reads the file. ConfigError names the file and the key that is wrong."""
    try:
        text = content.decode("utf-8-sig")
        table = parse_toml(text, shown(path))
        settings = parse_settings(text, shown(path))
    except UnicodeDecodeError:
        raise ConfigError(f"{shown(path)}: expected UTF-8 text, found a byte that is not.") from None
    except ValueError as error:  # a number with more digits than can be read
        raise ConfigError(f"{shown(path)}: {error}.") from None
    given = [*table, *(f"{name}.{key}" for name in ("terminal", "limits") for key in _keys(table, name))]
    return ProjectConfig(
        rules=tuple(settings.permission.rules),
        mode=settings.mode if "mode" in table else None,
        model=settings.model,
        limits={
            name: getattr(settings.limits, name)
            for name in _keys(table, "limits")
            if f"limits.{name}" not in USERS_ALONE
        },
        budgets=amounts_of(settings.budget),
        terminal_timeout=settings.terminal.timeout if "terminal.timeout" in given else None,
        servers=settings.mcp_servers,
        passed_over=tuple(key for key in given if key in USERS_ALONE),
    )


def tightening_rules(content: bytes) -> tuple[PermissionRule, ...]:
    """The rules that refuse or ask, and can be read, of a file with a mistake in it: a mistake must not loosen."""
    rules: list[PermissionRule] = []
    try:
        table: Any = parse_toml(content.decode("utf-8-sig"), "")
        for rule in table["permission"]["rules"]:
            with contextlib.suppress(msgspec.ValidationError):
                rules.append(msgspec.convert(rule, PermissionRule))
    except (UnicodeDecodeError, ValueError, ConfigError, LookupError, TypeError):
        pass
    return tuple(rule for rule in rules if rule.decision != "allow")


def _keys(table: dict[str, object], name: str) -> list[str]:
    """The keys of a table within the table, which was found to be right."""
    return list(cast("dict[str, object]", table.get(name, {})))


def is_looser(mode: Mode, than: Mode) -> bool:
    return CAUTION.index(mode) > CAUTION.index(than)


class ProjectOffer(msgspec.Struct, frozen=True):
    root: str
    digest: str
    """The digest of all its files; empty if it brings nothing."""
    prompt_files: PromptFiles = PromptFiles()
    config: ProjectConfig = ProjectConfig()
    servers: dict[str, McpServerSettings] = {}
    """The MCP servers of `.mcp.json` and `.crow/config.toml`; of two with one name the latter counts."""
    with_variables: frozenset[str] = frozenset()
    """The names of servers in which `${VARIABLE}` stands for a value, as `.mcp.json` allows."""
    problems: tuple[str, ...] = ()
    """What is wrong with its files. A file that is right counts all the same."""
    texts: dict[str, str] = {}
    """The texts of commands and skills, by path."""
    left_out: tuple[str, ...] = ()
    """The files that are skipped, each with the reason."""
    programs: tuple[str, ...] = ()
    """Files that the commands of its servers name; their content is in the digest, and not shown."""


def read_offer(snapshot: Snapshot) -> ProjectOffer:
    if not snapshot.files:
        return ProjectOffer(snapshot.base, "")
    problems: list[str] = []
    config = ProjectConfig()
    config_file, servers_file = (snapshot.files.get(path, b"").strip() for path in OF_PROJECT.single)
    if config_file:
        try:
            config = read_project_config(config_file, f"{snapshot.base}/{OF_PROJECT.single[0]}")
        except ConfigError as error:
            config = ProjectConfig(rules=tightening_rules(config_file))
            count = f" Of its rules, only the {len(config.rules)} that refuse or ask count." if config.rules else ""
            problems.append(f"{error}{count}")
    shared = servers_in(servers_file, f"{snapshot.base}/{OF_PROJECT.single[1]}", problems) if servers_file else {}
    prompt_files = prompt_files_in(snapshot, OF_PROJECT)
    return ProjectOffer(
        root=snapshot.base,
        digest=snapshot.digest,
        prompt_files=prompt_files,
        config=config,
        servers={**shared, **config.servers},
        with_variables=frozenset(shared.keys() - config.servers.keys()),
        problems=tuple(problems),
        texts={
            path: content.decode("utf-8", "replace")
            for path, content in snapshot.files.items()
            if path not in OF_PROJECT.single
        },
        left_out=prompt_files.unused,
    )


class _Servers(msgspec.Struct, frozen=True):
    mcp_servers: dict[str, msgspec.Raw] = msgspec.field(default={}, name="mcpServers")


def servers_in(content: bytes, path: str, problems: list[str]) -> dict[str, McpServerSettings]:
    """The servers that are right; what is wrong with others joins `problems`. Keys of other agents are passed over."""
    try:
        found = msgspec.json.decode(content, type=_Servers).mcp_servers
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problems.append(str(ConfigError(f"{shown(path)}: {error}.")))
        return {}
    servers: dict[str, McpServerSettings] = {}
    for name, fields in found.items():
        try:
            servers[name] = _server(fields)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problems.append(f"{shown(path)}, server {name!r}: {str(error).rstrip('.')}. It is ignored.")
    return servers


def _server(content: msgspec.Raw) -> McpServerSettings:
    fields = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    known = {key: value for key, value in fields.items() if key in McpServerSettings.__struct_fields__}
    server = msgspec.json.decode(msgspec.json.encode(known), type=McpServerSettings)
    if bool(server.command) == bool(server.url):
        raise msgspec.ValidationError("expected either command or url")
    return server


class VariablesMissing(Exception):
    """`names` have neither a value nor a default."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))


def expand_variables(server: McpServerSettings, environ: Mapping[str, str]) -> McpServerSettings:
    """The server with values in the place of `${VARIABLE}` and `${VARIABLE:-default}`. VariablesMissing if one has no
    value."""
    missing: dict[str, None] = {}

    def value(match: re.Match[str]) -> str:
        name, default = match.groups()
        if default is None and name not in environ:
            missing[name] = None
        return environ.get(name, "") or default or ""

    def fill(text: str) -> str:
        return VARIABLE.sub(value, text)

    filled = msgspec.structs.replace(
        server,
        command=fill(server.command),
        args=[fill(word) for word in server.args],
        env={name: fill(text) for name, text in server.env.items()},
        url=fill(server.url),
        headers={name: fill(text) for name, text in server.headers.items()},
    )
    if missing:
        raise VariablesMissing(list(missing))
    return filled


def shown_server(server: McpServerSettings) -> str:
    """The command line or the address of a server, whole, as a shell would take it."""
    values = [f"{name}={quote(value)}" for name, value in server.env.items()]
    what = [quote(word) for word in (server.command, *server.args)] if server.command else [server.url]
    headers = [f"with {name}: {quote(value)}" for name, value in server.headers.items()]
    return " ".join((*values, *what, *headers))


def trust_display(offer: ProjectOffer) -> tuple[TextBlock, ...]:
    overview = "\n".join([f"Project: {one_line(shown(offer.root), 1000)}", *_overview(offer)])
    return (TextBlock(overview), *_text_blocks(offer))


def _overview(offer: ProjectOffer) -> Iterator[str]:
    servers = (f"{name}: {shown_server(server)}" for name, server in offer.servers.items())
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("MCP servers that it would start or connect to:", servers),
        ("Files that these servers run, not shown here (you are asked again when one changes):", offer.programs),
        ("Rules:", map(_rule, offer.config.rules)),
        ("Settings:", _settings(offer)),
        ("Commands:", (f"/{known.name}: {known.description}" for known in offer.prompt_files.commands)),
        ("Skills:", (f"{known.name}: {known.description}" for known in offer.prompt_files.skills)),
        ("Ignored, because only you can set these:", offer.config.passed_over),
        ("Ignored, because of an error:", offer.problems),
        ("Skipped:", offer.left_out),
    )
    for title, lines in sections:
        if shown_lines := [f"  {one_line(line, LONGEST_LINE)}" for line in lines]:
            yield from ("", title, *shown_lines)


def _rule(rule: PermissionRule) -> str:
    scope = next((text for text in (rule.command, rule.path, rule.host) if text is not None), "")
    effect = " (no effect: a project's rules can only tighten)" if rule.decision == "allow" else ""
    return f"{rule.decision} {rule.tool} {scope}".rstrip() + effect


def _settings(offer: ProjectOffer) -> Iterator[str]:
    config = offer.config
    if config.mode:
        yield f"mode = {config.mode} (only if yours is not stricter)"
    if config.model:
        yield f"model = {config.model} (only if you have it set up)"
    lowered = {f"limits.{name}": f"{value:g}" for name, value in config.limits.items()}
    lowered |= {f"budget.{scope}": str(amount) for scope, amounts in config.budgets.items() for amount in amounts}
    if config.terminal_timeout is not None:
        lowered["terminal.timeout"] = f"{config.terminal_timeout:g}"
    for name, value in lowered.items():
        yield f"{name} = {value} (only if yours is not lower)"


def _text_blocks(offer: ProjectOffer) -> Iterator[TextBlock]:
    """The texts, whole: what was not shown could not be trusted. A snapshot holds no more than can be shown."""
    for path, text in offer.texts.items():
        yield TextBlock(f"{one_line(shown(path), 1000)}\n\n{every_line(text)}")
        if remark := warning(text):
            yield TextBlock(remark, prose=True)
