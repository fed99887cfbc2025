"""Making room in the model's window: what is pruned, what is summed up, what stays, and that it comes to an end."""

import asyncio
from pathlib import Path

import pytest

from crow.errors import ModelError, ModelUnavailable
from crow.events import (
    CompactionEnded,
    CompactionStarted,
    FileWritten,
    Notice,
    OutputsPruned,
    TurnEnded,
    UsageReported,
)
from crow.messages import AssistantMessage, StopReason, Text, ToolMessage, UserMessage, tokens_of, tokens_of_text
from crow.model.base import Usage
from crow.model.scripted import Call, Fail, Finish, Say, ScriptedReply, Wait, reply
from crow.turn.compaction import compact
from crow.turn.history import SUMMED_UP
from crow.turn.message_building import PRUNED
from crow.turn.summary import SYSTEM, WANTED
from tests.turn.talk import Talk

SUMMARY_WANTED = WANTED[:30]
"""By which the scripted model knows that it is asked for a summary."""


def summary(text: str = "The task is to count.", *events: Fail | Wait | Finish) -> ScriptedReply:
    return reply(*events, *([text] if text else []), when=SUMMARY_WANTED)


def file_of(folder: Path, tokens: int, name: str = "big.txt") -> str:
    line = "a line of some text, neither long nor short\n"
    (folder / name).write_text(line * (tokens * 3 // (len(line) + 3)))
    return name


def reading(name: str, times: int, offset: int = 0) -> list[ScriptedReply]:
    """Rounds that read the file, each a little differently."""
    return [reply(Call("read", {"path": name, "offset": number + offset + 1})) for number in range(times)]


def summaries_asked(talk: Talk) -> int:
    return sum(request.system == SYSTEM for request in talk.model.requests)


def one_text(message: object) -> str:
    assert isinstance(message, UserMessage)
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


# --- pruning


def test_old_outputs_are_pruned_first_and_the_last_rounds_keep_theirs(tmp_path):
    name = file_of(tmp_path, 1000)
    talk = Talk(tmp_path, [*reading(name, 12), reply("Done.")], window=16_000)
    assert asyncio.run(talk.turn("Read.")) is StopReason.END_TURN
    [pruned, *_] = talk.of(OutputsPruned)
    assert pruned.call_ids[0] == "t1-c1"
    outputs = [message for message in talk.history.messages() if isinstance(message, ToolMessage)]
    assert outputs[0].text == PRUNED
    assert all(output.text != PRUNED for output in outputs[-4:])
    assert summaries_asked(talk) == 0
    assert [notice.severity for notice in talk.of(Notice)] == ["info"]


def test_where_only_the_last_rounds_are_large_nothing_is_pruned(tmp_path):
    name = file_of(tmp_path, 1300)
    talk = Talk(tmp_path, [summary(), *reading(name, 4), reply("Done.")], window=8000)
    assert asyncio.run(talk.turn("Read.")) is StopReason.END_TURN
    assert talk.of(OutputsPruned) == []
    assert len(talk.of(CompactionEnded)) == 1


def test_after_pruning_the_new_size_is_told(tmp_path):
    name = file_of(tmp_path, 1000)
    talk = Talk(tmp_path, [*reading(name, 11), reply("Done.")], window=16_000)
    asyncio.run(talk.turn("Read."))
    [usage] = talk.of(UsageReported)
    assert usage.estimated
    assert usage.context_window == 16_000
    assert 0 < usage.input_tokens < 16_000 * 0.65


# --- the summary


def conversation_of(*turns: str) -> list[ScriptedReply]:
    return [reply(f"Answer to {text}. " + "Some words that take their room. " * 60) for text in turns]


async def talked(talk: Talk, *prompts: str) -> None:
    for prompt in prompts:
        assert await talk.turn(prompt) is StopReason.END_TURN


def test_the_beginning_is_summed_up_and_the_last_turn_stays(tmp_path):
    talk = Talk(tmp_path, [summary(), *conversation_of(*"abcdefghi")], window=8000)
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcdefgh"), "prompt i"))
    first, *rest = talk.history.messages()
    assert one_text(first).startswith(SUMMED_UP)
    assert "The task is to count." in one_text(first)
    assert one_text(rest[-2]) == "prompt i"
    assert [type(message) for message in rest[:2]] == [AssistantMessage, UserMessage]
    [started], [ended] = talk.of(CompactionStarted), talk.of(CompactionEnded)
    assert (ended.compaction_id, ended.status) == (started.compaction_id, "completed")
    assert ended.dropped > 2


def test_the_request_for_the_summary_has_no_tools_and_holds_what_is_dropped(tmp_path):
    talk = Talk(tmp_path, [summary(), *conversation_of(*"abcdefghi")], window=8000)
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcdefghi")))
    [request] = [request for request in talk.model.requests if request.system == SYSTEM]
    assert request.tools == ()
    [message] = request.messages
    assert "USER: prompt a\n" in one_text(message)
    assert "ASSISTANT: Answer to a." in one_text(message)


def test_a_summary_carries_the_persons_own_words_and_the_changed_files_whatever_the_model_says(tmp_path):
    script = [
        summary("Nothing of interest."),
        reply("Fine."),
        reply(Call("write", {"path": "notes.txt", "content": "x\n"})),
        *conversation_of(*"0abcdefgh"),
    ]
    talk = Talk(tmp_path, script, window=8000)
    prompts = ["The shed is chartreuse.\nThe bike is red.", "Write a note.", *"abcdefgh"]
    asyncio.run(talked(talk, *prompts))
    assert talk.of(FileWritten), "the write tool says what it wrote"
    text = one_text(talk.history.messages()[0])
    assert "The shed is chartreuse.\nThe bike is red." in text
    assert f"- {tmp_path.resolve() / 'notes.txt'}" in text
    assert "Nothing of interest." in text


def test_the_summary_before_it_is_part_of_what_the_next_one_is_made_of(tmp_path):
    script = [summary("FACT-7"), summary("FACT-7 and more"), *conversation_of(*"abcdefghijklmnop")]
    talk = Talk(tmp_path, script, window=8000)
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcdefghijklmnop")))
    second = [request for request in talk.model.requests if request.system == SYSTEM][1]
    assert "FACT-7" in one_text(second.messages[0])
    assert "FACT-7 and more" in one_text(talk.history.messages()[0])


def test_the_request_for_the_summary_fits_the_window_too(tmp_path):
    names = [file_of(tmp_path, 2500, f"f{number}.txt") for number in range(8)]
    rounds = [reply(*(Call("read", {"path": name}) for name in some)) for some in (names[:4], names[4:])]
    talk = Talk(tmp_path, [summary(), rounds[0], reply("Done."), rounds[1], reply("Done.")], window=20_000)
    asyncio.run(talked(talk, "Read.", "Read on."))
    assert summaries_asked(talk) == 1
    for request in talk.model.requests:
        assert sum(map(tokens_of, request.messages)) < 15_000


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (summary(""), "it gave none"),
        (summary("", Fail(status=400, message="I will not")), "I will not"),
        (summary("", Finish(StopReason.REFUSAL)), "it gave none"),
        (summary("", Fail(status=400, message="maximum context length exceeded")), "context"),
    ],
)
def test_without_a_summary_of_the_models_its_last_words_and_the_prompts_are_kept(tmp_path, bad, why):
    talk = Talk(tmp_path, [bad, *conversation_of(*"abcdefghi")], window=8000)
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcdefghi")))
    text = one_text(talk.history.messages()[0])
    assert "Answer to" in text
    assert "- prompt a" in text
    [notice] = [notice for notice in talk.of(Notice) if notice.severity == "warning"]
    assert why in notice.title


