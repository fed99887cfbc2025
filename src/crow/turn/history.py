"""Folds the journal into the messages that the model is sent: a list that any provider accepts, whatever was cut off,
undone or summed up.

Whatever has happened so far (a reply cut in the middle, a call that never ended, a turn that was cancelled, taken back
or summed up), the messages keep their shape: every call has one result directly after it, and the person's messages
never stand side by side.

Messages are kept turn by turn and joined when they are asked for, so that a turn can be taken out again: also one
that a summary stands for, since the summary keeps what it replaced.
"""

import msgspec

from crow import events
from crow.messages import (
    AssistantMessage,
    Message,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crow.turn.message_building import (
    Essentials,
    PartialReply,
    TurnMessages,
    grouped,
    joined,
    pruned,
    simplified,
    without_media,
    without_thoughts_of,
)
from crow.visible import fence

INTERRUPTED = "[The user interrupted the reply above.]"
FAILED = "[The reply above was cut off by an error.]"
CUT_OFF = (
    "[The connection broke off, and with it your reply above. Go on from where it ends, without repeating any of it. "
    "A call that you had begun to write is lost: make it again.]"
)
UNANSWERED = "[There was no reply to the message above.]"
TAKEN_BACK = "[The user took back your last turn and its changes to files. Read a file again before you rely on it.]"
GO_ON = "[Go on.]"
NO_PROMPT = "[What was said before is not here.]"
SUMMED_UP = (
    "[The conversation up to here became too long and was replaced by this summary. It was written by Crow, not by the "
    "user; the work goes on from where it ends.]"
)
SUMMARY = "summary"
"""The id of the messages that a summary stands for; a turn has its own."""


class _Measured(msgspec.Struct):
    """A count of tokens that covers everything before `turn`, and so many of the turn's messages."""

    tokens: int
    turn: TurnMessages
    messages: int


class History:
    """Fed with every event of the journal, in order; asked for the messages before each request."""

    def __init__(self) -> None:
        self.essentials = Essentials()
        self.prompt: events.PromptTold | None = None
        """What the system prompt says in this conversation; None until it has been sent."""
        self._turns: list[TurnMessages] = []
        self._reply: PartialReply | None = None
        self._measured: _Measured | None = None
        self.refused_thoughts = False
        """Whether a provider has once refused the thoughts in it."""
        self._thoughtless: set[str] = set()
        """Models that take none of their thoughts back, as `provider/model`."""

    def apply(self, event: events.Event) -> None:
        match event:
            case events.TextDelta():
                self._partial().say(event.message_id, event.text)
            case events.ThoughtDelta():
                self._partial().think(event)
            case events.ThoughtSealed():
                self._partial().seal(event)
            case events.ProviderDataKept():
                self._partial().keep(event)
            case events.CallOpened(own=False):
                self._partial().open_call(event.call_id)
            case events.CallRequested(own=False):
                self._partial().request_call(ToolCall(event.call_id, event.tool, event.arguments))
            case events.CallSettled():
                self._settle(event)
            case events.ReplyEnded() | events.ReplyCut():
                self._end_reply(event)
            case events.UsageReported():
                self._measure(event)
            case _:
                self._apply_to_turns(event)

    def _settle(self, event: events.CallSettled) -> None:
        if self._reply is not None:
            self._reply.settle(event.call_id, event.result)

    def _tell(self, event: events.ModeTold | events.PromptTold) -> None:
        text = event.text if isinstance(event, events.ModeTold) else event.news
        if text:
            self._close_reply()
            self._current().add((Text(text),))
        if isinstance(event, events.ModeTold):
            self._current().told_mode = event.mode
        elif text:
            self._current().told_prompt = event
        else:
            self.prompt = event

    def _apply_to_turns(self, event: events.Event) -> None:
        """What changes whole turns, and not the reply that is arriving."""
        match event:
            case events.TurnStarted():
                self._close_reply()
                self._turns.append(TurnMessages(event.turn_id))
                self.essentials.begin(event.turn_id)
            case events.UserSaid():
                self._close_reply()
                self._current().add(event.parts)
                self.essentials.add_prompt(event)
            case events.FileWritten():
                self.essentials.add_file(event.path)
            case events.ModeTold() | events.PromptTold():
                self._tell(event)
            case events.TurnEnded():
                self._end_turn(event)
            case events.HistoryCleared():
                self._clear()
            case events.TurnUndone():
                self._undo(event.turn_id)
            case events.OutputsPruned():
                self._prune(frozenset(event.call_ids))
            case events.HistorySimplified():
                self._simplify(event)
            case events.CompactionEnded():
                if event.status == "completed":
                    self._replace_beginning(event.dropped, event.summary)
            case _:
                pass  # seen by the person only, or of Crow's own doing

    def messages(self, without: events.HistorySimplified | None = None) -> list[Message]:
        """A history that can be sent as it is. `without`: as it would be after this event."""
        entries = self.entries()
        return joined(simplified(entries, without) if without else entries)

    def to_send(self, without: events.HistorySimplified | None = None, *, paused: bool = False) -> list[Message]:
        """The messages of the next request: the last word is not the model's, unless it was `paused` in mid-reply."""
        messages = self.messages(without)
        if messages and isinstance(messages[0], AssistantMessage):
            messages.insert(0, UserMessage((Text(NO_PROMPT),)))
        if messages and isinstance(messages[-1], AssistantMessage) and not paused:
            messages.append(UserMessage((Text(GO_ON),)))  # many models take no beginning of their own reply
        return messages

    def groups(self, without: events.HistorySimplified | None = None) -> list[list[int]]:
        """For each of the messages, the places of the entries that it was made of."""
        entries = self.entries()
        return grouped(simplified(entries, without) if without else entries)

    @property
    def is_replying(self) -> bool:
        """Whether something of a reply has come that has not ended."""
        return self._reply is not None

    @property
    def arrived(self) -> list[Message]:
        """What has come of a reply that has not ended."""
        return self._reply.messages() if self._reply else []

    def entries(self) -> list[Message]:
        """The messages, with prompts that got no answer by themselves: each can be summed up without the next."""
        return self._entries(self._turns)

    @property
    def told_mode(self) -> str:
        """The mode that the model was told of last; empty if nothing in its history tells of one."""
        return next((turn.told_mode for turn in reversed(self._turns) if turn.told_mode), "")

    @property
    def told_prompt(self) -> events.PromptTold | None:
        """What the model was told last of what its system prompt is about."""
        told = (turn.told_prompt for turn in reversed(self._turns) if turn.told_prompt)
        return next(told, self.prompt)

    def measured(self) -> tuple[int, list[Message]]:
        """The tokens of the last count, and the messages that it does not cover: all of them if there is none."""
        last = self._measured
        if last is None:
            return 0, self.messages()
        position = self._turns.index(last.turn)
        later = self._entries(self._turns[position + 1 :])
        return last.tokens, last.turn.messages[last.messages :] + later

    # --- turns and replies

    def _current(self) -> TurnMessages:
        if not self._turns:
            self._turns.append(TurnMessages(""))
        return self._turns[-1]

    def _partial(self) -> PartialReply:
        if self._reply is None:
            self._reply = PartialReply()
        return self._reply

    def _close_reply(self) -> None:
        """What has come of the reply is history now; a call that is still open counts as unfinished."""
        if self._reply is not None:
            replied = self._reply.messages()
            self._current().messages += [without_thoughts_of(message, self._thoughtless) for message in replied]
            self._reply = None

    def _end_reply(self, event: events.ReplyEnded | events.ReplyCut) -> None:
        """A reply that was cut and of which nothing is left is asked for as if there had been none."""
        self._close_reply()
        if isinstance(event, events.ReplyCut) and self._current().answered:
            self._current().add((Text(CUT_OFF),))

    def _end_turn(self, event: events.TurnEnded) -> None:
        self._close_reply()
        turn = self._current()
        if event.stop_reason is StopReason.REFUSAL:
            # What was refused would be refused again: the next prompt starts without it.
            self._take_out(turn.id)
            return
        if event.rejected:
            self._drop_media()
        if not turn.messages:
            return  # a command: the model knows nothing of it
        if event.stop_reason is StopReason.CANCELLED:
            turn.remark = INTERRUPTED if turn.answered else UNANSWERED
        elif event.stop_reason is None:
            turn.remark = FAILED if turn.answered else UNANSWERED

    def _drop_media(self) -> None:
        """A picture that a provider chokes on would make every later request fail as well."""
        for number, turn in enumerate(reversed(self._turns)):
            if number and turn.answered:
                return  # an earlier turn whose pictures were taken
            turn.messages = [without_media(message) for message in turn.messages]

    # --- what leaves the history

    def _clear(self) -> None:
        self._turns = [TurnMessages(turn.id) for turn in self._turns[-1:]]  # the one in which it is cleared goes on
        self._reply = None
        self._measured = None
        self.essentials.forget_all()
        self.prompt = None

    def _undo(self, turn_id: str) -> None:
        self._current().remark = TAKEN_BACK
        self._take_out(turn_id)

    def _take_out(self, turn_id: str) -> None:
        """A summary that tells of the turn goes as well: what it stands for comes back without the turn."""
        while self._turns and self._turns[0].stands_for(turn_id):
            self._put_back(self._turns[0].replaced, self._turns[1:])
        self._turns = [turn for turn in self._turns if turn.id != turn_id]
        self._measured = None
        self.essentials.forget(turn_id)

    def _put_back(self, replaced: list[TurnMessages], left: list[TurnMessages]) -> None:
        """A turn that was replaced in part becomes whole again."""
        ends = {turn.id: turn for turn in left}
        for turn in replaced:
            if turn.id in ends:
                ends[turn.id].messages[:0] = turn.messages
        self._turns = [*(turn for turn in replaced if turn.id not in ends), *left]

    def _prune(self, call_ids: frozenset[str]) -> None:
        for turn in self._turns:
            for index, message in enumerate(turn.messages):
                if isinstance(message, ToolMessage) and message.call_id in call_ids:
                    turn.messages[index] = pruned(message)
        self._measured = None

    def _simplify(self, event: events.HistorySimplified) -> None:
        self._close_reply()
        messages = iter(simplified([message for turn in self._turns for message in turn.messages], event))
        for turn in self._turns:
            turn.messages = [next(messages) for _ in turn.messages]
        self._measured = None
        self.refused_thoughts |= event.thoughts
        self._thoughtless.update({event.model} - {""})

    def _replace_beginning(self, dropped: int, summary: str) -> None:
        """A turn that is dropped in part keeps the rest of its messages, and can still be taken out with them."""
        first = TurnMessages(SUMMARY)
        first.messages = [UserMessage((Text(f"{SUMMED_UP}\n{fence(summary)}"),))]
        left: list[TurnMessages] = []
        for turn in self._turns:
            cut = min(dropped, len(turn.messages))
            dropped -= cut
            if cut:
                first.replaced.append(turn.beginning(cut))
                turn.told_mode = ""  # a summary may have lost it: it is told again
            turn.told_prompt = None
            turn.messages = turn.messages[cut:]
            if turn.messages or turn is self._turns[-1]:
                left.append(turn)
            elif cut:
                first.remark = turn.remark
        self._turns = [first, *left]
        self._measured = None
        self.prompt = None  # with another beginning, nothing speaks against a new one

    # --- tokens

    def _measure(self, event: events.UsageReported) -> None:
        if event.incomplete:
            return
        turn = self._current()
        # A provider's count comes with the reply, which it covers; an estimate is of what there is.
        reply = 0 if event.estimated else 1
        self._measured = _Measured(event.input_tokens + event.output_tokens, turn, len(turn.messages) + reply)

    # --- joining

    def _entries(self, turns: list[TurnMessages]) -> list[Message]:
        """The messages of the turns, with remarks on how they ended, and of the reply that is arriving."""
        entries: list[Message] = []
        remarks: list[str] = []
        for turn in turns:
            if not turn.messages:
                remarks += [turn.remark] if turn.remark and turn.remark not in remarks else []
                continue  # what was to be remarked is still to be
            first, *others = turn.messages
            if remarks and isinstance(first, UserMessage):
                first = UserMessage((*map(Text, remarks), *first.parts))
            entries += [first, *others]
            remarks = [turn.remark] if turn.remark else []
        return entries + (self._reply.messages() if self._reply else [])
