"""The process that runs a session is killed while an editor, `crow chat` and a page watch it: each is told in one
sentence and goes on, and nothing that was acknowledged is missing. CROW_FACES_KILLS says how often, CROW_FACES_SEED
which.
"""

import os
import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.acp.test_three_faces import SEED, WORDS, WORK, texts
from tests.support.databases import database
from tests.support.editor import NOTICES, Editor
from tests.support.faces import ChatFace, seen_in
from tests.support.patience import eventually
from tests.support.web import serving

KILLS = int(os.environ.get("CROW_FACES_KILLS", "2"))
ENDED = "The Crow that ran this session (process {}) has ended."


class AutoChat(ChatFace):
    status = "auto · scripted/test"


def killed_owner(folder: Path, stack: ExitStack, dice: random.Random) -> None:
    web = stack.enter_context(serving(folder, script=WORK, config='[faces]\nhome = "here"\n'))
    (web.workspace / "nest.py").write_text("twigs\n")
    auto = {"environment": {"CROW_MODE": "auto"}, "capabilities": NOTICES}
    owner, editor = Editor(folder, **auto), Editor(folder, client_info={"name": "editor", "version": "1"}, **auto)
    stack.callback(owner.kill)
    stack.callback(editor.kill)
    session = owner.new_session()
    editor.load_session(session)
    chat = stack.enter_context(AutoChat(folder, "--resume", session))
    page = stack.enter_context(web.connect(web.token()))
    page.initialize()
    page.load(session, web.workspace)

    owner.start_prompt("begin")
    last = len(editor.lines) + dice.randrange(60)
    editor.wait_until(lambda: len(editor.lines) >= last or WORDS[-1] in editor.text(), "progress")
    time.sleep(dice.uniform(0, 0.02))
    before = seen_in(editor.updates_of(session))
    os.kill(owner.process.pid, signal.SIGKILL)

    sentence = ENDED.format(owner.process.pid)
    editor.wait_until(lambda: sentence in editor.notices, "the editor's sentence")
    released = page.wait_for(lambda message: message.get("method") == "_crow/released")
    assert released["params"] == {"sessionId": session, "reason": sentence}
    eventually(lambda: (chat.pump(), sentence in chat.text)[1], "the chat's sentence")
    page.load(session, web.workspace)  # as the page does by itself
    ended = len(chat.ends())
    chat.say("once more")
    eventually(lambda: (chat.pump(), len(chat.ends()) > ended)[1], "the end of the chat's turn")
    assert editor.prompt("once more") == {"stopReason": "end_turn"}
    assert editor.notices.count(sentence) == 1
    assert chat.text.count(sentence) == 1

    at = len(editor.updates_of(session))
    editor.load_session(session)
    after = seen_in(editor.updates_of(session)[at:])
    for id, message in before.messages.items():
        text = after.messages.get(id, {"text": ""})["text"]
        assert text.startswith(message["text"]) or message["text"].startswith(text)
    for id, call in before.calls.items():
        if call["status"] == "completed":
            assert after.calls[id]["status"] == "completed"
    shown = [chat.rows_of(text) for text in WORDS if text in texts(after)]
    assert shown == [1] * len(shown), "the chat shows all of it, once"
    with database(web.home / "sessions.db") as connection:
        [(epoch,)] = connection.execute("SELECT epoch FROM sessions WHERE id = ?", (session,)).fetchall()
    assert epoch == 2, "one of them opened it again, once"


@pytest.mark.timeout(max(600, KILLS * 60))
def test_whoever_watches_a_session_goes_on_when_its_owner_is_killed(tmp_path: Path):
    dice = random.Random(SEED)
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        with ExitStack() as stack:
            killed_owner(folder, stack, dice)
