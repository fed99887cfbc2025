"""`crow chat` beside other clients on the same session: their turns, their answers, and who leaves."""

import asyncio
import io
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from crow.acp.wire import RequestPermissionRequest
from crow.cli.answer_keys import Answer, Choice, Invite, Nobody
from crow.cli.interactive_client import RenderingClient
from crow.cli.render import Renderer
from crow.cli.render_screen import Screen
from tests.cli.chat_support import (
    DONE,
    INPUT,
    STATUS,
    STEERS_IN_A_WHILE,
    altered_crow,
    chat,
    command_of,
    prompt_in,
    question,
    state,
    talk_to,
    wait_for_question,
)
from tests.cli.test_run import HELLO, play, processes_of, wait_until_nothing_runs
from tests.support.puppet import Puppet
from tests.support.scripts import edit
from tests.support.scripts import run as run_command
from tests.support.terminals import is_alive, wait_until_gone
from tests.support.window import Window


def test_another_clients_turn_is_shown(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, Window(tmp_path, "chat", program=agent.program) as window:
        hello = agent.expect("initialize")["params"]
        assert hello["_meta"]["crow"] == {"choices": True, "reasons": True, "state": True}
        assert hello["clientInfo"]["name"] == "crow-chat"
        agent.expect("session/new")
        window.wait_until("ask · their/model")
        state(agent, "running", by="Zed")
        agent.say("from the other window", "user_message_chunk", "m2")
        agent.say("I am on it.", message="m3")
        window.wait_until("running in Zed · ask")
        window.wait_until("▸ from the other window\n\nI am on it.")
        window.type("later")
        window.press("enter")
        window.wait_until("queued: later")
        state(agent, "idle")
        assert prompt_in(agent) == "later"
        window.wait_until(lambda: "running in Zed" not in window.text)


def test_a_prompt_that_came_second_leaves_the_other_turn_to_be_stopped(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("mine")
        window.press("enter")
        mine = agent.expect("session/prompt")
        state(agent, "running", by="Zed")
        agent.refuse(mine, -32600, "A turn is already running in this session, begun in Zed.")
        window.wait_until("running in Zed · ask")
        window.wait_until("queued: mine")
        window.press("escape")
        agent.expect("session/cancel")


@pytest.mark.parametrize(
    ("ended", "shown", "goes_on"),
    [
        ({"stopReason": "end_turn"}, "✓ done", True),
        ({"stopReason": "end_turn", "leftOpen": "question"}, "✓ waiting for you", False),
        ({"stopReason": "cancelled"}, "■ cancelled", False),
        ({"error": "The provider hung up."}, "✗ The provider hung up.", False),
    ],
)
def test_the_end_of_another_clients_turn_is_shown(
    tmp_path: Path, ended: dict[str, str], shown: str, goes_on: bool
) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        state(agent, "running", by="Zed")
        window.wait_until("running in Zed · ask")
        window.type("later")
        window.press("enter")
        window.wait_until("queued: later")
        state(agent, "idle", ended={"turn": "t1", **ended})
        window.wait_until(shown)
        if goes_on:
            assert prompt_in(agent) == "later"
        else:
            window.wait_until("Enter: send now")
            assert "queued: later" in window.text


def test_a_watcher_that_stops_a_turn_sees_its_end(tmp_path: Path) -> None:
    play(tmp_path, run_command("sleep 3600"), HELLO)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as first:
        first.wait_until(" sleep 3600")
        with chat(tmp_path, "--continue", status="running in crow-chat") as second:
            second.wait_until(" sleep 3600")
            second.press("escape")
            for window in (second, first):
                window.wait_until("■ cancelled")


def test_what_a_watcher_said_into_a_turn_that_is_stopped_waits_at_the_watcher(tmp_path: Path) -> None:
    (play(tmp_path, run_command("sleep 3600"), HELLO) / "nest.py").touch()
    crow = altered_crow(tmp_path, STEERS_IN_A_WHILE)
    with chat(tmp_path, "--mode", "auto", "wait for it", status="auto · play/it") as first:
        first.wait_until(" sleep 3600")
        with chat(tmp_path, "--continue", status="running in crow-chat", program=crow) as second:
            second.wait_until("You only watch this session.")
            first.wait_until("type this code there")
            code = re.findall(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}\b", first.text)[-1]
            second.type(code)
            second.press("enter")
            second.press("enter")
            second.wait_until("From now on you take part in this session.")
            for said in ("use tabs", "see @nest.py"):
                second.type(said)
                second.press("enter")
                second.wait_until(f"  adding to this turn: {said}")
                second.press("enter")
                second.wait_until(f"▸ {said}\n")
            second.press("escape")
            second.wait_for_rows(
                "  queued: use tabs",
                "  queued: see @nest.py",
                INPUT,
                "Enter: send now · ↑: edit",
                "auto · play/it",
            )
            first.wait_until("■ cancelled")
            first.wait_for_rows("", INPUT, "auto · play/it")
            assert "queued" not in first.text


def test_the_code_of_who_joins_is_shown_beside_an_open_question(tmp_path: Path) -> None:
    project = play(tmp_path, run_command("true"), edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as first:
        wait_for_question(first)
        first.press("y")
        first.wait_until("  + feathers\n")
        wait_for_question(first)
        with chat(tmp_path, "--continue", status="running in crow-chat") as second:
            second.wait_until("You only watch this session.")
            first.wait_until("type this code there")
            second.type(re.findall(r"\b[A-Z2-9]{4}-[A-Z2-9]{4}\b", first.text)[-1])
            second.press("enter")
            second.press("enter")
            wait_for_question(second)
            second.press("y")
            second.wait_until("✓ done")
            first.wait_until("✓ done")


def test_two_terminals_share_one_session(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE, HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as first:
        wait_for_question(first)
        with chat(tmp_path, "--continue", status="running in crow-chat") as second:
            wait_for_question(second)
            assert "▸ soften it\n" in second.text
            assert "  + feathers\n" in second.text
            second.press("y")
            second.wait_until("All right.\n\n✓ done")
            second.wait_for_rows("", INPUT, STATUS)
            first.wait_until("  → no longer needed\n\ni Allowed in crow-chat (2): Edit nest.py\n")
            first.wait_until("✓ done")
            second.type("and from here")
            second.press("enter")
            first.wait_until("▸ and from here\n\n… A greeting.\n\nHello there!")
            second.wait_until("✓ done")
            second.press("ctrl-d")
            assert second.ended() == 0
        with Window(tmp_path, "chat", "--cwd", str(project), "--resume") as third:
            third.wait_until("soften it · idle")
        first.press("ctrl-d")
        assert first.ended() == 0
    assert (project / "nest.py").read_text() == "feathers\n"
    wait_until_nothing_runs(tmp_path)


def test_a_question_that_was_answered_elsewhere_vanishes(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("x")
        window.press("enter")
        agent.expect("session/prompt")
        asked = agent.request("session/request_permission", question())
        window.wait_until("  y  Yes")
        agent.notify("$/cancel_request", {"requestId": asked})
        agent.update(sessionUpdate="notice", severity="info", title="Allowed in Zed.")
        window.wait_until("i Allowed in Zed.")
        assert "  y  Yes" not in window.text
        assert "→ no longer needed" in window.text
        window.type("y")  # goes to the input again
        window.wait_until("▸ y")


def test_outside_a_chat_too_a_question_answered_elsewhere_is_not_called_cancelled() -> None:
    """As in `crow run`, beside a client that answers for it."""

    class Away(Nobody):
        async def choose(self, choices: Sequence[Choice], invite: Invite = lambda _: None) -> Answer:
            raise asyncio.CancelledError

    shown = io.StringIO()
    client = RenderingClient(Renderer(Screen.of(shown, {})), Away())
    request = msgspec.convert({**question(), "sessionId": "s"}, RequestPermissionRequest)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(client.permit(request))
    assert "→ no longer needed" in shown.getvalue()


def test_who_leaves_a_turn_that_others_watch_is_told_that_it_goes_on(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("x")
        window.press("enter")
        agent.expect("session/prompt")
        state(agent, "running", by="crow-chat")
        agent.update(sessionUpdate="tool_call", toolCallId="c1", title="dig", kind="execute", status="in_progress")
        window.wait_until(" dig\n")
        window.press("ctrl-d")
        window.wait_until("i The turn is still running. To join it: crow chat --resume s1")
        assert "not finished" not in window.text


def test_a_question_that_nobody_answered_is_not_said_to_be_answered(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("x")
        window.press("enter")
        prompt = agent.expect("session/prompt")
        asked = agent.request("session/request_permission", question())
        window.wait_until("  y  Yes")
        agent.notify("$/cancel_request", {"requestId": asked})
        agent.answer(prompt, {"stopReason": "cancelled"})  # by another client
        window.wait_until("■ cancelled")
        assert "answered" not in window.text


def test_an_agent_that_others_watch_is_left_alive(tmp_path: Path) -> None:
    with Puppet(tmp_path, stays=True) as agent:
        with talk_to(agent, tmp_path) as window:
            window.type("x")
            window.press("enter")
            agent.expect("session/prompt")
            state(agent, "running", by="crow-chat")
            agent.say("Working.")
            window.wait_until("Working.")
            window.press("ctrl-d")
            assert window.ended() == 0
        (process,) = (pid for pid in processes_of(tmp_path) if "stays" in command_of(pid))
        assert is_alive(process)
    wait_until_gone(process)
