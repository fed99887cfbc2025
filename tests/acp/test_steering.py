"""Messages into a running turn, in conversations with a real `crow acp`: the model gets each of them once, in this
turn, or the client is told that it was left over.

`tests/session/test_steering.py` has every moment of a turn, `test_steering_wires.py` every wire.
"""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import histories
from tests.support.editor import (
    EVERYTHING,
    FILES,
    NOTICES,
    SILENCE,
    Editor,
    ErrorAnswer,
    Json,
    Later,
    Pending,
    chose,
)
from tests.support.fold import assert_looks_as_it_did
from tests.support.patience import DEADLINE
from tests.support.provider import Gate, Provider
from tests.support.scripts import DONE, call, edit, reply, run, say
from tests.support.windowed import WindowedDialect, is_summary, texts

TEXT = "Use tabs, please."
ENDED = {"stopReason": "end_turn"}
WAITING = run("until [ -e go ]; do sleep 0.02; done; echo gone")
HANGING = "[[reply]]\nevents = [{ text = 'Once' }, { wait = 600 }]\n"
AUTO = {"CROW_MODE": "auto"}
PNG = "iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="


def injected(pending: Pending) -> str:
    """The id of a message that was accepted."""
    answer = pending.answer()
    assert answer == {
        "outcome": "injected",
        "_meta": {"steering": {"messageId": answer["_meta"]["steering"]["messageId"]}},
    }
    return answer["_meta"]["steering"]["messageId"]


def refused(pending: Pending) -> str:
    """Why a message has to be sent as a prompt."""
    answer = pending.answer()
    assert (answer["outcome"], answer["reason"]) == ("promptRequired", "noRunningTurn")
    return answer["_meta"]["steering"]["message"]


def left_over(stop: str, *messages: tuple[str, str]) -> Json:
    reported = [{"messageId": id, "text": text} for id, text in messages]
    return {"stopReason": stop, "_meta": {"steering": {"leftOver": reported}}}


def counts(crow: Editor, text: str = TEXT) -> list[int]:
    """For each request to the model, how often the text is in it."""
    return [json.dumps(request["messages"], ensure_ascii=False).count(text) for request in crow.model_requests()]


def roles(crow: Editor) -> list[str]:
    messages = crow.model_requests()[-1]["messages"]
    histories.assert_valid(messages)
    return [message["role"] for message in messages]


def at_work(open_editor: Any, script: str, **options: Any) -> tuple[Editor, Pending]:
    """A turn in whose first command Crow waits for the file `go`."""
    crow = open_editor(script=script, environment=AUTO, **options)
    return crow, begin_work(crow)


def begin_work(crow: Editor, prompt: str = "write it") -> Pending:
    crow.new_session()
    pending = crow.start_prompt(prompt)
    crow.wait_until(lambda: any(call["status"] == "in_progress" for call in crow.tool_calls().values()), "the command")
    return pending


def go(crow: Editor) -> None:
    (crow.workspace / "go").touch()


def told_after_load(open_editor: Any, crow: Editor) -> list[str]:
    """What another process shows of the session: the person's words, the model's, Crow's, and calls by their title."""
    other = open_editor(folder=crow.folder)
    other.load_session(crow.session_id)
    other.request("session/list")
    shown: dict[str, str] = {}
    for update in other.updates:
        match update["sessionUpdate"]:
            case "user_message_chunk" | "agent_message_chunk" as kind:
                text = update["content"].get("text", update["content"]["type"])
                shown[update["messageId"]] = shown.get(update["messageId"], kind.partition("_")[0] + ": ") + text
            case "tool_call":
                shown[update["toolCallId"]] = f"call: {update['title']}"
            case _:
                pass
    return [text.replace("\n", "") for text in shown.values()]


# --- in every phase


