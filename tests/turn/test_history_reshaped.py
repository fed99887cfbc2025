"""The model's history after something left it: a turn undone, outputs pruned, a beginning summed up, all cleared."""

import itertools
import random

import msgspec
import pytest

from crow import events
from crow.events import (
    CallOpened,
    CallRequested,
    CallSettled,
    CompactionEnded,
    CompactionStarted,
    Event,
    FileWritten,
    HistoryCleared,
    OutputsPruned,
    ReplyEnded,
    SentText,
    TextDelta,
    TurnEnded,
    TurnStarted,
    TurnUndone,
    UsageReported,
    UserSaid,
)
from crow.messages import AssistantMessage, Image, Message, StopReason, Text, ToolMessage, UserMessage
from crow.results import TextBlock, ToolKind, ToolResult
from crow.store.records import Pending, events_of
from crow.turn.history import INTERRUPTED, SUMMED_UP, UNANSWERED, History
from crow.turn.message_building import PRUNED
from tests.support.histories import assert_valid

PICTURE = Image("cGljdHVyZQ==", "image/png")


def history(*happened: Event) -> History:
    fold = History()
    for event in happened:
        fold.apply(event)
    return fold


def said(text: str) -> UserSaid:
    return UserSaid("m", (SentText(text),), (Text(text),))


def round_of(*calls: str, text: str = "") -> list[Event]:
    """A reply with these calls, each done."""
    return [
        *([TextDelta(f"m-{calls}", text)] if text else []),
        *(CallOpened(call, "read", ToolKind.READ, "Read") for call in calls),
        *(CallRequested(call, "read", "{}") for call in calls),
        *(CallSettled(call, ToolResult(ok=True, text=f"output of {call}", images=(PICTURE,))) for call in calls),
        ReplyEnded(),
    ]


def answer(text: str) -> list[Event]:
    return [TextDelta(f"m-{text}", text), ReplyEnded()]


def turn(id: str, *middle: Event, ends: StopReason | None = StopReason.END_TURN) -> list[Event]:
    return [TurnStarted(id), said(f"prompt of {id}"), *middle, TurnEnded(id, ends)]


def summed_up(dropped: int, summary: str = "What was.") -> list[Event]:
    return [CompactionStarted("k", "full"), CompactionEnded("k", "completed", summary, dropped)]


def assert_strict(messages: list[Message]) -> None:
    """As the strictest provider wants it: the person begins, nobody speaks twice in a row, each call has its result."""
    assert_valid(msgspec.to_builtins(messages))
    speakers = [type(message) for message in messages if not isinstance(message, ToolMessage)]
    assert speakers[:1] in ([], [UserMessage])
    for before, after in itertools.pairwise(messages):
        assert not (isinstance(before, AssistantMessage) and isinstance(after, AssistantMessage))


# --- undo


def test_an_undone_turn_leaves_the_history_as_if_it_had_not_been():
    first, second, third = turn("t1", *answer("One.")), turn("t2", *round_of("c1"), *answer("Two.")), turn("t3")
    fold = history(*first, *second, TurnStarted("t3"), TurnUndone("t2"), TurnEnded("t3", StopReason.END_TURN))
    assert fold.messages() == history(*first).messages()
    fold = history(*first, *second, *third, TurnUndone("t3"), TurnUndone("t2"))
    assert fold.messages() == history(*first).messages()


def test_a_turn_is_undone_together_with_what_the_next_prompt_would_be_told_of_it():
    stopped = turn("t2", *answer("Well"), ends=StopReason.CANCELLED)
    fold = history(*turn("t1", *answer("One.")), *stopped, TurnUndone("t2"), TurnStarted("t3"), said("three"))
    assert fold.messages()[-1] == UserMessage((Text("three"),))


def test_what_was_to_be_told_of_an_earlier_turn_is_told_to_the_next_that_stays():
    stopped = turn("t1", *answer("Well"), ends=StopReason.CANCELLED)
    fold = history(*stopped, *turn("t2", *answer("Two.")), TurnUndone("t2"), TurnStarted("t3"), said("three"))
    assert fold.messages()[-1] == UserMessage((Text(INTERRUPTED), Text("three")))


