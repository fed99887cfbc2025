"""Every kind of event that a session's journal records, the `Journal` protocol, and the ids of turns, messages and
calls.

A session's journal is a sequence of these. The model's history (`crow.turn.history`) and what the person sees
(`crow.acp.translate`) are two folds of it, so neither can know something that the other does not. No protocol
type appears here: a second protocol version is a second translator.

Ids: a turn is `t1`, its messages `t1-m1`, those that were sent into it while it ran `t1-s1`, its tool calls `t1-c1`;
unique in the session and stable on replay. What a subagent does for that call is below `t1-c1_t1`.
"""

import time
from collections.abc import Iterator
from typing import ClassVar, Literal, Protocol

import msgspec

from crow.messages import ProviderData, StopReason, UserPart
from crow.results import DisplayBlock, Location, ToolKind, ToolResult


class Event(msgspec.Struct, frozen=True, tag_field="event"):
    """Base of all events; the tag is the record's type when a journal is stored.

    Whoever reads a journal names the events that it has to do with, and passes over the others.
    """

    stored: ClassVar[bool] = True
    """False for an event that is of use only while it happens."""
    optional: ClassVar[bool] = False
    """A Crow that cannot read such a record may leave it out: neither the model's history nor an undo is built from it,
    but for what only the model or its provider misses or minds."""


# --- what the person sent


class SentText(msgspec.Struct, frozen=True, tag="text", tag_field="sent"):
    text: str


class SentMedia(msgspec.Struct, frozen=True, tag="media", tag_field="sent"):
    kind: Literal["image", "audio"]
    data: str
    mime_type: str
    uri: str = ""

    @property
    def label(self) -> str:
        return self.uri or self.mime_type


class SentResource(msgspec.Struct, frozen=True, tag="resource", tag_field="sent"):
    """Content that came with the prompt, such as the unsaved text of an editor's buffer."""

    uri: str
    text: str | None
    blob: str | None = None
    mime_type: str = ""

    @property
    def label(self) -> str:
        return self.uri or self.mime_type


class SentLink(msgspec.Struct, frozen=True, tag="link", tag_field="sent"):
    """A reference that we have to follow ourselves."""

    uri: str
    name: str
    mime_type: str = ""
    title: str = ""
    description: str = ""
    size: int | None = None

    @property
    def label(self) -> str:
        return self.name


Sent = SentText | SentMedia | SentResource | SentLink


class TurnStarted(Event, frozen=True, tag="turn_started"):
    turn_id: str


class UserSaid(Event, frozen=True, tag="user_said"):
    message_id: str
    sent: tuple[Sent, ...]
    """As it came, for replay."""
    parts: tuple[UserPart, ...]
    """As the model gets it: links read, attachments fenced, what cannot be used named."""


class SteeringReceived(Event, frozen=True, tag="steering_received"):
    """A message was accepted into the running turn. The model has yet to get it: a UserSaid with the same id says that
    it did, a SteeringLeftOver that it will not."""

    optional = True
    message_id: str
    sent: tuple[Sent, ...]


class ModeTold(Event, frozen=True, tag="mode_told"):
    """The model was told of the mode that the session is in. Not shown: the person chose it."""

    optional = True
    mode: str
    text: str
    """Empty if the result of a call has told it."""


class PromptTold(Event, frozen=True, tag="prompt_told"):
    """What the model knows of its surroundings: in the system prompt, which then stays as it is for the whole
    conversation, or as `news` of what has changed since. Not shown."""

    optional = True
    where: str
    """The folders, the system and the date."""
    skills: str
    instructions: str
    news: str = ""
    """What the model is told as a message; empty if it is what the system prompt says."""


# --- what the model does


class TextDelta(Event, frozen=True, tag="text_delta"):
    message_id: str
    text: str


class ThoughtDelta(Event, frozen=True, tag="thought_delta"):
    message_id: str
    text: str
    origin: str
    """The provider."""
    model: str = ""
    field: str = ""
    """See `crow.messages.Thought`, for this and the one before."""
    host: str = ""


class ThoughtSealed(Event, frozen=True, tag="thought_sealed"):
    """The provider's signature over a thought, or (redacted) the opaque thought itself."""

    message_id: str
    origin: str
    signature: str
    redacted: bool = False
    model: str = ""
    host: str = ""


class ProviderDataKept(Event, frozen=True, tag="provider_data_kept"):
    """What the provider wants back with a message, a thought or a call: seen by nobody, sent again with the history."""

    optional = True
    part_id: str
    """Of the message or the call."""
    kept: ProviderData
    thought: bool = False
    """It belongs to a thought, of which nothing may have been shown."""


