"""A provider with a window: it counts what it is sent, refuses what does not fit, and answers by a function.

    with Provider() as provider:
        provider.openai = window = WindowedDialect(provider.openai.url, 16_000, answer)

`answer(body)` gives the parts of the reply. A request for a summary is one that offers no tools.
"""

import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

from crow.model.scripted import Call, Think
from tests.support.provider_dialect import Answer, Request, Spoken, Step
from tests.support.provider_openai import OpenAIDialect

BYTES_A_TOKEN = 4

Json = dict[str, Any]


class WindowedDialect(OpenAIDialect):
    def __init__(
        self, url: str, window: int, reply: Callable[[Json], tuple[Spoken | Step, ...]], *, usage: bool = True
    ) -> None:
        super().__init__(url, "")
        self.window = window
        self.largest = 0
        self.refused = 0
        self.counts: int | None = None
        """What it says it has read, if not all of it."""
        self.names_window = True
        """Whether its refusals do; else it answers 413."""
        self.asked = threading.Event()
        self._reply = reply
        self._usage = usage
        self._call_ids = (f"call_{number}" for number in itertools.count())

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.requests if request.method != "GET"]

    @property
    def summaries(self) -> list[Json]:
        """The requests for a summary."""
        return [body for body in self.bodies if is_summary(body)]

    @property
    def rounds(self) -> list[Json]:
        return [body for body in self.bodies if not is_summary(body)]

    def respond(self, request: Request) -> Answer:
        if request.method == "GET":  # the list of models, which is asked for in the background
            return super().respond(request)
        tokens = len(json.dumps(request.body, ensure_ascii=False).encode()) // BYTES_A_TOKEN
        if tokens > self.window:
            self.refused += 1
            message = f"This model's maximum context length is {self.window} tokens. You sent {tokens} tokens."
            return self._too_long(message)
        self.largest = max(self.largest, tokens)
        parts = self._reply(request.body)
        spoken = tuple(part for part in parts if isinstance(part, str | Think | Call))
        further = [part for part in parts if not isinstance(part, str | Think | Call)]
        steps: list[Step] = [*self.opening(None), *self.spoken(spoken), *further]
        usage = {"input": self.counts or tokens, "output": 50} if self._usage else None
        self._queue(Answer([*steps, *self.closing(self.natural_finish(spoken), usage)]))
        self.asked.set()
        return super().respond(request)

    def _too_long(self, message: str) -> Answer:
        return self._refusal(400, message) if self.names_window else self._refusal(413, "")


def is_summary(body: Json) -> bool:
    return "tools" not in body


def text_of(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def texts(body: Json) -> str:
    """Everything that is said in a request."""
    return "\n".join(text_of(message) for message in body["messages"])
