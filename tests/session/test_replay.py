"""What a person sees of a stored session: each thing once, as it ended up, in the order in which it began."""

import msgspec

from crow import events
from crow.events import (
    ArgumentsGrew,
    CallDescribed,
    CallOpened,
    CallPreviewed,
    CallProgressed,
    CallRequested,
    CallSettled,
    CallStarted,
    CommandGiven,
    CompactionEnded,
    CompactionStarted,
    CrowSaid,
    Notice,
    PlanChanged,
    PlanEntry,
    SentText,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.messages import StopReason, Text
from crow.results import Location, TextBlock, ToolKind, ToolResult
from crow.session.recovery import INTERRUPTED, NOT_BEGUN, last_turn_number, missing_ends
from crow.session.replay import PastCall, PastMessage, PastPrompt, PastRemark, PastThought, replayed

GO = (SentText("go"),)
DONE = ToolResult(ok=True, text="done", message="done")


def test_deltas_become_one_message_where_it_began():
    past = [
        UserSaid("m1", GO, (Text("go"),)),
        ThoughtDelta("m2", "a", "p"),
        ThoughtDelta("m2", "b", "p"),
        TextDelta("m3", "c"),
        CallOpened("c1", "read", ToolKind.READ, "Read"),
        TextDelta("m3", "d"),
        CallSettled("c1", DONE),
    ]
    prompt, thought, message, call = replayed(past)
    assert prompt == PastPrompt("m1", GO)
    assert thought == PastThought("m2", "ab")
    assert message == PastMessage("m3", "cd")
    assert isinstance(call, PastCall)


def test_a_call_is_shown_as_it_was_last_described():
    here = (Location("/a.py", 3),)
    past = [
        CallOpened("c1", "edit", ToolKind.EDIT, "Edit"),
        ArgumentsGrew("c1", "{"),
        CallPreviewed("c1", "Edit a.py", here, (TextBlock("growing"),)),
        CallRequested("c1", "edit", "{}"),
        CallDescribed("c1", ToolKind.DELETE, "Delete a.py"),
        CallProgressed("c1", (TextBlock("half"),)),
        CallSettled("c1", DONE),
    ]
    assert list(replayed(past)) == [
        PastCall("c1", "edit", ToolKind.DELETE, "Delete a.py", here, "{}", (TextBlock("half"),), DONE)
    ]


def test_the_last_plan_stands_at_its_last_place():
    one, two = PlanChanged((PlanEntry("one"),)), PlanChanged((PlanEntry("two"),))
    same = PlanChanged((PlanEntry("one"),))
    past = [one, TextDelta("m1", "a"), two, TextDelta("m2", "b"), same, TextDelta("m3", "c")]
    assert list(replayed(past)) == [PastMessage("m1", "a"), PastMessage("m2", "b"), same, PastMessage("m3", "c")]


def test_commands_and_what_crow_said_are_shown_and_passing_things_are_not():
    ended = CompactionEnded("k1", "completed", "summary", 3)
    past = [
        TurnStarted("t1"),
        CommandGiven("m1", (SentText("/help"),)),
        Notice("info", "wait"),
        CrowSaid("m2", "Help."),
        CompactionStarted("k1", "full"),
        ended,
        TurnEnded("t1", StopReason.END_TURN),
    ]
    assert list(replayed(past)) == [PastPrompt("m1", (SentText("/help"),)), PastMessage("m2", "Help."), ended]


def test_what_ended_needs_no_mending():
    past = [
        TurnStarted("t1"),
        CallOpened("c1", "read", ToolKind.READ, "Read"),
        CallSettled("c1", DONE),
        CompactionStarted("k1", "full"),
        CompactionEnded("k1", "cancelled"),
        TurnEnded("t1", StopReason.END_TURN),
    ]
    assert missing_ends(past) == []
    assert missing_ends([]) == []


def test_whatever_was_cut_off_gets_its_end():
    past: list[events.Event] = [
        TurnStarted("t1"),
        TurnEnded("t1", StopReason.END_TURN),
        TurnStarted("t2"),
        CallOpened("c1", "read", ToolKind.READ, "Read"),
        CallOpened("c2", "read", ToolKind.READ, "Read"),
        CallSettled("c1", DONE),
        CallOpened("c3", "read", ToolKind.READ, "Read"),
        CallStarted("c3"),
        CompactionStarted("k1", "full"),
    ]
    call, begun, compaction, turn = missing_ends(past)
    assert call == CallSettled("c2", NOT_BEGUN)
    assert begun == CallSettled("c3", INTERRUPTED)
    assert isinstance(compaction, CompactionEnded)
    assert (compaction.compaction_id, compaction.status) == ("k1", "failed")
    assert isinstance(turn, TurnEnded)
    assert (turn.turn_id, turn.stop_reason) == ("t2", None)
    assert missing_ends([*past, call, begun, compaction, turn]) == []


def test_turns_are_counted_on():
    assert last_turn_number([]) == 0
    assert last_turn_number([TurnStarted("t9"), TurnStarted("t10"), TurnStarted("odd")]) == 10


def remarks(*past: events.Event) -> list[str]:
    return [item.text for item in replayed(past) if isinstance(item, PastRemark)]


def test_how_a_turn_ended_is_told_if_it_did_not_end_by_itself():
    assert remarks(TurnEnded("t1", StopReason.END_TURN)) == []
    assert remarks(TurnEnded("t1", None, "The model is overloaded.")) == ["The turn failed: The model is overloaded."]
    assert remarks(TurnEnded("t1", StopReason.MAX_TOKENS)) == ["Stopped: the length limit was reached."]
    assert remarks(TurnEnded("t1", StopReason.CANCELLED)) == ["Cancelled."]


def test_a_remark_of_a_turn_is_told_again_and_says_why_it_ended():
    stopped = events.Remark("warning", "Stopped after 100 requests to the model.", why_stopped=True)
    past = (events.Remark("warning", "It cannot hear."), TextDelta("m1", "Hm."), stopped)
    ends = TurnEnded("t1", StopReason.MAX_TURN_REQUESTS)
    assert remarks(*past, ends) == ["It cannot hear.", "Stopped after 100 requests to the model."]
    ids = [item.message_id for item in replayed(past) if isinstance(item, PastRemark)]
    assert len(set(ids)) == 2


def test_a_remark_about_something_else_does_not_hide_why_a_turn_ended():
    ended = events.Remark("info", "The background command b1 has ended.")
    assert remarks(ended, TurnEnded("t1", StopReason.CANCELLED)) == [ended.title, "Cancelled."]


def test_what_was_stored_before_remarks_said_more_is_still_read():
    stored = b'{"event": "remark", "severity": "warning", "title": "Stopped after 100 requests to the model."}'
    settled = b'{"event": "call_settled", "call_id": "c1", "result": {"ok": true, "text": "[still running]"}}'
    past = [msgspec.json.decode(stored, type=events.Remark), msgspec.json.decode(settled, type=CallSettled)]
    assert remarks(*past, TurnEnded("t1", StopReason.MAX_TURN_REQUESTS))[0] == past[0].title
    assert missing_ends(past) == []


def test_a_notice_was_for_its_moment():
    assert list(replayed([Notice("warning", "Trying again in 2 s.")])) == []