def test_in_the_same_write_as_the_prompt(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    prompt, steer = crow.expect("session/prompt", "p"), crow.expect("_session/steering", "s")
    crow.send(
        {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": crow.prompt_params("write it")},
        {"jsonrpc": "2.0", "id": "s", "method": "_session/steering", "params": crow.prompt_params(TEXT)},
    )
    assert injected(steer) == "t1-s1"
    assert prompt.answer() == ENDED
    assert [part["text"] for part in crow.model_requests()[-1]["messages"][0]["parts"]] == ["write it", TEXT]


@pytest.fixture
def gated(open_editor: Any) -> Any:
    """A conversation with a model that says what the test lets it say."""
    with Provider() as provider:
        crow = open_editor(base_url=provider.openai.url)
        crow.new_session()
        yield crow, provider.openai


def roles_sent(dialect: Any) -> list[list[str]]:
    return [[message["role"] for message in request.body["messages"][1:]] for request in dialect.requests]


def test_before_the_first_token(gated):
    crow, model = gated
    gate = Gate()
    model.send(gate, *model.opening(None), *model.spoken(("Written.",)), *model.closing("stop", None))
    model.answer("With tabs.")
    prompt = crow.start_prompt("write it")
    crow.wait_until(lambda: bool(model.requests), "the model's request")
    injected(crow.steer(TEXT))
    gate.open()
    assert prompt.answer() == ENDED
    assert crow.text() == "Written.\n\nWith tabs."
    assert roles_sent(model) == [["user"], ["user", "assistant", "user"]]
    assert model.requests[-1].body["messages"][-1]["content"] == TEXT


def test_in_the_middle_of_the_text_the_turn_goes_on_instead_of_ending(gated):
    crow, model = gated
    gate = Gate()
    model.send(
        *(*model.opening(None), *model.spoken(("Once",)), gate),
        *(*model.spoken((" upon a time.",)), *model.closing("stop", None)),
    )
    model.answer("With tabs.")
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    injected(crow.steer(TEXT))
    gate.open()
    assert prompt.answer() == ENDED
    assert crow.text() == "Once upon a time.\n\nWith tabs."
    [_, story, said] = model.requests[-1].body["messages"][1:]
    assert (story["content"], said["content"]) == ("Once upon a time.", TEXT)


def test_in_a_command_it_follows_the_results_of_all_calls(open_editor):
    script = reply(say("I begin."), WAITING, call("read", path="go"), run("echo two")) + DONE
    crow, prompt = at_work(open_editor, script)
    assert [injected(crow.steer(text)) for text in (TEXT, "And no semicolons.")] == ["t1-s1", "t1-s2"]
    go(crow)
    assert prompt.answer() == ENDED
    assert roles(crow) == ["user", "assistant", "tool", "tool", "tool", "user"]
    said = crow.model_requests()[-1]["messages"][-1]
    assert [part["text"] for part in said["parts"]] == [TEXT, "And no semicolons."]
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 3
    assert not [update for update in crow.updates if update["sessionUpdate"] == "user_message_chunk"], "no echo"


def test_the_message_is_shown_in_its_place_after_a_load(open_editor):
    crow, prompt = at_work(open_editor, reply(say("I begin."), WAITING) + DONE)
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    crow.close()
    shown = told_after_load(open_editor, crow)
    assert [text.partition(":")[0] for text in shown] == ["user", "agent", "call", "user", "agent"]
    assert shown[3] == f"user: {TEXT}"


def test_at_an_open_question_which_stays_open(open_editor):
    answered = threading.Event()

    def permit(request: Json) -> Any:
        return Later(lambda: chose("once") if answered.wait(DEADLINE) else None)

    crow = open_editor(script=reply(call("write", path="a.txt", content="a\n")) + DONE, permit=permit)
    crow.new_session()
    prompt = crow.start_prompt("write it")
    crow.wait_for_call("session/request_permission")
    injected(crow.steer(TEXT))
    answered.set()
    assert prompt.answer() == ENDED
    assert not [message for message in crow.received if message.get("method") == "$/cancel_request"]
    assert len(crow.permissions) == 1
    assert (crow.workspace / "a.txt").read_text() == "a\n"
    assert roles(crow) == ["user", "assistant", "tool", "user"]
    assert counts(crow) == [0, 1]


def test_while_a_request_is_about_to_be_tried_again(open_editor):
    failing = "[[reply]]\nevents = [{ fail = { status = 503, retry_after = 1 } }]\n"
    crow = open_editor(script=failing + reply(say("First.")) + DONE, capabilities=NOTICES)
    crow.new_session()
    prompt = crow.start_prompt("write it")
    crow.wait_until(lambda: any("Trying again" in notice for notice in crow.notices), "the notice")
    injected(crow.steer(TEXT))
    assert prompt.answer() == ENDED
    assert crow.text() == "First.\n\nDone."
    assert counts(crow)[-1] == 1


def test_while_a_subagent_works_it_is_for_the_agent_that_sent_it(open_editor):
    script = (
        reply(call("task", prompt="count the fruit", kind="work"))
        + reply(WAITING, when="count the fruit")
        + reply(say("Two."), when="count the fruit")
        + DONE
    )
    crow, prompt = at_work(open_editor, script)
    crow.wait_until(lambda: any("go" in json.dumps(u) for u in crow.updates if u.get("toolCallId")), "its command")
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    assert counts(crow) == [0, 0, 0, 1]
    assert roles(crow) == ["user", "assistant", "tool", "user"]


def test_while_the_conversation_is_summed_up(open_editor):
    """It is in no summary, and whole in what the model gets from then on."""
    summing, summed = threading.Event(), threading.Event()

    def answer(body: Json) -> tuple[Any, ...]:
        if is_summary(body):
            summing.set()
            assert summed.wait(DEADLINE)
            return ("Files were read.",)
        return (f"Round {len(model.rounds)}.",)

    with Provider() as provider:
        provider.openai = model = WindowedDialect(provider.openai.url, 16_000, answer)
        crow = open_editor(
            base_url=model.url, config="[providers.test.models.m]\ncontext_window = 16000\n", capabilities=EVERYTHING
        )
        crow.new_session()
        number = 0
        while not summing.is_set():
            number += 1
            prompt = crow.start_prompt(f"{number}: " + "word after word, " * 500)
            crow.wait_until(lambda prompt=prompt: prompt.done or summing.is_set(), "an answer or a summary")
        injected(crow.steer(TEXT))
        summed.set()
        assert prompt.answer() == ENDED
        [asked] = model.summaries
        assert TEXT not in texts(asked)
        assert texts(model.rounds[-1]).count(TEXT) == 1
        assert [message["role"] for message in model.rounds[-1]["messages"][-2:]] == ["assistant", "user"]


def test_a_question_of_the_models_that_would_end_the_turn_is_followed_by_it(open_editor):
    """Where the client has no forms, the model's question ends the turn; here the person has spoken already."""
    crow, prompt = at_work(open_editor, reply(WAITING, call("ask", question="Tabs or spaces?")) + DONE)
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    assert crow.text().endswith("Tabs or spaces?\n\nDone.")
    assert roles(crow) == ["user", "assistant", "tool", "tool", "assistant", "user"]


# --- what the turn cannot take in any more


def test_a_cancel_leaves_it_over(open_editor):
    crow = open_editor(script=HANGING + DONE, capabilities=NOTICES)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    id = injected(crow.steer(TEXT))
    crow.cancel()
    assert prompt.answer() == left_over("cancelled", (id, TEXT))
    [notice] = [update for update in crow.updates if update["sessionUpdate"] == "notice"]
    assert notice["description"] == TEXT
    assert notice["_meta"] == {"steering": {"leftOver": [{"messageId": id, "text": TEXT}]}}
    assert crow.prompt("go on") == ENDED
    assert counts(crow) == [0, 0], "it is never said in another turn"
    crow.close()
    assert_looks_as_it_did(crow, open_editor(folder=crow.folder, capabilities=NOTICES))


def test_a_client_without_notices_is_told_in_the_text(open_editor):
    crow = open_editor(script=HANGING)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    injected(crow.steer("First line.\nSecond line."))
    crow.cancel()
    assert prompt.answer()["stopReason"] == "cancelled"
    told = "> The turn ended before the model got this message. Send it again if you still need it."
    assert f"{told}\n>\n> First line.\n> Second line." in crow.text()
    crow.close()
    assert "First line." in told_after_load(open_editor, crow)[2]


@pytest.mark.parametrize("first", ["steer", "cancel"])
def test_a_cancel_in_the_same_write(open_editor, first):
    crow = open_editor(script=HANGING + DONE)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    steer = crow.expect("_session/steering", "s")
    messages = [
        {"jsonrpc": "2.0", "id": "s", "method": "_session/steering", "params": crow.prompt_params(TEXT)},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": crow.session_id}},
    ]
    crow.send(*(messages if first == "steer" else reversed(messages)))
    refused(steer)
    assert prompt.answer() == {"stopReason": "cancelled"}
    assert crow.prompt("go on") == ENDED
    assert counts(crow) == [0, 0]


def test_what_comes_while_a_turn_ends_is_welcome_as_a_prompt_once_it_was_refused(open_editor):
    """A client sends it again at once: by then the turn is over."""
    crow = open_editor(script=DONE)
    crow.new_session()
    for number in range(20):
        prompt = crow.start_prompt(f"prompt {number}")
        crow.wait_for(lambda message, id=f"t{2 * number + 1}-m2": id in json.dumps(message), "the last words")
        steer = crow.steer(f"note {number}").answer()
        if steer["outcome"] == "promptRequired":
            assert crow.prompt(f"note {number}") == ENDED
        assert prompt.answer() == ENDED
        if steer["outcome"] == "injected":
            assert crow.prompt("so that turns are counted alike") == ENDED


def test_what_the_model_got_before_it_failed_is_in_the_history_and_not_left_over(open_editor):
    failing = "[[reply]]\nevents = [{ fail = { status = 401, message = 'bad key' } }]\n"
    crow, prompt = at_work(open_editor, reply(WAITING) + failing + DONE, capabilities=NOTICES)
    injected(crow.steer(TEXT))
    go(crow)
    error = prompt.error()
    assert error.data == {"details": error.message}
    assert crow.prompt("go on") == ENDED
    assert counts(crow)[-1] == 1


def test_a_failure_in_the_middle_of_a_reply_leaves_it_over(open_editor):
    gate = Gate()
    with Provider() as provider:
        model = provider.openai
        crow = open_editor(base_url=model.url, config="[limits]\nretry_wait = 0\n")
        crow.new_session()
        model.send(*model.opening(None), *model.spoken(("Once",)), gate, b"data: {nonsense\n\n")
        prompt = crow.start_prompt("tell me a story")
        crow.wait_for_text("Once")
        id = injected(crow.steer(TEXT))
        gate.open()
        error = prompt.error()
        assert error.data == {"details": error.message, "steering": {"leftOver": [{"messageId": id, "text": TEXT}]}}
        assert TEXT in crow.text()


def test_a_reply_that_broke_off_goes_on_with_it(gated):
    crow, model = gated
    gate = Gate()
    model.send(*model.opening(None), *model.spoken(("Once",)), gate, b"data: {nonsense\n\n")
    model.answer(" upon a time.")
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    injected(crow.steer(TEXT))
    gate.open()
    assert prompt.answer() == ENDED
    assert "Once" in str(model.requests[-1].body["messages"])
    assert TEXT in str(model.requests[-1].body["messages"])


def test_a_reply_that_is_cut_short_leaves_it_over(open_editor):
    """The stop reason stays what it is."""
    cut = "[[reply]]\nevents = [{ text = 'Half a' }, { wait = 0.3 }, { finish = 'max_tokens' }]\n"
    crow = open_editor(script=cut + DONE)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Half a")
    id = injected(crow.steer(TEXT))
    assert prompt.answer() == left_over("max_tokens", (id, TEXT))


def test_the_limit_of_requests_leaves_it_over(open_editor):
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE, config="[limits]\nmodel_calls = 1\n")
    id = injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == left_over("max_turn_requests", (id, TEXT))
    assert "Stopped after 1 requests" in crow.text()


def test_a_budget_that_is_used_up_leaves_it_over(open_editor):
    usage = "{ usage = { input_tokens = 100, output_tokens = 100 } }"
    crow, prompt = at_work(open_editor, reply(WAITING, usage) + DONE, config="[budget]\nturn = '150 tokens'\n")
    id = injected(crow.steer(TEXT))
    go(crow)
    answer = prompt.answer()
    assert answer["stopReason"] == "max_turn_requests"
    assert answer["_meta"] == {
        "crow": {"leftOpen": "budget"},
        "steering": {"leftOver": [{"messageId": id, "text": TEXT}]},
    }


# --- when there is nothing to steer


def test_without_a_turn_it_has_to_be_a_prompt(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    assert refused(crow.steer(TEXT)) == "No turn is running in this session. Send it as a prompt."
    assert crow.prompt("write it") == ENDED
    refused(crow.steer(TEXT))
    assert counts(crow) == [0]


def test_a_client_may_say_what_is_to_become_of_it_then(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    params = crow.prompt_params(TEXT) | {"_meta": {"steering": {"idleBehavior": "promptRequired"}}}
    refused(crow.start("_session/steering", params))


def test_a_command_of_crows_own_takes_none(open_editor):
    slow = "[[reply]]\nwhen = 'Sum up'\nevents = [{ wait = 600 }]\n"
    crow = open_editor(script=slow + reply(say("word after word " * 400)) + DONE, capabilities=EVERYTHING)
    crow.new_session()
    crow.prompt("say much " * 400)
    crow.prompt("and more " * 400)
    compacting = crow.start_prompt("/compact")
    crow.wait_until(lambda: any(u["sessionUpdate"] == "compaction_update" for u in crow.updates), "the compaction")
    assert "A command is running" in refused(crow.steer(TEXT))
    crow.cancel()
    assert compacting.answer() == {"stopReason": "cancelled"}


def test_a_command_that_stands_for_a_prompt_takes_them(open_editor):
    crow = open_editor(script=reply(WAITING) + DONE, environment=AUTO)
    (crow.home / "commands").mkdir()
    (crow.home / "commands" / "tidy.md").write_text("Tidy everything.")
    prompt = begin_work(crow, "/tidy")
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    assert counts(crow) == [0, 1]
    crow.close()
    shown = told_after_load(open_editor, crow)
    assert [text for text in shown if text.startswith("user")] == ["user: /tidy", f"user: {TEXT}"]


WRONG = {
    "empty": ({"prompt": []}, -32602),
    "for the person alone": (
        {"prompt": [{"type": "text", "text": "x", "annotations": {"audience": ["user"]}}]},
        -32602,
    ),
    "no list": ({"prompt": "x"}, -32602),
    "null inside": ({"prompt": [None]}, -32602),
    "text without a text": ({"prompt": [{"type": "text"}]}, -32602),
    "no prompt": ({}, -32602),
    "another session": ({"sessionId": "none", "prompt": [{"type": "text", "text": "x"}]}, -32002),
}


@pytest.mark.parametrize(("wrong", "code"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_and_the_turn_goes_on(open_editor, wrong, code):
    crow = open_editor(script=HANGING + DONE)
    crow.new_session()
    prompt = crow.start_prompt("tell me a story")
    crow.wait_for_text("Once")
    assert crow.start("_session/steering", {"sessionId": crow.session_id} | wrong).error().code == code
    crow.cancel()
    assert prompt.answer() == {"stopReason": "cancelled"}


def test_a_request_that_is_withdrawn_is_answered_truthfully(open_editor):
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE)
    steer = crow.expect("_session/steering", "s")
    crow.send(
        {"jsonrpc": "2.0", "id": "s", "method": "_session/steering", "params": crow.prompt_params(TEXT)},
        {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "s"}},
    )
    try:
        answer = steer.answer()["outcome"]
    except ErrorAnswer as error:
        answer = error.code
    go(crow)
    assert prompt.answer() == ENDED
    assert (answer, counts(crow)[-1]) in [(-32800, 0), ("injected", 1)]


# --- what it may be


def test_a_slash_is_text_for_the_model(open_editor):
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE)
    injected(crow.steer("/compact"))
    go(crow)
    assert prompt.answer() == ENDED
    assert crow.last_prompt() == [{"part": "text", "text": "/compact"}]


def test_pictures_links_and_buffers(open_editor):
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE, images=True)
    (crow.workspace / "notes.txt").write_text("one\ntwo\n")
    link = {"type": "resource_link", "uri": (crow.workspace / "notes.txt").as_uri() + "#L2", "name": "notes.txt"}
    buffer = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "unsaved"}}
    injected(crow.steer("Like this:", {"type": "image", "data": PNG, "mimeType": "image/png"}, link, buffer))
    go(crow)
    assert prompt.answer() == ENDED
    text, picture, linked, attached = crow.last_prompt()
    assert text["text"] == "Like this:"
    assert picture == {"part": "image", "data": PNG, "mime_type": "image/png"}
    assert "two" in linked["text"]
    assert "one" not in linked["text"]
    assert "unsaved" in attached["text"]
    crow.close()
    shown = told_after_load(open_editor, crow)
    assert shown[-2].startswith("user: Like this:image")


