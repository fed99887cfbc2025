"""A CROW_HOME on a disk that does not answer: told within a bounded time, and nothing lost once it answers again."""

from typing import Any

import pytest

from crow.events import SentText, UserSaid
from tests.support.editor import NOTICES, Editor
from tests.support.scripts import DONE
from tests.support.store import with_store

WAITING = '[[reply]]\nwhen = "wait"\nevents = [{ text = "Once" }, { wait = 600 }]\n'
HELLO = '[[reply]]\nrepeat = true\nevents = [{ text = "Hello." }]\n'
CONFIG = """\
model = "scripted/test"
[providers.scripted]
type = "scripted"
script = "{script}"
[providers.scripted.models.test]
images = false
"""


@pytest.fixture
def crow(open_editor: Any) -> Editor:
    """A conversation of which nothing but what is under test lies below CROW_HOME."""
    crow = open_editor(script=DONE, capabilities=NOTICES)
    script = crow.folder / "script.toml"
    script.write_text(WAITING + HELLO)
    (crow.home / "config.toml").write_text(CONFIG.format(script=script))
    crow.new_session()
    assert crow.prompt("one") == {"stopReason": "end_turn"}
    return crow


def prompts(crow: Editor) -> list[str]:
    events = with_store(crow.home, lambda store: store.events(crow.session_id))
    said = [sent for event in events if isinstance(event, UserSaid) for sent in event.sent]
    return [sent.text for sent in said if isinstance(sent, SentText)]


def test_a_turn_can_be_cancelled_and_its_end_is_stored_later(crow, hung_disk):
    turn = crow.start_prompt("wait")
    crow.wait_for_text("Once")
    with hung_disk(crow.home):
        crow.cancel()
        assert turn.answer() == {"stopReason": "cancelled"}
        # The disk is known not to answer by now, or will be in a moment: no difference to whoever cancels.
        second = crow.start_prompt("wait")
        crow.cancel()
        assert second.answer() == {"stopReason": "cancelled"}
    assert crow.prompt("two") == {"stopReason": "end_turn"}
    assert prompts(crow) == ["one", "wait", "wait", "two"]


def test_whoever_needs_the_store_is_told_of_its_silence_and_nothing_is_lost(crow, hung_disk):
    with hung_disk(crow.home):
        pending = [
            crow.start_prompt("two"),
            crow.start("session/list"),
            crow.start("session/new", {"cwd": str(crow.workspace), "mcpServers": []}),
        ]
        assert crow.start("unheard/of").error().code == -32601  # the event loop is free meanwhile
        for request in pending:
            message = request.error().message
            assert "does not respond" in message
            assert str(crow.home) in message
    assert crow.prompt("three") == {"stopReason": "end_turn"}
    assert prompts(crow) == ["one", "two", "three"]
    (entry,) = crow.request("session/list")["sessions"]
    assert entry["sessionId"] == crow.session_id


def test_crow_ends_when_its_client_leaves(crow, hung_disk):
    with hung_disk(crow.home):
        crow.start_prompt("two")
        assert crow.close() == 0