def test_a_provider_that_is_down_fails_the_turn_and_leaves_the_history_as_it_was(tmp_path):
    down = summary("", Fail(status=503, message="overloaded"))
    talk = Talk(tmp_path, [down, *conversation_of(*"abcdefghi")], window=8000)
    with pytest.raises(ModelUnavailable):
        asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcdefghi")))
    assert [ended.status for ended in talk.of(CompactionEnded)] == ["failed"]
    assert one_text(talk.history.messages()[0]) == "prompt a"


def test_a_compaction_that_is_cancelled_leaves_the_history_as_it_was(tmp_path):
    slow = summary("Late.", Wait(60))
    talk = Talk(tmp_path, [slow, *conversation_of(*"abcdefgh")], window=8000)

    async def cancelled() -> None:
        task = asyncio.ensure_future(talked(talk, *(f"prompt {letter}" for letter in "abcdefghi")))
        await talk.sink.until(lambda event: isinstance(event, CompactionStarted))
        before = talk.history.messages()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert talk.history.messages() == before

    asyncio.run(cancelled())
    assert [ended.status for ended in talk.of(CompactionEnded)] == ["cancelled"]


# --- the end of it


def test_a_prompt_that_cannot_fit_ends_the_turn_with_words_about_what_is_too_large(tmp_path):
    talk = Talk(tmp_path, [reply("Never asked.")], window=4000)
    assert asyncio.run(talk.turn("word " * 4000)) is StopReason.MAX_TOKENS
    assert talk.model.requests == []
    [notice] = [notice for notice in talk.of(Notice) if notice.severity == "error"]
    assert "a message of yours (about 6," in notice.title
    assert "/clear" in notice.title