def test_a_cancel_while_its_attachment_is_read_keeps_what_was_said(open_editor):
    """The model is about to get the first message; the second one still waits."""
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE, capabilities=FILES)
    path = crow.workspace / "slow.txt"
    path.write_text("on disk")
    crow.files[str(path)] = SILENCE
    injected(crow.steer("Explain this.", {"type": "resource_link", "uri": path.as_uri(), "name": "slow.txt"}))
    second = injected(crow.steer(TEXT))
    go(crow)
    crow.wait_for_call("fs/read_text_file")
    crow.cancel()
    assert prompt.answer() == left_over("cancelled", (second, TEXT))
    assert crow.prompt("go on") == ENDED
    assert counts(crow, "Explain this.")[-1] == 1
    assert counts(crow)[-1] == 0


# --- what a message in a turn means for everything else


def test_an_undo_takes_back_the_whole_turn(open_editor):
    script = reply(edit("notes.txt", "one", "two"), WAITING) + reply(edit("notes.txt", "two", "three")) + DONE
    crow = open_editor(script=script, environment=AUTO)
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.new_session()
    prompt = crow.start_prompt("count on")
    crow.wait_until(lambda: len(crow.tool_calls()) == 2, "the command")
    crow.wait_until(lambda: crow.tool_calls()["t1-c2"]["status"] == "in_progress", "the command")
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    assert (crow.workspace / "notes.txt").read_text() == "three\n"
    crow.prompt("/undo")
    assert "Undid “count on”" in crow.text()
    assert (crow.workspace / "notes.txt").read_text() == "one\n"
    crow.prompt("what now?")
    assert counts(crow)[-1] == 0
    assert "count on" not in json.dumps(crow.model_requests()[-1]["messages"])


