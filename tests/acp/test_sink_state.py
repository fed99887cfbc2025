"""What a client is told besides text: waits, compactions, usage, what can be chosen; and a replay at its pace."""

import ast
import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from crow import events
from crow.acp import wire
from crow.acp.shown_calls import MOMENT
from crow.acp.sink import UpdateSink
from crow.events import (
    CallOpened,
    CallPreviewed,
    CallProgressed,
    CallRequested,
    CallSettled,
    Choice,
    CompactionEnded,
    CompactionStarted,
    FileWritten,
    OptionsChanged,
    PlanChanged,
    PlanEntry,
    SessionOption,
    StillWaiting,
    TextDelta,
    TurnStarted,
    UsageReported,
)
from crow.results import DiffBlock, HiddenOutput, TerminalBlock, TextBlock, ToolKind, ToolResult
from crow.session.replay import PastCall, PastItem, PastMessage, PastPrompt, PastRemark
from crow.store.base import SessionEntry

MODE = SessionOption("mode", "Mode", "", "plan", (Choice("ask", "Ask"), Choice("plan", "Plan", "Only looks.")))
MODEL = SessionOption(
    "model",
    "Model",
    "",
    "a/1",
    (Choice("a/1", "1", group="a"), Choice("b/1", "1", group="b"), Choice("a/2", "2", group="a")),
)