class CallOpened(Event, frozen=True, tag="call_opened"):
    """The model has named a tool; its arguments are still to come."""

    call_id: str
    tool: str
    kind: ToolKind
    title: str
    own: bool = False
    """Not the session's model does this but Crow itself, such as taking back a change, or a subagent: shown like any
    call, not for the model."""
    quiet: bool = False
    """What it does shows itself, such as a plan: as a call it is shown only if it fails."""
    from_text: bool = False
    """The model wrote it as text, which may be a quotation: it is not believed as a real one is."""


class ArgumentsGrew(Event, frozen=True, tag="arguments_grew"):
    stored = False
    call_id: str
    fragment: str
    anew: bool = False
    """It replaces everything that came before."""


class CallPreviewed(Event, frozen=True, tag="call_previewed"):
    """What can be shown of a call while its arguments arrive; what is empty has not changed since the last one."""

    optional = True
    call_id: str
    title: str
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()


class CallRequested(Event, frozen=True, tag="call_requested"):
    """The arguments are complete: from here on the call belongs to the model's history."""

    call_id: str
    tool: str
    arguments: str
    """What the model gets back as its own."""
    own: bool = False
    """As in CallOpened: not for the model."""
    read_as: str = ""
    """The arguments as they are used, where the model did not write them like that."""

    @property
    def used(self) -> str:
        return self.read_as or self.arguments


class CallDescribed(Event, frozen=True, tag="call_described"):
    """What the call is about to do: shown before anything is done."""

    optional = True
    call_id: str
    kind: ToolKind
    title: str
    locations: tuple[Location, ...] = ()


class PermissionAsked(Event, frozen=True, tag="permission_asked"):
    call_id: str
    reason: str
    display: tuple[DisplayBlock, ...] = ()
    """What the person sees of the action in the question."""


class PermissionAnswered(Event, frozen=True, tag="permission_answered"):
    call_id: str
    allowed: bool
    option: str
    """The id of the option that was chosen; empty if none was."""
    by: str = ""
    """The name of the face at which it was answered; empty if nobody answered."""
    accepted: tuple[int, ...] | None = None
    """The changes that were accepted, counted from 0 over all diffs of the question; None if it is all of them."""


class CallStarted(Event, frozen=True, tag="call_started"):
    call_id: str


class CallProgressed(Event, frozen=True, tag="call_progressed"):
    """What a running call shows by now; each one replaces the last."""

    stored = False
    call_id: str
    display: tuple[DisplayBlock, ...]


class Before(msgspec.Struct, frozen=True):
    """A text file as it was before a change."""

    text: str
    encoding: str = "utf-8"
    mark: bool = False


class OutputGrew(Event, frozen=True, tag="output_grew"):
    """What a command of Crow's own has written since the last such event, escape sequences and all: for clients that
    show it in a terminal. The others are shown it as text, by CallProgressed. Passing: not stored."""

    stored = False
    call_id: str
    data: str
    """Empty in the first one: the command runs."""
    cwd: str = ""
    """The folder that the command runs in, told in the first one."""
    anew: bool = False
    """It replaces everything that came before."""
    takes_input: bool = False
    """The command can be typed into, told in the first one."""


class TerminalSeen(Event, frozen=True, tag="terminal_seen"):
    """What a terminal that one client runs shows by now, for the clients that cannot show it. Passing: not stored."""

    stored = False
    terminal_id: str
    text: str


class FileBackedUp(Event, frozen=True, tag="file_changing"):
    """What a file holds that is about to be written: stored first, so that the change can be taken back."""

    call_id: str
    path: str
    before: Before | None
    """None: there is no such file yet."""
    missing_folders: int = 0
    """Of the folders that it lies in so many are not there yet either, and are made with it."""


class FileWritten(Event, frozen=True, tag="file_written"):
    """What became of it. An undo takes back this text and no other."""

    call_id: str
    path: str
    digest: str
    """Of the text that is there now, see `crow.tools.file_changes.digest_of`."""


class CallSettled(Event, frozen=True, tag="call_settled"):
    """The end of a call, always: done, failed, refused, interrupted."""

    call_id: str
    result: ToolResult
    seconds: float | None = None
    """How long it was performed; None if it was not."""


class BackgroundEnded(Event, frozen=True, tag="background_ended"):
    """A command that a call left running has ended. The model learns of it otherwise."""

    optional = True
    call_id: str
    result: ToolResult
    """What the call shows from now on."""
    seconds: float | None = None
    """How long the command has run."""


class ReplyEnded(Event, frozen=True, tag="reply_ended"):
    """One answer of the model and all its calls are over; what follows belongs to the next."""


class ReplyCut(Event, frozen=True, tag="reply_cut"):
    """The reply before this broke off, and the model is asked to go on from where it ended. Not shown."""

    optional = True


# --- what Crow does by itself


