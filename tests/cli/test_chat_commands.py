"""Slash commands in `crow chat`: Enter takes the marked one, and one that there is not never reaches the model."""

from pathlib import Path

import pytest

from tests.cli.chat_support import INPUT, STATUS, STOP_COUNTS_ON, altered_crow, chat, prompt_in, recording, talk_to
from tests.cli.test_run import HELLO, WAIT, play
from tests.support.puppet import Puppet
from tests.support.window import Window

COMMANDS = [
    {"name": "help", "description": "List all commands"},
    {"name": "model", "description": "The model", "input": {"hint": "[name]"}},
    {"name": "mode", "description": "The mode", "input": {"hint": "[mode]"}},
    {"name": "context", "description": "How full"},
    {"name": "mcp:nest:weave", "description": "A prompt"},
]
PLACE = "To send it as a message, put a space before it."


def marked_rows(window: Window) -> list[str]:
    """The rows of the window that are drawn in reverse, but for the cursor."""
    rows = (range(window.screen.lines), window.screen.buffer)
    return [window.screen.display[y].strip() for y in rows[0] if sum(rows[1][y][x].reverse for x in range(80)) > 1]


def tell_commands(agent: Puppet, window: Window) -> None:
    agent.update(sessionUpdate="available_commands_update", availableCommands=COMMANDS)
    window.type("/")
    window.wait_until("  /mcp:nest:weave")
    window.press("ctrl-u")
    window.wait_until(INPUT)


def test_enter_runs_the_marked_command_and_no_model_is_asked(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    with chat(tmp_path) as window:
        window.type("/cont")
        window.wait_for_rows("▸ /cont", "  /context  Show what fills the context window, and what was spent", STATUS)
        assert [row.split()[0] for row in marked_rows(window)] == ["/context"]
        window.press("enter")
        window.wait_until("System prompt")
        window.wait_until(INPUT)
        assert "▸ /context" in window.text
    assert not sent.exists()


def test_a_marked_command_that_takes_arguments_waits_for_them(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        tell_commands(agent, window)
        window.type("/mod")
        window.wait_until("  /model")
        window.press("down", "down")
        window.wait_until("▸ /mode\n")
        window.press("enter")
        window.type("plan")
        window.wait_until("▸ /mode plan")
        window.press("enter")
        assert prompt_in(agent) == "/mode plan"


def test_a_name_that_is_typed_to_its_end_is_that_command(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        tell_commands(agent, window)
        window.type("/mode")
        window.wait_until("  /model")
        assert [row.split()[0] for row in marked_rows(window)] == ["/mode"]
        window.press("enter")
        assert prompt_in(agent) == "/mode"


@pytest.mark.parametrize(
    ("typed", "refusal"),
    [
        ("/contxt", 'Unknown command "/contxt". Did you mean /context?'),
        ("/contxt of this", 'Unknown command "/contxt". Did you mean /context?'),
        ("/Help", 'Unknown command "/Help". Did you mean /help?'),
        ("/exi", 'Unknown command "/exi". Did you mean /exit?'),
        ("/zzz", 'Unknown command "/zzz". For a list: /help.'),
    ],
)
def test_a_command_that_there_is_not_is_refused_and_stays_a_draft(tmp_path: Path, typed: str, refusal: str) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        tell_commands(agent, window)
        window.type(f"{typed} ")
        window.wait_until(f"▸ {typed}")
        window.press("enter")
        window.wait_until(lambda: f"! {refusal} {PLACE}" in " ".join(window.text.split()))
        window.wait_for_rows(f"▸ {typed}", "ask · their/model")
        window.press("ctrl-u")
        window.type("thanks")
        window.wait_until("▸ thanks")
        window.press("enter")
        assert prompt_in(agent) == "thanks"


@pytest.mark.parametrize("text", ["/etc/hosts is wrong", "/tmp is full", " /contxt", "/", "/mcp:egg:lay", "/* why? */"])
def test_what_is_no_command_is_sent(tmp_path: Path, text: str) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        tell_commands(agent, window)
        window.type(f"{text} ")
        window.wait_until(f"▸ {text}")
        window.press("enter")
        assert prompt_in(agent).rstrip() == text


def test_what_was_typed_before_the_commands_were_known_is_refused_too(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    with chat(tmp_path, "/contxt") as window:
        window.wait_until('! Unknown command "/contxt". Did you mean /context?')
        window.wait_until("▸ /contxt")
    assert not sent.exists()


def test_a_command_of_a_project_that_is_not_trusted_yet_is_asked_about(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO)
    (project / ".crow" / "commands").mkdir(parents=True)
    (project / ".crow" / "commands" / "weave.md").write_text("Weave a nest.\n")
    with chat(tmp_path) as window:
        window.type("/weave")
        window.wait_until("▸ /weave")
        window.press("enter")
        window.wait_until("trust")
        assert "Unknown command" not in window.text


# --- Esc


def test_escape_clears_a_draft_and_never_leaves_with_one(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path, program=altered_crow(tmp_path, STOP_COUNTS_ON)) as window:
        window.type("half a thought")
        window.wait_until("▸ half a thought")
        window.press("escape", "escape")
        window.wait_for_rows(INPUT, "Press again to quit", STATUS)
        window.press("up")
        window.wait_for_rows("▸ half a thought", STATUS)


def test_escape_stops_the_turn_first_and_keeps_what_is_typed(tmp_path: Path) -> None:
    play(tmp_path, WAIT, HELLO)
    with chat(tmp_path, program=altered_crow(tmp_path, STOP_COUNTS_ON)) as window:
        window.type("tell me")
        window.press("enter")
        window.wait_until("Once upon a time")
        window.type("half a thought")
        window.wait_until("▸ half a thought")
        window.press("escape")
        window.wait_until("■ cancelled")
        window.wait_until("▸ half a thought")
        window.press("escape", "escape")
        window.wait_until("Press again to quit")
        window.press("up")
        window.wait_until("▸ half a thought")
