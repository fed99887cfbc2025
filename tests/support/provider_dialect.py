"""What both dialects of the test provider have in common: a queue of answers and a strict look at requests."""

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from crow.config.settings import ModelSettings, ProviderSettings
from crow.model.scripted import Call, Think
from tests.support.wire_rules import Refused, insist

__all__ = ["Answer", "Cut", "Dialect", "Gate", "Pause", "Refused", "Request", "Spoken", "Stall", "Step", "insist"]


@dataclass(frozen=True)
class Cut:
    """The connection ends here, in the middle of whatever it is."""


@dataclass(frozen=True)
class Stall:
    """Nothing more comes, and the connection stays open."""


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Gate:
    """Nothing more comes until the test sets this."""

    opened: threading.Event = field(default_factory=threading.Event)

    def open(self) -> None:
        self.opened.set()


Step = bytes | Cut | Stall | Pause | Gate
Spoken = str | Think | Call


@dataclass(frozen=True)
class Answer:
    steps: list[Step]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    headless: bool = False
    """Not even a status line."""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Dialect:
    type: Literal["openai", "anthropic"]
    path: str

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key
        self.requests: list[Request] = []
        """Those for an answer of the model."""
        self.looks: list[Request] = []
        """Those for what there is: the list of models, or what a local server says of itself."""
        self.models: Any = {"data": []}
        self._answers: list[Answer] = []
        self._lock = threading.Lock()

    # --- what a test says

    def settings(self, **models: ModelSettings) -> ProviderSettings:
        return ProviderSettings(type=self.type, base_url=self.url, api_key=self.key, models=models)

    def answer(
        self,
        *parts: Spoken,
        finish: str | None = None,
        usage: Mapping[str, int] | None = None,
        interleave: bool = False,
        call_ids: list[str] | None = None,
        then: Step | None = None,
        pace: float = 0,
        dribble: bool = False,
    ) -> None:
        """A good reply. With `then`, it goes no further than its parts: it is cut, or stalls."""
        self._call_ids = itertools.chain(call_ids or [], (f"call_{n}" for n in itertools.count()))
        steps: list[Step] = list(self.opening(usage))
        steps.extend(self.interleaved(parts) if interleave else self.spoken(parts))
        if then is not None:
            steps.append(then)
        else:
            steps.extend(self.closing(finish or self.natural_finish(parts), usage))
        if pace:
            steps = [piece for step in steps for piece in (step, Pause(pace))]
        self.send(*steps, dribble=dribble)

    def send(self, *steps: Step, dribble: bool = False, headers: Mapping[str, str] | None = None) -> None:
        """Whatever a test wants the client to see after a 200."""
        if dribble:
            steps = tuple(piece for step in steps for piece in _single_bytes(step))
        self._queue(Answer(list(steps), headers=headers or {}))

    def fail(
        self,
        status: int,
        message: str = "",
        *,
        times: int = 1,
        retry_after: str | float | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        headers = dict(headers or {})
        if retry_after is not None:
            headers["retry-after"] = str(retry_after)
        body = self.complaint(status, message) if body is None else body
        for _ in range(times):
            self._queue(Answer([body], status, headers))

    def hang_up(self, times: int = 1) -> None:
        """Takes the request and closes the connection without a word."""
        for _ in range(times):
            self._queue(Answer([Cut()], headless=True))

    def keep_silent(self, times: int = 1) -> None:
        """Takes the request and says nothing at all."""
        for _ in range(times):
            self._queue(Answer([Stall()], headless=True))

    def _queue(self, answer: Answer) -> None:
        with self._lock:
            self._answers.append(answer)

    # --- what a client gets

    def respond(self, request: Request) -> Answer:
        with self._lock:
            (self.looks if request.method == "GET" else self.requests).append(request)
        try:
            if self.key and self.key_of(request.headers) != self.key:
                return self._refusal(401, "That is not the key.")
            if request.method == "GET" and "/models" in request.path and "/api/" not in request.path:
                return Answer([json.dumps(self.models).encode()], headers={"content-type": "application/json"})
            if request.path != self.path or request.method == "GET":
                return self._refusal(404, f"There is nothing at {request.path}.")
            self.check(request)
        except Refused as refusal:
            return self._refusal(400, str(refusal))
        with self._lock:
            if not self._answers:
                return self._refusal(400, "The test has no further answer for this provider.")
            return self._answers.pop(0)

    def _refusal(self, status: int, message: str) -> Answer:
        return Answer([self.complaint(status, message)], status)

    # --- what the dialects differ in

    def key_of(self, headers: Mapping[str, str]) -> str:
        raise NotImplementedError

    def check(self, request: Request) -> None:
        """Raises Refused for what a real provider would not take."""
        raise NotImplementedError

    def complaint(self, status: int, message: str) -> bytes:
        raise NotImplementedError

    def opening(self, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        raise NotImplementedError

    def spoken(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        raise NotImplementedError

    def interleaved(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        """The calls among the parts, their fragments taking turns."""
        raise NotImplementedError

    def closing(self, finish: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        raise NotImplementedError

    def natural_finish(self, parts: tuple[Spoken, ...]) -> str:
        raise NotImplementedError


def event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def words(text: str) -> list[str]:
    """Text in the pieces a provider might stream it in; joined, they are the text."""
    return [text[start : start + 7] for start in range(0, len(text), 7)]


def fragments(call: Call) -> list[str]:
    size = max(1, -(-len(call.text) // max(1, call.pieces)))
    return [call.text[start : start + size] for start in range(0, len(call.text), size)]


def take_turns(*sources: list[bytes]) -> Iterator[bytes]:
    for row in itertools.zip_longest(*sources):
        yield from (item for item in row if item is not None)


def _single_bytes(step: Step) -> list[Step]:
    return [bytes([byte]) for byte in step] if isinstance(step, bytes) else [step]
