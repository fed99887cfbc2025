"""What is shown of a call while its arguments arrive: early, seldom enough, and never much."""

import json
from pathlib import Path
from typing import Any

import pytest

from crow.commands.base import CommandRequest, Terminal
from crow.commands.terminals import Terminals
from crow.events import CallPreviewed, PlanChanged, PlanEntry
from crow.files.base import Workspace
from crow.files.local import LocalWorkspace
from crow.messages import ToolCall, ToolSpec
from crow.results import DiffBlock, Location, TextBlock, ToolKind
from crow.tools.ask import Plan
from crow.tools.base import Action, Tool
from crow.tools.edit import Edit
from crow.tools.read import ReadTracker
from crow.tools.search import Search
from crow.tools.terminal import RunCommand
from crow.turn.partial_call import ENVELOPE, EVERY, MOST_TRIES, SMALL, PartialCall, last_piece


class Writer(Tool):
    """A tool whose content grows."""

    kind = ToolKind.EDIT
    spec = ToolSpec("write", "", {})

    def title(self, arguments: dict[str, Any]) -> str:
        return f"Write {arguments['path']}" if "path" in arguments else "Write"

    def partial_display(self, arguments: dict[str, Any]) -> TextBlock:
        return TextBlock(arguments.get("content", ""))

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise AssertionError("nothing is prepared while arguments arrive")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def arriving(folder: Path) -> tuple[PartialCall, Clock]:
    clock = Clock()
    return PartialCall("t1-c1", "write", Writer(), LocalWorkspace([str(folder)]), clock), clock


def test_a_name_is_shown_only_when_it_is_complete(tmp_path):
    call, clock = arriving(tmp_path)
    assert call.grow('{"path": "src/ap') is None
    clock.now += EVERY
    preview = call.grow('p.py", "content": "impo')
    assert isinstance(preview, CallPreviewed)
    assert preview.title == "Write src/app.py"
    assert preview.locations == (Location(str(tmp_path / "src/app.py")),)
    assert preview.display == (TextBlock("impo"),)
    clock.now += EVERY
    later = call.grow("rt os")
    assert isinstance(later, CallPreviewed)
    assert (later.title, later.locations, later.display) == ("", (), (TextBlock("import os"),))  # only what changed


def test_at_most_twenty_a_second_and_only_on_growth(tmp_path):
    call, clock = arriving(tmp_path)
    call.grow('{"path": "a", "content": "')
    previews = 0
    for _ in range(1000):
        clock.now += 0.001
        previews += call.grow("x") is not None
    assert 15 <= previews <= 20
    clock.now += 1
    assert call.grow("y") is not None
    clock.now += 1
    assert call.grow("") is None


@pytest.mark.parametrize("seconds_a_piece", [0.0001, 0.01, 0.1, 1])
def test_long_content_is_shown_by_its_end_and_costs_a_small_part_of_itself(tmp_path, seconds_a_piece):
    call, clock = arriving(tmp_path)
    content = "".join(f"line {number}\n" for number in range(20_000))
    raw = json.dumps({"path": "a", "content": content})
    sent, last = 0, ""
    for start in range(0, len(raw), 40):
        clock.now += seconds_a_piece
        preview = call.grow(raw[start : start + 40])
        if isinstance(preview, CallPreviewed) and preview.display:
            block = preview.display[0]
            assert isinstance(block, TextBlock)
            last = block.text
            sent += len(last) + ENVELOPE
    assert call.arguments == raw
    assert "lines so far" in last
    assert len(last) < SMALL + 100
    assert sent < len(raw) * 0.35


def test_a_small_text_is_shown_whole():
    assert last_piece("a\nb", SMALL) == "a\nb"
    assert last_piece("x\n" * 5000, SMALL).startswith("… 5,000 lines so far\n")
    assert last_piece("x" * 5000, SMALL).startswith("… 5,000 characters so far\nxxx")


def test_a_command_of_one_line_is_shown_as_it_grows_and_a_long_one_costs_a_small_part_of_itself(tmp_path):
    def previews(command: str, piece: int) -> list[str]:
        clock = Clock()
        call = PartialCall(
            "t1-c1", "terminal", RunCommand(Terminals(NoCommands()), 120), LocalWorkspace([str(tmp_path)]), clock
        )
        raw, shown = json.dumps({"command": command}), []
        for start in range(0, len(raw), piece):
            clock.now += EVERY
            preview = call.grow(raw[start : start + piece])
            if isinstance(preview, CallPreviewed) and preview.display:
                [block] = preview.display
                assert isinstance(block, TextBlock)
                shown.append(block.text)
        return shown

    assert previews("npm test -- --watch=false", 10) == ["npm tes", "npm test -- --wat", "npm test -- --watch=false"]
    long = previews("echo " + "x" * 100_000, 40)
    assert "characters so far" in long[-1]
    assert sum(map(len, long)) + len(long) * ENVELOPE < 100_000 * 0.5


