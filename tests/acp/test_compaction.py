"""A conversation that outgrows the model's window, with a real provider that counts what it is sent."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from crow.model.scripted import Call
from tests.support.editor import EVERYTHING, Editor, chose
from tests.support.fold import seen_live, seen_loaded
from tests.support.patience import DEADLINE
from tests.support.provider import Provider
from tests.support.provider_dialect import Spoken, Stall, Step
from tests.support.windowed import Json, WindowedDialect, is_summary, text_of, texts

WINDOW = 16_000
FACT = "The bike shed is chartreuse"

Replies = Callable[[Json], tuple[Spoken | Step, ...]]


@contextmanager
def provider_with(window: int, reply: Replies, **more: Any) -> Iterator[WindowedDialect]:
    with Provider() as provider:
        provider.openai = dialect = WindowedDialect(provider.openai.url, window, reply, **more)
        yield dialect


def window_of(tokens: int, calls: int = 100) -> str:
    return f"[providers.test.models.m]\ncontext_window = {tokens}\n[limits]\nmodel_calls = {calls}\n"


def fill(crow: Editor) -> None:
    for number in range(7):
        (crow.workspace / f"f{number}.txt").write_text(f"line of file {number}, which says little\n" * 90)


def compactions(crow: Editor) -> list[str]:
    return [update["status"] for update in crow.updates if update["sessionUpdate"] == "compaction_update"]


def working(summary: Callable[[Json], str], rounds: int) -> Replies:
    """A model that reads files, and after so many rounds has done what it was asked."""
    done = 0

    def reply(body: Json) -> tuple[Spoken, ...]:
        nonlocal done
        if is_summary(body):
            return (summary(body),)
        done += 1
        if done % rounds == 0:
            return (f"Round {done} is done.",)
        return (f"Round {done}.", Call("read", {"path": f"f{done % 7}.txt", "limit": 1000 + done}))

    return reply


def careful(body: Json) -> str:
    """A summary as it should be: it keeps the facts, those of the summary before among them."""
    return f"Noted: {FACT}." if FACT in texts(body) else "Nothing was noted."


def careless(body: Json) -> str:
    return "Some files were read."


@pytest.mark.parametrize(
    ("summary", "usage", "prompts"),
    [
        (careful, True, 30),
        (careless, False, 30),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(careful, False, 60), (careless, True, 60)]),
    ],
)
def test_hundreds_of_rounds_never_exceed_the_window_and_keep_what_was_said_in_the_first(
    open_editor, summary, usage, prompts
):
    with provider_with(WINDOW, working(summary, 5), usage=usage) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW))
        fill(crow)
        crow.new_session()
        for number in range(prompts):
            text = f"{FACT}. Remember that." if number == 0 else f"Go on with part {number}."
            assert crow.prompt(text) == {"stopReason": "end_turn"}
        assert len(provider.rounds) == 5 * prompts
        assert provider.refused == 0
        assert provider.largest < WINDOW
        assert 2 <= len(provider.summaries) <= prompts
        assert FACT in texts(provider.rounds[-1])
        assert "round 1." not in texts(provider.rounds[-1]).lower(), "the beginning itself is gone"


@pytest.mark.slow
def test_one_turn_of_three_hundred_rounds_is_summed_up_in_its_middle(open_editor):
    with provider_with(WINDOW, working(careless, 300)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW, calls=300))
        fill(crow)
        crow.new_session()
        assert crow.prompt(f"{FACT}. Read everything.") == {"stopReason": "end_turn"}
        assert len(provider.rounds) == 300
        assert provider.refused == 0
        assert FACT in texts(provider.rounds[-1])
        lengths = [len(body["messages"]) for body in provider.rounds]
        assert max(lengths[150:]) == max(lengths[75:150]) < 100, "it grows no longer"


def test_a_model_that_gives_no_summary_goes_on_all_the_same(open_editor):
    with provider_with(WINDOW, working(lambda body: "", 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        for number in range(20):
            text = f"{FACT}. Remember that." if number == 0 else f"Go on with part {number}."
            assert crow.prompt(text) == {"stopReason": "end_turn"}
        assert FACT in texts(provider.rounds[-1])
        assert any("could not summarise the conversation (it gave none)" in notice for notice in crow.notices)


@pytest.mark.rule("R144")
def test_after_a_compaction_the_window_is_told_to_be_emptier(open_editor):
    with provider_with(WINDOW, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        while not provider.summaries:
            crow.prompt("Go on.")
        kinds = [update["sessionUpdate"] for update in crow.updates]
        end = len(kinds) - 1 - kinds[::-1].index("compaction_update")
        before = [update["used"] for update in crow.updates[:end] if update["sessionUpdate"] == "usage_update"]
        after = [update["used"] for update in crow.updates[end:] if update["sessionUpdate"] == "usage_update"]
        assert after[0] < before[-1] * 0.8
        assert after[1] < WINDOW
        assert abs(after[1] - after[0]) < WINDOW / 4, "the estimate is near what the provider counts"


def test_a_window_that_is_not_known_is_found_when_the_provider_refuses(open_editor):
    with provider_with(12_000, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url)
        fill(crow)
        crow.new_session()
        for number in range(20):
            text = f"{FACT}. Remember that." if number == 0 else f"Go on with part {number}."
            assert crow.prompt(text) == {"stopReason": "end_turn"}
        assert provider.refused == 1, "the refusal names the window: from then on, all requests fit"
        assert provider.summaries
        assert FACT in texts(provider.rounds[-1])


def test_what_can_never_fit_ends_with_max_tokens_and_says_so(open_editor):
    with provider_with(6000, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(6000))
        crow.new_session()
        assert crow.prompt("word " * 6000) == {"stopReason": "max_tokens"}
        assert "a message of yours" in crow.text()
        assert "/clear" in crow.text()
        assert provider.requests == []


@pytest.mark.rule("R159")
def test_a_cancelled_compaction_leaves_everything_as_it_was(open_editor):
    asked = threading.Event()
    slow = working(careful, 5)

    def reply(body: Json) -> tuple[Spoken | Step, ...]:
        if is_summary(body) and not asked.is_set():
            asked.set()
            return ("The summary beg", Stall())
        return slow(body)

    with provider_with(WINDOW, reply) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        turn = crow.start_prompt("Go on.")
        while not compactions(crow):
            crow.wait_until(lambda turn=turn: turn.done or bool(compactions(crow)), "an end, or a compaction")
            turn = crow.start_prompt("Go on.") if turn.done else turn
        assert asked.wait(DEADLINE)
        crow.cancel()
        assert turn.answer() == {"stopReason": "cancelled"}
        assert compactions(crow) == ["in_progress", "cancelled"]
        number = len(provider.rounds)
        assert crow.prompt("Go on.") == {"stopReason": "end_turn"}
        assert text_of(provider.rounds[number]["messages"][1]) == "Go on.", "it begins as it always did"
        assert "The summary beg" not in texts(provider.rounds[-1])


@pytest.mark.rule("R158")
def test_the_person_reads_of_it_where_the_client_knows_no_compactions(open_editor):
    with provider_with(WINDOW, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW))
        fill(crow)
        crow.new_session()
        while not provider.summaries:
            crow.prompt("Go on.")
        assert "The model continues with a summary of the conversation so far." in crow.text()


def test_the_files_that_were_changed_are_named_in_the_summary(open_editor):
    def reply(body: Json) -> tuple[Spoken | Step, ...]:
        if is_summary(body):
            return ("Some things were done.",)
        if text_of(body["messages"][-1]) == "Write a note.":
            return (Call("write", {"path": "notes.md", "content": "# Notes\n"}),)
        return reading(body)

    reading = working(careless, 5)
    with provider_with(WINDOW, reply) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), permit=lambda request: chose("once"))
        fill(crow)
        crow.new_session()
        crow.prompt("Write a note.")
        while not provider.summaries:
            crow.prompt("Go on.")
        assert f"- {crow.workspace / 'notes.md'}" in texts(provider.rounds[-1])


def test_compacting_by_hand_keeps_what_the_person_names_in_view(open_editor):
    with provider_with(WINDOW, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), capabilities=EVERYTHING)
        fill(crow)
        crow.new_session()
        crow.prompt(f"{FACT}. Remember that.")
        assert crow.prompt("/compact the colours") == {"stopReason": "end_turn"}
        assert compactions(crow) == ["in_progress", "completed"]
        assert "Compacted the conversation" in crow.text()
        [asked] = provider.summaries
        assert "above all this to be kept: the colours" in texts(asked)
        crow.prompt("Go on.")
        assert f"Noted: {FACT}." in texts(provider.rounds[-1])


def test_after_a_restart_the_model_gets_what_it_would_have_got(open_editor):
    """Pruned outputs, summaries and all: what was stored folds to the same history."""
    with provider_with(WINDOW, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW))
        fill(crow)
        session = crow.new_session()
        crow.prompt(f"{FACT}. Remember that.")
        while len(provider.summaries) < 2:
            crow.prompt("Go on.")
        crow.close()
        before = provider.rounds[-1]["messages"]
        other = open_editor(folder=crow.folder)
        other.load_session(session)
        other.prompt("Go on.")
        after = [body for body in provider.rounds if body["messages"][: len(before)] == before]
        assert len(after) >= 2, "the first request after the restart goes on where the last one before it ended"
        assert provider.refused == 0


@pytest.mark.rule("R41")
def test_the_person_still_sees_everything_after_a_restart(open_editor):
    with provider_with(WINDOW, working(careful, 5)) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), capabilities=EVERYTHING)
        fill(crow)
        session = crow.new_session()
        crow.prompt(f"{FACT}. Remember that.")
        while not provider.summaries:
            crow.prompt("Go on.")
        crow.close()
        other = open_editor(folder=crow.folder, capabilities=EVERYTHING)
        assert seen_loaded(other, session).messages == seen_live(crow).messages
        assert list(other.tool_calls()) == list(crow.tool_calls())
        assert compactions(other) == ["completed"]


# --- what could not be sent


LOG = "2026-01-01 an error in line 17 of the build\n" * 1700
"""About 74 kB: more than the window of 20,000 tokens takes."""


def talking(body: Json) -> tuple[Spoken | Step, ...]:
    return ("A log was sent.",) if is_summary(body) else ("Hi.",)


def test_a_prompt_that_was_too_large_does_not_stand_in_the_way_of_the_next(open_editor):
    with provider_with(20_000, talking) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(20_000))
        crow.new_session()
        assert crow.prompt("hello") == {"stopReason": "end_turn"}
        assert crow.prompt(LOG) == {"stopReason": "max_tokens"}
        assert "What takes most is a message of yours" in crow.text()
        assert "`/undo` this prompt" in crow.text()
        assert crow.prompt("just say hi") == {"stopReason": "end_turn"}
        sent = texts(provider.rounds[-1])
        assert "hello" in sent
        assert "characters left out" in sent, "the log is there by its beginning and its end"
        assert provider.refused == 0


def test_compacting_by_hand_makes_room_where_the_last_prompt_was_too_large(open_editor):
    with provider_with(20_000, talking) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(20_000))
        crow.new_session()
        crow.prompt("hello")
        crow.prompt(LOG)
        crow.prompt("/compact")
        assert "Compacted the conversation" in crow.text()
        assert crow.prompt("just say hi") == {"stopReason": "end_turn"}
        assert len(provider.summaries) == 1
        assert "hello" in texts(provider.rounds[-1])


def test_undo_takes_back_a_prompt_that_was_too_large(open_editor):
    with provider_with(20_000, talking) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(20_000))
        crow.new_session()
        crow.prompt("hello")
        crow.prompt(LOG)
        crow.prompt("/undo")
        assert crow.prompt("just say hi") == {"stopReason": "end_turn"}
        assert provider.summaries == []
        assert "error in line 17" not in texts(provider.rounds[-1])


def test_a_prompt_that_was_never_answered_makes_room_for_the_next(open_editor):
    def reply(body: Json) -> tuple[Spoken | Step, ...]:
        return talking(body) if is_summary(body) or "Again" in texts(body) else (Stall(),)

    with provider_with(20_000, reply) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(20_000))
        crow.new_session()
        turn = crow.start_prompt(LOG[:30_000])
        assert provider.asked.wait(DEADLINE)
        crow.cancel()
        assert turn.answer() == {"stopReason": "cancelled"}
        assert crow.prompt("Again: " + LOG[:30_000]) == {"stopReason": "end_turn"}
        assert len(provider.summaries) == 1
        assert "A log was sent." in texts(provider.rounds[-1])


# --- what was taken back


def test_the_model_does_not_know_an_undone_turn_from_a_summary(open_editor):
    def reply(body: Json) -> tuple[Spoken | Step, ...]:
        if is_summary(body):
            return (f"The words were: {texts(body)[-4000:]}",)
        if text_of(body["messages"][-1]).startswith("Write the secret plan"):
            return (Call("write", {"path": "plan.md", "content": "# The secret plan\n" + "step\n" * 900}),)
        return ("Done. " * 300,)

    with provider_with(WINDOW, reply) as provider:
        crow = open_editor(base_url=provider.url, config=window_of(WINDOW), permit=lambda request: chose("once"))
        session = crow.new_session()
        crow.prompt(f"{FACT}. Remember that.")
        crow.prompt("Write the secret plan.")
        crow.prompt("/compact")
        assert "Write the secret plan." in texts(provider.summaries[0])
        crow.prompt("/undo")
        assert "removed from the model's context." in crow.text()
        crow.prompt("Go on.")
        crow.close()
        other = open_editor(folder=crow.folder)
        other.load_session(session)
        other.prompt("Go on.")
        for body in provider.rounds[-2:]:
            assert "secret" not in texts(body)
            assert "plan.md" not in texts(body)
            assert f"{FACT}. Remember that." in text_of(body["messages"][1])
