"""Servers that are slow to start, or fail again and again: how long they are borne with, and how they come back."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from crow.actions import Filled, Form, Link
from crow.commands.processes import ForkServer
from crow.config.settings import Limits, McpServerSettings
from crow.events import Notice
from crow.mcp.client import connection as life
from crow.mcp.client.configured import ConfiguredServer, Origin
from crow.mcp.client.connection import ServerConnection, State
from crow.mcp.client.inventory import ConnectionContext
from tests.mcp.guests import (
    are_gone,
    bad,
    calling,
    editing,
    hung,
    notice_about,
    offered,
    over_http,
    pids_in,
    shown,
)
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, reply, say

SOON = "[limits]\nmcp_start = 1\nmcp_late = 1\n"
LATE = "is not ready after 1 s. Continuing without it; its tools are added when it is ready."


def test_one_that_hangs_is_ended_at_its_limit_and_told_of_once(tmp_path):
    pids = tmp_path / "pids"
    editor = editing(tmp_path, DONE + DONE, config=SOON)
    editor.new_session(mcpServers=[bad("hangs", pids)])
    editor.prompt("Go.")
    are_gone(pids_in(pids))
    told = "cannot be used: it did not answer within 2 s. It was stopped. Run `/mcp restart hangs` to try again."
    notice_about(editor, told)
    editor.prompt("Go on.")
    assert editor.notices == [f"The MCP server `hangs` (from your editor) {text}" for text in (LATE, told)]
    editor.prompt("/mcp")
    assert "**hangs** (from your editor): timed out: it did not answer within 2 s" in editor.text()
    editor.close()


def test_a_prompt_goes_on_without_one_that_is_late_and_its_tools_join_when_it_is_ready(tmp_path):
    flour = tmp_path / "flour"
    editor = editing(tmp_path, reply(say("Hm.")) + calling(("mcp__late__go", {})), config="[limits]\nmcp_start = 1\n")
    editor.new_session(mcpServers=[bad("late", flour)])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    assert LATE in notice_about(editor, "`late`")
    assert "mcp__late__go" not in offered(editor.model_requests()[0])
    flour.write_text("here")
    notice_about(editor, "`late`", "is ready now")
    editor.prompt("Go on.")
    assert shown(editor.the_call()) == "```text\ngone\n```"
    assert len([notice for notice in editor.notices if "`late`" in notice]) == 2
    editor.close()


def test_a_prompt_waits_three_seconds_for_one_that_hangs_and_begins_with_the_others(tmp_path):
    editor = editing(tmp_path, calling(("mcp__plain__go", {})), config="")
    editor.new_session(mcpServers=[bad("hangs"), bad("plain")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    assert LATE.replace("1 s", "3 s") in notice_about(editor, "`hangs`")
    assert "mcp__plain__go" in offered(editor.model_requests()[0])
    assert editor.the_call()["status"] == "completed"
    editor.close()


def test_a_call_that_the_model_knows_from_before_waits_for_one_that_is_late(tmp_path):
    flour = tmp_path / "flour"
    editor = editing(tmp_path, calling(("mcp__late__go", {})), config="[limits]\nmcp_start = 1\n")
    editor.new_session(mcpServers=[bad("late", flour)])
    turn = editor.start_prompt("Go.")
    editor.wait_until(lambda: len(editor.tool_calls()) == 1, "the call was opened")
    assert LATE in notice_about(editor, "`late`")
    assert not turn.done
    flour.write_text("here")
    assert turn.answer() == {"stopReason": "end_turn"}
    call = editor.the_call()
    assert (call["status"], shown(call), call["title"]) == ("completed", "```text\ngone\n```", "late: go")
    editor.close()


def test_a_call_of_one_that_hangs_is_told_why_nothing_was_called(tmp_path):
    editor = editing(tmp_path, calling(("mcp__hangs__go", {})), config=SOON)
    editor.new_session(mcpServers=[bad("hangs")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    told = "The MCP server `hangs` cannot be used: it did not answer within 2 s. Nothing was called."
    assert (editor.the_call()["status"], shown(editor.the_call())) == ("failed", told)
    editor.close()


def test_starting_it_again_gives_it_another_chance(tmp_path):
    witness = tmp_path / "witness"
    slow = bad("hangs-once", witness, "slow")
    editor = editing(
        tmp_path, reply(say("Hm.")) + calling(("mcp__slow__go", {})), config="[limits]\nmcp_start = 3\nmcp_late = 1\n"
    )
    editor.new_session(mcpServers=[slow])
    editor.prompt("Go.")
    assert "4 s. It said: kneading." in notice_about(editor, "`slow`", "cannot be used")
    are_gone(pids_in(witness))
    editor.prompt("/mcp restart slow")
    notice_about(editor, "`slow`", "is ready now")
    editor.prompt("Go on.")
    assert shown(editor.the_call()) == "```text\ngone\n```"
    editor.close()


def test_one_that_is_starting_can_be_started_again_too(tmp_path):
    pids = tmp_path / "pids"
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[bad("hangs", pids)])
    before = pids_in(pids)
    editor.prompt("/mcp restart hangs")
    are_gone(before)
    eventually(lambda: pids_in(pids) != before, "it was started again")
    editor.close()
    are_gone(pids_in(pids))


@pytest.mark.parametrize(("path", "kind"), [("silent", "http"), ("sse-silent", "sse"), ("sse-start", "sse")])
def test_one_over_http_that_does_not_answer_has_the_same_limit(tmp_path, path, kind):
    with hung() as (root, _):
        editor = editing(tmp_path, DONE, config=SOON)
        editor.new_session(mcpServers=[over_http(f"{root}/{path}", kind=kind)])
        assert editor.prompt("Go.") == {"stopReason": "end_turn"}
        assert "2 s" in notice_about(editor, "`web`", "cannot be used")
        editor.prompt("/mcp")
        assert "**web** (from your editor): timed out" in editor.text()
        editor.close()


class Nobody:
    can_visit = False

    async def fill_in(self, form: Form) -> Filled:
        return Filled("decline")

    async def visit(self, link: Link) -> bool:
        return False

    def visited(self, link_id: str) -> None:
        pass


@asynccontextmanager
async def connected(
    server: dict[str, Any], folder: Path, told: list[str], on_change: Callable[[ServerConnection], None]
) -> AsyncGenerator[ServerConnection]:
    """The life of a server, without a session around it."""
    fork_server = ForkServer()

    def tell(notice: Notice) -> None:
        told.append(notice.title)

    around = ConnectionContext(
        fork_server, str(folder), [str(folder)], os.environ, Nobody(), lambda: Limits(mcp_start=50), tell
    )
    settings = McpServerSettings(command=server["command"], args=server["args"])
    connection = ServerConnection(ConfiguredServer("flaky", Origin.EDITOR, settings), "flaky", around, on_change)
    connection.start()
    try:
        yield connection
    finally:
        await connection.close()
        await fork_server.close()


def test_a_prompt_does_not_wait_for_the_end_of_one_that_failed_and_lingers(tmp_path, monkeypatch):
    monkeypatch.setattr(life, "ENDING", 0.01)
    told: list[str] = []

    async def live() -> None:
        is_down = asyncio.Event()

        def look(connection: ServerConnection) -> None:
            if connection.cause:
                is_down.set()

        async with connected(bad("lingers"), tmp_path, told, look) as connection:
            await connection.settled()
            assert not told, "it ignores the signal to end, and is still there"
            await is_down.wait()
            assert "it answered with an error: no flour" in told[0]

    asyncio.run(live())


def test_one_that_fails_again_and_again_is_given_up_and_comes_back_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(life, "PAUSES", (0.01, 0.02))
    flour = tmp_path / "flour"
    told: list[str] = []

    async def live() -> None:
        given_up = asyncio.Event()

        def look(connection: ServerConnection) -> None:
            if connection.state is State.FAILED:
                given_up.set()

        async with connected(bad("dies-until", flour), tmp_path, told, look) as connection, asyncio.timeout(DEADLINE):
            await given_up.wait()
            flour.touch()
            connection.restart()
            await connection.settled()
            assert connection.state is State.READY

    asyncio.run(live())
    named = "The MCP server `flaky` (from your editor)"
    cause = "it ended with exit status 4. It said: no flour in the house"
    assert told == [
        f"{named} cannot be used: {cause}. Restarting it.",
        f"{named} failed again and is not restarted: {cause}. Run `/mcp restart flaky` to try again.",
        f"{named} is ready now.",
    ]