class CommandGiven(Event, frozen=True, tag="command_given"):
    """A slash command that Crow answers itself: shown and replayed as what the person said, not for the model."""

    message_id: str
    sent: tuple[Sent, ...]


class CrowSaid(Event, frozen=True, tag="crow_said"):
    """Crow's own words, whole: shown and replayed as a message, not for the model."""

    message_id: str
    text: str


class HistoryCleared(Event, frozen=True, tag="history_cleared"):
    """The model starts afresh; the person still sees what was."""


class TurnUndone(Event, frozen=True, tag="turn_undone"):
    """The turn no longer belongs to the model's history; its file changes were taken back."""

    turn_id: str


class OutputsPruned(Event, frozen=True, tag="outputs_pruned"):
    """What these calls printed is no longer sent to the model, to make room."""

    call_ids: tuple[str, ...]


class HistorySimplified(Event, frozen=True, tag="history_simplified"):
    """The provider refused the model's history as it was and took it without this: it is no longer sent.

    Positions are those of messages in the history as it was, counted as in CompactionEnded.
    """

    optional = True
    thoughts: bool = False
    """Thoughts, and whatever else only the provider that sent it understands."""
    model: str = ""
    """`provider/model`, if no thought that this model will have is to be sent back either."""
    flattened: tuple[int, ...] = ()
    """These messages are plain text from now on: calls, results and attachments in words."""


class CompactionStarted(Event, frozen=True, tag="compaction_started"):
    compaction_id: str
    reason: str


class CompactionEnded(Event, frozen=True, tag="compaction_ended"):
    """If completed, the summary stands for the first `dropped` messages of the model's history as it was.

    Prompts that got no answer are messages of their own here, although they are sent as one.
    """

    compaction_id: str
    status: Literal["completed", "failed", "cancelled"]
    summary: str = ""
    dropped: int = 0
    error: str = ""


# --- what surrounds it


class Choice(msgspec.Struct, frozen=True):
    value: str
    name: str
    description: str = ""
    group: str = ""
    """Choices of one group are shown together; empty if there are no groups."""


class SessionOption(msgspec.Struct, frozen=True):
    """Something that can be chosen for a session."""

    id: Literal["mode", "model", "thought_level"]
    name: str
    description: str
    value: str
    choices: tuple[Choice, ...]


class OptionChosen(Event, frozen=True, tag="option_chosen"):
    """Stored with the session: the last one of each option counts."""

    option: str
    value: str


class OptionsChanged(Event, frozen=True, tag="options_changed"):
    """All options as they are now. Passing: not stored."""

    stored = False
    options: tuple[SessionOption, ...]


class CommandInfo(msgspec.Struct, frozen=True):
    """A slash command as it is advertised: its name without the slash."""

    name: str
    description: str
    hint: str = ""
    """What may follow the name; empty if nothing does."""


class CommandsChanged(Event, frozen=True, tag="commands_changed"):
    """All slash commands there are now. Passing: not stored."""

    stored = False
    commands: tuple[CommandInfo, ...]
    untrusted: tuple[str, ...] = ()
    """The names of those that a project brings which is not trusted yet: not offered, but they can be given."""


class TitleChanged(Event, frozen=True, tag="title_changed"):
    optional = True
    title: str


class StateChanged(Event, frozen=True, tag="state_changed"):
    """What the session as a whole is doing, and who watches. Passing: not stored."""

    stored = False
    state: Literal["running", "asks", "idle"]
    turn_id: str = ""
    """The turn that runs."""
    by: str = ""
    """The name of the face at which that turn was begun."""
    faces: tuple[str, ...] = ()
    ended: "TurnEnded | None" = None
    """How a turn ended, if that is the change."""
    left_open: str = ""
    """What that turn ended with, if it is for the person to go on."""


class StillWaiting(Event, frozen=True, tag="still_waiting"):
    """A wait that the person may wonder about. Passing: not stored."""

    stored = False
    what: str
    """What is waited for, as the rest of a sentence that begins with "Waiting for"."""
    seconds: int
    call_id: str = ""
    """The call that waits; empty if it is the turn."""


