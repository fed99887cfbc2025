"""Sessions in which nothing happens cost nothing, and see all the same what is new."""

import time

from tests.support.scripts import DONE

SESSIONS = 40
COUNT = """
import os, sys

if sys.argv[0].endswith("/crow"):
    looks = os.open(os.environ["LOOKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def count(event, arguments):
        if event == "os.listdir" and str(arguments[0]).endswith("/.crow/commands"):
            os.write(looks, b".")

    sys.addaudithook(count)
"""


def advertised(crow, session, name):
    updates = [u for u in crow.all_updates_of(session) if u["sessionUpdate"] == "available_commands_update"]
    return bool(updates) and any(command["name"] == name for command in updates[-1]["availableCommands"])


def test_idle_sessions_look_at_nothing_until_something_changes(open_editor, tmp_path):
    """Counted for longer than any look from time to time used to wait for."""
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(COUNT)
    looks = tmp_path / "looks"
    crow = open_editor(script=DONE, environment={"PYTHONPATH": str(tmp_path / "hook"), "LOOKS": str(looks)})
    sessions = []
    for number in range(SESSIONS):
        folder = crow.workspace / str(number)
        (folder / ".crow" / "commands").mkdir(parents=True)
        sessions.append(crow.new_session(cwd=folder))
    crow.wait_until(lambda: all(advertised(crow, session, "help") for session in sessions), "the first looks")
    before = looks.stat().st_size
    assert before >= SESSIONS
    time.sleep(5)
    assert looks.stat().st_size == before
    (crow.home / "commands").mkdir(exist_ok=True)
    (crow.home / "commands" / "fresh.md").write_text("Do it.")
    crow.wait_until(lambda: all(advertised(crow, session, "fresh") for session in sessions), "the new command")
