"""Each request begins with the one before it: providers' caches live on that, on every wire.

What may break it is listed here, and counted: other servers, and what takes something out of the history (undo,
compaction).
"""

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from crow.model.scripted import Call, Think
from tests.mcp.guests import PATIENT, bad
from tests.support.editor import Editor, Json, chose
from tests.support.provider import Provider
from tests.support.provider_dialect import Dialect

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
ROUNDS = 10
CONFIG = """\
model = "test/m"
mode = "auto"
[providers.test]
type = "{type}"
base_url = "{url}"
{wire}
[providers.test.models.m]
images = true
context_window = 1000000
max_output = 4096
{limits}
"""
WIRES = {"chat": "openai", "responses": "responses", "messages": "anthropic"}


def dialect_of(provider: Provider, wire: str) -> Dialect:
    return getattr(provider, WIRES[wire])


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


def editor_for(open_editor: Any, folder: Path, provider: Provider, wire: str, environment: Any = None) -> Editor:
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    (work / "picture.png").write_bytes(PICTURE)
    (work / "a.txt").write_text("one\ntwo\n")
    (home / "config.toml").write_text(
        CONFIG.format(
            type="anthropic" if wire == "messages" else "openai",
            url=dialect_of(provider, wire).url,
            wire="" if wire == "messages" else f'wire = "{wire}"',
            limits=PATIENT,
        )
    )
    return open_editor(
        folder=folder, environment=environment, cold=environment is not None, permit=lambda request: chose("once")
    )


def stable(body: Json) -> tuple[Any, list[Any]]:
    """What comes before the conversation, and the conversation; without the marks that say how much to cache."""
    clean = without_marks(body)
    first = {key: clean.get(key) for key in ("system", "instructions", "tools")}
    return first, list(clean.get("messages") or clean["input"])


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [without_marks(item) for item in value] if isinstance(value, list) else value


def breaks(bodies: list[Json]) -> list[int]:
    """The requests, counted from 0, that do not begin with the one before."""
    found: list[int] = []
    for number in range(1, len(bodies)):
        (first, before), (next_first, after) = stable(bodies[number - 1]), stable(bodies[number])
        if first != next_first or after[: len(before)] != before:
            found.append(number)
    return found


PLAN = {"entries": [{"content": "Look", "status": "in_progress", "priority": "high"}]}
CALLS = [
    [Think("Where is it?"), Call("plan", PLAN)],
    ["Two at once.", Call("read", {"path": "a.txt"}), Call("find", {"pattern": "*.png"})],
    [Call("read", {"path": "picture.png"})],
    [Think("A server may know."), Call("mcp__plain__go", {})],
    [Call("write", {"path": "b.txt", "content": "new\n"})],
    [Call("nothing_of_that_name", {"x": 1})],
    [Call("terminal", {"command": "echo hello"})],
]


def test_forty_rounds_with_modes_plans_pictures_and_servers(open_editor, tmp_path, wire):
    with Provider() as provider:
        dialect = dialect_of(provider, wire)
        crow = editor_for(open_editor, tmp_path / "it", provider, wire)
        crow.new_session(mcpServers=[bad("plain")])
        picture = {"type": "image", "data": base64.b64encode(PICTURE).decode(), "mimeType": "image/png"}
        for turn, mode in enumerate(("auto", "plan", "edit", "plan", "auto")):
            for number in range(ROUNDS - 2):
                dialect.answer(*CALLS[(turn + number) % len(CALLS)])
            dialect.answer(Think("Enough."), "That is all.")
            crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": mode})
            assert crow.prompt(f"Go on, for the {turn + 1}. time.", picture) == {"stopReason": "end_turn"}
        bodies = [request.body for request in dialect.requests]
    assert len(bodies) == 5 * (ROUNDS - 1) == 45
    assert breaks(bodies) == []
    assert "mcp__plain__go" in str(bodies[0]["tools"])


def test_what_breaks_it(open_editor, tmp_path, wire):
    with Provider() as provider:
        dialect = dialect_of(provider, wire)
        crow = editor_for(open_editor, tmp_path / "it", provider, wire)
        crow.new_session()

        def turn(prompt: str) -> None:
            dialect.answer("Let me look.", Call("read", {"path": "a.txt"}))
            dialect.answer("Yes.")
            crow.prompt(prompt)

        turn("One.")
        turn("Two.")
        crow.prompt("/undo")
        turn("Three.")  # request 4: a turn was taken back
        turn("Four.")
        crow.prompt("/clear")
        turn("Five.")  # request 8: a new beginning
        bodies = [request.body for request in dialect.requests]
    assert breaks(bodies) == [4, 8]


FIRST_DAY = {"TZ": "WEST12"}
LATER_DAY = {"TZ": "EAST-14"}
"""Twenty-six hours apart: it is never the same day in both. A process that is started warm knows its zone already."""


def test_what_changes_around_a_conversation_is_told_behind_it(open_editor, tmp_path, wire):
    """Instructions that are edited, removed and written again, and another day when the session is resumed."""

    def turn(crow: Editor, prompt: str, instructions: str = "") -> None:
        file = crow.workspace / "AGENTS.md"
        file.write_text(instructions) if instructions else file.unlink(missing_ok=True)
        dialect.answer("Yes.")
        assert crow.prompt(prompt) == {"stopReason": "end_turn"}

    with Provider() as provider:
        dialect = dialect_of(provider, wire)
        crow = editor_for(open_editor, tmp_path / "it", provider, wire, FIRST_DAY)
        crow.new_session()
        turn(crow, "One.", "Use tabs.")
        turn(crow, "Two.", "Use tabs.")
        turn(crow, "Three.", "Use blanks.")
        turn(crow, "Four.")
        crow.close()
        crow.kill()
        resumed = open_editor(folder=tmp_path / "it", environment=LATER_DAY, cold=True)
        resumed.load_session(crow.session_id)
        turn(resumed, "Five.")
        bodies = [request.body for request in dialect.requests]
    assert breaks(bodies) == []
    _, messages = stable(bodies[-1])
    first = str(without_marks(bodies[0]))
    assert "Use tabs." in first
    one, two, three, four, five = [str(message) for message in messages if message["role"] == "user"]
    assert "has changed" not in one + two
    assert "Use blanks." in three
    assert "Date:" not in three
    assert "none any more" in four
    [before], [after] = re.findall(r"Date: ([\d-]+)", first), re.findall(r"Date: ([\d-]+)", five)
    assert before < after
