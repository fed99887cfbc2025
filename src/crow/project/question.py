"""How the person is shown what a project brings, before they are asked to trust it: all of it, nothing hidden."""

from collections.abc import Iterator

from crow.config.settings import PermissionRule
from crow.paths import shown
from crow.project.brought import Brought
from crow.project.servers import shown_server
from crow.results import TextBlock
from crow.visible import one_line

LONGEST_TEXT = 4000
"""Characters that are shown of one command or skill."""
MOST_TEXT = 40_000
"""And of all of them."""
LONGEST_LINE = 64 * 1024
"""The end of a command line is where it hurts: none is cut, as no file is larger than this."""


def shown_to_person(brought: Brought) -> tuple[TextBlock, ...]:
    overview = "\n".join([f"Project: {one_line(shown(brought.root), 1000)}", *_lines(brought)])
    return (TextBlock(overview), *_texts(brought))


def _lines(brought: Brought) -> Iterator[str]:
    yield from _section("MCP servers that it would start or ask:", _servers(brought))
    yield from _section("Rules:", map(_rule, brought.config.rules))
    yield from _section("Settings:", _settings(brought))
    yield from _section("Commands:", (f"/{known.name}: {known.description}" for known in brought.own.commands))
    yield from _section("Skills:", (f"{known.name}: {known.description}" for known in brought.own.skills))
    yield from _section("Not used, as these are yours alone to set:", brought.config.passed_over)
    yield from _section("Not used, as something is wrong with it:", brought.problems)
    yield from _section("Left out:", brought.left_out)


def _section(title: str, lines: "Iterator[str] | map[str] | tuple[str, ...]") -> Iterator[str]:
    shown_lines = [f"  {one_line(line, LONGEST_LINE)}" for line in lines]
    if shown_lines:
        yield ""
        yield title
        yield from shown_lines


def _servers(brought: Brought) -> Iterator[str]:
    for name, server in brought.servers.items():
        yield f"{name}: {shown_server(server)}"


def _rule(rule: PermissionRule) -> str:
    scope = next((text for text in (rule.command, rule.path, rule.host) if text is not None), "")
    effect = " (no effect: a project's rules can only tighten)" if rule.decision == "allow" else ""
    return f"{rule.decision} {rule.tool} {scope}".rstrip() + effect


def _settings(brought: Brought) -> Iterator[str]:
    config = brought.config
    if config.mode:
        yield f"mode = {config.mode} (only if yours is not more careful)"
    if config.model:
        yield f"model = {config.model} (only if you have it set up)"
    for name, value in config.limits.items():
        yield f"limits.{name} = {value:g} (only if yours is not lower)"
    if config.terminal_timeout is not None:
        yield f"terminal.timeout = {config.terminal_timeout:g} (only if yours is not lower)"


def _texts(brought: Brought) -> Iterator[TextBlock]:
    left = MOST_TEXT
    for path, text in brought.texts.items():
        shown_text = "\n".join(one_line(line, LONGEST_LINE) for line in text[: min(LONGEST_TEXT, left)].split("\n"))
        cut = f"\n(cut here: {len(text):,} characters in all)" if len(text) > min(LONGEST_TEXT, left) else ""
        yield TextBlock(f"{one_line(shown(path), 1000)}\n\n{shown_text}{cut}")
        left -= min(len(text), LONGEST_TEXT, left)
