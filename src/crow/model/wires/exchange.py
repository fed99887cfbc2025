"""One request and its reply over HTTP: the loop that every wire format has in common."""

import bisect
import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import msgspec

from crow.errors import ModelRejected
from crow.model.base import Awaiting, ModelEvent, ModelInfo, ModelRequest, Noticed, Usage
from crow.model.http import Http
from crow.model.reply_faults import ReplyFaults
from crow.model.sse import ServerEvent


class Reader(Protocol):
    """Reads one reply. `done` is set when the server has said that it is complete."""

    done: bool

    def read(self, arrived: ServerEvent) -> list[ModelEvent]: ...

    def finish(self) -> list[ModelEvent]:
        """The events that only the end of the stream can tell; a ModelError if the reply is not whole."""
        ...

    def counted(self) -> Usage | None:
        """What the server has told so far of the tokens; asked when the reply ends early."""
        ...


class Lesson(NamedTuple):
    """What a refusal taught: the wire to send the same request with again, and what the person should know of it."""

    wire: "Wire"
    notice: str = ""
    request: ModelRequest | None = None
    """Sent instead of the one that was refused."""
    reply: Sequence[ModelEvent] = ()
    """The rest of the reply, where the refusal itself brought it: nothing is sent again."""

    @property
    def events(self) -> list[ModelEvent]:
        return [*([Noticed(self.notice)] if self.notice else []), *self.reply]


class Wire(Protocol):
    """A wire format as one model of one provider speaks it: how a request is written and its reply read."""

    @property
    def path(self) -> str:
        """Where requests go, below the provider's address."""
        ...

    def encode(self, request: ModelRequest) -> bytes: ...

    def reader(self, faults: ReplyFaults) -> Reader: ...

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        """What to do differently after this refusal; None if it taught nothing. The same thing is learned only once:
        `learning.Learned` remembers it."""
        ...


class HttpModel:
    """A model behind a wire format. A refusal that teaches something is answered at once, as long as nothing of the
    reply was shown; what was learned counts for all further requests."""

    def __init__(self, info: ModelInfo, connection: Http, wire: Wire, extra_body: Mapping[str, Any]) -> None:
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
                self._wire = lesson.wire
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
def _counting(reader: Reader, unfinished: list[Usage]) -> Generator[None]:
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
