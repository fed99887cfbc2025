"""What `crow run` prints of subagents: their steps below the call, their questions with their name."""

from pathlib import Path

from tests.config.support import crow, write_config
from tests.support.scripts import DONE, call, edit, reply, say

SCRIPT = (
    reply(call("task", title="Pears", kind="work", prompt="no pears"))
    + reply(say("I look first."), call("read", path="fruit.txt"), when="no pears")
    + reply(edit("fruit.txt", "pear", "plum"), when="no pears")
    + reply(say("Pear is plum now."), when="no pears")
    + DONE
)


def run(user: Path, *arguments: str) -> str:
    write_config(user, 'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\n')
    (user / "crow" / "script.toml").write_text(SCRIPT)
    (user / "project").mkdir()
    (user / "project" / "fruit.txt").write_text("apple\npear\n")
    said = crow(user, "run", "--cwd", str(user / "project"), *arguments, "go")
    assert said.returncode in (0, 3)
    return said.stderr


def test_the_steps_the_report_and_the_change_stand_below_the_call(tmp_path: Path) -> None:
    lines = run(tmp_path, "--mode", "edit").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("✓ Work: Pears · 2 steps, 1 file"))
    assert [line.partition(" (")[0] for line in lines[first + 1 : first + 5]] == [
        "  │ · I look first.",
        "  │ ✓ Read fruit.txt",
        "  │ ✓ Edit fruit.txt",
        "  │ Pear is plum now.",
    ]
    assert "  + plum" in lines


def test_a_question_names_the_subagent(tmp_path: Path) -> None:
    output = run(tmp_path)
    assert "? Permission needed: Subagent “Pears”: Edit fruit.txt" in output
    assert "✗ Subagent “Pears”: Edit fruit.txt" in output
    assert "✓ Work: Pears" in output
