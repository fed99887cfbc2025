"""A file system that does not answer costs the session that works there, and nobody else."""

import time

from tests.support.scripts import DONE, call, reply, say


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
        assert "does not answer" in pending.error().message
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
        assert "does not answer" in pending.error().message
        assert crow.prompt("hi", session=other) == {"stopReason": "end_turn"}
