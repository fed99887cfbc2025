"""A plan as it is ticked off: all of it the first time, then the steps that changed."""

from typing import NamedTuple

from crow.acp.wire import Plan
from crow.cli.render_screen import BOLD, DIM, GOOD, PLAIN
from crow.visible import one_line

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
