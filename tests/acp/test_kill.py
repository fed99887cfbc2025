"""kill -9 costs nothing that was acknowledged: sessions that were busy when Crow was killed are whole afterwards.

A process has several sessions at work when it is killed, at a moment that a seeded dice gives. The next one loads
each of them, compares with what the client had been shown, and goes on with a provider that takes no odd history;
then it is killed itself. CROW_KILLS says how often; `make soak` does it two hundred times.
"""

import os
import random
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crow.files.atomic import temporary_name
from tests.support.editor import Editor, Pending, chose
from tests.support.fold import ReadTracker
from tests.support.new_files import watched
from tests.support.patience import eventually
from tests.support.provider import Provider
from tests.support.scripts import DONE, call, edit, reply, run, say

KILLS = int(os.environ.get("CROW_KILLS", "8"))
SEED = int(os.environ.get("CROW_KILLS_SEED", "1"))
SESSIONS = 5
LAST = 800
"""Messages after which the last kill may come; by then most of the turns are over."""
ACKNOWLEDGED = 1.0
"""Seconds after which text that was streamed must be stored."""

CONFIG = """
[providers.strict]
type = "openai"
base_url = "{url}"
api_key = "none"
[providers.strict.models.m]
"""


def busy() -> str:
    """A turn that does a bit of everything, with pauses in which a kill can come."""
    rounds = [
        reply(
            f'{{ thought = "Step {number}, let me think about that.", pace = 4 }}',
            f'{{ text = "Now to step {number} of many, word after word after word.", pace = 6 }}',
            call("write", path=f"{number}.txt", content=f"line of {number}\n" * 20, pieces=8),
            call("read", path=f"{number}.txt"),
            call("plan", entries=[{"content": f"step {number}", "status": "in_progress", "priority": "high"}]),
            "{ wait = 0.02 }",
        )
        + reply(
            edit(f"{number}.txt", "line of", "text of") if number % 2 else say("Nothing to edit here."),
            run(f"echo out of {number}; sleep 0.0{number}"),
        )
        for number in range(1, 7)
    ]
    return "".join(rounds) + DONE


class Victim(NamedTuple):
    """A session that was at work when its process was killed, and what its client had seen by then."""

    id: str
    workspace: Path
    seen: ReadTracker
    early: ReadTracker
    """The same, a second before."""
    accepted: list[str]
    """What was said into its turn and accepted."""


def begin(crow: Editor, folder: Path) -> dict[str, Path]:
    sessions: dict[str, Path] = {}
    for number in range(SESSIONS):
        workspace = folder / f"{crow.process.pid}-{number}"
        workspace.mkdir()
        sessions[crow.new_session(workspace)] = workspace
    for session in sessions:
        crow.start_prompt("go to work", session=session)
    return sessions


def steer(crow: Editor, sessions: dict[str, Path], dice: random.Random) -> dict[str, dict[str, Pending]]:
    """Says something into some of the turns, and waits for no answer."""
    texts = {id: [f"note {number}." for number in range(dice.randrange(3))] for id in sessions}
    return {id: {text: crow.steer(text, session=id) for text in said} for id, said in texts.items()}


def kill(crow: Editor, sessions: dict[str, Path], steered: dict[str, dict[str, Pending]]) -> list[Victim]:
    crow.process.kill()
    killed = time.monotonic()
    crow.kill()
    accepted = {
        id: [text for text, pending in said.items() if pending.done and pending.answer()["outcome"] == "injected"]
        for id, said in steered.items()
    }
    victims = {
        id: Victim(id, workspace, ReadTracker(), ReadTracker(), accepted[id]) for id, workspace in sessions.items()
    }
    for entry in crow.conversation:
        params = entry.message.get("params") or {}
        if entry.message.get("method") == "session/update" and params["sessionId"] in victims:
            update, victim = params["update"], victims[params["sessionId"]]
            if update["sessionUpdate"] == "config_option_update":
                continue
            victim.seen.take(update)
            if entry.time < killed - ACKNOWLEDGED:
                victim.early.take(update)
    return list(victims.values())