class NoCommands:
    """Nothing is run while arguments arrive."""

    async def open_terminal(self, request: CommandRequest) -> Terminal:
        raise AssertionError(request)

    async def close(self) -> None:
        pass


def test_what_is_no_json_shows_nothing(tmp_path):
    call, clock = arriving(tmp_path)
    for piece in ("certainly! ", "[1, 2", '"text"', "\ud800"):
        clock.now += EVERY
        assert call.grow(piece) is None


def test_when_all_has_arrived_the_title_is_told_if_it_was_not_known(tmp_path):
    call, _ = arriving(tmp_path)
    assert call.grow('{"path": "a.py"') is None
    assert call.grow("}") is None
    preview = call.last_preview()
    assert preview == CallPreviewed("t1-c1", "Write a.py", (Location(str(tmp_path / "a.py")),))
    assert call.last_preview() is None


def test_a_growing_edit_is_a_diff_while_it_is_small_and_then_its_new_text(tmp_path):
    clock = Clock()
    call = PartialCall("t1-c1", "edit", Edit(ReadTracker()), LocalWorkspace([str(tmp_path)]), clock)
    call.grow('{"path": "a.py", "edits": [{"old": "one')
    clock.now += EVERY
    preview = call.grow('", "new": "1')
    assert isinstance(preview, CallPreviewed)
    assert preview.display == (DiffBlock(str(tmp_path / "a.py"), "modify", "one", "1"),)
    clock.now += EVERY
    large = call.grow("\\n" + "x" * SMALL)
    assert isinstance(large, CallPreviewed)
    [block] = large.display
    assert isinstance(block, TextBlock)
    assert (block.text[:20], block.language) == ("… 2 lines so far\nxxx", "py")


def test_a_plan_is_told_as_soon_as_it_is_complete_and_only_once(tmp_path):
    call = PartialCall("t1-c1", "plan", Plan(), LocalWorkspace([str(tmp_path)]), may_announce=True)
    assert call.grow('{"entries": [{"content": "look"}') is None
    assert call.grow(', {"content": "mend"}') is None
    assert call.grow("]}") == PlanChanged((PlanEntry("look"), PlanEntry("mend")))
    assert call.grow(" }") is None


def test_a_plan_that_somebody_must_allow_first_is_not_told(tmp_path):
    call = PartialCall("t1-c1", "plan", Plan(), LocalWorkspace([str(tmp_path)]))
    assert call.grow('{"entries": []}') is None


def test_a_plan_without_end_is_not_looked_at_for_ever(tmp_path):
    looked = 0

    class Counting(Plan):
        def announce(self, call: ToolCall) -> PlanChanged | None:
            nonlocal looked
            looked += 1
            return super().announce(call)

    call = PartialCall("t1-c1", "plan", Counting(), LocalWorkspace([str(tmp_path)]), may_announce=True)
    call.grow('{"entries": [{"content": "')
    for _ in range(2000):
        assert call.grow("}") is None
    assert looked <= MOST_TRIES


def test_the_folder_of_a_search_is_no_place(tmp_path):
    tool = Search(lambda path: False)
    call = PartialCall("t1-c1", "search", tool, LocalWorkspace([str(tmp_path)]))
    preview = call.grow('{"pattern": "x", "path": "src"}') or call.last_preview()
    assert isinstance(preview, CallPreviewed)
    assert preview.locations == ()


def test_other_names_and_shapes_of_arguments_are_shown_as_what_they_mean(tmp_path):
    clock = Clock()
    call = PartialCall("t1-c1", "edit", Edit(ReadTracker()), LocalWorkspace([str(tmp_path)]), clock)
    call.grow('{"file_path": "src/app.py", "old_string": "a", ')
    clock.now += EVERY
    preview = call.grow('"new_string": "b')
    assert isinstance(preview, CallPreviewed)
    assert preview.display == (DiffBlock(str(tmp_path / "src/app.py"), "modify", "a", "b"),)
    assert preview.title in ("", "Edit src/app.py")
    call.grow('c"}')
    last = call.last_preview()
    assert last is None or last.title in ("", "Edit src/app.py")
    assert call.read().call.arguments == '{"path":"src/app.py","edits":[{"old":"a","new":"bc"}]}'


def test_a_plan_that_is_nearly_json_is_not_announced_before_its_end(tmp_path):
    call = PartialCall("t1-c1", "plan", Plan(), LocalWorkspace([str(tmp_path)]), Clock(), may_announce=True)
    assert call.grow('{"entries": [{"content": "one"}') is None
    assert call.grow(', {"content": "two"}]}') == PlanChanged((PlanEntry("one"), PlanEntry("two")))


def test_whole_arguments_take_the_place_of_what_lost_a_piece(tmp_path):
    call, _ = arriving(tmp_path)
    call.grow('{"path": "wr')
    call.grow('{"path": "a.py"}', anew=True)
    assert call.arguments == '{"path": "a.py"}'
