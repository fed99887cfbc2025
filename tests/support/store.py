"""One of every event, with every field filled; and a handful of short words for the tests of the store."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from crow import events
from crow.events import (
    ArgumentsGrew,
    BackgroundEnded,
    Before,
    CallDescribed,
    CallOpened,
    CallPreviewed,
    CallProgressed,
    CallRequested,
    CallSettled,
    CallStarted,
    Choice,
    CommandGiven,
    CommandInfo,
    CommandsChanged,
    CompactionEnded,
    CompactionStarted,
    CrowSaid,
    Event,
    FileBackedUp,
    FileWritten,
    HistoryCleared,
    HistorySimplified,
    ModeTold,
    Notice,
    OptionChosen,
    OptionsChanged,
    OutputsPruned,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    PlanEntry,
    PromptTold,
    ProviderDataKept,
    ReplyCut,
    ReplyEnded,
    SentLink,
    SentMedia,
    SentResource,
    SentText,
    SessionOption,
    StillWaiting,
    SubagentDid,
    TextDelta,
    ThoughtDelta,
    ThoughtSealed,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    TurnUndone,
    UsageReported,
    UserSaid,
)
from crow.messages import Audio, Image, ProviderData, StopReason, Text
from crow.results import (
    DiffBlock,
    HiddenOutput,
    ImageBlock,
    Location,
    TerminalBlock,
    TextBlock,
    ToolKind,
    ToolResult,
)
from crow.session.persistence import RecentChanges
from crow.store.base import Mark, SessionStore
from crow.store.store import open_store

T = TypeVar("T")

PICTURE = Image("aWNvbg==", "image/png")
SENT = (
    SentText("look at this \u00e4\U0001f600\x00"),
    SentMedia("audio", "c291bmQ=", "audio/wav", "file:///a.wav"),
    SentResource("file:///b.py", "x = 1\n", None, "text/x-python"),
    SentResource("file:///c.bin", None, "AAEC"),
    SentLink("file:///d.md", "d.md", "text/markdown", "D", "about d", 12),
)
BLOCKS = (
    TextBlock("shown"),
    ImageBlock(PICTURE),
    DiffBlock("/p/a.py", "modify", "old", "new"),
    TerminalBlock("term-1"),
    HiddenOutput("printed"),
)
PLACES = (Location("/p/a.py", 3), Location("/p/b.py"))

ONE_OF_EACH: tuple[Event, ...] = (
    events.Remark("warning", "The sound cannot be heard by this model."),
    TurnStarted("t1"),
    events.StateChanged("running", "t1", "an editor", ("an editor", "a terminal")),
    events.TerminalSeen("terminal-1", "as far as it is"),
    events.SteeringReceived("t1-m9", SENT),
    events.SteeringLeftOver("info", "The turn ended before it was read.", "look", message_id="t1-m9"),
    UserSaid("t1-m1", SENT, (Text("look"), PICTURE, Audio("c291bmQ=", "audio/wav"))),
    ThoughtDelta("t1-m2", "hm", "local", "small", "reasoning"),
    ThoughtSealed("t1-m2", "local", "sig", redacted=True),
    ModeTold("plan", "Only look."),
    ReplyCut(),
    PromptTold("Date: today", "", "Be brief.", "The date has changed."),
    events.BudgetRaised("day", "USD", 0.25, "2026-01-31"),
    ProviderDataKept("t1-m2", ProviderData("local", "small", '{"seal": "ä"}'), thought=True),
    TextDelta("t1-m3", "I will"),
    CallOpened("t1-c1", "edit", ToolKind.EDIT, "Edit"),
    ArgumentsGrew("t1-c1", '{"pa'),
    CallPreviewed("t1-c1", "Edit a.py", PLACES, BLOCKS),
    CallRequested("t1-c1", "edit", '{"path": "a.py"}'),
    CallDescribed("t1-c1", ToolKind.EDIT, "Edit a.py", PLACES),
    PermissionAsked("t1-c1", "it changes a file", BLOCKS),
    PermissionAnswered("t1-c1", True, "allow-once"),
    CallStarted("t1-c1"),
    CallProgressed("t1-c1", BLOCKS),
    events.OutputGrew("t1-c1", "\x1b[31mred\n", "/p"),
    StillWaiting("the command", 5, "t1-c1"),
    FileBackedUp("t1-c1", "/p/a.py", Before("old\r\n", "latin-1", mark=True)),
    FileWritten("t1-c1", "/p/a.py", "d1"),
    CallSettled("t1-c1", ToolResult(True, "done", "Edited", BLOCKS, (PICTURE,), "over to you")),
    BackgroundEnded("t1-c1", ToolResult(False, "", "exit 3", (TextBlock("up\nexit 3"),), brief="exit 3")),
    ReplyEnded(),
    PlanChanged((PlanEntry("one", "completed", "high"), PlanEntry("two"))),
    UsageReported(10, 5, 3, 1, 1000, 0.25, "USD"),
    Notice("warning", "Careful", "It is hot"),
    events.Retrying("warning", "Trying again in 2 s.", seconds=2.0),
    CommandGiven("t1-m4", SENT),
    CrowSaid("t1-m5", "Here you are"),
    HistoryCleared(),
    TurnUndone("t1"),
    OutputsPruned(("t1-c1", "t1-c2")),
    HistorySimplified(thoughts=True, model="local/small", flattened=(1, 2)),
    CompactionStarted("k1", "the window is nearly full"),
    CompactionEnded("k1", "completed", "what was", 12, "no error"),
    OptionChosen("mode", "plan"),
    OptionsChanged((SessionOption("mode", "Mode", "How", "ask", (Choice("ask", "Ask", "first", "all"),)),)),
    CommandsChanged((CommandInfo("undo", "Takes back", "how many"),)),
    TitleChanged("A title"),
    SubagentDid("t1-c1", CallSettled("t1-c1_t1-c1", ToolResult(True, "done", "Edited", BLOCKS))),
    TurnEnded("t1", StopReason.END_TURN, "no error", rejected=True),
)


def every_event() -> set[type[Event]]:
    return {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)} - {Event}


def with_store(home: Path, talk: Callable[[SessionStore], Coroutine[Any, Any, T]], **options: Any) -> T:
    """Runs the conversation with a store of its own, which is closed after it."""

    async def run() -> T:
        store = open_store(str(home), **options)
        try:
            return await talk(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def with_two(home: Path, talk: Callable[[SessionStore, SessionStore], Awaitable[T]]) -> T:
    """Two stores on one home: to each of them the other is another process."""
    one, two = open_store(str(home)), open_store(str(home))
    try:
        return await talk(one, two)
    finally:
        await one.close()
        await two.close()


async def say(store: SessionStore, session_id: str, words: str = "hello", *, cwd: str = "/p") -> None:
    """A session with one finished turn."""
    session = await store.create(session_id, cwd, [])
    for event in turn("t1", words):
        session.add(event)
    await session.store_all()
    await session.release()


def turn(turn_id: str, words: str) -> Sequence[Event]:
    return (
        TurnStarted(turn_id),
        UserSaid(f"{turn_id}-m1", (SentText(words),), (Text(words),)),
        TextDelta(f"{turn_id}-m2", words.upper()),
        TurnEnded(turn_id, StopReason.END_TURN),
    )


class MemoryLog(RecentChanges):
    """An event log of which nothing is stored."""

    def mark(self) -> Mark:
        return Mark()

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def release(self) -> None:
        pass