def test_undoing_an_unanswered_turn_leaves_the_prompt_that_stood_beside_it():
    fold = history(*turn("t1", ends=StopReason.CANCELLED), *turn("t2", *answer("Two.")), TurnUndone("t1"))
    assert fold.messages() == [UserMessage((Text("prompt of t2"),)), AssistantMessage((Text("Two."),))]


def test_a_summary_that_tells_of_an_undone_turn_goes_and_what_was_before_comes_back():
    before = turn("t1", *answer("One."))
    undone = [*turn("t2", *answer("Two.")), *summed_up(3, "t2 did it"), *summed_up(1, "still t2"), TurnUndone("t2")]
    assert history(*before, *undone).messages() == history(*before).messages()


def test_a_summary_that_does_not_tell_of_the_undone_turn_stays():
    before = [*turn("t1", *answer("One.")), *summed_up(2)]
    fold = history(*before, *turn("t2", *answer("Two.")), TurnUndone("t2"))
    assert fold.messages() == history(*before).messages()


def test_a_turn_that_was_summed_up_in_its_middle_is_taken_out_whole():
    before = turn("t1", *answer("One."))
    middle = [*round_of("c1"), *summed_up(3), *round_of("c2"), *summed_up(2), *answer("Done.")]
    assert history(*before, *turn("t2", *middle), TurnUndone("t2")).messages() == history(*before).messages()


def test_what_comes_back_comes_without_what_tools_gave():
    fold = history(*turn("t1", *round_of("c1"), *answer("One.")), *turn("t2", *answer("Two.")), *summed_up(5))
    fold.apply(TurnUndone("t2"))
    assert fold.messages()[2] == ToolMessage("c1", PRUNED)


def test_each_undo_goes_one_turn_further_back_through_any_number_of_summaries():
    fold = history(*turn("t1", *answer("One.")))
    for number in range(2, 1500):
        for event in (*turn(f"t{number}", *answer("More.")), *summed_up(3)):
            fold.apply(event)
    for number in range(1499, 1, -1):
        fold.apply(TurnUndone(f"t{number}"))
    assert fold.messages() == history(*turn("t1", *answer("One."))).messages()


def test_undoing_a_turn_forgets_its_prompt_and_its_files():
    fold = history(
        *turn("t1", FileWritten("c1", "/a", "1")), *turn("t2", FileWritten("c2", "/b", "2")), TurnUndone("t2")
    )
    assert fold.essentials.prompts == ["prompt of t1"]
    assert fold.essentials.files == ["/a"]


# --- pruning, clearing, summing up


def test_a_pruned_output_says_so_and_the_others_stay():
    fold = history(*turn("t1", *round_of("c1", "c2"), *answer("Done.")), OutputsPruned(("c1",)))
    results = [message for message in fold.messages() if isinstance(message, ToolMessage)]
    assert results == [ToolMessage("c1", PRUNED), ToolMessage("c2", "output of c2", images=(PICTURE,))]


def test_after_clearing_the_model_starts_afresh():
    fold = history(
        *turn("t1", *answer("One.")),
        TurnStarted("t2"),
        HistoryCleared(),
        TurnEnded("t2", StopReason.CANCELLED),
        TurnStarted("t3"),
        said("three"),
    )
    assert fold.messages() == [UserMessage((Text("three"),))]
    assert fold.essentials.prompts == ["three"]


def test_a_command_of_crows_own_is_not_for_the_model():
    command = [
        TurnStarted("t2"),
        events.CommandGiven("m", (SentText("/undo"),)),
        CallOpened("c9", "undo", ToolKind.EDIT, "Undo", own=True),
        CallSettled("c9", ToolResult(ok=True, text="undone")),
        events.CrowSaid("m", "Taken back."),
        TurnEnded("t2", StopReason.END_TURN),
    ]
    first = turn("t1", *answer("One."))
    assert history(*first, *command).messages() == history(*first).messages()


