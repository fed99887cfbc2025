"""A call whose arguments are still arriving: what can already be shown of it, and how often.

The whole text while it is small, then its end with the number of lines; at most twenty times a second, and only
when something changed. However slowly a long argument arrives, what is sent for it stays a small part of it: a
preview that would cost more than its share is made shorter, or waits.
"""

import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from crow import events
from crow.errors import WorkspaceError
from crow.results import Location, TextBlock
from crow.tools.base import ShowsGrowth, Tool
from crow.workspace.base import Workspace

EVERY = 0.05
SMALL = 2048
GLIMPSE = 256
THRIFT = 20
"""Looking at what has arrived may take at most a twentieth of the time."""

ADVANCE = 24_000
SHARE = 0.2
"""Bytes that previews may cost: so many to begin with, and this part of what has arrived."""
ENVELOPE = 300
"""What a preview costs besides its text, about."""


class ArrivingCall:
    def __init__(
        self, call_id: str, name: str, tool: Tool, workspace: Workspace, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self._id = call_id
        self._tool = tool
        self._growing = tool.growing if isinstance(tool, ShowsGrowth) else None
        self._workspace = workspace
        self._clock = clock
        self._fragments: list[str] = []
        self._next_look = 0.0
        self._arrived = 0
        self._spent = 0
        self._shown = events.CallPreviewed(call_id, tool.title({}))

    @property
    def arguments(self) -> str:
        """Everything that has arrived."""
        self._fragments = ["".join(self._fragments)]
        return self._fragments[0]

    def grow(self, fragment: str) -> events.CallPreviewed | None:
        """What is to be shown now; None if it is too early, or nothing new."""
        self._fragments.append(fragment)
        self._arrived += len(fragment)
        began = self._clock()
        if began < self._next_look:
            return None
        preview = self._look()
        now = self._clock()
        self._next_look = now + max(EVERY, (now - began) * THRIFT)
        if preview is None or preview == self._shown:
            return None
        before, self._shown = self._shown, preview
        self._spent += ENVELOPE + sum(len(block.text) for block in preview.display if isinstance(block, TextBlock))
        return msgspec.structs.replace(
            preview,
            title="" if preview.title == before.title else preview.title,
            locations=() if preview.locations == before.locations else preview.locations,
        )

    def _look(self) -> events.CallPreviewed | None:
        import jiter  # only models that call tools need it

        try:
            value = jiter.from_json(self.arguments.encode("utf-8", "replace"), partial_mode="trailing-strings")
        except ValueError:
            return None
        if not isinstance(value, dict) or not value:
            return None
        arrived = cast("dict[str, Any]", value)
        # The last one may be half of what it will be: it can be shown growing, but names nothing yet.
        known = dict(list(arrived.items())[:-1])
        text = self._growing(arrived) if self._growing is not None else ""
        allowance = ADVANCE + SHARE * self._arrived - self._spent - ENVELOPE
        if text and allowance < GLIMPSE:
            return None
        display = (TextBlock(last_piece(text, SMALL if allowance >= SMALL else GLIMPSE)),) if text else ()
        return events.CallPreviewed(self._id, self._tool.title(known), self._locations(known), display)

    def _locations(self, known: dict[str, Any]) -> tuple[Location, ...]:
        path = known.get("path")
        if not isinstance(path, str) or not path:
            return ()
        try:
            return (Location(self._workspace.resolve(path)),)
        except WorkspaceError:
            return ()


def last_piece(text: str, longest: int) -> str:
    """All of a small text; of a larger one the end, with the number of lines that there are by now."""
    if len(text) <= longest:
        return text
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"… {lines:,} lines so far\n{text[-longest:]}"