class Client:
    """A connection that keeps what it is given, as JSON; it may have no room."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.has_room = True
        self.waited = 0

    async def room(self) -> None:
        self.waited += 1
        self.has_room = True

    def notify(self, method: str, params: wire.SessionNotification) -> None:
        self.updates.append(msgspec.to_builtins(params.update))


def told(*happened: events.Event, notices: bool = True, compactions: bool = True) -> list[dict[str, Any]]:
    def tell(sink: UpdateSink) -> None:
        for event in happened:
            sink.take(event)

    return with_sink(tell, notices=notices, compactions=compactions).updates


def with_sink(use: Callable[[UpdateSink], Any], *, notices: bool = True, compactions: bool = True) -> Client:
    client = Client()

    async def run() -> None:
        sink = UpdateSink(client, "s", takes_notices=notices, takes_compactions=compactions)  # pyright: ignore[reportArgumentType]
        made = use(sink)
        if made is not None:
            await made

    asyncio.run(run())
    return client


@pytest.mark.rule("R160")
def test_a_wait_is_named_with_its_time():
    wait = StillWaiting("the model", 15)
    title, facts = "Waiting for the model (15 s)", {"crow": {"isWait": True}}
    assert told(wait) == [{"sessionUpdate": "notice", "severity": "info", "title": title, "_meta": facts}]
    assert told(TurnStarted("t1"), wait, notices=False) == []


def test_a_wait_of_a_call_that_shows_nothing_is_named_in_it_for_a_client_without_notices():
    opened, wait = CallOpened("c1", "docs", ToolKind.OTHER, "docs: look"), StillWaiting("“docs: look”", 15, "c1")
    _, update = told(TurnStarted("t1"), opened, CallRequested("c1", "docs", "{}"), wait, notices=False)
    text = "Waiting for “docs: look” (15 s)…"
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    assert update == {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "content": content}
    shows = CallProgressed("c1", (TextBlock("half"),))
    assert len(told(opened, CallRequested("c1", "docs", "{}"), shows, wait, notices=False)) == 2


@pytest.mark.rule("R158", "R159")
def test_a_compaction_begins_and_ends_under_its_id():
    started = CompactionStarted("k1", "the window is nearly full")
    assert told(started, CompactionEnded("k1", "completed", "What was done", 4)) == [
        {"sessionUpdate": "compaction_update", "compactionId": "k1", "status": "in_progress"},
        {
            "sessionUpdate": "compaction_update",
            "compactionId": "k1",
            "status": "completed",
            "summary": [{"type": "text", "text": "What was done"}],
        },
    ]
    [failed] = told(CompactionEnded("k1", "failed", error="no"))
    assert failed == {"sessionUpdate": "compaction_update", "compactionId": "k1", "status": "failed", "error": "no"}
    [cancelled] = told(CompactionEnded("k1", "cancelled", summary="half"))
    assert "summary" not in cancelled


@pytest.mark.rule("R158")
def test_a_client_that_knows_no_compactions_is_told_in_words():
    updates = told(
        TurnStarted("t1"), CompactionStarted("k1", "full"), CompactionEnded("k1", "completed"), compactions=False
    )
    assert [update["sessionUpdate"] for update in updates] == ["notice", "notice"]


@pytest.mark.rule("R144")
def test_the_cost_is_that_of_the_whole_session_and_the_tokens_are_those_of_the_window():
    first = UsageReported(100, 10, context_window=1000, cost=0.25, currency="USD")
    second = UsageReported(200, 20, context_window=1000, cost=0.5, currency="USD")

    def loaded(sink: UpdateSink) -> None:
        sink.remember([first])
        sink.send_usage()
        sink.take(second)

    before, after = with_sink(loaded).updates
    assert (before["used"], before["size"], before["cost"]) == (110, 1000, {"amount": 0.25, "currency": "USD"})
    assert (after["used"], after["cost"]["amount"]) == (220, 0.75)


@pytest.mark.rule("R144")
def test_without_a_window_or_a_price_nothing_is_made_up():
    assert told(UsageReported(1, 1, cost=1.0, currency="USD")) == []
    [update] = told(UsageReported(1, 1, context_window=10))
    assert "cost" not in update


@pytest.mark.rule("R136", "R137", "R140")
def test_options_are_told_whole_in_groups_and_the_mode_only_if_it_is_news():
    def change(sink: UpdateSink) -> None:
        sink.know((msgspec.structs.replace(MODE, value="ask"),))
        sink.take(OptionsChanged((MODE, MODEL)))
        sink.take(OptionsChanged((MODE, MODEL)))

    options, mode, again = with_sink(change).updates
    assert mode == {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
    assert again == options
    assert options["configOptions"][0]["options"] == [
        {"value": "ask", "name": "Ask"},
        {"value": "plan", "name": "Plan", "description": "Only looks."},
    ]
    assert options["configOptions"][1]["options"] == [
        {"group": "a", "name": "a", "options": [{"value": "a/1", "name": "1"}, {"value": "a/2", "name": "2"}]},
        {"group": "b", "name": "b", "options": [{"value": "b/1", "name": "1"}]},
    ]


def test_what_is_only_for_the_store_is_not_told():
    assert told(FileWritten("c1", "/a.py", "digest")) == []


# --- a replay


def replay(*items: PastItem, compactions: bool = True) -> list[dict[str, Any]]:
    return with_sink(lambda sink: sink.replay(items), compactions=compactions).updates


def past_call(result: ToolResult | None) -> PastCall:
    return PastCall("c1", "terminal", ToolKind.EXECUTE, "`ls`", (), "{}", (), result)


@pytest.mark.rule("R44", "R159")
def test_a_compaction_is_replayed_once_and_in_words_to_those_who_know_none():
    ended = CompactionEnded("k1", "completed", "What was done", 4)
    [update] = replay(ended)
    assert update["status"] == "completed"
    [update] = replay(ended, compactions=False)
    assert update["content"]["text"] == "> The model continues with a summary of the conversation so far.\n\n"


@pytest.mark.rule("R43")
def test_a_terminal_is_never_replayed():
    _, call = replay(past_call(ToolResult(True, "", "exit 0", (TerminalBlock("t"), HiddenOutput("out\nexit 0")))))
    assert [block["content"]["text"] for block in call["content"]] == ["```text\nout\nexit 0\n```"]
    _, call = replay(past_call(ToolResult(True, "", "exit 0", (TerminalBlock("t"),))))
    assert [block["content"]["text"] for block in call["content"]] == ["exit 0"]


@pytest.mark.rule("R40")
def test_long_outputs_are_cut_and_say_so_and_diffs_are_not():
    long = "x" * 100_000
    _, call = replay(past_call(ToolResult(True, "", display=(TextBlock(long), DiffBlock("/a", "add", "", long)))))
    output, diff = call["content"]
    assert 64 * 1024 < len(output["content"]["text"]) < 65 * 1024 + 100
    assert "100,000 characters" in output["content"]["text"]
    assert (diff["type"], diff["newText"]) == ("diff", long)


@pytest.mark.rule("R42")
def test_an_open_call_stays_open_for_a_client_that_joins_and_ends_for_it_too():
    """What was cut off has an end before it is replayed: see `crow.session.recovery`."""

    async def join(sink: UpdateSink) -> None:
        await sink.replay([past_call(None), replace(past_call(None), call_id="c2", is_started=True)], in_turn=True)
        for call_id in ("c1", "c2"):
            sink.take(CallSettled(call_id, ToolResult(True, "done")))

    updates = with_sink(join).updates
    assert [(update["toolCallId"], update["status"]) for update in updates] == [
        ("c1", "pending"),
        ("c2", "in_progress"),
        ("c1", "completed"),
        ("c2", "completed"),
    ]


@pytest.mark.rule("R40")
def test_a_call_is_replayed_as_a_call_and_as_an_update_that_has_its_content():
    """Emacs' agent-shell shows content that comes with an update, and no other."""
    call, update = replay(past_call(ToolResult(True, "", "2 lines", (TextBlock("one"),), brief="2 lines")))
    assert (call["sessionUpdate"], update["sessionUpdate"]) == ("tool_call", "tool_call_update")
    assert call["title"].endswith(" · 2 lines")
    assert update["content"] == [{"type": "content", "content": {"type": "text", "text": "```text\none\n```"}}]


