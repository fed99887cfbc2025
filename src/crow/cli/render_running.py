"""Tool calls that have not ended, and what the live line says of those that are at work."""

from collections.abc import Collection

from crow.acp.wire import ToolContent
from crow.cli.render_content import text_lines

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
    return [f"  │ {line}" for line in text_lines(call.content)[-most:]]