def test_a_summary_stands_for_the_beginning_and_the_rest_follows():
    fold = history(*turn("t1", *round_of("c1"), *round_of("c2"), *answer("Done.")), *summed_up(3, "The task: x."))
    summary, reply, result, done = fold.messages()
    assert isinstance(summary, UserMessage)
    [part] = summary.parts
    assert part == Text(f"{SUMMED_UP}\n```\nThe task: x.\n```")
    assert isinstance(reply, AssistantMessage)
    assert result == ToolMessage("c2", "output of c2", images=(PICTURE,))
    assert done == AssistantMessage((Text("Done."),))


def test_a_summary_before_a_prompt_is_one_message_with_it():
    fold = history(*turn("t1", *answer("One.")), *turn("t2", *answer("Two.")), *summed_up(2))
    first, second = fold.messages()
    assert isinstance(first, UserMessage)
    assert first.parts[1] == Text("prompt of t2")
    assert second == AssistantMessage((Text("Two."),))
    fold.apply(TurnUndone("t2"))
    assert fold.messages() == [UserMessage(first.parts[:1])]


def test_of_prompts_that_are_sent_as_one_message_each_can_be_summed_up_by_itself():
    happened = [*turn("t1", ends=StopReason.CANCELLED), *turn("t2", *answer("Two."))]
    assert len(history(*happened).messages()) == 2
    assert len(history(*happened).entries()) == 3
    first, last = history(*happened, *summed_up(1)).messages()
    assert isinstance(first, UserMessage)
    assert first.parts[1:] == (Text(UNANSWERED), Text("prompt of t2"))
    assert last == AssistantMessage((Text("Two."),))


def test_what_is_to_be_told_of_a_turns_end_outlives_its_summary():
    fold = history(*turn("t1", *answer("One."), ends=StopReason.CANCELLED), TurnStarted("t2"), *summed_up(2))
    fold.apply(said("two"))
    [message] = fold.messages()
    assert isinstance(message, UserMessage)
    assert message.parts[1:] == (Text(INTERRUPTED), Text("two"))


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_a_compaction_that_did_not_come_to_its_end_changes_nothing(status):
    first = turn("t1", *answer("One."))
    fold = history(*first, CompactionStarted("k", "full"), CompactionEnded("k", status))
    assert fold.messages() == history(*first).messages()


def test_a_count_of_tokens_covers_its_reply_and_what_was_before():
    fold = history(TurnStarted("t1"), said("one"), CallOpened("c1", "read", ToolKind.READ, "Read"))
    for event in (UsageReported(100, 20), CallRequested("c1", "read", "{}"), *round_of("c1")[2:]):
        fold.apply(event)
    assert fold.measured() == (120, [ToolMessage("c1", "output of c1", images=(PICTURE,))])
    fold.apply(TurnEnded("t1", StopReason.END_TURN))
    fold.apply(TurnStarted("t2"))
    fold.apply(said("two"))
    assert fold.measured()[1][1:] == [UserMessage((Text("two"),))]
    fold.apply(OutputsPruned(("c1",)))
    assert fold.measured() == (0, fold.messages())
    fold.apply(UsageReported(50, 0, estimated=True))
    assert fold.measured() == (50, [])


def test_an_unanswered_prompt_is_remarked_on():
    fold = history(*turn("t1", ends=StopReason.CANCELLED), TurnStarted("t2"), said("two"))
    assert fold.messages() == [UserMessage((Text("prompt of t1"), Text(UNANSWERED), Text("two")))]


# --- everything that can happen, cut off anywhere