def test_a_document_of_the_session_has_it_in_its_place(open_editor):
    crow, prompt = at_work(open_editor, reply(say("I begin."), WAITING) + DONE)
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    crow.prompt("/export")
    [document] = list(Path(crow.workspace).glob("*.md"))
    written = document.read_text()
    places = [written.index(words) for words in ("write it", "I begin.", "until [ -e go ]", TEXT, "Done.")]
    assert places == sorted(places)
    assert written.count(TEXT) == 1


def test_the_title_stays_that_of_the_prompt(open_editor):
    crow, prompt = at_work(open_editor, reply(WAITING) + DONE)
    injected(crow.steer(TEXT))
    go(crow)
    assert prompt.answer() == ENDED
    [session] = crow.request("session/list")["sessions"]
    assert session["title"] == "write it"


def test_the_same_call_may_be_what_was_asked_for(open_editor):
    """Four times the same was read; then the person spoke, and four times more are no circle."""
    reads, spoken = 0, threading.Event()

    def read(params: Json) -> Any:
        nonlocal reads
        reads += 1
        return Later(lambda: {"content": "one\n"} if reads < 4 or spoken.wait(DEADLINE) else None)

    script = reply(call("read", path="a.txt")) * 8 + DONE
    crow = open_editor(script=script, capabilities=FILES, answers={"fs/read_text_file": read})
    (crow.workspace / "a.txt").write_text("one\n")
    crow.new_session()
    prompt = crow.start_prompt("look at it")
    crow.wait_until(lambda: reads == 4, "the fourth look")
    injected(crow.steer("Keep looking."))
    spoken.set()
    assert prompt.answer() == ENDED
    assert reads == 8


