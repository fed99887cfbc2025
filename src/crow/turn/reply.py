"""Makes events of one reply of the model, with ids, usage and retries; and goes on after a reply that broke off."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from crow import events
from crow.errors import ModelUnavailable, ReplyBroken
from crow.events import TurnIds
from crow.messages import ProviderData, StopReason
from crow.model import base as model
from crow.model.base import ReplyRetries, told_cost
from crow.tools.base import Toolbox
from crow.turn.history import History
from crow.turn.waits import Wait
from crow.visible import can_be_seen

LEAST_REPEATED = 8
"""Characters: fewer may come twice in a row by chance."""


class RepeatedText:
    """Takes out of a reply what the person has seen already: some models begin anew a reply that broke off.

    `before` is what was said when it broke off. What begins like it is held back until it differs.
    """

    def __init__(self, before: str) -> None:
        self._before = before if len(before) >= LEAST_REPEATED else ""
        self._repeated = 0
        """So many characters have come again."""

    @property
    def is_all(self) -> bool:
        """Whether nothing has come but the beginning of what was said before."""
        return bool(self._before) and self._repeated > 0

    @property
    def has_begun(self) -> bool:
        return self._repeated > 0

    async def taken_out(self, stream: AsyncGenerator[model.ModelEvent, None]) -> AsyncGenerator[model.ModelEvent, None]:
        is_new = False
        async with aclosing(stream):
            async for event in stream:
                text = ""
                if isinstance(event, model.Said):
                    text = self._new_in(event.text)
                elif isinstance(event, model.CallBegan | model.Done):
                    text = self._held()
                if text:
                    is_new = True
                    yield model.Said(text)
                if not isinstance(event, model.Said) and (is_new or not isinstance(event, model.TextData)):
                    yield event

    def _new_in(self, text: str) -> str:
        known = self._before[self._repeated : self._repeated + len(text)]
        if not text.startswith(known):
            return self._held() + text
        self._repeated += len(known)
        if self._repeated == len(self._before):
            self._before = ""
        return text[len(known) :]

    def _held(self) -> str:
        """What was held back and is no repetition after all."""
        held, self._before = self._before[: self._repeated], ""
        return held


class Reply:
    """Reads a model's stream to its end. `stop_reason` is known afterwards, `spoke` says whether text came that can
    be seen."""

    def __init__(
        self, ids: TurnIds, info: model.ModelInfo, tools: Toolbox, text_id: str = "", before: str = ""
    ) -> None:
        """`text_id` is that of the message that the reply goes on with, where the one before broke off in its text, and
        `before` is that text."""
        self.stop_reason = StopReason.END_TURN
        self.spoke = False
        self.paused = False
        """The provider waits for what it has said so far, to go on from there."""
        self.ended = False
        """The reply arrived whole."""
        self.unfinished: list[model.Usage] = []
        """Counts that do not tell everything: of attempts that ended early, or without what was read."""
        self.usages: list[events.UsageReported] = []
        self._ids = ids
        self._info = info
        self._tools = tools
        self.text_id = text_id
        """The message whose text is arriving; empty while something else is."""
        self._texts = [before]
        self._repeated = RepeatedText(before) if before else None
        self._thought_id = ""
        self._last_text_id = ""
        self._last_thought_id = ""
        """The ids of the last text and the last thought, also after they have ended."""
        self._calls: dict[int, str] = {}

    async def read(
        self, stream: AsyncGenerator[model.ModelEvent, None], wait: Wait
    ) -> AsyncGenerator[events.Event, None]:
        async with aclosing(self._once(stream)) as news:
            async for event in news:
                wait.heard()
                match event:
                    case model.Said():
                        yield self._said(event)
                    case model.Thinking() | model.ThinkingSealed():
                        yield self._thought(event)
                    case model.CallGrew():
                        yield events.ArgumentsGrew(self._calls[event.index], event.fragment, event.anew)
                    case model.CallBegan():
                        yield self._call_began(event)
                    case model.TextData() | model.ThoughtData() | model.CallData():
                        yield self._kept(event)
                    case model.Usage() if event.input_tokens or not self._info.metered:
                        yield self._usage(event)
                    case model.Waiting():
                        wait.rest(event.seconds)
                        yield retry_notice(event)
                    case model.Awaiting():
                        wait.name(event.what)
                    case model.Noticed():
                        yield events.Remark("warning", event.text)
                    case model.Usage() | model.Done():
                        self._note(event)

    def _once(self, stream: AsyncGenerator[model.ModelEvent, None]) -> AsyncGenerator[model.ModelEvent, None]:
        return stream if self._repeated is None else self._repeated.taken_out(stream)

    @property
    def text(self) -> str:
        """All of the message whose text is arriving."""
        return "".join(self._texts)

    @property
    def repeats(self) -> bool:
        """Whether it only begins to say again what was said when the reply before it broke off."""
        return self._repeated is not None and self._repeated.is_all

    def _note(self, event: model.Usage | model.Done) -> None:
        if isinstance(event, model.Done):
            self.stop_reason, self.paused, self.ended = event.stop_reason, event.paused, True
            self.spoke = self.spoke or (self._repeated is not None and self._repeated.has_begun)
        else:
            self.unfinished.append(event)  # nothing can be answered that was not read

    def _said(self, event: model.Said) -> events.Event:
        self.spoke = self.spoke or can_be_seen(event.text)
        self._thought_id = ""
        if not self.text_id:
            self.text_id = self._ids.message()
            self._texts.clear()
        self._last_text_id = self.text_id
        self._texts.append(event.text)
        return events.TextDelta(self.text_id, event.text)

    def _thought(self, event: model.Thinking | model.ThinkingSealed) -> events.Event:
        self.text_id = ""
        if not self._thought_id:
            self._thought_id = self._last_thought_id = self._ids.message()
        message_id, info = self._thought_id, self._info
        if isinstance(event, model.Thinking):
            return events.ThoughtDelta(message_id, event.text, info.provider, info.model, event.field, info.host)
        self._thought_id = ""
        return events.ThoughtSealed(
            message_id, info.provider, event.signature, redacted=event.redacted, model=info.model, host=info.host
        )

    def _kept(self, event: model.TextData | model.ThoughtData | model.CallData) -> events.Event:
        kept = ProviderData(self._info.provider, self._info.model, event.data, self._info.host)
        match event:
            case model.TextData():
                return events.ProviderDataKept(self._last_text_id, kept)
            case model.CallData():
                return events.ProviderDataKept(self._calls[event.index], kept)
            case model.ThoughtData():
                # A thought of which nothing was shown has none to belong to yet, and two have nothing in common.
                thought_id, self._thought_id, self._last_thought_id = self._last_thought_id, "", ""
                return events.ProviderDataKept(thought_id or self._ids.message(), kept, thought=True)

    def _call_began(self, event: model.CallBegan) -> events.Event:
        self.text_id = self._thought_id = ""
        call_id = self._calls[event.index] = self._ids.call()
        tool = self._tools.find(event.name)
        quiet = tool.is_said_in_chat or tool.announced_as is not None
        return events.CallOpened(
            call_id, tool.spec.name, tool.kind, tool.title({}), quiet=quiet, from_text=event.from_text
        )

    def _usage(self, event: model.Usage) -> events.Event:
        cost, currency = told_cost(event, self._info.price)
        usage = events.UsageReported(
            event.input_tokens,
            event.output_tokens,
            event.cached_tokens,
            event.cache_written_tokens,
            self._info.context_window,
            cost=cost,
            currency=currency,
            reasoning_tokens=event.reasoning_tokens,
        )
        self.usages.append(usage)
        return usage


class CutReplies:
    """Lets a turn go on after a reply that broke off: what had come of it stays, and the model is asked for
    the rest.

    The same request sent again would show the person everything twice. So the beginning is a message of its own in the
    history, and behind it the model is asked to go on. Calls whose arguments had begun to come are settled as not run.
    `retries` are shared with the requests: an outage has one budget, whenever in a reply it comes.
    """

    def __init__(self, retry_wait: float, history: History, journal: events.Journal) -> None:
        self.retries = ReplyRetries(retry_wait)
        self._history = history
        self._journal = journal
        self._pause: model.Waiting | None = None
        self._has_news = False
        self.text_id = ""
        """The message that broke off: what comes next goes on with it."""
        self.text = ""
        """What it says so far."""

    def take(self, failure: ModelUnavailable | ReplyBroken, reply: Reply) -> None:
        """Lets the turn go on after this; raises the failure if nothing of the reply had come, as it was tried again by
        then, or if the time for attempts is up."""
        self._has_news = self._history.is_replying
        if not (self._has_news or reply.repeats):
            raise failure
        self._pause = model.Waiting(failure.message, *self.retries.pause_after(failure))
        self.text_id = reply.text_id
        self.text = reply.text if reply.text_id else ""

    def end(self) -> None:
        """A reply has come whole."""
        self.retries.reset()
        self.text_id = self.text = ""

    async def pause(self) -> None:
        """Waits, if a reply has just broken off."""
        if self._pause is None:
            return
        pause, self._pause = self._pause, None
        self._journal.append(retry_notice(pause))
        await asyncio.sleep(pause.seconds)
        if self._has_news:  # else it had only begun to say again what is there
            self._journal.append(events.ReplyCut())


def retry_notice(event: model.Waiting) -> events.Notice:
    when = f"Trying again in {event.seconds:.0f} s" if event.seconds >= 1 else "Trying again at once"
    title = f"{event.reason} {when} (attempt {event.attempt})."
    return events.Retrying("warning", title, seconds=event.seconds)