class Chance:
    """A random session as the loop would write it, with everything that takes something out of the history."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[Event] = []
        self.fold = History()
        self.turns: list[str] = []
        self.calls: list[str] = []
        for number in range(1, self.random.randint(4, 9)):
            self.turn(f"t{number}")

    def happen(self, *happened: Event) -> None:
        for event in happened:
            self.events.append(event)
            self.fold.apply(event)

    def turn(self, id: str) -> None:
        self.happen(TurnStarted(id))
        if self.random.random() < 0.3:
            self.command(id)
            return
        self.turns.append(id)
        self.happen(said(f"prompt of {id}"))
        for number in range(self.random.randint(0, 4)):
            self.reshape(id, number)
            self.round(id, number)
        ends = self.random.choice([*StopReason, None])
        if ends is StopReason.END_TURN:
            self.happen(TextDelta(f"{id}-last", "Well, "), TextDelta(f"{id}-last", "done."), ReplyEnded())
        self.happen(TurnEnded(id, ends, rejected=ends is None and self.random.random() < 0.5))

    def round(self, id: str, number: int) -> None:
        calls = [f"{id}-c{number}-{call}" for call in range(self.random.randint(1, 3))]
        self.happen(TextDelta(f"{id}-m{number}", "Let me "), TextDelta(f"{id}-m{number}", "look."))
        for call in calls:
            self.happen(CallOpened(call, "read", ToolKind.READ, "Read"), events.ArgumentsGrew(call, "{}"))
            self.happen(events.CallPreviewed(call, "Read a", display=(TextBlock("a"),)))
        self.happen(UsageReported(100, 10))
        self.happen(*(CallRequested(call, "read", "{}") for call in calls))
        settled = self.random.sample(calls, len(calls))
        self.happen(*(CallSettled(call, ToolResult(ok=True, text=f"output of {call}")) for call in settled))
        self.happen(events.Notice("info", "by the way"), ReplyEnded())
        self.calls += calls

    def reshape(self, id: str, number: int) -> None:
        """What may come before a request: room is made."""
        messages = self.fold.entries()
        cuts = [n for n, message in enumerate(messages) if n and not isinstance(message, ToolMessage)]
        match self.random.choice(["nothing", "nothing", "prune", "sum up"]):
            case "prune" if self.calls:
                self.happen(OutputsPruned(tuple(self.random.sample(self.calls, 1))))
            case "sum up" if cuts:
                started = CompactionStarted(f"{id}-k{number}", "full")
                cut = self.random.choice(cuts)
                self.happen(started, CompactionEnded(started.compaction_id, "completed", "What was.", cut))
            case _:
                pass

    def command(self, id: str) -> None:
        self.happen(events.CommandGiven(f"{id}-m1", (SentText("/x"),)))
        match self.random.choice(["undo", "undo", "clear", "compact"]):
            case "undo" if self.turns:
                self.happen(TurnUndone(self.turns.pop()))
            case "clear":
                self.happen(HistoryCleared())
            case _:
                self.reshape(id, 0)
        self.happen(events.CrowSaid(f"{id}-m2", "Done."), TurnEnded(id, StopReason.END_TURN))


seeds = pytest.mark.parametrize(
    "seed", [*range(25), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(25, 60))]
)


@seeds
@pytest.mark.rule("R75")
def test_wherever_a_journal_is_cut_the_next_prompt_gets_a_history_that_any_provider_takes(seed):
    happened = Chance(seed).events
    fold = History()
    for length, event in enumerate(happened):
        fold.apply(event)
        assert_strict(fold.messages())
        mended = history(*happened[: length + 1])
        mended.apply(TurnEnded("t9", None, "it was killed"))
        assert_strict(mended.messages())
        mended.apply(TurnStarted("next"))
        mended.apply(said("Go on."))
        assert_strict(mended.messages())
        last = mended.messages()[-1]
        assert isinstance(last, UserMessage)
        assert last.parts[-1] == Text("Go on.")


@seeds
def test_what_is_stored_of_a_journal_gives_the_same_history(seed):
    live = Chance(seed)
    pending = Pending(key=1, epoch=1, last_seq=0)
    pending.take([event for event in live.events if event.stored], time=0)
    assert len(pending.rows) < len(live.events)
    replayed = history(*events_of(pending.rows, "s", pending.contents().__getitem__))
    assert replayed.messages() == live.fold.messages()
    assert replayed.measured() == live.fold.measured()
    assert replayed.essentials.prompts == live.fold.essentials.prompts
