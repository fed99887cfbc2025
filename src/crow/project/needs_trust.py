"""What a project would start or load (MCP servers, commands, skills, settings): reads it, and lays all of it out for
the question of trust. Nothing of it has an effect before it is trusted.

The person is shown all of it before they are asked to trust it, and nothing of it is hidden.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

import msgspec

from crow.config.settings import McpServerSettings, PermissionRule
from crow.errors import ConfigError
from crow.paths import shown
from crow.project.commands_and_skills import PromptFiles, prompt_files_in
from crow.project.folder_files import OF_PROJECT, Snapshot
from crow.project.project_config import ProjectConfig, read_project_config, tightening_rules
from crow.results import TextBlock
from crow.visible import every_line, one_line, warning

VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]{0,500}))?\}")

LONGEST_LINE = 64 * 1024
"""The end of a line is where it hurts: none is cut, as no file is larger than this."""


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
    """The files that are not used, each with the reason."""
    programs: tuple[str, ...] = ()
    """Files that the commands of its servers name; their content is in the digest, and not shown."""


def read_offer(snapshot: Snapshot) -> ProjectOffer:
    if not snapshot.files:
        return ProjectOffer(snapshot.base, "")
    problems: list[str] = []
    config = _read_config(snapshot, problems)
    shared = _shared_servers(snapshot, problems)
    prompt_files = prompt_files_in(snapshot, OF_PROJECT)
    return ProjectOffer(
        root=snapshot.base,
        digest=snapshot.digest,
        prompt_files=prompt_files,
        config=config,
        servers={**shared, **config.servers},
        with_variables=frozenset(shared.keys() - config.servers.keys()),
        problems=tuple(problems),
        texts=_shown_texts(snapshot),
        left_out=prompt_files.unused,
    )


def _read_config(snapshot: Snapshot, problems: list[str]) -> ProjectConfig:
    content, path = _single(snapshot, OF_PROJECT.single[0])
    try:
        return read_project_config(content, path) if content else ProjectConfig()
    except ConfigError as error:
        rules = tightening_rules(content)
        count = f" Of this file only its rules that refuse or ask count ({len(rules)} of them)." if rules else ""
        problems.append(f"{error}{count}")
        return ProjectConfig(rules=rules)


def _shared_servers(snapshot: Snapshot, problems: list[str]) -> dict[str, McpServerSettings]:
    content, path = _single(snapshot, OF_PROJECT.single[1])
    return servers_in(content, path, problems) if content else {}


def _single(snapshot: Snapshot, path: str) -> tuple[bytes, str]:
    return snapshot.files.get(path, b"").strip(), f"{snapshot.base}/{path}"


def _shown_texts(snapshot: Snapshot) -> dict[str, str]:
    folders: Sequence[str] = (OF_PROJECT.commands, OF_PROJECT.skills)
    return {
        path: content.decode("utf-8", "replace")
        for path, content in snapshot.files.items()
        if path.startswith(tuple(f"{folder}/" for folder in folders))
    }


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
            problems.append(f"{shown(path)}, server {name!r}: {str(error).rstrip('.')}. It is not used.")
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
    yield from _section("MCP servers that it would start or ask:", _servers(offer))
    yield from _section("Files that these run, not shown here (you are asked again if one changes):", offer.programs)
    yield from _section("Rules:", map(_rule, offer.config.rules))
    yield from _section("Settings:", _settings(offer))
    yield from _section("Commands:", (f"/{known.name}: {known.description}" for known in offer.prompt_files.commands))
    yield from _section("Skills:", (f"{known.name}: {known.description}" for known in offer.prompt_files.skills))
    yield from _section("Not used, as these are yours alone to set:", offer.config.passed_over)
    yield from _section("Not used, as something is wrong with it:", offer.problems)
    yield from _section("Left out, and not used:", offer.left_out)


def _section(title: str, lines: "Iterator[str] | map[str] | tuple[str, ...]") -> Iterator[str]:
    shown_lines = [f"  {one_line(line, LONGEST_LINE)}" for line in lines]
    if shown_lines:
        yield ""
        yield title
        yield from shown_lines


def _servers(offer: ProjectOffer) -> Iterator[str]:
    for name, server in offer.servers.items():
        yield f"{name}: {shown_server(server)}"


def _rule(rule: PermissionRule) -> str:
    scope = next((text for text in (rule.command, rule.path, rule.host) if text is not None), "")
    effect = " (no effect: a project's rules can only tighten)" if rule.decision == "allow" else ""
    return f"{rule.decision} {rule.tool} {scope}".rstrip() + effect


def _settings(offer: ProjectOffer) -> Iterator[str]:
    config = offer.config
    if config.mode:
        yield f"mode = {config.mode} (only if yours is not more careful)"
    if config.model:
        yield f"model = {config.model} (only if you have it set up)"
    for name, value in config.limits.items():
        yield f"limits.{name} = {value:g} (only if yours is not lower)"
    for scope, amounts in config.budgets.items():
        for amount in amounts:
            yield f"budget.{scope} = {amount} (only if yours is not lower)"
    if config.terminal_timeout is not None:
        yield f"terminal.timeout = {config.terminal_timeout:g} (only if yours is not lower)"


def _text_blocks(offer: ProjectOffer) -> Iterator[TextBlock]:
    """The texts, whole: what was not shown could not be trusted. A snapshot holds no more than can be shown."""
    for path, text in offer.texts.items():
        yield TextBlock(f"{one_line(shown(path), 1000)}\n\n{every_line(text)}")
        if remark := warning(text):
            yield TextBlock(remark, prose=True)
