"""What is shown of a tool call in a terminal: its content, its diff, its exit code, plan steps, and the last lines of a
running command.
"""

from collections.abc import Collection
from typing import NamedTuple, assert_never

from crow.acp.wire import (
    AudioContent,
    ContentBlock,
    ContentToolContent,
    DiffToolContent,
    EmbeddedResource,
    ImageContent,
    Plan,
    ResourceLink,
    TextContent,
    ToolContent,
)
from crow.cli.render_screen import BOLD, CODE, DIM, GOOD, PLAIN, cells, clean_prose, counted
from crow.diff import Statistics, split_lines, unified
from crow.visible import one_line


def in_words(content: ContentBlock) -> str:
    match content:
        case TextContent():
            return content.text
        case ResourceLink():
            return one_line(f"[{content.title or content.name}]({content.uri})")
        case EmbeddedResource():
            return one_line(f"[{content.resource.uri}]")
        case ImageContent() | AudioContent():
            return one_line(f"[{content.mime_type}]")
        case _:
            assert_never(content)


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


def has_exit(raw_output: object) -> bool:
    """Whether a call's result has a command's exit code, or the signal that ended it."""
    return isinstance(raw_output, dict) and any(raw_output.get(name) is not None for name in ("exitCode", "signal"))  # pyright: ignore[reportUnknownMemberType] -- JSON