@pytest.mark.rule("R40")
def test_a_message_that_is_too_long_for_a_line_comes_in_parts_of_one_message():
    text = "é" * (2 * 2**20 + 5)
    updates = replay(PastMessage("m1", text))
    assert [len(update["content"]["text"]) for update in updates] == [2**20, 2**20, 5]
    assert "".join(update["content"]["text"] for update in updates) == text


@pytest.mark.rule("R12")
def test_a_replay_waits_for_a_client_that_has_no_room():
    client = Client()

    async def run() -> None:
        sink = UpdateSink(client, "s", takes_notices=True)  # pyright: ignore[reportArgumentType]
        client.has_room = False
        await sink.replay([PastMessage("m1", "a"), PastMessage("m2", "b")])

    asyncio.run(run())
    assert (client.waited, len(client.updates)) == (1, 2)


@pytest.mark.rule("R12")
def test_others_get_their_turn_during_a_long_replay():
    client = Client()

    async def run() -> int:
        sink = UpdateSink(client, "s", takes_notices=True)  # pyright: ignore[reportArgumentType]
        replaying = asyncio.create_task(sink.replay([PastMessage(f"m{number}", "a") for number in range(1000)]))
        turns = 0
        while not replaying.done():
            turns += 1
            await asyncio.sleep(0)
        return turns

    assert asyncio.run(run()) > 20


# --- calls: the first title is often the last that a client shows


OPENED = CallOpened("c1", "write", ToolKind.EDIT, "Write")


def kinds_and_titles(updates: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(update["sessionUpdate"], update.get("title")) for update in updates]


def test_a_call_is_first_shown_with_its_title():
    updates = told(OPENED, CallPreviewed("c1", "Write a.py"), CallRequested("c1", "write", "{}"))
    assert kinds_and_titles(updates) == [("tool_call", "Write a.py"), ("tool_call_update", None)]


def test_or_once_its_arguments_are_complete():
    [update] = told(OPENED, CallRequested("c1", "write", '{"path": 1}'))
    assert (update["title"], update["rawInput"]) == ("Write", {"path": 1})


def test_or_before_whatever_comes_next():
    updates = told(OPENED, TextDelta("m1", "Hm."))
    assert [update["sessionUpdate"] for update in updates] == ["tool_call", "agent_message_chunk"]


def test_calls_are_shown_in_the_order_in_which_they_began():
    second = CallOpened("c2", "write", ToolKind.EDIT, "Write")
    titles = [CallPreviewed("c2", "Write b.py"), CallPreviewed("c1", "Write a.py")]
    updates = told(OPENED, second, *titles)
    assert kinds_and_titles(updates) == [("tool_call", "Write a.py"), ("tool_call", "Write b.py")]
    updates = told(OPENED, second, CallRequested("c2", "write", "{}"))
    assert [update["toolCallId"] for update in updates] == ["c1", "c2"]


def test_a_count_of_tokens_does_not_show_a_call_before_its_title_is_known():
    """It ends the reply, and the last call of a reply often gets its title after that."""
    updates = told(OPENED, UsageReported(1, 2, context_window=9), CallPreviewed("c1", "Write a.py"))
    calls = [update for update in updates if "toolCallId" in update]
    assert kinds_and_titles(calls) == [("tool_call", "Write a.py")]


