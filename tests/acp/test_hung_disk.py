"""A file system that does not answer costs the session that works there, and nobody else."""

import time
from contextlib import ExitStack

from tests.support.editor import chose
from tests.support.scripts import DONE, call, reply, run, say


def test_an_idle_session_in_a_folder_that_hangs_blocks_nobody(open_editor, hung_disk):
    """Longer than the time between two looks at its files."""
    crow = open_editor(script=DONE)
    hung, sound = crow.workspace / "hung", crow.workspace / "sound"
    hung.mkdir()
    sound.mkdir()
    crow.new_session(cwd=hung)
    other = crow.new_session(cwd=sound)
    with hung_disk(hung):
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}


def test_a_turn_in_a_folder_that_hangs_can_be_cancelled_and_blocks_nobody(open_editor, hung_disk):
    script = reply(call("read", path="a.txt"), when="read") + reply(say("Hello."), when="hello") * 3 + DONE
    crow = open_editor(script=script)
    hung, sound = crow.workspace / "hung", crow.workspace / "sound"
    hung.mkdir()
    sound.mkdir()
    first = crow.new_session(cwd=hung)
    other = crow.new_session(cwd=sound)
    with hung_disk(hung):
        pending = crow.start_prompt("read", session=first)
        assert crow.prompt("hello", session=other) == {"stopReason": "end_turn"}
        crow.cancel(session=first)
        assert pending.answer() == {"stopReason": "cancelled"}
        assert crow.prompt("hello", session=other) == {"stopReason": "end_turn"}


def test_a_session_in_a_folder_that_hangs_is_refused_and_blocks_nobody(open_editor, hung_disk):
    crow = open_editor(script=DONE)
    hung, sound = crow.workspace / "hung", crow.workspace / "sound"
    hung.mkdir()
    sound.mkdir()
    other = crow.new_session(cwd=sound)
    with hung_disk(hung):
        pending = crow.start("session/new", {"cwd": str(hung), "mcpServers": []})
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        assert "does not respond" in pending.error().message
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}


def test_a_session_whose_commands_hang_is_refused_and_blocks_nobody(open_editor, hung_disk):
    """The folder itself is there; what is read of it at the start is not."""
    crow = open_editor(script=DONE)
    hung, sound = crow.workspace / "hung", crow.workspace / "sound"
    (hung / ".crow").mkdir(parents=True)
    sound.mkdir()
    other = crow.new_session(cwd=sound)
    with hung_disk(hung / ".crow"):
        pending = crow.start("session/new", {"cwd": str(hung), "mcpServers": []})
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        assert "does not respond" in pending.error().message
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}


def test_what_is_judged_in_a_folder_that_hangs_blocks_nobody(open_editor, hung_disk):
    """Whether a command may run depends on where its paths lead."""
    crow = open_editor(script=reply(run("cat hung/a/b"), when="cat") + DONE)
    hung = crow.workspace / "hung"
    hung.mkdir()
    first, other = crow.new_session(), crow.new_session()
    with hung_disk(hung):
        pending = crow.start_prompt("cat", session=first)
        crow.wait_until(lambda: bool(crow.tool_calls(first)), "the call")
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        crow.cancel(session=first)
        assert pending.answer() == {"stopReason": "cancelled"}


def test_searches_in_a_folder_that_hangs_leave_threads_to_others(open_editor, hung_disk, tmp_path):
    """More of them than there are threads for everything that is done beside the event loop."""
    finds = [call("find", pattern="*.py") for _ in range(40)]
    script = reply(*finds, when="find") + reply(run("echo hello"), when="run") + DONE
    crow = open_editor(script=script, environment={"PATH": str(tmp_path)}, permit=lambda request: chose("once"))
    searched, sound = crow.workspace / "searched", crow.workspace / "sound"
    (searched / "hung").mkdir(parents=True)
    sound.mkdir()
    first, other = crow.new_session(cwd=searched), crow.new_session(cwd=sound)
    with hung_disk(searched / "hung"):
        pending = crow.start_prompt("find", session=first)
        crow.wait_until(lambda: len(crow.tool_calls(first)) == 40, "the calls")
        assert crow.prompt("run", session=other) == {"stopReason": "end_turn"}
        [command] = crow.tool_calls(other).values()
        assert command["status"] == "completed"
        crow.cancel(session=first)
        assert pending.answer() == {"stopReason": "cancelled"}


def test_grants_on_a_disk_that_hangs_block_nobody(open_editor, hung_disk):
    crow = open_editor(script=reply(run("echo hello"), when="run") + DONE)
    hung = crow.folder / "elsewhere"
    hung.mkdir()
    (crow.home / "grants.json").symlink_to(hung / "grants.json")
    first, other = crow.new_session(), crow.new_session()
    with hung_disk(hung):
        pending = crow.start_prompt("run", session=first)
        crow.wait_until(lambda: bool(crow.tool_calls(first)), "the call")
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        crow.cancel(session=first)
        assert pending.answer() == {"stopReason": "cancelled"}


def test_trust_that_cannot_be_kept_on_a_disk_that_hangs_blocks_nobody(open_editor, hung_disk):
    crow = open_editor(script=DONE)
    hung, sound, project = crow.folder / "elsewhere", crow.workspace / "sound", crow.workspace / "project"
    (project / ".crow" / "commands").mkdir(parents=True)
    (project / ".crow" / "commands" / "hello.md").write_text("Say hello.")
    hung.mkdir()
    sound.mkdir()
    (crow.home / "trust.json").symlink_to(hung / "trust.json")
    first, other = crow.new_session(cwd=project), crow.new_session(cwd=sound)
    with ExitStack() as mounts:

        def hang_and_agree(request):
            mounts.enter_context(hung_disk(hung))
            return chose("project")

        crow.permit = hang_and_agree
        pending = crow.start_prompt("hi", session=first)
        crow.wait_for(lambda message: message.get("method") == "session/request_permission")
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        crow.cancel(session=first)
        assert pending.answer() == {"stopReason": "cancelled"}


def test_a_server_that_is_looked_for_on_a_disk_that_hangs_blocks_nobody(open_editor, hung_disk):
    crow = open_editor(script=DONE)
    hung = crow.folder / "elsewhere"
    hung.mkdir()
    other = crow.new_session()
    path = {"name": "PATH", "value": str(hung)}
    with hung_disk(hung):
        crow.new_session(mcpServers=[{"name": "lost", "command": "lost", "args": [], "env": [path]}])
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}


def test_a_shell_that_is_looked_for_on_a_disk_that_hangs_blocks_nobody(open_editor, hung_disk, tmp_path):
    """The command is run all the same, by the shell that every system has."""
    hung = tmp_path / "elsewhere"
    hung.mkdir()
    crow = open_editor(
        script=reply(run("echo hello"), when="run") + DONE,
        environment={"PATH": f"{hung}:/usr/bin:/bin"},
        permit=lambda request: chose("once"),
    )
    first, other = crow.new_session(), crow.new_session()
    with hung_disk(hung):
        pending = crow.start_prompt("run", session=first)
        crow.wait_until(lambda: bool(crow.permissions), "the question")
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
        assert pending.answer() == {"stopReason": "end_turn"}
    [command] = crow.tool_calls(first).values()
    assert command["status"] == "completed"
