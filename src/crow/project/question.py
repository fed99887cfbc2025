"""How the person is shown what a project brings, before they are asked to trust it: all of it, nothing hidden."""

from collections.abc import Iterator

from crow.config.settings import PermissionRule
from crow.paths import shown
from crow.project.offer import ProjectOffer
from crow.project.servers import shown_server
from crow.results import TextBlock
from crow.visible import every_line, one_line, warning

LONGEST_LINE = 64 * 1024
"""The end of a line is where it hurts: none is cut, as no file is larger than this."""


def shown_to_person(offer: ProjectOffer) -> tuple[TextBlock, ...]:
    overview = "\n".join([f"Project: {one_line(shown(offer.root), 1000)}", *_lines(offer)])
    return (TextBlock(overview), *_texts(offer))


def _lines(offer: ProjectOffer) -> Iterator[str]:
    yield from _section("MCP servers that it would start or ask:", _servers(offer))
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


def _texts(offer: ProjectOffer) -> Iterator[TextBlock]:
    """Whole: what was not shown could not be trusted. A snapshot holds no more than can be shown."""
    for path, text in offer.texts.items():
        yield TextBlock(f"{one_line(shown(path), 1000)}\n\n{every_line(text)}")
        if remark := warning(text):
            yield TextBlock(remark, prose=True)