def test_outputs_that_come_at_once_are_made_to_fit_together_and_say_how_to_go_on(tmp_path):
    names = [file_of(tmp_path, 3000, f"f{number}.txt") for number in range(5)]
    script = [summary(), reply(*(Call("read", {"path": name}) for name in names)), reply("Fine.")]
    talk = Talk(tmp_path, script, window=8000)
    assert asyncio.run(talk.turn("Read all.")) is StopReason.END_TURN
    outputs = [message for message in talk.model.requests[-1].messages if isinstance(message, ToolMessage)]
    assert len(outputs) == 5
    assert all("more lines: go on with offset" in output.text for output in outputs)
    assert sum(map(tokens_of, outputs)) < 6000


def test_a_prompt_whose_turn_failed_makes_room_for_the_next(tmp_path):
    script = [summary(), reply(Fail(status=401, message="no such key")), reply("Fine.")]
    talk = Talk(tmp_path, script, window=8000)

    async def both() -> StopReason:
        with pytest.raises(ModelError):
            await talk.turn("first " * 2500)
        talk.journal.append(TurnEnded("t1", None, "no such key"))
        return await talk.turn("second " * 2000)

    assert asyncio.run(both()) is StopReason.END_TURN
    first = one_text(talk.model.requests[-1].messages[0])
    assert "characters left out" in first
    assert first.endswith("second " * 2000)


def test_what_leaves_no_room_is_named_when_there_is_nothing_to_compact(tmp_path):
    talk = Talk(tmp_path, [reply("Never asked.", repeat=True)], window=8000, system="Rules. " * 2600)
    asyncio.run(talk.turn("Hello."))
    words = asyncio.run(compact(talk.context.window, talk.next_ids(), talk.context.waiting, reason="You asked for it."))
    assert "Nothing to compact. What takes most is the system prompt with the tools" in words


def test_a_system_prompt_that_fills_the_window_is_named(tmp_path):
    talk = Talk(tmp_path, [reply("Never asked.", repeat=True)], window=8000, system="Rules. " * 2600)
    assert asyncio.run(talk.turn("Hello.")) is StopReason.MAX_TOKENS
    assert talk.model.requests == []
    [notice] = [notice for notice in talk.of(Notice) if notice.severity == "error"]
    assert "the system prompt with the tools (about 6," in notice.title


def test_where_little_room_is_left_a_compaction_still_makes_room_for_several_rounds(tmp_path):
    (tmp_path / "small.txt").write_text("x\n")
    rounds = [reply(Call("read", {"path": "small.txt", "limit": number + 1})) for number in range(60)]
    short = ScriptedReply((Say("Short."),), when=SUMMARY_WANTED, repeat=True)
    talk = Talk(tmp_path, [short, *rounds, reply("Done.")], window=8000, system="Rules. " * 1900)
    assert asyncio.run(talk.turn("Read.")) is StopReason.END_TURN
    assert 1 <= len(talk.of(CompactionStarted)) <= 60 / 3


# --- the provider's own opinion


OVERFLOW = Fail(status=400, message="This model's maximum context length is 4096 tokens.")


def test_when_the_provider_finds_it_too_long_it_is_compacted_once_and_tried_again(tmp_path):
    talk = Talk(tmp_path, [*conversation_of(*"abcd"), reply(OVERFLOW), summary(), reply("Now it fits.")])
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcde")))
    assert [ended.status for ended in talk.of(CompactionEnded)] == ["completed"]
    assert talk.history.messages()[-1] == AssistantMessage((Text("Now it fits."),))


def test_a_large_output_is_no_longer_sent_where_there_is_no_beginning_to_sum_up(tmp_path):
    (tmp_path / "large.txt").write_text("a line of words\n" * 2000)
    too_long = Fail(status=413, message="")
    talk = Talk(tmp_path, [reply(Call("read", {"path": "large.txt"})), reply(too_long), reply("Now it fits.")])
    assert asyncio.run(talk.turn("Read.")) is StopReason.END_TURN
    assert len(talk.of(OutputsPruned)) == 1
    assert talk.of(CompactionStarted) == []


