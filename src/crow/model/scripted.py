"""A model that follows a script, in Python or TOML: for tests, demonstrations and trying Crow without a key.

The script is written in Python by tests, or in a TOML file:

    [[reply]]
    when = "hello"                     # optional: only if the last user message contains this
    events = [
        { thought = "A greeting." },
        { text = "Hello there!", pace = 30 },            # streamed by word, 30 ms each
        { call = "read", arguments = { path = "a.py" } },
    ]

An event is exactly one of `text`, `thought`, `call`, `usage`, `wait`, `fail`, `finish`.
"""

import asyncio
import re
import tomllib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import Any, assert_never

import msgspec

from crow.errors import ConfigError, ReplyBroken
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
from crow.model.provider_errors import from_status


class Say(msgspec.Struct, frozen=True):
    text: str
    pace: float = 0
    """Milliseconds a word."""


class Think(msgspec.Struct, frozen=True):
    text: str
    pace: float = 0
    signature: str = ""


class Call(msgspec.Struct, frozen=True):
    """A tool call; `raw` is sent instead of `arguments` and may be no JSON. Streamed in `pieces` fragments."""

    tool: str
    arguments: dict[str, Any] = {}
    raw: str | None = None
    pieces: int = 1

    @property
    def text(self) -> str:
        return self.raw if self.raw is not None else msgspec.json.encode(self.arguments).decode()


class Wait(msgspec.Struct, frozen=True):
    seconds: float


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fails as an HTTP status would; without a status, as a connection that breaks off."""

    status: int | None = None
    message: str = ""
    retry_after: float | None = None
    after_text: str = ""


class Finish(msgspec.Struct, frozen=True):
    """Ends the reply with this reason; without it a reply ends with `end_turn`."""

    reason: StopReason


ScriptEvent = Say | Think | Call | Usage | Wait | Fail | Finish


class ScriptedReply(msgspec.Struct, frozen=True):
    events: tuple[ScriptEvent, ...]
    when: str = ""
    repeat: bool = False
    """Used any number of times, not once."""


def reply(*events: ScriptEvent | str, when: str = "", repeat: bool = False) -> ScriptedReply:
    """`reply("Let me look.", Call("read", {"path": "a.py"}))`: a plain string is text."""
    return ScriptedReply(
        tuple(Say(event) if isinstance(event, str) else event for event in events), when=when, repeat=repeat
    )


# --- the TOML form


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str | None = None
    thought: str | None = None
    call: str | None = None
    usage: Usage | None = None
    wait: float | None = None
    fail: Fail | None = None
    finish: StopReason | None = None
    # details of text, thought and call
    pace: float = 0
    signature: str = ""
    arguments: dict[str, Any] = {}
    raw: str | None = None
    pieces: int = 1

    def event(self) -> ScriptEvent | None:
        """What this entry stands for; None if it is not exactly one thing."""
        found: list[ScriptEvent] = []
        if self.text is not None:
            found.append(Say(self.text, self.pace))
        if self.thought is not None:
            found.append(Think(self.thought, self.pace, self.signature))
        if self.call is not None:
            found.append(Call(self.call, self.arguments, self.raw, self.pieces))
        if self.wait is not None:
            found.append(Wait(self.wait))
        if self.finish is not None:
            found.append(Finish(self.finish))
        found.extend(event for event in (self.usage, self.fail) if event is not None)
        return found[0] if len(found) == 1 else None


class _Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: list[_Entry]
    when: str = ""
    repeat: bool = False


class _Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    reply: list[_Reply]


def load(path: str) -> list[ScriptedReply]:
    try:
        with open(path, "rb") as file:
            written = msgspec.convert(tomllib.load(file), _Script)
    except OSError as error:
        raise ConfigError(
            f"The script {path} cannot be read: {error.strerror}.", remedy="Check `script` in the configuration."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The script {path} is not valid TOML: {error}.") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"The script {path} is wrong: {error}.") from error
    return [_reply(path, number, entry) for number, entry in enumerate(written.reply)]


def _reply(path: str, number: int, written: _Reply) -> ScriptedReply:
    events: list[ScriptEvent] = []
    for position, entry in enumerate(written.events):
        event = entry.event()
        if event is None:
            raise ConfigError(
                f"The script {path} is wrong: reply[{number}].events[{position}] must have exactly one of "
                "text, thought, call, usage, wait, fail, finish."
            )
        events.append(event)
    return ScriptedReply(tuple(events), when=written.when, repeat=written.repeat)


RAN_OUT = "The script has no further reply. Start a new session to play it again, or set up a model: `crow login`."

WORD = re.compile(r"\s*\S+\s*|\s+")


class ScriptedModel:
    """Each request takes the next unused reply that matches it. `requests` keeps what was sent."""

    def __init__(
        self,
        replies: Sequence[ScriptedReply],
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
                file.write(msgspec.json.encode(msgspec.structs.replace(request, retries=None)) + b"\n")

    def _next_reply(self, messages: Sequence[Message]) -> ScriptedReply:
        prompt = _last_prompt(messages)
        for position, reply in enumerate(self._unused):
            if reply.when in prompt:
                if not reply.repeat:
                    del self._unused[position]
                return reply
        return ScriptedReply((Say(RAN_OUT),))

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
