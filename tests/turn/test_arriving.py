"""What is shown of a call while its arguments arrive: early, seldom enough, and never much."""

import json
from pathlib import Path
from typing import Any

import pytest

from crow.messages import ToolCall, ToolSpec
from crow.results import Location, TextBlock, ToolKind
from crow.tools.base import Action
from crow.turn.arriving import ENVELOPE, EVERY, SMALL, ArrivingCall, last_piece
from crow.workspace.base import Workspace
from crow.workspace.local import LocalWorkspace


class Writer:
    """A tool whose content grows."""

    kind = ToolKind.EDIT
    spec = ToolSpec("write", "", {})

    def title(self, arguments: dict[str, Any]) -> str:
        return f"Write {arguments['path']}" if "path" in arguments else "Write"

    def growing(self, arguments: dict[str, Any]) -> str:
        return arguments.get("content", "")

    async def prepare(self, call: ToolCall, workspace: Workspace) -> Action:
        raise AssertionError("nothing is prepared while arguments arrive")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def arriving(folder: Path) -> tuple[ArrivingCall, Clock]:
    clock = Clock()
    return ArrivingCall("t1-c1", "write", Writer(), LocalWorkspace([str(folder)]), clock), clock


def test_a_name_is_shown_only_when_it_is_complete(tmp_path):
    call, clock = arriving(tmp_path)
    assert call.grow('{"path": "src/ap') is None
    clock.now += EVERY
    preview = call.grow('p.py", "content": "impo')
    assert preview is not None
    assert preview.title == "Write src/app.py"
    assert preview.locations == (Location(str(tmp_path / "src/app.py")),)
    assert preview.display == (TextBlock("impo"),)
    clock.now += EVERY
    later = call.grow("rt os")
    assert later is not None
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
        if preview is not None and preview.display:
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


def test_what_is_no_json_shows_nothing(tmp_path):
    call, clock = arriving(tmp_path)
    for piece in ("certainly! ", "[1, 2", '"text"', "\ud800"):
        clock.now += EVERY
        assert call.grow(piece) is None
