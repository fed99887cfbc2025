"""A whole conversation with an MCP server, kept in a file: see test_golden.py."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.mcp.guests import PATIENT, PROGRAMS
from tests.support.editor import Editor, chose
from tests.support.golden import assert_golden, loaded_again, tools_transcript
from tests.support.scripts import DONE, call, reply, say

BAKERY = {"name": "bakery", "command": sys.executable, "args": [str(PROGRAMS / "bakery.py")], "env": []}


@pytest.fixture
def open_editor(open_editor: Callable[..., Editor]) -> Iterator[Callable[..., Editor]]:
    yield from loaded_again(open_editor)


@pytest.mark.rule("R154", "R155")
def test_a_server_on_pipes(open_editor):
    """Asked about once for the session: progress, then text, structured content and a picture. The other tool fails."""
    script = (
        reply(say("I bake two."), call("mcp__bakery__bake", loaves=2))
        + reply(call("mcp__bakery__bake", loaves=3))
        + reply(call("mcp__bakery__sell", loaves=5))
        + DONE
    )
    answers = iter(("session", "once"))
    crow = open_editor(script=script, config=PATIENT, permit=lambda request: chose(next(answers)))
    crow.new_session(mcpServers=[BAKERY])
    crow.prompt("bread, please")
    folders = (PROGRAMS, Path(sys.executable).parent)
    assert_golden("mcp", tools_transcript(crow, kept=lambda lines: lines, folders=folders))