# --- from another process


def test_from_a_client_that_has_joined_from_another_process(open_editor):
    """The one whose prompt it is shows the message where the model gets it; both are told what is left over."""
    crow, prompt = at_work(open_editor, reply(WAITING) + HANGING, capabilities=NOTICES)
    other = open_editor(folder=crow.folder, capabilities=NOTICES)
    other.load_session(crow.session_id)
    other.take_part(crow)
    assert injected(other.steer(TEXT)) == "t1-s1"
    go(crow)
    crow.wait_for_text("Once")
    assert counts(crow) == [0, 1]
    said = [update for update in crow.updates if update["sessionUpdate"] == "user_message_chunk"]
    assert [(update["messageId"], update["content"]["text"]) for update in said] == [("t1-s1", TEXT)]
    left = injected(other.steer("Too late."))
    other.cancel()
    assert prompt.answer() == left_over("cancelled", (left, "Too late."))
    for one in (crow, other):
        one.wait_for(
            lambda message: "Too late." in json.dumps(message.get("params", {}).get("update", {})), "the notice"
        )
    assert TEXT not in json.dumps(other.updates), "no echo"
    other.request("session/close", {"sessionId": crow.session_id})


# --- killed


@pytest.fixture
def killed(tmp_path: Path, open_editor: Any) -> Callable[..., Editor]:
    """A Crow that has loaded a session whose Crow was killed with -9 after a message was accepted into its turn."""

    def start(script: str, when: Callable[[Editor], None]) -> Editor:
        victim = Editor(tmp_path / "killed", script=script, environment=AUTO)
        try:
            begin_work(victim)
            injected(victim.steer(TEXT))
            when(victim)
        finally:
            victim.kill()
        crow = open_editor(folder=victim.folder, script=DONE)
        crow.load_session(victim.session_id)
        crow.request("session/list")
        return crow

    return start


