"""What happens in a session, written once and in order.

A session's journal is a sequence of these. The model's history (`crow.turn.history`) and what the person sees
(`crow.acp.translate`) are two folds of it, so neither can know something that the other does not. No protocol
type appears here: a second protocol version is a second translator.

Ids: a turn is `t1`, its messages `t1-m1`, its tool calls `t1-c1`; unique in the session and stable on replay.
"""

from typing import Literal, Protocol

import msgspec

from crow.messages import StopReason, UserPart
from crow.results import DisplayBlock, Location, ToolKind, ToolResult


class Event(msgspec.Struct, frozen=True, tag_field="event"):
    """Base of all events; the tag is the record's type when a journal is stored."""


# --- what the person sent


class SentText(msgspec.Struct, frozen=True, tag="text", tag_field="sent"):
    text: str


class SentMedia(msgspec.Struct, frozen=True, tag="media", tag_field="sent"):
    kind: Literal["image", "audio"]
    data: str
    mime_type: str
    uri: str = ""


class SentResource(msgspec.Struct, frozen=True, tag="resource", tag_field="sent"):
    """Content that came with the prompt, such as the unsaved text of an editor's buffer."""

    uri: str
    text: str | None
    blob: str | None = None
    mime_type: str = ""


class SentLink(msgspec.Struct, frozen=True, tag="link", tag_field="sent"):
    """A reference that we have to follow ourselves."""

    uri: str
    name: str
    mime_type: str = ""
    title: str = ""
    description: str = ""
    size: int | None = None


Sent = SentText | SentMedia | SentResource | SentLink


class TurnStarted(Event, frozen=True, tag="turn_started"):
    turn_id: str


class UserSaid(Event, frozen=True, tag="user_said"):
    message_id: str
    sent: tuple[Sent, ...]
    """As it came, for replay."""
    parts: tuple[UserPart, ...]
    """As the model gets it: links read, attachments fenced, what cannot be used named."""


# --- what the model does


class TextDelta(Event, frozen=True, tag="text_delta"):
    message_id: str
    text: str


class ThoughtDelta(Event, frozen=True, tag="thought_delta"):
    message_id: str
    text: str
    origin: str


class ThoughtSealed(Event, frozen=True, tag="thought_sealed"):
    """The provider's signature over a thought, or (redacted) the opaque thought itself."""

    message_id: str
    origin: str
    signature: str
    redacted: bool = False


class CallOpened(Event, frozen=True, tag="call_opened"):
    """The model has named a tool; its arguments are still to come."""

    call_id: str
    tool: str
    kind: ToolKind
    title: str


class ArgumentsGrew(Event, frozen=True, tag="arguments_grew"):
    call_id: str
    fragment: str


class CallPreviewed(Event, frozen=True, tag="call_previewed"):
    """What can be shown of a call while its arguments arrive; what is empty has not changed since the last one."""

    call_id: str
    title: str
    locations: tuple[Location, ...] = ()
    display: tuple[DisplayBlock, ...] = ()


class CallRequested(Event, frozen=True, tag="call_requested"):
    """The arguments are complete: from here on the call belongs to the model's history."""

    call_id: str
    tool: str
    arguments: str


class CallDescribed(Event, frozen=True, tag="call_described"):
    """What the call is about to do: shown before anything is done."""

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


class CallStarted(Event, frozen=True, tag="call_started"):
    call_id: str


class CallProgressed(Event, frozen=True, tag="call_progressed"):
    """What a running call shows by now; each one replaces the last."""

    call_id: str
    display: tuple[DisplayBlock, ...]


class CallSettled(Event, frozen=True, tag="call_settled"):
    """The end of a call, always: done, failed, refused, interrupted."""

    call_id: str
    result: ToolResult


class ReplyEnded(Event, frozen=True, tag="reply_ended"):
    """One answer of the model and all its calls are over; what follows belongs to the next."""


# --- what surrounds it


class PlanEntry(msgspec.Struct, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class PlanChanged(Event, frozen=True, tag="plan_changed"):
    entries: tuple[PlanEntry, ...]


class UsageReported(Event, frozen=True, tag="usage_reported"):
    """Tokens of one model reply. `input_tokens` counts cached ones too: it is what fills the window."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    context_window: int | None = None


class Notice(Event, frozen=True, tag="notice"):
    """Something the person should know now; never part of the model's history."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str = ""


class TurnEnded(Event, frozen=True, tag="turn_ended"):
    """Either a stop reason or, if the turn failed, what went wrong."""

    turn_id: str
    stop_reason: StopReason | None
    error: str = ""
    rejected: bool = False
    """The provider will not take what it was sent: what may have been at fault is not sent again."""


class Journal(Protocol):
    """The one place where things happen in a session.

    `append` keeps the event and hands it to every subscriber before it returns. `has_room` is false while some
    subscriber cannot keep up; whoever produces many events then waits in `room()`.
    """

    @property
    def has_room(self) -> bool: ...

    def append(self, event: Event) -> None: ...

    async def room(self) -> None: ...
