"""How many descriptors Crow may open, and how many the commands that it runs."""

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

SCRIPT = """
[[reply]]
events = [{ call = "terminal", arguments = { command = "ulimit -Sn" } }]
[[reply]]
events = [{ text = "Done." }]
"""
FEW = 300


@contextlib.contextmanager
def soft_limit(descriptors: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_limit_is_raised_for_crow_and_not_for_its_commands(open_editor) -> None:
    with soft_limit(FEW):
        crow = open_editor(script=SCRIPT, cold=True)
        session = crow.new_session()
    crow.request("session/set_mode", {"sessionId": session, "modeId": "auto"})
    limits = Path(f"/proc/{crow.process.pid}/limits").read_text().splitlines()
    [soft, hard] = next(line.split()[3:5] for line in limits if line.startswith("Max open files"))
    assert soft == hard != str(FEW)
    assert crow.prompt("Look.") == {"stopReason": "end_turn"}
    assert str(FEW) in str(crow.the_call()["content"])