def test_killed_after_it_was_accepted_it_is_told_as_left_over(killed):
    crow = killed(reply(WAITING) + DONE, lambda crow: None)
    assert f"> {TEXT}" in crow.text()
    assert "cut off" in crow.text()
    assert [u for u in crow.updates if u["sessionUpdate"] == "user_message_chunk" and u["messageId"] == "t1-s1"] == []
    assert crow.prompt("go on") == ENDED
    assert counts(crow)[-1] == 0


def test_killed_while_others_watch_they_are_told_what_is_left_over(tmp_path, open_editor):
    script = reply(WAITING, when="write it") + DONE  # which the other one plays from its beginning
    victim = Editor(tmp_path / "killed", script=script, environment=AUTO)
    try:
        begin_work(victim)
        other = open_editor(folder=victim.folder, capabilities=NOTICES)
        other.load_session(victim.session_id)
        other.take_part(victim)
        id = injected(other.steer(TEXT))
    finally:
        victim.kill()
    other.wait_until(lambda: any("has ended" in notice for notice in other.notices), "the end of the owner")
    assert other.prompt("go on") == ENDED
    [left] = [update for update in other.updates if update.get("description") == TEXT]
    assert left["_meta"] == {"steering": {"leftOver": [{"messageId": id, "text": TEXT}]}}
    assert counts(other)[-1] == 0