def test_or_after_a_moment_however_slow_the_model_is():
    async def wait(sink: UpdateSink) -> None:
        sink.take(OPENED)
        await asyncio.sleep(2 * MOMENT)
        sink.take(CallPreviewed("c1", "Write a.py"))

    assert kinds_and_titles(with_sink(wait).updates) == [("tool_call", "Write"), ("tool_call_update", "Write a.py")]


@pytest.mark.parametrize(
    ("title", "brief", "told_title"),
    [
        ("Edit a.py", "+3 -1", "Edit a.py +3 -1"),
        ("npm test", "exit 3", "npm test · exit 3"),
        ("x" * 1000, "exit 3", "x" * 200 + "… · exit 3"),
    ],
)
def test_the_last_title_says_what_came_of_it(title, brief, told_title):
    *_, last = told(CallOpened("c1", "t", ToolKind.OTHER, title), CallSettled("c1", ToolResult(True, "", brief=brief)))
    assert last["title"] == told_title


def test_a_quiet_call_is_no_call_unless_it_fails():
    opened = CallOpened("c1", "plan", ToolKind.THINK, "Plan", quiet=True)
    plan = PlanChanged((PlanEntry("look"),))
    asked = CallRequested("c1", "plan", "{}")
    shown = told(opened, plan, asked, plan, CallSettled("c1", ToolResult(True, "")))
    assert [update["sessionUpdate"] for update in shown] == ["plan"]  # once, although it is told twice
    failed = told(opened, asked, CallSettled("c1", ToolResult.failed("no")))
    assert kinds_and_titles(failed) == [("tool_call", "Plan"), ("tool_call_update", None)]
    assert told(opened, CallSettled("c1", ToolResult.failed("cut off"))) == []


def test_a_message_after_another_begins_a_paragraph():
    """Some clients join all text of a turn, whatever stood between it."""
    call = [CallOpened("c1", "read", ToolKind.READ, "Read"), CallSettled("c1", ToolResult(True, ""))]
    first, second, third = TextDelta("m1", "I look."), TextDelta("m2", "Done.\n"), TextDelta("m3", "Bye.")
    updates = told(TurnStarted("t1"), first, *call, second, third, TextDelta("m3", " Now."), TurnStarted("t2"))
    said = [update["content"]["text"] for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(said) == "I look.\n\nDone.\n\nBye. Now."


def test_a_session_that_was_loaded_gets_its_title():
    entry = SessionEntry("s", "/work", (), "Mend the parser", 0, 1000)
    [update] = with_sink(lambda sink: sink.send_title(entry)).updates
    assert update == {
        "sessionUpdate": "session_info_update",
        "title": "Mend the parser",
        "updatedAt": "1970-01-01T00:00:01.000Z",
    }
    assert with_sink(lambda sink: sink.send_title(SessionEntry("s", "/work", (), "", 0, 0))).updates == []


@pytest.mark.rule("R161")
def test_a_remark_is_replayed_as_a_message_and_never_as_a_notice():
    [update] = replay(PastRemark("notice-past-1", "The turn failed:\nno"))
    assert (update["sessionUpdate"], update["content"]["text"]) == (
        "agent_message_chunk",
        "> The turn failed:\n> no\n\n",
    )


def test_so_does_one_that_is_replayed():
    first, second = PastMessage("m1", "I look."), PastMessage("m2", "Done.")
    updates = replay(PastPrompt("p1", ()), first, second, PastRemark("n1", "Cancelled."), PastPrompt("p2", ()), first)
    said = "".join(update["content"]["text"] for update in updates)
    assert said == "I look.\n\nDone.\n\n> Cancelled.\n\nI look."


FOLDS = ("turn/history.py", "session/replay.py", "acp/sink.py", "acp/shown_calls.py")
READ_ELSEWHERE = {
    *(events.FileBackedUp, events.TurnUndone, events.OptionChosen, events.BudgetRaised, events.SteeringReceived),
    *(events.Retrying, events.SteeringLeftOver),
}
"""By an undo, by what is restored, by recovery; and as the notices that they are."""


def test_every_event_is_read_by_a_fold_or_known_to_be_read_elsewhere() -> None:
    source = Path(events.__file__).parent
    nodes = [node for name in FOLDS for node in ast.walk(ast.parse((source / name).read_text()))]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert {kind for kind in events.KINDS if kind.__name__ not in read} <= READ_ELSEWHERE
