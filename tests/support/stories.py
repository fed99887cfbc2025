"""Conversations as the journal has them, for tests of what is sent afterwards: told in a few words, for each vendor's
way of thinking aloud.

    story = Story(VENDORS["claude"])
    story.turn("Read it.", think("Hm."), call("read"), "It is empty.")
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crow import events
from crow.events import (
    CallOpened,
    CallRequested,
    CallSettled,
    CallStarted,
    CompactionEnded,
    CompactionStarted,
    Event,
    ProviderDataKept,
    ReplyEnded,
    SentText,
    SteeringLeftOver,
    SteeringReceived,
    SubagentDid,
    TextDelta,
    ThoughtDelta,
    ThoughtSealed,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.messages import Image, ProviderData, StopReason, Text, ToolMessage, UserPart
from crow.results import ToolKind, ToolResult
from crow.turn.history import History
from tests.support.provider_anthropic import seal

PICTURE = Image(base64.b64encode(b"a picture").decode(), "image/png")
SOUND = events.SentMedia("audio", "c291bmQ=", "audio/wav")


@dataclass(frozen=True)
class Vendor:
    """Who answers, and what comes with thoughts, calls and texts."""

    provider: str
    model: str
    field: str = ""
    seals: bool = False
    thought_data: str = ""
    call_data: str = ""
    text_data: str = ""

    def kept(self, data: str) -> ProviderData:
        return ProviderData(self.provider, self.model, data)


SEALED_ITEM = json.dumps({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"})
DETAILS = json.dumps({"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s", "index": 0}]})
SIGNATURE = json.dumps({"extra_content": {"google": {"thought_signature": "c2ln"}}})

VENDORS = {
    "claude": Vendor("claude", "claude-sonnet-5", seals=True),
    "older claude": Vendor("claude", "claude-haiku-4-5", seals=True),
    "copy of claude": Vendor("claude", "deepseek-v4"),
    "chat": Vendor("chat", "qwen3", field="reasoning_content"),
    "mistral": Vendor("chat", "mistral-medium", field="content"),
    "gateway": Vendor("chat", "anthropic/claude-opus-5", field="reasoning", thought_data=DETAILS),
    "gemini": Vendor("chat", "gemini-3-pro", call_data=SIGNATURE),
    "gpt": Vendor("gpt", "gpt-5.6", thought_data=SEALED_ITEM, text_data='{"phase": "commentary"}'),
}


@dataclass(frozen=True)
class Think:
    text: str = "Hm."
    closed: bool = True
    redacted: bool = False


@dataclass(frozen=True)
class Call:
    name: str = "read"
    arguments: str = '{"path":"a"}'
    result: ToolResult | None = None
    requested: bool = True
    settled: bool = True


Spoken = str | Think | Call


class Story:
    def __init__(self, vendor: Vendor) -> None:
        self.vendor = vendor
        self.events: list[Event] = []
        self.fold = History()
        self._turns = self._messages = self._calls = self._steered = 0
        self._turn = ""

    def happen(self, *happened: Event) -> None:
        for event in happened:
            self.events.append(event)
            self.fold.apply(event)

    # --- turns

    def turn(
        self, prompt: str, *replies: Spoken | tuple[Spoken, ...], ends: StopReason | None = StopReason.END_TURN
    ) -> str:
        """Each reply is a tuple of what it says and calls; a word or call by itself is a reply of its own."""
        self.begin(prompt)
        for reply in replies:
            self.reply(*(reply if isinstance(reply, tuple) else (reply,)))
        return self.end(ends)

    def begin(self, prompt: str, *more: UserPart) -> None:
        self._turns += 1
        self._turn = f"t{self._turns}"
        self._messages = self._calls = self._steered = 0
        parts = (Text(prompt), *more)
        self.happen(TurnStarted(self._turn), UserSaid(self._id(), (SentText(prompt),), parts))

    def accept(self, text: str) -> str:
        """A message into the turn, which the model has yet to get."""
        self._steered += 1
        id = f"{self._turn}-s{self._steered}"
        self.happen(SteeringReceived(id, (SentText(text),)))
        return id

    def steer(self, text: str, *more: UserPart) -> None:
        """A message into the turn, which the model gets now."""
        self.happen(UserSaid(self.accept(text), (SentText(text),), (Text(text), *more)))

    def leave_over(self, id: str) -> None:
        self.happen(SteeringLeftOver("warning", "Left over.", "x", message_id=id))

    def end(self, reason: StopReason | None = StopReason.END_TURN, *, rejected: bool = False) -> str:
        self.happen(TurnEnded(self._turn, reason, "" if reason else "It failed.", rejected=rejected))
        return self._turn

    def reply(self, *spoken: Spoken) -> None:
        calls = [self._speak(part) for part in spoken]
        made = [(id, part) for id, part in zip(calls, spoken, strict=True) if isinstance(part, Call)]
        for id, call in made:
            if call.requested:
                self.happen(CallRequested(id, call.name, call.arguments))
        for id, call in made:
            if call.requested and call.settled:
                self.happen(
                    CallStarted(id), CallSettled(id, call.result or ToolResult(ok=True, text=f"output of {id}"))
                )
        self.happen(ReplyEnded())

    def _id(self) -> str:
        self._messages += 1
        return f"{self._turn}-m{self._messages}"

    def _speak(self, part: Spoken) -> str:
        match part:
            case str():
                id = self._id()
                self.happen(TextDelta(id, part[: len(part) // 2]), TextDelta(id, part[len(part) // 2 :]))
                self._keep(id, self.vendor.text_data)
            case Think():
                id = self._think(part)
            case Call():
                self._calls += 1
                id = f"{self._turn}-c{self._calls}"
                self.happen(CallOpened(id, part.name, ToolKind.READ, "Read"))
                self._keep(id, self.vendor.call_data)
        return id

    def _think(self, thought: Think) -> str:
        vendor, id = self.vendor, self._id()
        if thought.redacted:
            if vendor.seals:
                self.happen(ThoughtSealed(id, vendor.provider, "opaque", redacted=True))
            return id
        self.happen(ThoughtDelta(id, thought.text, vendor.provider, vendor.model, vendor.field))
        if thought.closed and vendor.seals:
            self.happen(ThoughtSealed(id, vendor.provider, seal(thought.text)))
        if thought.closed and vendor.thought_data:
            self.happen(ProviderDataKept(id, vendor.kept(vendor.thought_data), thought=True))
        return id

    def _keep(self, id: str, data: str) -> None:
        if data:
            self.happen(ProviderDataKept(id, self.vendor.kept(data)))

    # --- what is done to a history

    def compact(self, leave: int = 1) -> None:
        """All but the last rounds become a summary."""
        entries = self.fold.entries()
        rounds = [place for place, entry in enumerate(entries) if not isinstance(entry, ToolMessage)]
        dropped = rounds[-leave] if len(rounds) > leave else 0
        self.happen(CompactionStarted("k", "full"), CompactionEnded("k", "completed", "What was.", dropped))

    def subagent(self, call_id: str) -> None:
        """What a subagent does for a call: its own conversation, and a call that the person was asked about."""
        own = f"{call_id}_t1"
        steps: list[Any] = [
            TurnStarted(own),
            UserSaid(f"{own}-m1", (SentText("Look."),), (Text("Look."),)),
            ThoughtDelta(f"{own}-m2", "Hm.", self.vendor.provider, self.vendor.model),
            CallOpened(f"{own}-c1", "read", ToolKind.READ, "Read"),
            CallRequested(f"{own}-c1", "read", "{}"),
        ]
        self.happen(*(SubagentDid(call_id, step) for step in steps))
        self.happen(
            CallOpened(f"{own}-c1", "read", ToolKind.READ, "Read", own=True),
            CallRequested(f"{own}-c1", "read", "{}", own=True),
            CallSettled(f"{own}-c1", ToolResult(ok=True, text="x")),
        )


def _talk(story: Story) -> None:
    story.turn("Hello.", "Hi.")
    story.turn("And?", "Well.")


def _thoughts(story: Story) -> None:
    story.turn("Hello.", (Think(), "Hi."))
    story.turn("And?", (Think(), Think("Hm, hm."), "Well."))


def _round(story: Story) -> None:
    story.turn("Read it.", (Think(), "Let me look.", Call()), (Think("So."), "It is empty."))
    story.turn("Thanks.", (Think(), "Fine."))


def _parallel(story: Story) -> None:
    story.turn("Read all.", (Think(), Call(), Call(arguments=""), Call("search")), (Call(), Call()), "Done.")
    story.turn("More.", (Call(), Call()), (Think(), "Done."))


def _interleaved(story: Story) -> None:
    story.turn("Go.", (Think("a"), Call(), Think("b"), Call(), Think("c")), (Think("d"), "Said.", Think("e"), Call()))


def _late_words(story: Story) -> None:
    story.turn("Go.", (Call(), "I called."), (Think(), Call(), "And again.", Think()), "Done.")


def _many_rounds(story: Story) -> None:
    story.turn("Go.", *[(Think(f"{n}"), Call()) for n in range(6)], *[(Call(),) for _ in range(6)], "Done.")
    story.turn("More.", "Fine.")


def _only_thought(story: Story) -> None:
    story.turn("Hello.", (Think(),))
    story.turn("Hello?", (Think("", redacted=True),))
    story.turn("Hello??", (Think(closed=False),), ends=StopReason.CANCELLED)
    story.turn("Well?", "Here.")


def _ends_in_thought(story: Story) -> None:
    story.turn("Hello.", ("Well,", Think()), ends=StopReason.MAX_TOKENS)
    story.turn("Go on.", (Call(),), (Think(closed=False),), ends=StopReason.CANCELLED)
    story.turn("Go on!", (Think(), "Done."))


def _stopped_in_round(story: Story) -> None:
    story.turn("Read.", (Think(), Call()), (Think(closed=False),), ends=StopReason.CANCELLED)
    story.turn("Again.", (Think(), Call(settled=False)), ends=StopReason.CANCELLED)
    story.turn("Again!", (Think(), "Half", Call(requested=False)), ends=StopReason.CANCELLED)
    story.turn("Now?", (Think(), "Yes."))


def _failed(story: Story) -> None:
    story.turn("One.", ends=None)
    story.turn("Two.", (Think(), "Half a"), ends=None)
    story.turn("Three.", (Call(), Call(requested=False)), ends=None)
    story.turn("Four.", (Think(closed=False),), ends=None)
    story.turn("Five.", "There.")


def _unanswered(story: Story) -> None:
    for number in range(4):
        story.turn(f"Prompt {number}.", ends=StopReason.CANCELLED if number % 2 else None)
    story.turn("At last.", (Think(), "Yes."))


def _undone(story: Story) -> None:
    story.turn("One.", (Think(), Call()), "Done.")
    second = story.turn("Two.", (Think(), Call(), Call()), (Think(closed=False),), ends=StopReason.CANCELLED)
    story.happen(TurnStarted("t8"), events.TurnUndone(second), TurnEnded("t8", StopReason.END_TURN))
    story.turn("Three.", "Done.")


def _compacted(story: Story) -> None:
    story.turn("One.", (Think(), Call()), (Think(), "Done."))
    story.turn("Two.", (Think(), Call()), "Done.")
    story.compact()
    second = story.turn("Three.", (Think(), Call()), (Think(), "Done."))
    story.compact(2)
    story.happen(events.TurnUndone(second))
    story.turn("Four.", "Done.")


def _compacted_in_turn(story: Story) -> None:
    story.begin("A long task.")
    for _ in range(3):
        story.reply(Think(), Call(), Call())
        story.reply(Think(), Call())
        story.compact()
    story.reply(Think(), "Done.")
    story.end()


def _compacted_after_thought(story: Story) -> None:
    story.turn("One.", (Think(), Call()), (Think(),), ends=StopReason.CANCELLED)
    story.compact()
    story.turn("Two.", (Think(),), ends=None)
    story.compact(2)
    story.turn("Three.", "Done.")


def _pruned(story: Story) -> None:
    story.turn("One.", (Think(), Call(), Call()), (Call(),), "Done.")
    story.happen(events.OutputsPruned(("t1-c1", "t1-c3")))
    story.turn("Two.", (Think(), Call()), "Done.")


def _images(story: Story) -> None:
    story.begin("Look.", PICTURE)
    failed = ToolResult(ok=False, text="No.", images=(PICTURE,))
    story.reply(Think(), Call(result=ToolResult(ok=True, text="", images=(PICTURE,))), Call(result=failed))
    story.reply("I see.")
    story.end()
    story.begin("And this?", PICTURE)
    story.end(None, rejected=True)
    story.turn("Without.", (Call(result=ToolResult(ok=True, text="x", images=(PICTURE,))),), ends=StopReason.CANCELLED)
    story.turn("Well?", "Fine.")


def _steered(story: Story) -> None:
    story.begin("Go.")
    story.steer("Before anything was said.")
    story.reply(Think(), Call(), Call())
    story.steer("After the calls.")
    story.reply(Think(), "So be it.", Call())
    story.steer("Again.")
    story.steer("And again.")
    story.reply(Think(), "Done.")
    story.steer("Not yet.")
    story.reply(Think())
    story.steer("Say something.")
    story.reply("Done now.")
    story.end()
    story.turn("Thanks.", (Think(), "Fine."))


def _steered_and_cut_off(story: Story) -> None:
    story.begin("Go.")
    story.reply(Think(), Call(settled=False))
    story.steer("After a call that was interrupted.")
    story.reply(Think(closed=False))
    story.leave_over(story.accept("Too late."))
    story.end(StopReason.CANCELLED)
    story.begin("Again.")
    story.steer("With a picture.", PICTURE)
    story.end(None, rejected=True)
    story.begin("Once more.")
    story.reply(Call(result=ToolResult(ok=False, text="No.", images=(PICTURE,))))
    story.steer("Look at this.", PICTURE)
    story.reply(Think(), "I see", Call(requested=False))
    story.end(StopReason.MAX_TOKENS)
    story.turn("Well?", "Fine.")


def _steered_and_compacted(story: Story) -> None:
    story.begin("A long task.")
    for number in range(3):
        story.reply(Think(), Call(), Call())
        story.steer(f"Note {number}.")
        story.compact(number)
        story.reply(Think(), Call())
    story.reply(Think(), "Done.")
    turn = story.end()
    story.turn("More.", "Fine.")
    story.happen(events.TurnUndone(turn))
    story.turn("Without it.", "Fine.")


def _steered_and_simplified(story: Story) -> None:
    story.begin("Look.", PICTURE)
    story.steer("And here.", PICTURE)
    story.happen(events.HistorySimplified(thoughts=True, flattened=(0,)))
    story.reply(Think(), Call())
    story.steer("Now?", PICTURE)
    story.happen(events.HistorySimplified(thoughts=True, flattened=(1, 2, 3)), events.OutputsPruned(("t1-c1",)))
    story.reply("Yes.")
    story.end()
    story.turn("Thanks.", "Fine.")


def _subagents(story: Story) -> None:
    story.begin("Delegate.")
    story.happen(CallOpened("t1-c1", "task", ToolKind.THINK, "Task"), CallRequested("t1-c1", "task", "{}"))
    story.happen(CallStarted("t1-c1"))
    story.subagent("t1-c1")
    story.happen(CallSettled("t1-c1", ToolResult(ok=True, text="A report.")), ReplyEnded())
    story.reply(Think(), "It says so.")
    story.end()


def _refused(story: Story) -> None:
    story.turn("One.", (Think(), "Fine."))
    story.turn("Bad.", (Think(), Call()), "I will not.", ends=StopReason.REFUSAL)
    story.turn("Two.", (Think(), "Fine."))


def _cleared(story: Story) -> None:
    story.turn("One.", (Think(), Call()), "Fine.")
    story.begin("Two.")
    story.happen(events.HistoryCleared())
    story.reply("After the clearing.")
    story.end()
    story.turn("Three.", (Think(), Call()), "Fine.")


def _commands(story: Story) -> None:
    story.turn("One.", (Think(), "Fine."))
    story.happen(
        TurnStarted("t8"),
        events.CommandGiven("m", (SentText("/undo"),)),
        CallOpened("c9", "undo", ToolKind.EDIT, "Undo", own=True),
        CallSettled("c9", ToolResult(ok=True, text="undone")),
        events.CrowSaid("m", "Taken back."),
        TurnEnded("t8", StopReason.END_TURN),
    )
    story.turn("Two.", (Think(), Call()), "Fine.")


def _odd(story: Story) -> None:
    story.turn(" \n", (" ", Call("files.read(all)", "{broken"), "\n\n"), ("",), " ")
    story.turn("Go.", (Think(" "), Call("", "[1]", ToolResult(ok=False, text=""))), ("\n", Think()))
    story.turn("", (Call(arguments="null"), Call(arguments="\ud800")), "Done.")


def _modes(story: Story) -> None:
    story.begin("Plan.")
    story.happen(events.ModeTold("plan", "You are in plan mode."))
    story.reply(Think(), Call())
    story.happen(events.ModeTold("default", "Plan mode is over."))
    story.reply(Think(), Call())
    story.reply("Done.")
    story.end()


def _simplified(story: Story) -> None:
    story.turn("One.", (Think(), "Look.", Call(), Call()), (Think(), Call()), (Think(), "Done."))
    story.happen(events.HistorySimplified(thoughts=True))
    story.turn("Two.", (Think(), Call()), "Done.")
    places = tuple(range(1, len(story.fold.entries())))
    story.happen(events.HistorySimplified(thoughts=True, flattened=places))
    story.turn("Three.", (Think(), Call()), (Think(), "Done."))
    story.compact(2)


def _went_on(story: Story) -> None:
    """A reply that broke off and was gone on with, as after an overflow in the middle of it."""
    story.turn("Go.", (Think(), "Half a sentence"), (Think(), "and the rest.", Call()), "Done.")


def _switched(story: Story) -> None:
    """Another vendor answers each time, in the middle of a turn too."""
    for vendor in VENDORS.values():
        story.vendor = vendor
        story.turn(f"You, {vendor.model}.", (Think(), "Look.", Call(), Call()), (Think(), "Done."))
    story.begin("All of you.")
    for vendor in VENDORS.values():
        story.vendor = vendor
        story.reply(Think(), Call())
    story.end(StopReason.CANCELLED)
    story.turn("Now?", (Think(), "Yes."))


SHAPES: dict[str, Callable[[Story], None]] = {
    tell.__name__.strip("_").replace("_", " "): tell
    for tell in (
        *(_talk, _thoughts, _round, _parallel, _interleaved, _late_words, _many_rounds, _only_thought),
        *(_ends_in_thought, _stopped_in_round, _failed, _unanswered, _undone, _compacted, _compacted_in_turn),
        *(_compacted_after_thought, _pruned, _images, _subagents, _refused, _cleared, _commands, _odd, _modes),
        *(_simplified, _went_on, _switched),
        *(_steered, _steered_and_cut_off, _steered_and_compacted, _steered_and_simplified),
    )
}