def test_killed_while_others_watch_their_prompt_fails_and_the_next_one_tells_what_is_left_over(tmp_path, open_editor):
    victim = Editor(tmp_path / "killed", script=reply(WAITING, when="write it") + DONE, environment=AUTO)
    try:
        session = victim.new_session()
        watchers = [open_editor(folder=victim.folder, capabilities=NOTICES) for _ in range(2)]
        for watcher in watchers:
            watcher.load_session(session)
        prompt = watchers[0].start_prompt("write it")
        victim.wait_until(
            lambda: any(call["status"] == "in_progress" for call in victim.tool_calls().values()), "it runs"
        )
        id = injected(watchers[1].steer(TEXT))
    finally:
        victim.kill()
    assert "has ended" in prompt.error().message
    assert watchers[0].prompt("go on") == ENDED
    [left] = [update for update in watchers[0].updates if update.get("description") == TEXT]
    assert left["_meta"] == {"steering": {"leftOver": [{"messageId": id, "text": TEXT}]}}


def test_killed_after_the_model_got_it_it_is_in_the_history(killed):
    def taken(crow: Editor) -> None:
        go(crow)
        crow.wait_for_text("Once")

    crow = killed(reply(WAITING) + HANGING, taken)
    said = [u["content"]["text"] for u in crow.updates if u["sessionUpdate"] == "user_message_chunk"]
    assert said == ["write it", TEXT]
    assert crow.prompt("go on") == ENDED
    assert counts(crow)[-1] == 1
