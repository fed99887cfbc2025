"""A model that follows a script: for tests, demonstrations and trying Crow without a key."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import assert_never

import msgspec

from crow.errors import ReplyBroken
from crow.messages import Message, StopReason, Text, UserMessage
from crow.model.base import (
    CallBegan,
    CallGrew,
    Done,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Said,
    Thinking,
    ThinkingSealed,
    Usage,
)
from crow.model.faults import from_status
from crow.model.script import Call, Fail, Finish, Reply, Say, Think, Wait

RAN_OUT = "The script has no further reply. Start a new session to play it again, or set up a model: `crow login`."

WORD = re.compile(r"\s*\S+\s*|\s+")


class ScriptedModel:
    """Each request takes the next unused reply that matches it. `requests` keeps what was sent."""

    def __init__(
        self,
        replies: Sequence[Reply],
        *,
        info: ModelInfo | None = None,
        record: str = "",
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.info = info or ModelInfo(provider="scripted", model="test")
        self.requests: list[ModelRequest] = []
        self._unused = list(replies)
        self._record = record
        self._sleep = sleep

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self._keep(request)
        await self._sleep(0)  # a real model never answers without giving others a turn
        calls = 0
        for event in self._next_reply(request.messages).events:
            match event:
                case Say() | Think():
                    for piece in _spoken(event):
                        yield piece
                        if event.pace:
                            await self._sleep(event.pace / 1000)
                case Call():
                    for piece in _called(event, calls):
                        yield piece
                    calls += 1
                case Usage():
                    yield event
                case Wait():
                    await self._sleep(event.seconds)
                case Fail():
                    if event.after_text:
                        yield Said(event.after_text)
                    raise self._error(event)
                case Finish():
                    yield Done(event.reason)
                    return
                case _:
                    assert_never(event)
        yield Done(StopReason.END_TURN)

    async def close(self) -> None:
        pass

    def _keep(self, request: ModelRequest) -> None:
        # The caller's list of messages goes on growing: what was sent is what it holds now.
        request = msgspec.structs.replace(request, messages=tuple(request.messages))
        self.requests.append(request)
        if self._record:
            with open(self._record, "ab") as file:
                file.write(msgspec.json.encode(request) + b"\n")

    def _next_reply(self, messages: Sequence[Message]) -> Reply:
        prompt = _last_prompt(messages)
        for position, reply in enumerate(self._unused):
            if reply.when in prompt:
                if not reply.repeat:
                    del self._unused[position]
                return reply
        return Reply((Say(RAN_OUT),))

    def _error(self, event: Fail) -> Exception:
        if event.status is None:
            said = event.message or "the connection broke off"
            return ReplyBroken(f"{self.info.provider}: {said}.", provider=self.info.provider, said=said)
        return from_status(self.info.provider, event.status, event.message, retry_after=event.retry_after)


def _last_prompt(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if isinstance(message, UserMessage):
            return "\n".join(part.text for part in message.parts if isinstance(part, Text))
    return ""


def _spoken(event: Say | Think) -> Iterator[ModelEvent]:
    said = Said if isinstance(event, Say) else Thinking
    for word in WORD.findall(event.text):
        yield said(word)
    if isinstance(event, Think) and event.signature:
        yield ThinkingSealed(event.signature)


def _called(event: Call, index: int) -> Iterator[ModelEvent]:
    yield CallBegan(index, event.tool)
    text = event.text
    size = max(1, -(-len(text) // max(1, event.pieces)))
    for start in range(0, len(text), size):
        yield CallGrew(index, text[start : start + size])
