"""The `Model` protocol: requests, the events of a reply (`Said`, `CallBegan`, `Usage`, `Done` …), what is known of a
model, and what a reply cost.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from crow.errors import ModelUnavailable, ReplyBroken
from crow.messages import Message, StopReason, ToolSpec


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """For a million tokens each."""

    input: float
    output: float
    cached: float
    cache_write: float
    currency: str
    above: int = 0
    """Tokens of input. A request with more of them costs `long`, all of it."""
    long: "Price | None" = None


class ModelInfo(msgspec.Struct, frozen=True):
    """A model as it is chosen and described: `provider/model`, and what it can take."""

    provider: str
    model: str
    context_window: int | None = None
    """Tokens of a request, with its reply unless that has `room_apart`."""
    max_output: int | None = None
    """What a request asks for at most."""
    images: bool = False
    audio: bool = False
    thought_levels: tuple[str, ...] = ()
    """How long it can be told to think, least first; empty if it cannot be told."""
    price: Price | None = None
    room_apart: bool = False
    """The reply has room of its own beside the window."""
    local: bool = False
    """Its server is on this machine or nearby: whoever owns it can be told how to start it."""
    metered: bool = False
    """What its provider does not count is estimated: not so of a script, which takes what it says."""
    needs_limit: bool = False
    """The server ends no reply by itself: each request says how long the reply may get."""
    calls_as_text: bool = False
    """Its calls may arrive as text: nobody on the way knows how it writes them."""
    host: str = ""
    """The host of its address, with the port if one is named."""

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    def has_said(self, provider: str, model: str, host: str) -> bool:
        """Whether what came from there came from this model, and may go back to it. What older histories do not tell,
        which may be the model or the host, is empty and counts as the same."""
        return provider == self.provider and model in ("", self.model) and host in ("", self.host)


class ModelRequest(msgspec.Struct, frozen=True):
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    thought_level: str = ""
    """One of the model's levels; empty leaves it to the provider."""
    cache_key: str = ""
    """The same for all requests of a conversation: providers use it to find what they have read before."""
    max_output: int | None = None
    """Tokens that the reply may take, where that depends on what is left of the window."""
    retries: "ReplyRetries | None" = None
    """What is left of the time for attempts, where other requests for the same reply have used some; None if none
    have."""
    unseen: bool = False
    """Nobody sees the reply before it is whole: one that breaks off is asked for again, from its beginning."""
    unfinished: "list[Usage]" = msgspec.field(default_factory=list["Usage"])
    """Written by the model: what was counted so far of each attempt that ended early. A reply that is cancelled can say
    nothing any more."""


# --- what a reply consists of, in the order it arrives


class Said(msgspec.Struct, frozen=True):
    text: str


class Thinking(msgspec.Struct, frozen=True):
    text: str
    field: str = ""
    """See `Thought.field`."""


class ThinkingSealed(msgspec.Struct, frozen=True):
    """Ends the thought before it with its signature, or (redacted) stands for a thought that was withheld."""

    signature: str
    redacted: bool = False


class TextData(msgspec.Struct, frozen=True):
    """What the provider wants back with the text that came last."""

    data: str


class ThoughtData(msgspec.Struct, frozen=True):
    """What the provider wants back with the thought that came last. It ends that thought, or stands for one of which
    nothing was shown."""

    data: str


class CallData(msgspec.Struct, frozen=True):
    """What the provider wants back with the call of this index, which has begun."""

    index: int
    data: str


class CallBegan(msgspec.Struct, frozen=True):
    """A tool call begins. `index` tells the reply's calls apart: their fragments may interleave."""

    index: int
    name: str
    from_text: bool = False
    """It was read from the reply's text: the provider made none of it."""


class CallGrew(msgspec.Struct, frozen=True):
    index: int
    fragment: str
    anew: bool = False
    """The fragment is the whole of the arguments: what came before had lost something."""


MOST_TOKENS = 100_000_000
"""More than any request or reply takes: a larger count is a mistake of the server's."""


