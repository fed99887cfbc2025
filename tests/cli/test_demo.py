"""`crow demo`: the whole show without a terminal, its manners in one, and the script behind *Try without a key*."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from crow.cli.demo import SCENES
from crow.messages import StopReason, Text, UserMessage
from crow.model import catalog, script
from crow.model.base import CallBegan, Done, ModelRequest, Said, Thinking
from crow.model.scripted import ScriptedModel
from tests.cli.test_run import processes_of, wait_until_nothing_runs
from tests.config import support
from tests.config.support import CROW, Terminal, crow


def temporary(tmp_path: Path) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    return folder


def test_the_whole_show_without_a_terminal(tmp_path: Path) -> None:
    folder = temporary(tmp_path)

    said = crow(tmp_path, "demo", TMPDIR=str(folder), CROW_MODEL="not/this", ANTHROPIC_API_KEY="not this either")

    assert (said.returncode, said.stderr) == (0, "")
    shown = re.sub(rf"{folder}/crow-demo-\w+", "DEMO", said.stdout)
    for number, scene in enumerate(SCENES, start=1):
        assert f"\n{number}. {scene.title}\n" in shown
        assert f"\n▸ {scene.prompt}\n" in shown
    for line in (
        "… A question about the project.",
        "✓ Read README.md · 5 lines",
        "**Nest** finds the shortest way home",
        "? Permission needed: Read DEMO/team/style.md",
        "  DEMO/team/style.md lies outside the workspace.",
        "  → Allow once (the demo answered by itself)",
        "✓ Read DEMO/team/style.md",
        "  → Reject (the demo answered by itself)",
        "✗ Read DEMO/home/diary.md",
        "! demo answered 503 (Service Unavailable): the model is overloaded. Trying again",
        "✗ demo answered 401 (Unauthorized): invalid api key.",
        "over the hills and\n\n■ cancelled",
        "■ stopped: the length limit was reached (max_tokens)",
        "■ stopped: the model refused to answer (refusal)",
        "✓ done (end_turn)",
        f"  {CROW} login\n",
        f"  {CROW} setup zed\n",
        f'  {CROW} run "explain this repository"\n',
    ):
        assert line in shown
    assert "nobody hears the rest" not in shown
    assert "\x1b" not in shown
    assert os.listdir(folder) == []
    assert processes_of(tmp_path) == []
    assert not (tmp_path / "crow").exists()  # the person's own folder is not touched


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = temporary(tmp_path)
    with Terminal(tmp_path, "demo", TMPDIR=str(folder), TERM="xterm") as terminal:
        terminal.expect("What is this project?")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    assert os.listdir(folder) == []
    wait_until_nothing_runs(tmp_path)


def test_whoever_watches_may_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = tmp_path / "crow-patient"
    patient.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "from crow.cli import demo\n"
        "demo.COUNTDOWN = 3600\n"
        "from crow.__main__ import main\n"
        "sys.exit(main())\n"
    )
    patient.chmod(0o755)
    monkeypatch.setattr(support, "CROW", str(patient))
    folder = temporary(tmp_path)
    with Terminal(tmp_path, "demo", TMPDIR=str(folder), TERM="xterm", NO_COLOR="1") as terminal:
        terminal.expect("Permission needed")
        terminal.expect("press y a n or wait: the demo chooses “Allow once”")
        terminal.press(b"a")
        terminal.expect("for this session\r\n")
        terminal.expect("✓ Read")
        terminal.press(b"\x03")
        assert terminal.ended() == 130
    assert os.listdir(folder) == []


# --- the script that an editor gets with *Try without a key*


def test_the_script_for_editors_varies_and_then_repeats() -> None:
    path = os.path.join(os.path.dirname(catalog.__file__), "demo.toml")

    async def nothing(_: float) -> None:
        pass

    model = ScriptedModel(script.load(path), sleep=nothing)

    async def ask() -> tuple[str, list[str], Done]:
        request = ModelRequest(system="", messages=[UserMessage((Text("anything at all"),))])
        events = [event async for event in model.reply(request)]
        text = "".join(event.text for event in events if isinstance(event, Said))
        calls = [event.name for event in events if isinstance(event, CallBegan)]
        assert isinstance(events[-1], Done)
        assert calls or any(isinstance(event, Thinking) for event in events) or "crow login" in text
        return text, calls, events[-1]

    async def converse() -> list[tuple[str, list[str], Done]]:
        return [await ask() for _ in range(6)]

    replies = asyncio.run(converse())
    texts = [text for text, _, _ in replies]
    assert [calls for _, calls, _ in replies] == [["read"], [], [], [], [], []]
    assert len(set(texts)) == 4
    assert texts[3] == texts[4] == texts[5]
    assert all("script" in text or "crow login" in text for text in texts)
    assert {end.stop_reason for _, _, end in replies} == {StopReason.END_TURN}


def test_the_script_for_editors_plays_in_any_folder(tmp_path: Path) -> None:
    said = crow(tmp_path, "run", "hello", "--cwd", str(tmp_path), CROW_MODEL="scripted/demo")
    assert (said.returncode, said.stderr) == (0, "")
    assert "✓ Read " in said.stdout
    assert "crow login" in said.stdout
