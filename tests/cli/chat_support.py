"""What the tests of `crow chat` share: a chat that is ready, an agent that the test plays, and what these say."""

import sys
from pathlib import Path

from tests.support.puppet import Puppet
from tests.support.window import Window

INPUT = "▸ / for commands, @ for files, Ctrl-D to quit"
STATUS = "ask · play/it"
DONE = '{ text = "All right." }'
AS_A_SHELL_LEAVES_IT = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
print("ready", flush=True)
os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, before)
from crow.__main__ import main
sys.exit(main())
"""
"""A `crow` that begins after something was typed at a shell, whose terminal is not one of whole lines."""
STEERS_IN_A_WHILE = "from crow.cli.chat import conversation; conversation.STEERING_DELAY = 3600"
"""What goes into the running turn is seen to wait, until Enter sends it at once."""
STOP_COUNTS_ON = "from crow.cli.chat import keys; keys.TWICE = 3600"
"""The second Ctrl-C leaves however long after the first it comes: what is said of that does not vanish meanwhile."""


def chat(user: Path, *arguments: str, status: str = STATUS, **options) -> Window:
    """A chat that is ready for the first prompt."""
    window = Window(user, "chat", "--cwd", str(user / "project"), *arguments, **options)
    window.wait_until(status)
    return window


def talk_to(agent: Puppet, user: Path) -> Window:
    """The same with an agent that the test plays."""
    window = Window(user, "chat", program=agent.program)
    agent.expect("session/new")
    window.wait_until("ask · their/model")
    return window


def altered_crow(user: Path, change: str) -> str:
    """The path of a `crow` that runs some Python first."""
    program = user / "altered-crow"
    program.write_text(f"#!{sys.executable}\nimport sys\n{change}\nfrom crow.__main__ import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return str(program)


def recording(user: Path) -> Path:
    """Lets the model's requests be kept."""
    config = user / "crow" / "config.toml"
    config.write_text(config.read_text() + 'record = "sent.jsonl"\n')
    return user / "crow" / "sent.jsonl"


def prompt_in(agent: Puppet) -> str:
    """The text of the next prompt."""
    return agent.expect("session/prompt")["params"]["prompt"][0]["text"]


def question(title: str = "Dig here") -> dict:
    """What is asked with a request for permission."""
    options = [
        {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        {"optionId": "no", "name": "No", "kind": "reject_once"},
    ]
    return {"sessionId": "s1", "toolCall": {"toolCallId": "c1", "title": title}, "options": options}


def wait_for_question(window: Window, choice: str = "n  Reject") -> None:
    """Until a question is there, and takes a key; the hint that it does not is drawn before the status line."""

    def takes_a_key() -> bool:
        is_whole = any(model in row for row in window.picture[-1:] for model in ("play/it", "their/model"))
        is_typing = any(hint in window.text for hint in ("Keys ignored", "To answer:", "Backspace: cancel", "reason ▸"))
        return is_whole and choice in window.text and not is_typing

    window.wait_until(takes_a_key)


def state(
    agent: Puppet, word: str, by: str = "", faces: tuple[str, ...] = ("crow-chat", "Zed"), **more: object
) -> None:
    """Tells the chat in which state its session is, and who else is there."""
    agent.notify("_crow/state", {"sessionId": "s1", "state": word, "by": by, "faces": list(faces), **more})


def numbered(count: int) -> str:
    """A text of so many lines, each with its number."""
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def command_of(pid: int) -> list[str]:
    """The arguments with which a process was started."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