class Usage(msgspec.Struct, frozen=True):
    """`input_tokens` counts everything that was read, from a cache or not."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_written_tokens: int = 0
    reasoning_tokens: int = 0
    """Those of the output that were thoughts, where the provider tells them apart."""
    cost: float | None = None
    """What the provider says that the reply cost, in `currency`: it knows better than any table of prices."""
    currency: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """The retry layer is about to wait and try again, for a reason that the person should see."""

    reason: str
    seconds: float
    attempt: int
    """The number of the attempt that comes after the wait."""


class Awaiting(msgspec.Struct, frozen=True):
    """What is waited for from now on, as the rest of a sentence that begins with "Waiting for"; nothing stands for the
    reply itself."""

    what: str = ""


class Noticed(msgspec.Struct, frozen=True):
    """Something about the exchange with the provider that the person should know, such as what it would not take."""

    text: str


class Done(msgspec.Struct, frozen=True):
    """The last event of every reply that arrived whole."""

    stop_reason: StopReason
    paused: bool = False
    """The provider paused in the middle: it wants what it has said so far back, and then goes on."""


ModelEvent = (
    Said
    | Thinking
    | ThinkingSealed
    | TextData
    | ThoughtData
    | CallBegan
    | CallGrew
    | CallData
    | Usage
    | Waiting
    | Awaiting
    | Noticed
    | Done
)


class Model(Protocol):
    """`reply` streams one answer and ends with Done, or raises a ModelError.

    Closing the iterator (or cancelling the task that runs it) ends the request at once. An instance serves one
    session and may keep connections open between replies; `close` lets go of them.
    """

    @property
    def info(self) -> ModelInfo: ...

    def reply(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]: ...

    async def close(self) -> None: ...


# --- when a request is sent again

FEW_ATTEMPTS = 5
"""For what rarely mends itself, such as an address where nothing listens."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
A_MOMENT = 0.001
"""Seconds that are too few to wait for."""


def chance() -> float:
    import random  # for a failure, not for the beginning of every session

    return random.random()  # noqa: S311 -- spreads waits, guards nothing


class Pause(NamedTuple):
    seconds: float
    attempt: int
    """The number of the attempt that comes after it."""


class ReplyRetries:
    """The pauses between the attempts at one reply: ever longer ones, `budget` seconds in all.

    Once something of a reply was shown, the same request sent again would show it twice. So the turn asks the model to
    go on from where its reply ended (`crow.turn.reply`), with pauses out of the same budget.
    """

    def __init__(self, budget: float, chance: Callable[[], float] = chance) -> None:
        self._budget = budget
        self._chance = chance
        self.reset()

    def reset(self) -> None:
        """The next attempt is the first one at another reply."""
        self._left = self._budget
        self._attempt = 1

    def pause_after(self, error: ModelUnavailable | ReplyBroken) -> Pause:
        """How long to wait before the next attempt; raises the error when there will be none."""
        asked = error.retry_after if isinstance(error, ModelUnavailable) else None
        first = min(FIRST_WAIT, self._budget / 16)
        backoff = min(first * 2 ** (self._attempt - 1), LONGEST_WAIT)
        # Jitter only shortens: many clients that failed together must not come back together.
        wanted = max(backoff * (0.5 + self._chance() / 2), asked or 0.0)
        is_hopeless = error.is_lasting and self._attempt >= FEW_ATTEMPTS
        if is_hopeless or self._left < A_MOMENT or (asked or 0.0) > self._left:
            if asked is not None and asked > self._left:
                limit = f"longer than the {self._left:.0f} s that Crow waits"
                error.message += f" It asks to wait {asked:.0f} s, {limit}."
            if self._attempt > 1:
                error.message = f"Gave up after {self._attempt} attempts: {error.message}"
            raise error
        seconds = min(wanted, self._left)
        self._left -= seconds
        self._attempt += 1
        return Pause(seconds, self._attempt)


# --- what a reply cost

MILLION = 1_000_000


def told_cost(usage: Usage, price: Price | None) -> tuple[float | None, str]:
    """The cost and its currency; None if neither the provider nor a price says it.

    A provider that says 0 may mean that it does not know: what has a price is not free.
    """
    if usage.cost or (usage.cost is not None and price is None):
        return usage.cost, usage.currency or "USD"
    return (cost_of(usage, price), price.currency) if price else (None, "")


def cost_of(usage: Usage, price: Price) -> float:
    if price.long is not None and usage.input_tokens > price.above:
        price = price.long
    fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
    cost = (
        fresh * price.input
        + usage.cached_tokens * price.cached
        + usage.cache_written_tokens * price.cache_write
        + usage.output_tokens * price.output
    )
    return cost / MILLION