def test_and_if_it_still_does_not_fit_the_turn_ends(tmp_path):
    letters = "abcdefghijklmnop"
    always = [
        ScriptedReply((Say("Short."),), when=SUMMARY_WANTED, repeat=True),
        ScriptedReply((OVERFLOW,), when="too much", repeat=True),
    ]
    talk = Talk(tmp_path, [*always, *conversation_of(*letters)])
    asyncio.run(talked(talk, *letters))
    assert asyncio.run(talk.turn("too much")) is StopReason.MAX_TOKENS
    assert len(talk.of(CompactionStarted)) == 1
    assert len(talk.history.messages()) >= 5, "there would have been more to sum up"


# --- by hand


def test_compacting_by_hand_says_what_was_won_and_takes_a_focus(tmp_path):
    talk = Talk(tmp_path, [*conversation_of(*"abcd"), summary()])
    asyncio.run(talked(talk, *(f"prompt {letter}" for letter in "abcd")))
    before = talk.context.window.estimate()
    words = asyncio.run(
        compact(
            talk.context.window, talk.next_ids(), talk.context.waiting, focus="the colours", reason="You asked for it."
        )
    )
    after = talk.context.window.estimate()
    assert after < before
    assert f"{before:,}" in words
    assert f"{after:,}" in words
    assert "above all this to be kept: the colours" in one_text(talk.model.requests[-1].messages[0])
    assert talk.of(UsageReported)[-1].input_tokens == after


def test_a_short_conversation_is_not_compacted(tmp_path):
    talk = Talk(tmp_path, [reply("Hello.")])
    asyncio.run(talk.turn("Hi."))
    assert "othing to compact" in asyncio.run(
        compact(talk.context.window, talk.next_ids(), talk.context.waiting, reason="You asked for it.")
    )
    assert talk.of(CompactionStarted) == []


# --- what fills the window


def test_the_last_count_of_the_provider_is_the_base_of_the_estimate(tmp_path):
    talk = Talk(tmp_path, [reply("Hello.", Usage(input_tokens=2000, output_tokens=70))])
    asyncio.run(talk.turn("Hi."))
    assert talk.context.window.estimate() == 2070
    use = talk.context.window.use()
    assert use.total == 2070
    # The parts are estimated, and the estimate is set right by what the provider counted.
    assert sum((use.system_prompt, use.tools, use.person, use.model, use.outputs, use.images)) == 2070


@pytest.mark.parametrize("counted", [30_000, 4_294_967_295])
def test_a_count_that_cannot_be_right_stops_no_conversation(tmp_path, counted):
    script = [reply("Hello.", Usage(input_tokens=counted, output_tokens=70)), reply("Here."), reply("Here.")]
    talk = Talk(tmp_path, script, window=20_000)
    for prompt in ("Hi.", "Are you there?", "Still?"):
        assert asyncio.run(talk.turn(prompt)) is StopReason.END_TURN
    assert len(talk.model.requests) == 3
    assert talk.context.window.estimate() < 2000
    assert not talk.of(CompactionStarted)


def test_what_only_the_provider_counts_as_too_long_is_sent_all_the_same(tmp_path):
    script = [reply("Hello.", Usage(input_tokens=4000, output_tokens=0)), reply("Here.")]
    talk = Talk(tmp_path, script, window=4000, system="S" * 2700)
    asyncio.run(talk.turn("Hi."))
    assert talk.context.window.estimate() == 4000
    assert asyncio.run(talk.turn("Are you there?")) is StopReason.END_TURN
    assert talk.history.messages()[-1] == AssistantMessage((Text("Here."),))


def test_no_compaction_is_claimed_that_there_was_not(tmp_path):
    talk = Talk(tmp_path, [reply("Never said.")], window=4000)
    assert asyncio.run(talk.turn("x" * 15_000)) is StopReason.MAX_TOKENS
    [notice] = [notice for notice in talk.of(Notice) if notice.severity == "error"]
    assert "there is nothing to compact" in notice.title


def test_what_fills_the_window_is_told_part_by_part(tmp_path):
    name = file_of(tmp_path, 900)
    talk = Talk(tmp_path, [reply(Call("read", {"path": name})), reply("Fine.")], window=20_000, system="S" * 300)
    asyncio.run(talk.turn("P" * 600))
    use = talk.context.window.use()
    assert use.system_prompt == 100
    assert use.person == tokens_of_text("P" * 600) + 8
    assert 900 < use.outputs < 1400
    assert use.images == 0
    assert use.window == 20_000
    assert use.total == use.system_prompt + use.tools + use.person + use.model + use.outputs
