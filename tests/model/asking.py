"""Small helpers: ask a model and look at all that came of it."""

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelError
from crow.messages import Message, Text, ToolSpec, UserMessage
from crow.model import catalog
from crow.model.base import CallBegan, CallGrew, Model, ModelEvent, ModelRequest, Said, Thinking
from tests.support.models import session_model

T = TypeVar("T")

HELLO = (UserMessage((Text("Hello"),)),)

READ = ToolSpec("read", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


def run(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


@dataclass(frozen=True)
class Called:
    """A whole tool call, put together from its pieces."""

    name: str
    arguments: str


@dataclass
class Outcome:
    events: list[Any]
    """Text and thoughts joined, calls put together."""
    error: ModelError | None
    waits: list[float]


def ask(
    model: Model, messages: Sequence[Message] = HELLO, *, system: str = "", tools: Sequence[ToolSpec] = ()
) -> Outcome:
    return run(ask_all(model, ModelRequest(system, messages, tools)))[0]


async def ask_all(model: Model, *requests: ModelRequest) -> list[Outcome]:
    """The requests one after the other, on one connection."""
    outcomes: list[Outcome] = []
    try:
        for request in requests:
            events: list[ModelEvent] = []
            error = None
            try:
                async for event in model.reply(request):
                    events.append(event)  # noqa: PERF401 -- what came before an error counts
            except ModelError as caught:
                error = caught
            outcomes.append(Outcome(joined(events), error, []))
    finally:
        await model.close()
    return outcomes


async def events_of(model: Model) -> list[ModelEvent]:
    """Each event of a reply, as it came."""
    try:
        return [event async for event in model.reply(ModelRequest("", HELLO))]
    finally:
        await model.close()


def ask_with_retries(name: str, providers: dict[str, ProviderSettings], limits: Limits) -> Outcome:
    """Through the retry layer, which only pretends to wait."""
    waits: list[float] = []

    async def pretend(seconds: float) -> None:
        waits.append(seconds)

    model = catalog.create(name, providers, limits, {})
    outcome = ask(session_model(model, limits, sleep=pretend, chance=lambda: 1.0))
    outcome.waits = waits
    return outcome


def joined(events: Sequence[ModelEvent]) -> list[Any]:
    result: list[Any] = []
    calls: dict[int, int] = {}
    for event in events:
        match event, result[-1] if result else None:
            case Said(text), Said(before):
                result[-1] = Said(before + text)
            case Thinking(text), Thinking(before):
                result[-1] = Thinking(before + text)
            case Thinking(text), _:  # how it came is asked for where it matters
                result.append(Thinking(text))
            case CallBegan(index, name), _:
                calls[index] = len(result)
                result.append(Called(name, ""))
            case CallGrew(index, fragment, anew), _:
                call = result[calls[index]]
                result[calls[index]] = Called(call.name, fragment if anew else call.arguments + fragment)
            case _:
                result.append(event)
    return result
