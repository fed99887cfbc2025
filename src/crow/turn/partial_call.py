"""What is shown of a call while its arguments are still arriving (title, text, diff), and how often.

The whole text while it is small, then its end with the number of lines; at most twenty times a second, and only
when something changed. However slowly a long argument arrives, what is sent for it stays a small part of it: a
preview that would cost more than its share is made shorter, or waits.
"""

import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from crow import events
from crow.files.base import Workspace
from crow.messages import ToolCall, has_too_many_values, json_object
from crow.paths import spelled
from crow.results import DiffBlock, DisplayBlock, Location, TextBlock, ToolKind
from crow.tools.arguments import ReadCall, read_call_of
from crow.tools.base import Tool
from crow.visible import language_of

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

LARGEST_ANNOUNCED = 64 * 1024
MOST_TRIES = 200
"""How often it is tried whether the arguments of what announces itself are complete: a plan has 50 entries at most."""


class PartialCall:
    def __init__(
        self,
        call_id: str,
        name: str,
        tool: Tool,
        workspace: Workspace,
        clock: Callable[[], float] = time.monotonic,
        *,
        may_announce: bool = False,
    ) -> None:
        """`may_announce`: what the tool shows needs nobody's permission."""
        self.id = call_id
        self.name = name
        self._tool = tool
        self._tries = MOST_TRIES if may_announce else 0
        self.is_announced = False
        """Whether the person has been shown what the call shows."""
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

    @property
    def written(self) -> int:
        """Characters of it that have arrived."""
        return sum(map(len, self._fragments))

    @property
    def changes(self) -> tuple[DisplayBlock, ...]:
        """The changes that the person was shown of a call whose arguments are complete."""
        shown = tuple(block for block in self._shown.display if isinstance(block, DiffBlock))
        return shown if shown and json_object(self.arguments) else ()

    def read(self) -> ReadCall:
        """The call, once its arguments are complete."""
        return read_call_of(ToolCall(self.id, self.name, self.arguments), self._tool)

    def grow(self, fragment: str, *, anew: bool = False) -> events.Event | None:
        """What is to be told now; None if it is too early, or nothing new. `anew`: what came before is forgotten."""
        if anew:
            self._fragments.clear()
        self._fragments.append(fragment)
        self._arrived += len(fragment)
        if self._tool.announced_as is not None:
            return self._announcement() if fragment.rstrip().endswith("}") else None
        return self._preview()

    def last_preview(self) -> events.CallPreviewed | None:
        """What the arguments say of the call and was not shown yet, if they are complete."""
        return self.preview_of(self.read()) if json_object(self.arguments) else None

    def preview_of(self, read: ReadCall) -> events.CallPreviewed | None:
        """What the arguments, as they were read, say of the call and was not shown yet."""
        arguments = read.arguments
        if not arguments:
            return None
        title, locations = self._tool.title(arguments), self._locations(arguments)
        return self._changed(events.CallPreviewed(self.id, title, locations, self._shown.display))

    def _announcement(self) -> events.Event | None:
        if self._tries <= 0 or self._arrived > LARGEST_ANNOUNCED:
            return None
        self._tries -= 1
        if json_object(self.arguments) is None:  # what is only nearly JSON may go on
            return None
        told = self._tool.announce(ToolCall(self.id, self.name, self.arguments))
        if told is not None:
            self._tries = 0
            self.is_announced = True
        return told

    def _preview(self) -> events.CallPreviewed | None:
        began = self._clock()
        if began < self._next_look:
            return None
        preview = self._look()
        now = self._clock()
        self._next_look = now + max(EVERY, (now - began) * THRIFT)
        news = None if preview is None else self._changed(preview)
        if news is not None:
            self._spent += ENVELOPE + sum(map(_size, news.display))
        return news

    def _changed(self, preview: events.CallPreviewed) -> events.CallPreviewed | None:
        """What a preview says that the last one did not."""
        if preview == self._shown:
            return None
        before, self._shown = self._shown, preview
        return msgspec.structs.replace(
            preview,
            title="" if preview.title == before.title else preview.title,
            locations=() if preview.locations == before.locations else preview.locations,
            display=() if preview.display == before.display else preview.display,
        )

    def _look(self) -> events.CallPreviewed | None:
        if has_too_many_values(self.arguments):
            return None
        import jiter  # only models that call tools need it

        try:
            value = jiter.from_json(self.arguments.encode("utf-8", "replace"), partial_mode="trailing-strings")
        except ValueError:
            return None
        if not isinstance(value, dict) or not value:
            return None
        arrived = cast("dict[str, Any]", value)
        # The last one may be half of what it will be: it can be shown growing, but names nothing yet.
        known = self._under_known_names(dict(list(arrived.items())[:-1]))
        arrived = self._under_known_names(arrived)
        shown = self._tool.partial_display(arrived)
        allowance = ADVANCE + SHARE * self._arrived - self._spent - ENVELOPE
        if shown and allowance < GLIMPSE:
            return None
        display = self._display(shown, SMALL if allowance >= SMALL else GLIMPSE)
        changed = tuple(Location(block.path) for block in display if isinstance(block, DiffBlock))[:1]
        return events.CallPreviewed(self.id, self._tool.title(known), self._locations(known) or changed, display)

    def _under_known_names(self, arrived: dict[str, Any]) -> dict[str, Any]:
        """Other names that a model has for the tool's arguments are understood here, too."""
        schema = self._tool.spec.schema
        properties = schema.get("properties", {})
        if all(name in properties and _has_known_names(value, properties[name]) for name, value in arrived.items()):
            return arrived
        from crow.tools.lenient.arguments import normalised

        return normalised(self.name, arrived, schema)

    def _display(self, shown: TextBlock | tuple[DiffBlock, ...] | None, longest: int) -> tuple[DisplayBlock, ...]:
        match shown:
            case TextBlock(text=""):
                return ()
            case TextBlock():
                return (msgspec.structs.replace(shown, text=last_piece(shown.text, longest)),)
            case None:
                return ()
            case _:
                return self._diffs(shown, longest)

    def _diffs(self, diffs: tuple[DiffBlock, ...], longest: int) -> tuple[DisplayBlock, ...]:
        """The changes so far; if they are no longer small, the new text of the last one."""
        path = self._spelled(diffs[0].path)
        if sum(map(_size, diffs)) > longest:
            return (TextBlock(last_piece(diffs[-1].new_text, longest), language=language_of(diffs[0].path)),)
        return tuple(msgspec.structs.replace(diff, path=path) for diff in diffs)

    def _locations(self, known: dict[str, Any]) -> tuple[Location, ...]:
        """The file that a call is about. The folder of a search says nothing: its places are those that it finds."""
        path = known.get("path")
        if self._tool.kind is ToolKind.SEARCH or not isinstance(path, str) or not path:
            return ()
        return (Location(self._spelled(path)),)

    def _spelled(self, path: str) -> str:
        """Where it leads is found out once, when the call is judged, and not on the event loop."""
        return spelled(path, self._workspace.roots[0])


def _has_known_names(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the first object in a list has only names that the schema knows; the others will be like it."""
    first = cast("list[Any]", value)[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict):
        return True
    names = cast("dict[str, Any]", first).keys()
    return names <= schema.get("items", {}).get("properties", dict.fromkeys(names)).keys()


def _size(block: DisplayBlock) -> int:
    match block:
        case TextBlock():
            return len(block.text)
        case DiffBlock():
            return len(block.old_text) + len(block.new_text)
        case _:
            return 0


def last_piece(text: str, longest: int) -> str:
    """All of a small text; of a larger one the end, with how much there is by now."""
    if len(text) <= longest:
        return text
    lines = text.count("\n") + (not text.endswith("\n"))
    size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
    return f"… {size} so far\n{text[-longest:]}"
