"""Sends one request over any wire and reads the reply; after a refusal of one detail, sends it again without that
detail, and remembers.

A request that was refused for one detail is sent again without it. The providers that are documented have their habits
in a table; everybody else's are learned here, by one refusal each.
"""

import bisect
import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from crow.errors import ContextOverflow, ModelRejected
from crow.model.base import Awaiting, ModelEvent, ModelInfo, ModelRequest, Noticed, Usage
from crow.model.endpoint import Endpoint
from crow.model.http import Http
from crow.model.provider_errors import ReplyErrors
from crow.model.wires.stream_parsing import ReplyReader


class Lesson(NamedTuple):
    """What a refusal taught: the same request is sent again, and the person told of it."""

    notice: str = ""
    request: ModelRequest | None = None
    """Sent instead of the one that was refused."""
    reply: Sequence[ModelEvent] = ()
    """The rest of the reply, where the refusal itself brought it: nothing is sent again."""

    @property
    def events(self) -> list[ModelEvent]:
        return [*([Noticed(self.notice)] if self.notice else []), *self.reply]


class HttpModel:
    """A model behind a wire format. A refusal that teaches something is answered at once, as long as nothing of the
    reply was shown; what was learned counts for all further requests."""

    def __init__(self, info: ModelInfo, connection: Http, wire: "Wire", extra_body: Mapping[str, Any]) -> None:
        self.info = info
        self._http = connection
        self._wire = wire
        self._extra_body = extra_body

    async def close(self) -> None:
        await self._http.close()

    async def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if self._http.lacks_key:
            yield Awaiting(f"the command that prints the key of {self.info.provider}")
            await self._http.read_key()
            yield Awaiting()
        while True:
            reader = self._wire.reader(self._http)
            shown = False
            try:
                with _counting(reader, request.unfinished):
                    async with self._http.post(self._wire.path, self._body(request)) as batches:
                        async for batch in batches:
                            for arrived in batch:
                                for event in reader.read(arrived):
                                    shown = True
                                    yield event
                            if reader.done:
                                break
                    end = reader.finish()
            except ModelRejected as error:
                lesson = self._learn(error, request, shown=shown)
                request = lesson.request or request
                for event in lesson.events:
                    yield event
                if lesson.reply:
                    return
            else:
                break
        for event in end:
            yield event

    def _learn(self, error: ModelRejected, request: ModelRequest, *, shown: bool) -> Lesson:
        """What to do differently; raises the error if that is nothing, or too late."""
        lesson = self._wire.learn(error, request)
        if lesson is None or (shown and not lesson.reply):
            error.positions = messages_named(error.said, request, self._wire.encode)
            raise error
        return lesson

    def _body(self, request: ModelRequest) -> bytes:
        body = self._wire.encode(request)
        if not self._extra_body:
            return body
        return msgspec.json.encode(_merged(msgspec.json.decode(body), self._extra_body))


@contextlib.contextmanager
def _counting(reader: ReplyReader[Any], unfinished: list[Usage]) -> Generator[None]:
    """Keeps what was counted of a reply that breaks off, or is closed or cancelled: it was paid for all the same."""
    try:
        yield
    except BaseException:
        if (usage := reader.counted()) is not None:
            unfinished.append(usage)
        raise


def _merged(body: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """The body with what the person wants in it; what both have tables for is merged table by table."""
    merged = dict(body)
    for name, value in extra.items():
        ours = merged.get(name)
        both = isinstance(ours, dict) and isinstance(value, dict)
        merged[name] = _merged(cast("dict[str, Any]", ours), cast("dict[str, Any]", value)) if both else value
    return merged


NAMED = re.compile(r"\b(?:messages?|input)\W{1,3}(\d{1,6})\b|\bindex (\d{1,6})\b")
"""How refusals name a message of the request: `messages.3.content.0`, `messages[3]`, `input[3]`, `at index 3`."""


def messages_named(said: str, request: ModelRequest, encode: Callable[[ModelRequest], bytes]) -> tuple[int, ...]:
    """The positions of our messages that the one of the request's body was made of which these words name.

    A wire may write several messages as one, or one as several. How many a beginning of the history becomes tells
    which; it is asked only after a refusal.
    """
    found = NAMED.search(said)
    if found is None:
        return ()
    place = int(found[1] or found[2])

    def written(count: int) -> int:
        beginning = msgspec.structs.replace(request, messages=request.messages[:count])
        body = msgspec.json.decode(encode(beginning))
        return len(body.get("messages") or body.get("input") or ())

    counts = range(1, len(request.messages) + 1)
    first = bisect.bisect_right(counts, place, key=written)
    last = bisect.bisect_right(counts, place + 1, key=written)
    return tuple(range(first, min(last, len(request.messages))))


LEARNED: dict[tuple[str, str], set[str]] = {}
"""By address and model, for as long as the process lives: what one session has learned, no other has to."""


class RefusalPattern(msgspec.Struct, frozen=True):
    """How servers word it that they do not take a detail of a request."""

    name: str
    """What an adapter asks for before it writes a request: `name in learned`."""
    words: str
    """A regular expression, compiled by the first refusal; it is searched for without regard to case."""
    notice: str = ""
    """A sentence for the person if they lose something by it; it may name {provider}, {model} and {level}."""
    of_level: bool = False
    """It is about the chosen thought level alone, and remembered as `name level`."""
    statuses: tuple[int, ...] = (400, 422)


def without_projector(name: str) -> RefusalPattern:
    """How llama.cpp refuses a picture, with a status of 500, when it was started without the part that sees."""
    notice = "{provider} does not accept images for {model}: they are left out. llama-server sees with --mmproj FILE."
    return RefusalPattern(name, r"image.{0,80}\bmmproj\b", notice, statuses=(400, 500))


class Learned:
    """What is known of one model of one provider, shared by all sessions of the process."""

    def __init__(self, place: Endpoint, model: str) -> None:
        self._provider = place.provider
        self._model = model
        self._names = LEARNED.setdefault((place.url, model), set())

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def learn(self, error: ModelRejected, table: Sequence[RefusalPattern], level: str = "") -> str | None:
        """Remembers the first refusal of the table that the error's words match and that was not known yet.

        Returns the notice for the person, which may be empty; None if there was nothing to learn: then the error is to
        be raised, as the same request would be refused again.
        """
        if isinstance(error, ContextOverflow):
            return None
        for pattern in table:
            name = f"{pattern.name} {level}" if pattern.of_level else pattern.name
            if (
                error.status in pattern.statuses
                and name not in self._names
                and re.search(pattern.words, error.said, re.IGNORECASE)
            ):
                self._names.add(name)
                notice = pattern.notice.format(provider=self._provider, model=self._model, level=level)
                return notice if level or not pattern.of_level else ""
        return None


class Wire(ABC):
    """A wire format as one model of one provider speaks it: how a request is written and its reply read."""

    path: str
    """Where requests go, below the provider's address."""
    refusals: Sequence[RefusalPattern] = ()
    """What is left out, or done differently, once a provider has refused it in these words."""

    def __init__(self, info: ModelInfo, endpoint: Endpoint) -> None:
        self._info = info
        self._learned = Learned(endpoint, info.model)

    @abstractmethod
    def encode(self, request: ModelRequest) -> bytes: ...

    @abstractmethod
    def reader(self, errors: ReplyErrors) -> ReplyReader[Any]: ...

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        """What to do differently after this refusal; None if it taught nothing. The same thing is learned only once:
        `Learned` remembers it."""
        notice = self._learned.learn(error, self.refusals, request.thought_level)
        return None if notice is None else Lesson(notice)
