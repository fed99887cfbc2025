"""A message into a running turn, in every phase of it: the model gets it once, in this turn, or the client is told that
it was left over.

`tests/session/test_steering.py` has every moment of a turn; this has the conversations, with a real process.
"""

import json
from typing import Any

from tests.support import histories
from tests.support.editor import Editor, Json
from tests.support.scripts import DONE, reply, say

INJECTED = "injected"
TEXT = "Use tabs."


def outcome(answer: Json) -> str:
    return answer["outcome"]


def requests_with(crow: Editor, text: str) -> list[int]:
    """For each request to the model, how often the text is in it."""
    return [json.dumps(request["messages"], ensure_ascii=False).count(text) for request in crow.model_requests()]


def user_texts(crow: Editor) -> list[str]:
    return histories.said(crow.model_requests()[-1]["messages"], "user")


def shown_after_load(open_editor: Any, crow: Editor) -> list[Json]:
    other = open_editor(folder=crow.folder)
    other.load_session(crow.session_id)
    other.request("session/list")
    return other.updates


def assert_steered(crow: Editor, text: str = TEXT) -> None:
    """The model got it once, in the last requests of this turn and in no earlier one."""
    counts = requests_with(crow, text)
    assert counts[-1] == 1
    assert sorted(counts) == counts
    assert set(counts) <= {0, 1}
    for request in crow.model_requests():
        histories.assert_valid(request["messages"])


def test_before_the_first_token(open_editor):
    crow = open_editor(script=reply("{ wait = 600 }") + DONE)
    crow.new_session()
    prompt = crow.start_prompt("write it")
    crow.wait_until(lambda: bool(crow.model_requests()), "the model's request")
    answer = crow.steer(TEXT).answer()
    assert answer == {"outcome": INJECTED, "_meta": {"steering": {"messageId": "t1-s1"}}}
    crow.cancel()
    assert prompt.answer() == {
        "stopReason": "cancelled",
        "_meta": {"steering": {"leftOver": [{"messageId": "t1-s1", "text": TEXT}]}},
    }
    crow.prompt("go on")
    assert requests_with(crow, TEXT) == [0, 0]


def test_in_the_same_write_as_the_prompt(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    prompt, steer = crow.expect("session/prompt", "p"), crow.expect("_session/steering", "s")
    crow.send(
        {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": crow.prompt_params("write it")},
        {"jsonrpc": "2.0", "id": "s", "method": "_session/steering", "params": crow.prompt_params(TEXT)},
    )
    assert outcome(steer.answer()) == INJECTED
    assert prompt.answer() == {"stopReason": "end_turn"}
    assert user_texts(crow)[0].startswith("write it")
    assert_steered(crow)


def test_in_the_middle_of_the_text_it_goes_on_instead_of_ending(open_editor):
    script = reply(say("Once"), "{ wait = 0.2 }", say(" upon a time."), when="story") + DONE
    crow = open_editor(script=script)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    assert outcome(crow.steer(TEXT).answer()) == INJECTED
    assert prompt.answer() == {"stopReason": "end_turn"}
    assert crow.text() == "Once upon a time.\n\nDone."
    assert user_texts(crow) == ["tell me a story", TEXT]
    assert_steered(crow)
