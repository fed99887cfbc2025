"""`crow chat` in tmux, which breaks lines anew when a window gets narrower, as most terminals do."""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Self

import pytest

from tests.cli.chat_support import INPUT
from tests.cli.test_run import HELLO, play, without_times
from tests.config.support import environment
from tests.support.patience import eventually
from tests.support.puppet import Puppet
from tests.support.scripts import edit
from tests.support.warm import CROW, warm

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")


class Tmux:
    """A program in a window of a tmux of its own."""

    def __init__(self, folder: Path, *program: str, columns: int = 80, lines: int = 24) -> None:
        self._base = ["tmux", "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._environment = environment(folder)
        size = ("-x", str(columns), "-y", str(lines))
        self._call("new-session", "-d", *size, "-c", str(folder), shlex.join(program))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._base, "kill-server"], env=self._environment, capture_output=True)

    def send(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def resize(self, columns: int, lines: int) -> None:
        self._call("resize-window", "-x", str(columns), "-y", str(lines))

    def picture(self, *options: str) -> str:
        rows = [row.rstrip() for row in self._call("capture-pane", "-p", *options).splitlines()]
        return "\n".join(rows).rstrip("\n")

    def wait_until(self, text: str) -> None:
        eventually(lambda: text in without_times(self.picture()), repr(text), every=0.05)

    def _call(self, *arguments: str) -> str:
        done = subprocess.run([*self._base, *arguments], env=self._environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


def test_a_narrower_window_leaves_nothing_behind(tmp_path: Path) -> None:
    """tmux tells of a new size up to a quarter of a second after it has laid out its own screen for it. What is drawn
    in between nobody can know, so nothing is: the seconds stand still."""
    still = tmp_path / "still"
    tick = f"lambda self: os.path.exists({str(still)!r}) or tick(self)"
    fault = f"import os; from crow.cli.render import Renderer as R; tick = R.tick; R.tick = {tick}"
    pictures = [""]

    def is_still() -> bool:
        pictures.append(tmux.picture())
        return pictures[-1] == pictures[-2]

    with Puppet(tmp_path, fault=fault) as agent, Tmux(tmp_path, agent.program, "chat") as tmux:
        agent.expect("session/new")
        tmux.wait_until("ask · their/model")
        tmux.send("go", "Enter")
        prompt = agent.expect("session/prompt")
        agent.say("The line that is being written when the window gets narrower is long, and ")
        tmux.wait_until("is long, and\n\n")
        tmux.wait_until(" writing")
        tmux.wait_until(f"{INPUT}\nask · their/model")  # all of it is drawn
        still.touch()
        eventually(is_still, "nothing is drawn any more", every=0.3)
        for columns, hint in ((40, "▸ / for commands, @ for files, Ctrl-D…"), (80, INPUT)):
            tmux.resize(columns, 24)
            tmux.wait_until(hint)
        agent.say("it goes on.")
        agent.answer(prompt, {"stopReason": "end_turn"})
        tmux.wait_until("✓ done")
        tmux.wait_until(f"✓ done\n\n{INPUT}\nask · their/model")  # and not the half of a picture
        assert without_times(tmux.picture("-S", "-")) == (
            "i Crow 0.1.0 in ~\n\n"
            "▸ go\n\n"
            "The line that is being written when the window gets narrower is long, and it\n"
            "goes on.\n\n"
            f"✓ done\n\n{INPUT}\nask · their/model"
        )


def test_a_picture_as_high_as_the_window_leaves_nothing_in_the_scrollback(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO)
    (project / "nest.py").write_text("twigs\n")
    with Tmux(tmp_path, *warm(CROW), "chat", "--cwd", str(project), "mend", columns=30, lines=8) as tmux:
        tmux.wait_until("n  Reject")
        eventually(lambda: "▸" not in tmux.picture(), "the keys of the question", every=0.05)
        tmux.send("typing")
        tmux.wait_until("▸ typing")
        tmux.send("BSpace")
        tmux.wait_until("▸ typin\n")
        assert tmux.picture("-S", "-").count("y  Allow once") == 1


def test_the_scrollback_is_kept(tmp_path: Path) -> None:
    project = play(tmp_path, *[f"{{ text = '''{'line of the answer' + chr(10)}''' }}, {HELLO}"] * 8)
    with Tmux(tmp_path, *warm(CROW), "chat", "--cwd", str(project), lines=12) as tmux:
        tmux.wait_until("ask · play/it")
        for number in range(8):
            tmux.send(f"prompt {number}", "Enter")
            eventually(lambda number=number: tmux.picture("-S", "-").count("✓ done") == number + 1, every=0.05)
        everything = tmux.picture("-S", "-")
        assert [f"▸ prompt {number}" in everything for number in range(8)] == [True] * 8
        assert everything.count(INPUT) == 1
        assert everything.count("ask · play/it") == 1
        tmux.send("C-d")
        tmux.send("")
