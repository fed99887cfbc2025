"""What tool calls and messages contain, as text that is safe to print."""

from crow.acp.wire import (
    ContentBlock,
    ContentToolContent,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    ToolContent,
)
from crow.cli.render_screen import CODE, PLAIN
from crow.cli.render_text import clean_prose
from crow.visible import one_line


def in_words(content: ContentBlock) -> str:
    match content:
        case TextContent():
            return content.text
        case ResourceLink():
            return one_line(f"[{content.title or content.name}]({content.uri})")
        case EmbeddedResource():
            return one_line(f"[{content.resource.uri}]")
        case _:
            return one_line(f"[{content.mime_type}]")


def text_lines(content: list[ToolContent]) -> list[str]:
    """The words among the content, line by line, without the fences that keep them apart in an editor."""
    lines: list[str] = []
    for item in content:
        if isinstance(item, ContentToolContent):
            lines.extend(fenced(item) or clean_prose(in_words(item.content)).splitlines())
    return lines


def fenced(item: ContentToolContent) -> list[str]:
    """What stands between two fences, such as a command or a program's output; nothing if there are none."""
    lines = clean_prose(in_words(item.content)).splitlines()
    if len(lines) > 1 and lines[0].startswith("```") and lines[-1].startswith("```"):
        return lines[1:-1]
    return []


def message_of(raw_output: object) -> str:
    """The line for the person that Crow sends with a call's result."""
    message = raw_output.get("message") if isinstance(raw_output, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- JSON
    return one_line(message, 1000) if isinstance(message, str) else ""


def title_style(kind: str, style: str = PLAIN) -> str:
    """How a call's title is written: a command is told by its colour."""
    return CODE if kind == "execute" else style


def unsaid(facts: list[str], title: str) -> list[str]:
    """Those of the facts about a call that its title does not end with."""
    return [fact for fact in facts if fact and not title.casefold().endswith(fact.casefold())]


def is_titled(lines: list[str], title: str) -> bool:
    """Whether a title already says all of this; that of a subagent's call says whose it is before."""
    if len(lines) != 1:
        return False
    said = lines[0].strip()
    return said == title or title.endswith(f": {said}")