def check(crow: Editor, victim: Victim) -> None:
    """Everything that the client was told is there, nothing is open, and the conversation can go on."""
    loaded = ReadTracker()
    at = len(crow.updates_of(victim.id))
    crow.request("session/load", {"sessionId": victim.id, "cwd": str(victim.workspace), "mcpServers": []})
    for update in crow.updates_of(victim.id)[at:]:
        if update["sessionUpdate"] != "config_option_update":
            loaded.take(update)
    # A prompt that nothing came of may not have been read yet.
    assert loaded.prompts or not victim.seen.order
    check_said(crow, victim, [content["text"] for [content] in loaded.prompts])
    for id, message in victim.early.messages.items():
        assert loaded.messages[id]["text"].startswith(message["text"])
    for id, shown in victim.seen.calls.items():
        if shown["status"] in ("completed", "failed"):
            assert loaded.calls[id] == shown
    for shown in loaded.calls.values():
        assert shown["status"] in ("completed", "failed")
        if shown["status"] == "completed" and shown["name"] == "write":
            assert (victim.workspace / shown["rawInput"]["path"]).is_file()
    strict = {"sessionId": victim.id, "configId": "model", "value": "strict/m"}
    crow.request("session/set_config_option", strict)
    assert crow.prompt("Go on.", session=victim.id) == {"stopReason": "end_turn"}
    assert "Gone on." in crow.text(victim.id)
    crow.request("session/close", {"sessionId": victim.id})


def check_said(crow: Editor, victim: Victim, shown: list[str]) -> None:
    """What was accepted is in the history, in order, or told as left over: one of the two."""
    assert shown[:1] in ([], ["go to work"])
    left = [text for text in victim.accepted if f"> {text}" in crow.text(victim.id)]
    taken = [text for text in victim.accepted if text in shown]
    assert taken + left == victim.accepted
    assert [text for text in shown[1:] if text in victim.accepted] == taken


@pytest.mark.timeout(max(600, KILLS * 60))
def test_sessions_survive_being_killed_at_any_moment(tmp_path: Path):
    dice = random.Random(SEED)
    victims: list[Victim] = []
    settled = accepted = 0
    with Provider() as provider:
        options: dict[str, Any] = {"script": busy(), "config": CONFIG.format(url=f"{provider.url}/v1")}
        for _ in range(KILLS):
            crow = Editor(tmp_path, environment={"CROW_MODE": "auto"}, **options)
            try:
                for victim in victims:
                    provider.openai.answer("Gone on.")
                    check(crow, victim)
                sessions = begin(crow, tmp_path)
                # The moment is what is tested: how far they have come by then, not how fast this machine is.
                last = len(crow.lines) + dice.randrange(LAST)
                crow.wait_until(lambda crow=crow, last=last: len(crow.lines) >= last, "their progress")
                steered = steer(crow, sessions, dice)
                time.sleep(dice.uniform(0, 0.02))
                victims = kill(crow, sessions, steered)
                settled += sum(len(victim.seen.calls) for victim in victims)
                accepted += sum(len(victim.accepted) for victim in victims)
            finally:
                crow.kill()
    assert settled > KILLS * SESSIONS, "the kills came before anything had happened"
    assert accepted, "the kills came before anything was said into a turn"


def test_the_temporary_file_of_a_killed_write_is_removed_at_the_next_start(open_editor, tmp_path):
    """In whichever session: the store knows which files were being written."""
    folder = tmp_path / "project"
    folder.mkdir()
    calls = ", ".join(
        f'{{ call = "write", arguments = {{ path = "{number}.txt", content = "{"x" * 3_000_000}" }} }}'
        for number in range(8)
    )
    script = f"[[reply]]\nevents = [{calls}]"
    crow = Editor(
        tmp_path / "killed", script=script, config="[limits]\nreply = 64\n", permit=lambda request: chose("once")
    )
    crow.new_session(folder)
    with watched(folder) as files:
        crow.start_prompt("go")
        files.wait_for(".tmp")
    crow.kill()
    left = [path for path in folder.iterdir() if path.suffix == ".tmp"]
    if not left:  # it was renamed in the moment before the kill: the same name, as a kill a moment earlier leaves it
        left = [folder / temporary_name("0.txt")]
        left[0].write_text("half")
    home_file = crow.home / "config.toml.0123abcd.tmp"
    home_file.write_text("half")
    os.utime(home_file, (0, 0))
    others = [folder / ".crow-00000000.tmp.txt", folder / "notes.tmp", crow.home / "mine.tmp"]
    for path in others:
        path.write_text("not ours")
        os.utime(path, (0, 0))

    again = open_editor(folder=crow.folder)
    again.new_session()
    eventually(lambda: not any(path.exists() for path in (*left, home_file)), f"the end of {left} and {home_file}")
    assert all(path.exists() for path in others)
