"""The model's view of a journal: a list of messages that any provider accepts, at every moment.

Whatever has happened so far (a reply cut in the middle, a call that never ended, a turn that was cancelled), the
messages keep their shape: every call has one result directly after it, and the person's messages never stand
side by side.
"""

import msgspec

from crow import events
from crow.messages import (
    AssistantMessage,
    AssistantPart,
    Message,
    StopReason,
    Text,
    Thought,
    ToolCall,
    ToolMessage,
    UserMessage,
    UserPart,
)

UNFINISHED = "No result: the call was interrupted before it ended."
INTERRUPTED = "[The user interrupted the reply above.]"
MEDIA_DROPPED = "[An attachment was here. The request with it was refused, so it is not sent again.]"
FAILED = "[The reply above was cut off by an error.]"
UNANSWERED = "[There was no reply to the message above.]"


class _Reply:
    """A reply while it grows: its parts in order, its deltas not yet joined."""

    def __init__(self) -> None:
        self.parts: dict[str, list[str] | ToolCall | None] = {}
        """By message or call id; None holds the place of a call whose arguments are not complete."""
        self.seals: dict[str, events.ThoughtSealed] = {}
        self.origins: dict[str, str] = {}
        self.results: dict[str, ToolMessage] = {}

    def grow(self, message_id: str, text: str) -> None:
        part = self.parts.setdefault(message_id, [])
        if isinstance(part, list):
            part.append(text)

    def messages(self) -> list[Message]:
        parts = tuple(part for key, value in self.parts.items() if (part := self._part(key, value)) is not None)
        if not parts:
            return []
        reply = AssistantMessage(parts)
        results = [self.results.get(call.id) or ToolMessage(call.id, UNFINISHED, ok=False) for call in reply.calls]
        return [reply, *results]

    def _part(self, key: str, value: list[str] | ToolCall | None) -> AssistantPart | None:
        if value is None or isinstance(value, ToolCall):
            return value
        text = "".join(value)
        if key in self.origins:
            seal = self.seals.get(key)
            if seal is None:
                return Thought(text, self.origins[key]) if text else None
            return Thought(text, seal.origin, seal.signature, redacted=seal.redacted)
        return Text(text) if text else None


class History:
    """Fed with every event of the journal, in order; asked for the messages before each request."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._reply: _Reply | None = None
        self._before_turn: list[Message] = []
        self._remark = ""

    def apply(self, event: events.Event) -> None:
        match event:
            case events.TextDelta():
                self._growing().grow(event.message_id, event.text)
            case events.ThoughtDelta():
                reply = self._growing()
                reply.origins[event.message_id] = event.origin
                reply.grow(event.message_id, event.text)
            case events.ThoughtSealed():
                reply = self._growing()
                reply.origins[event.message_id] = event.origin
                reply.seals[event.message_id] = event
                reply.grow(event.message_id, "")
            case events.CallOpened():
                self._growing().parts[event.call_id] = None
            case events.CallRequested():
                self._growing().parts[event.call_id] = ToolCall(event.call_id, event.tool, event.arguments)
            case events.CallSettled():
                self._settle(event)
            case events.ReplyEnded():
                self._close_reply()
            case events.TurnStarted():
                self._before_turn = list(self._messages)
            case events.UserSaid():
                self._say(event.parts)
            case events.TurnEnded():
                self._end_turn(event)
            case _:
                pass  # seen by the person only

    def messages(self) -> list[Message]:
        """A history that can be sent as it is."""
        return self._messages + (self._reply.messages() if self._reply else [])

    def _growing(self) -> _Reply:
        if self._reply is None:
            self._reply = _Reply()
        return self._reply

    def _close_reply(self) -> None:
        """What has come of the reply is history now; a call that is still open counts as unfinished."""
        if self._reply is not None:
            self._messages += self._reply.messages()
            self._reply = None

    def _settle(self, event: events.CallSettled) -> None:
        result = event.result
        if self._reply is not None and event.call_id in self._reply.parts:
            message = ToolMessage(event.call_id, result.text, ok=result.ok, images=result.images)
            self._reply.results[event.call_id] = message

    def _say(self, parts: tuple[UserPart, ...]) -> None:
        if self._remark:
            parts = (Text(self._remark), *parts)
            self._remark = ""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            self._messages[-1] = msgspec.structs.replace(last, parts=last.parts + parts)
        else:
            self._messages.append(UserMessage(parts))

    def _end_turn(self, event: events.TurnEnded) -> None:
        self._close_reply()
        if event.stop_reason is StopReason.REFUSAL:
            # What was refused would be refused again: the next prompt starts without it.
            self._messages = self._before_turn
        elif event.stop_reason is StopReason.CANCELLED:
            self._remark = INTERRUPTED if self._answered else UNANSWERED
        elif event.stop_reason is None:
            if event.rejected:
                self._drop_media()
            self._remark = FAILED if self._answered else UNANSWERED

    def _drop_media(self) -> None:
        """A picture that a provider chokes on would make every later request fail as well."""
        for index in range(max(0, len(self._before_turn) - 1), len(self._messages)):
            message = self._messages[index]
            if isinstance(message, UserMessage):
                parts = tuple(part if isinstance(part, Text) else Text(MEDIA_DROPPED) for part in message.parts)
                self._messages[index] = UserMessage(parts)

    @property
    def _answered(self) -> bool:
        return bool(self._messages) and not isinstance(self._messages[-1], UserMessage)
