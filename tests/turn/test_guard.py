"""A model that goes round in circles is noticed, and the person decides."""

import asyncio

import pytest

from crow.actions import Answer
from crow.events import TextDelta
from crow.messages import StopReason
from crow.model.scripted import Call, ScriptedModel, ScriptedReply, reply
from crow.turn.call_batch import GO_ON, STOP
from tests.turn.talk import Someone, Talk


def reading(*, times: int, **arguments: object) -> list[ScriptedReply]:
    return [reply(Call("read", {"path": "a.txt", **arguments})) for _ in range(times)]


def talk_in(folder, script, *answers: Answer | None) -> Talk:
    (folder / "a.txt").write_text("one\n")
    return Talk(folder, [*script, reply("Done.")], person=Someone(*answers))


def test_the_same_call_with_the_same_result_five_times_is_asked_about(tmp_path):
    talk = talk_in(tmp_path, reading(times=7), Answer(STOP))
    assert asyncio.run(talk.turn("Read.")) is StopReason.END_TURN
    [question] = talk.person.questions
    assert question.call_id == "t1-c5"
    assert "Read a.txt" in question.text
    assert question.options == (GO_ON, STOP)
    assert "Read a.txt" in talk.of(TextDelta)[-1].text
    assert len(talk.model.requests) == 5


def test_four_times_are_not(tmp_path):
    talk = talk_in(tmp_path, reading(times=4))
    asyncio.run(talk.turn("Read."))
    assert talk.person.questions == []


def test_going_on_begins_the_count_anew(tmp_path):
    talk = talk_in(tmp_path, reading(times=11), Answer(GO_ON), Answer(GO_ON))
    asyncio.run(talk.turn("Read."))
    assert [question.call_id for question in talk.person.questions] == ["t1-c5", "t1-c10"]
    assert talk.of(TextDelta)[-1].text == "Done."


@pytest.mark.parametrize("answer", [None, Answer(""), Answer("whatever")])
def test_nothing_but_a_clear_yes_goes_on_and_without_an_answer_the_work_is_broken_off(tmp_path, answer):
    talk = talk_in(tmp_path, reading(times=7), answer)
    assert asyncio.run(talk.turn("Read.")) is StopReason.MAX_TURN_REQUESTS
    assert len(talk.model.requests) == 5


def test_a_question_that_is_answered_by_ending_the_turn_ends_it(tmp_path):
    talk = talk_in(tmp_path, reading(times=7), Answer("", cancelled=True))
    assert asyncio.run(talk.turn("Read.")) is StopReason.CANCELLED


def test_spacing_and_order_of_the_arguments_make_no_other_call(tmp_path):
    texts = ['{"path": "a.txt", "limit": 5}', '{"limit":5,"path":"a.txt"}', '{ "limit":5, "path":"a.txt" }']
    script = [reply(Call("read", raw=text)) for text in (*texts, *texts)]
    talk = talk_in(tmp_path, script, Answer(STOP))
    asyncio.run(talk.turn("Read."))
    assert len(talk.person.questions) == 1


def test_another_result_is_progress(tmp_path):
    """Somebody else changes the file after the model has read it four times."""
    requests = 0

    async def meanwhile(seconds: float) -> None:
        nonlocal requests
        requests += 1
        (tmp_path / "a.txt").write_text("one\n" if requests <= 4 else "two\n")

    talk = Talk(tmp_path, ScriptedModel([*reading(times=8), reply("Done.")], sleep=meanwhile))
    asyncio.run(talk.turn("Read."))
    assert requests == 9
    assert talk.person.questions == []


def test_a_change_in_between_is_progress(tmp_path):
    write = reply(Call("write", {"path": "b.txt", "content": "x\n"}))
    talk = talk_in(tmp_path, [*reading(times=4), write, *reading(times=4)])
    asyncio.run(talk.turn("Read."))
    assert talk.person.questions == []


def test_reading_something_else_in_between_is_none(tmp_path):
    """Two reads that take turns go round in circles as well."""
    script = [one for _ in range(5) for one in (*reading(times=1), *reading(times=1, limit=1))]
    talk = talk_in(tmp_path, script, Answer(STOP))
    asyncio.run(talk.turn("Read."))
    assert len(talk.person.questions) == 1


def test_a_change_that_is_made_over_and_over_is_a_circle_too(tmp_path):
    write = reply(Call("write", {"path": "b.txt", "content": "x\n"}))
    talk = talk_in(tmp_path, [write] * 8, Answer(STOP))
    asyncio.run(talk.turn("Write."))
    assert len(talk.person.questions) == 1


def test_so_are_two_changes_that_take_each_other_back(tmp_path):
    writes = [reply(Call("write", {"path": "b.txt", "content": text})) for text in ("x\n", "y\n")]
    talk = talk_in(tmp_path, writes * 8, Answer(STOP))
    asyncio.run(talk.turn("Write."))
    assert len(talk.person.questions) == 1


def test_a_call_that_fails_the_same_way_counts(tmp_path):
    talk = talk_in(tmp_path, [reply(Call("read", {"path": "missing.txt"}))] * 6, Answer(STOP))
    asyncio.run(talk.turn("Read."))
    assert "missing.txt" in talk.person.questions[0].text


def test_the_next_turn_counts_from_nothing(tmp_path):
    talk = talk_in(tmp_path, [*reading(times=4), reply("Done."), *reading(times=4)])
    asyncio.run(talk.turn("Read."))
    asyncio.run(talk.turn("Again."))
    assert talk.person.questions == []