class PlanEntry(msgspec.Struct, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class PlanChanged(Event, frozen=True, tag="plan_changed"):
    optional = True
    entries: tuple[PlanEntry, ...]


class UsageReported(Event, frozen=True, tag="usage_reported"):
    """Tokens of one model reply. `input_tokens` counts cached ones too: it is what fills the window."""

    optional = True
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    context_window: int | None = None
    cost: float | None = None
    """What this reply cost, where the provider says it or prices are known."""
    currency: str = ""
    estimated: bool = False
    """Crow's own count of what the next request will take, such as after a compaction: not a reply's."""
    reasoning_tokens: int = 0
    """Those of the output that were thoughts, where the provider tells them apart."""
    asked_tokens: int = 0
    """Beside an estimate: what a request took that was none of the conversation's own, such as for a summary."""

    incomplete: bool = False
    """The reply brought no count of its own to its end: what the provider did not tell is Crow's estimate."""

    @property
    def paid_tokens(self) -> int:
        """What the provider was sent and has sent."""
        return self.asked_tokens if self.estimated else self.input_tokens + self.output_tokens


BudgetScope = Literal["turn", "session", "day"]


class BudgetRaised(Event, frozen=True, tag="budget_raised"):
    """The person lets the session spend more than its budget: up to this limit, in a currency or in tokens."""

    optional = True
    scope: BudgetScope
    unit: str
    limit: float
    day: str = ""
    """The date, for the budget of a day."""


class Notice(Event, frozen=True, tag="notice"):
    """Something the person should know now, such as what is amiss as a session is opened. Not stored, and never part of
    the model's history."""

    stored = False
    severity: Literal["info", "warning", "error"]
    title: str
    description: str = ""

    @property
    def text(self) -> str:
        """All of it, as paragraphs."""
        return f"{self.title}\n\n{self.description}" if self.description else self.title


class Retrying(Notice, frozen=True, tag="retrying"):
    """A request that failed is about to be sent again, in so many seconds."""

    seconds: float = 0


class Remark(Notice, frozen=True, tag="remark"):
    """A notice of something that happened in the conversation: stored, and told again when the session is loaded."""

    stored = True
    optional = True
    why_stopped: bool = False
    """It says why the turn stops, so that nothing else needs to be said of its end."""


class SteeringLeftOver(Remark, frozen=True, tag="steering_left_over"):
    """A message was accepted into a turn that ended before the model got it. Its words are the description."""

    message_id: str = ""


class TurnEnded(Event, frozen=True, tag="turn_ended"):
    """Either a stop reason or, if the turn failed, what went wrong."""

    turn_id: str
    stop_reason: StopReason | None
    error: str = ""
    rejected: bool = False
    """The provider will not take what it was sent: what may have been at fault is not sent again."""


# --- what a subagent does

SubagentEvent = (
    TurnStarted
    | UserSaid
    | ModeTold
    | TextDelta
    | ThoughtDelta
    | ThoughtSealed
    | ProviderDataKept
    | CallOpened
    | CallRequested
    | CallDescribed
    | CallStarted
    | CallSettled
    | ReplyEnded
    | ReplyCut
    | OutputsPruned
    | HistorySimplified
    | CompactionStarted
    | CompactionEnded
    | UsageReported
    | TurnEnded
)


class SubagentDid(Event, frozen=True, tag="subagent_did"):
    """A step in a subagent's own conversation: kept, and no part of the session's. The call that it works for shows it.

    Its changes to files, and the calls that it has to ask the person about, are events of the session like any other.
    """

    optional = True
    call_id: str
    """The call that it works for."""
    what: SubagentEvent


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


KINDS = tuple(_kinds(Event))
"""Every kind of event there is."""


class Journal(Protocol):
    """The one place where things happen in a session.

    `append` hands the event to every subscriber before it returns, unless an earlier one is still being stored: then
    in order after that one. It is stored within a second. `record` stores it, and everything before it, first: for what
    will be acted on, and for what was done. It raises StorageFailed if that cannot be done (everyone has been told of
    the event all the same). Several events are stored at once. Who is cancelled in `record` has recorded them.

    `has_room` is false while some subscriber cannot keep up; whoever produces many events then waits in `room()`.
    """

    @property
    def has_room(self) -> bool: ...

    def append(self, event: Event) -> None: ...

    async def record(self, *events: Event) -> None: ...

    async def room(self) -> None: ...


class TurnIds:
    """Ids that are unique in the session: the turn's own, and a counter for each kind."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self._messages = 0
        self._calls = 0
        self._compactions = 0

    @staticmethod
    def of_prompt(turn_id: str) -> str:
        """The id of the message that a turn begins with: the first."""
        return f"{turn_id}-m1"

    @staticmethod
    def turn_of(id: str) -> str:
        """The turn that made an id."""
        return id.partition("-")[0]

    def message(self) -> str:
        self._messages += 1
        return f"{self.turn_id}-m{self._messages}"

    def call(self) -> str:
        self._calls += 1
        return f"{self.turn_id}-c{self._calls}"

    def compaction(self) -> str:
        self._compactions += 1
        return f"{self.turn_id}-k{self._compactions}"


# --- when it happens


def milliseconds_now() -> int:
    """Since 1970."""
    return time.time_ns() // 1_000_000


def local_day(milliseconds: int) -> str:
    """The date on the wall, such as `2026-01-31`."""
    return time.strftime("%Y-%m-%d", time.localtime(milliseconds / 1000))