def lines_printed(raw_output: object) -> int:
    """How many lines a command has printed, where not all of them came with the call; else 0."""
    lines = raw_output.get("lines") if isinstance(raw_output, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- JSON
    return lines if isinstance(lines, int) else 0


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


# --- a change to a file: lines with `+` and `-`, three lines around each change, and how much it is in all

LONGEST_LINE = 400
"""Columns of a line that are shown: some files have all their text in one."""
APART = "⋮"
"""Stands between two places of a file."""


class DiffLine(NamedTuple):
    mark: str
    """`+`, `-`, a space for what stays, or `APART`."""
    text: str
    """Safe to print."""


class ShownDiff(NamedTuple):
    size: Statistics
    lines: list[DiffLine]


def shown_diff(change: DiffToolContent) -> ShownDiff:
    marked = split_lines(unified(change.old_text or "", change.new_text, "", limit=2**62))[2:]
    size = Statistics(sum(line[0] == "+" for line in marked), sum(line[0] == "-" for line in marked))
    reveal = _is_hard_to_see(marked)
    lines: list[DiffLine] = []
    for line in marked:
        mark, text = line[0], line[1:].removesuffix("\n")
        if mark == "@":
            lines.append(DiffLine(APART, ""))
        elif mark == "\\":
            lines.append(DiffLine(" ", "(no newline at end of file)"))
        elif mark == " ":
            lines.append(DiffLine(mark, clean_prose(text)))
        else:
            lines.append(DiffLine(mark, _changed(text, reveal=reveal)))
    return ShownDiff(size, lines[1:])


def _changed(text: str, *, reveal: bool) -> str:
    """What is new, or goes, is what the person decides on: not even a joiner may hide in it."""
    if reveal:
        line = text.removesuffix("\r")
        bare = line.rstrip(" ")
        text = bare + "·" * (len(line) - len(bare)) + text[len(line) :]
        text = text.replace("\t", "→   ").replace("\r", "␍")
    text = text.removesuffix("\r").replace("\t", "    ")
    return one_line(text, longest=len(text))  # whoever shows it knows how much of it


def _is_hard_to_see(marked: list[str]) -> bool:
    """Whether a line only changed in its tabs, its last blanks or its line end: then these are shown, too."""
    removed = {_without_blanks(line) for line in marked if line[0] == "-"}
    added = {_without_blanks(line) for line in marked if line[0] == "+"}
    return not removed.isdisjoint(added)


def _without_blanks(line: str) -> str:
    return line[1:].rstrip().replace("\t", "    ")


# --- a plan as it is ticked off: all of it the first time, then the steps that changed

TICKS = {"pending": "☐", "in_progress": "◐", "completed": "☑"}
STYLES = {"pending": (PLAIN, PLAIN), "in_progress": (BOLD, BOLD), "completed": (GOOD, DIM)}


class Step(NamedTuple):
    tick: str
    text: str
    tick_style: str
    text_style: str


class PlanShown:
    """What the person has seen of the plan so far."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], str] = {}

    def changes(self, plan: Plan) -> tuple[str, list[Step]]:
        """A heading and the steps that are new or have another status; both empty if nothing changed."""
        entries: dict[tuple[str, int], str] = {}
        for entry in plan.entries:
            text, occurrence = one_line(entry.content), 0
            while (text, occurrence) in entries:  # "run the tests" may well come twice
                occurrence += 1
            entries[text, occurrence] = entry.status
        known, self._known = self._known, entries
        if entries == known:
            return "", []
        if not entries:
            return "Plan · cleared", []
        done = sum(status == "completed" for status in entries.values())
        changed = [_step(step[0], status) for step, status in entries.items() if known.get(step) != status]
        return f"Plan · {done} of {len(entries)} done", changed


def _step(text: str, status: str) -> Step:
    tick_style, text_style = STYLES.get(status, STYLES["pending"])
    return Step(TICKS.get(status, TICKS["pending"]), text, tick_style, text_style)


# --- calls that are running, and what the live line says of them

OUTPUT_BORDER = "  │ "
"""Stands before each line of a command's output."""
LIVE_LINES = 6
"""Lines of what a running command prints, or of a subagent's steps: the last ones."""
FEWEST_LINES = 2
"""The same of each, where several are at work."""


class RunningCall:
    """What is known of a tool call that has not ended."""

    def __init__(self, title: str, now: float) -> None:
        self.title = title
        self.kind = ""
        self.is_task = False
        """A subagent does it, step by step."""
        self.status = "pending"
        self.content: list[ToolContent] = []
        self.message = ""
        self.has_exit = False
        """A command did it, and how it ended is known."""
        self.lines_printed = 0
        """Where not all of them came with the call."""
        self.title_tells_end = False
        """The title came with the end of the call, so it says what came of it."""
        self.asked: list[ToolContent] = []
        """What was shown with a question about it."""
        self.started = now

    @property
    def shows_itself(self) -> bool:
        """There is something to be seen while it runs."""
        return self.status == "in_progress" and (self.is_task or self.kind == "execute")


def subagents(calls: Collection[RunningCall]) -> list[RunningCall]:
    return [call for call in calls if call.is_task and call.shows_itself]


def live_lines(calls: Collection[RunningCall], label: str) -> list[str]:
    """The last words of commands and the last steps of subagents, below a line with this label.

    One that is alone is shown if it is the label. Several are all shown: the label's own first, the others by title.
    """
    at_work = sorted((call for call in calls if call.shows_itself), key=lambda call: call.title != label)
    if len(at_work) <= 1:
        return [line for call in at_work if call.title == label for line in _last_lines(call, LIVE_LINES)]
    most = max(LIVE_LINES // len(at_work), FEWEST_LINES)
    lines: list[str] = []
    for call in at_work:
        lines += [f"  {call.title}"] if call.title != label else []
        lines += _last_lines(call, most)
    return lines


def _last_lines(call: RunningCall, most: int) -> list[str]:
    return [f"{OUTPUT_BORDER}{line}" for line in text_lines(call.content)[-most:]]


# --- what a call brought

LONGEST_FACT = 60
"""Columns of a message that may stand behind the call's title; a longer one goes below it."""


def brought(call: RunningCall, *, ok: bool) -> tuple[str, list[str]]:
    """What a call brought: a few words to stand behind its title, and the lines to show below it."""
    lines = text_lines([item for item in call.content if item not in call.asked])
    words = call.message if cells(call.message) <= LONGEST_FACT else ""
    if call.kind == "execute":
        said_last = lines[-1] if lines else ""
        is_short = not call.message and len(lines) == 1 and cells(said_last) <= LONGEST_FACT
        return (said_last, lines[:-1]) if is_short or (words and said_last == words) else (words, lines)
    if call.is_task and ok:
        return words, lines
    if not ok:
        return "", lines
    return words or _summary(call.kind, lines), [call.message] if call.message and not words else []


def _summary(kind: str, lines: list[str]) -> str:
    """A short message in its own words; but a line of a file says nothing without the rest."""
    if len(lines) == 1 and kind != "read" and cells(lines[0]) <= LONGEST_FACT:
        return lines[0]
    return counted(len(lines), "line") if lines else ""
