"""What each request to the model is made of; how full the model's window is, estimated; and cutting a tool's output to
what fits.

The provider's own count of the last request is the base of that estimate. What was added since is estimated from its
bytes, rather too high than too low: a request that does not fit costs more than a compaction that comes a little early.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from crow.config.settings import Limits, Mode
from crow.events import HistorySimplified, Journal, ModeTold, PromptTold, Remark, UsageReported
from crow.messages import (
    BYTES_A_TOKEN,
    IMAGE,
    AssistantMessage,
    Message,
    Text,
    ToolMessage,
    ToolSpec,
    UserMessage,
    tokens_of,
    tokens_of_part,
    tokens_of_text,
    tokens_of_tool,
    without_middle,
)
from crow.model.base import Model, ModelEvent, ModelInfo, ModelRequest, ReplyRetries, Usage, told_cost
from crow.model.replies import reply_room
from crow.results import ToolKind, ToolResult
from crow.tools.ask import PLAN_MODE, PLAN_MODE_OF_A_SUBAGENT, plan_mode_is_over
from crow.tools.base import SMALL_WINDOW, Toolbox, small_set
from crow.turn.history import History
from crow.turn.message_building import output_of, unfinished_output
from crow.turn.reply import Reply
from crow.turn.spending import Budgets

MOST_BELIEVED = 3
"""The provider's count by our estimate: a byte is hardly more than a token."""
SLACK = 2_000
"""Tokens that a provider may add to any request, such as a prompt of its own."""
OUTPUT_SHARE = 0.25
"""Of the room that the system prompt and the tools leave, for one output; of what is left of it, half at most."""
LEAST_OUTPUT = 250
"""Tokens that an output may take in any case: less would tell the model nothing."""

HOW_TO_GET_LESS = {
    ToolKind.EXECUTE: "Let it print less, such as with `head`, `tail` or `grep`.",
    ToolKind.SEARCH: "Narrow the search.",
}


class LiveSettings(msgspec.Struct):
    """The settings that may change while a turn runs: a change counts from the next request to the model on.

    A session has one and shares it with its turns; a subagent gets a copy when it begins. The person chooses the model
    and the thought level, also while a turn runs; a project that they trust lowers the limits.
    """

    model: Model
    limits: Limits
    thought_level: str = ""
    """How long the model is to think; empty leaves it to the provider."""


class Requests(msgspec.Struct, frozen=True):
    """The parts of which each request to the model is made."""

    live: LiveSettings
    tools: Toolbox
    history: History
    system_prompt: Callable[[], str]
    """Called for each request: it is another one for a small window, and once the history has another beginning."""
    cache_key: str = ""
    """See `ModelRequest.cache_key`: the session's id."""
    prompt_news: Callable[[], PromptTold | None] = lambda: None
    """What is to be told of the surroundings before the next request; None if the model knows."""

    @property
    def model(self) -> Model:
        return self.live.model

    @property
    def info(self) -> ModelInfo:
        return self.live.model.info

    def send(
        self,
        without: HistorySimplified | None = None,
        *,
        paused: bool = False,
        unfinished: list[Usage] | None = None,
        retries: ReplyRetries | None = None,
    ) -> AsyncGenerator[ModelEvent, None]:
        """The model's reply to the history as it is now.

        `without`: the history is sent as it would be after this event. `paused`: the last reply is to go on.
        `unfinished` and `retries` are those of the `ModelRequest`.
        """
        messages = self.history.to_send(without, paused=paused)
        request = ModelRequest(
            *(self.system_prompt(), messages, self.tool_specs(), self.live.thought_level, self.cache_key),
            unfinished=[] if unfinished is None else unfinished,
            retries=retries,
        )
        return self.model.reply(request)

    def tool_specs(self) -> list[ToolSpec]:
        """The tools that the next request offers: the same in every mode, and few to a model with a small window."""
        return small_set(self.tools.specs()) if has_small_window(self.info) else self.tools.specs()

    def mode_to_tell(self, mode: Mode) -> ModeTold | None:
        """What the model must be told of the mode before the next request; None if it knows."""
        told = self.history.told_mode
        if mode == "plan" and told != "plan":
            return ModeTold(mode, PLAN_MODE if "leave_plan" in self.tools else PLAN_MODE_OF_A_SUBAGENT)
        return ModeTold(mode, plan_mode_is_over(mode)) if mode != "plan" and told == "plan" else None


def has_small_window(info: ModelInfo) -> bool:
    return info.context_window is not None and info.context_window < SMALL_WINDOW


class ContextUse(msgspec.Struct, frozen=True):
    """What fills the window, in estimated tokens. The parts add up to `total`, which knows of the last count."""

    system_prompt: int
    tools: int
    person: int
    """What the person sent, and the summary of what was before."""
    model: int
    outputs: int
    images: int
    total: int
    """What the next request will take."""
    window: int | None


class Room(msgspec.Struct, frozen=True):
    """What a window has room for, in tokens. Shares are of what the system prompt and the tools leave."""

    most: int
    """A longer request does not fit beside its reply."""
    fixed: int
    """The system prompt and the tools."""

    @property
    def comfortable(self) -> int:
        """The size in tokens above which history is compacted before a request is sent."""
        return self.fixed + self.share(0.85)

    @property
    def enough(self) -> int:
        """The size in tokens that compaction brings a request down to, where it is worth doing."""
        return self.fixed + self.share(0.65)

    def share(self, part: float) -> int:
        return int(max(0, self.most - self.fixed) * part)


class ContextWindow(msgspec.Struct, frozen=True):
    """The model's window: how full it is, and what is reported of that."""

    requests: Requests
    journal: Journal
    budgets: Budgets

    def room(self) -> Room | None:
        """None if the size of the window is not known."""
        info = self.requests.info
        if info.context_window is None:
            return None
        return Room(info.context_window - reply_room(info, info.context_window), self.overhead())

    def estimate(self) -> int:
        """Tokens that the next request will take.

        A count that cannot be right is not believed, so that a server that counts wrongly stops no conversation.
        """
        counted, added = self.requests.history.measured()
        later, own = sum(map(tokens_of, added)), self.own_estimate()
        return counted + later if 0 < counted <= MOST_BELIEVED * (own - later) + SLACK else own

    def own_estimate(self) -> int:
        """The same, whatever the provider has counted."""
        return self.overhead() + sum(map(tokens_of, self.requests.history.messages()))

    def provider_ratio(self) -> float:
        """The provider's count by our estimate: what is left after a change of the history is estimated with it."""
        raw = self.own_estimate()
        return min(2.0, max(0.6, self.estimate() / raw)) if raw else 1.0

    def overhead(self) -> int:
        """The system prompt and the tools: sent with every request."""
        return tokens_of_text(self.requests.system_prompt()) + _tokens_of_tools(self.requests.tool_specs())

    def tell_usage(self, ratio: float = 1.0, asked: Usage | None = None) -> None:
        """Reports how full the window is where it has changed without a request: estimated, until a reply brings a
        count.

        `ratio` is the provider's count by our estimate, for when the last count no longer holds. `asked` is what a
        summary took, which costs as well.
        """
        info = self.requests.info
        counted, _ = self.requests.history.measured()
        tokens = self.estimate() if counted else int(self.estimate() * ratio)
        cost, currency = told_cost(asked, info.price) if asked else (None, "")
        self._report(
            UsageReported(
                tokens,
                0,
                context_window=info.context_window,
                cost=cost,
                currency=currency,
                estimated=True,
                asked_tokens=asked.input_tokens + asked.output_tokens if asked else 0,
            )
        )

    def count_without_usage(self, reply: Reply, written: int) -> Remark | None:
        """Counts what a reply took without a count at its end: what the provider told of it, and our estimate of the
        rest.

        `written` are the characters of its calls. An attempt of which nothing came cost nothing. Gives what the
        person should know of it, if anything.
        """
        info, told = self.requests.info, list(reply.unfinished)
        if not info.metered:
            return None
        arrived = sum(map(tokens_of, self.requests.history.arrived)) + -(-written // BYTES_A_TOKEN)
        if not told and (reply.ended or arrived):
            told = [Usage()]
        sent = max(self.estimate() - arrived, self.overhead()) if told else 0
        for number, usage in enumerate(told, start=1):
            is_last = number == len(told) and not reply.usages
            self.count_as_told(usage, sent, arrived if is_last else 0)
        if not reply.ended or reply.usages or not self.budgets.has_budgets:
            return None
        title = f"{info.name} does not report token usage, so the budgets count Crow's estimate."
        return Remark("info", title)

    def count_as_told(self, told: Usage, sent: int, arrived: int) -> None:
        """Counts one request whose count is not complete: `sent` and `arrived` are what is estimated of it."""
        info = self.requests.info
        usage = replace(told, input_tokens=told.input_tokens or sent, output_tokens=max(told.output_tokens, arrived))
        cost, currency = told_cost(usage, info.price)
        self._report(
            UsageReported(
                *(usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_written_tokens),
                info.context_window,
                cost=cost,
                currency=currency,
                reasoning_tokens=usage.reasoning_tokens,
                incomplete=True,
            )
        )

    def _report(self, usage: UsageReported) -> None:
        self.journal.append(usage)
        self.budgets.count(usage)

    def use(self) -> ContextUse:
        messages = self.requests.history.messages()
        outputs = [message for message in messages if isinstance(message, ToolMessage)]
        person = [message for message in messages if isinstance(message, UserMessage)]
        total = self.estimate()
        parts = {
            "system_prompt": tokens_of_text(self.requests.system_prompt()),
            "tools": _tokens_of_tools(self.requests.tool_specs()),
            "person": sum(tokens_of(message) - _tokens_of_media(message) for message in person),
            "model": sum(tokens_of(message) for message in messages if isinstance(message, AssistantMessage)),
            "outputs": sum(tokens_of(message) - _tokens_of_media(message) for message in outputs),
            "images": sum(_tokens_of_media(message) for message in messages),
        }
        fitted = dict(zip(parts, _adding_up(list(parts.values()), total), strict=True))
        return ContextUse(**fitted, total=total, window=self.requests.info.context_window)


def _adding_up(parts: Sequence[int], total: int) -> list[int]:
    """The parts in their proportions, as whole numbers whose sum is `total`."""
    whole, before, fitted = sum(parts) or 1, 0, list[int]()
    for end in accumulate(parts):
        upto = round(total * end / whole)
        fitted.append(upto - before)
        before = upto
    return fitted


def _tokens_of_media(message: Message) -> int:
    match message:
        case UserMessage():
            return sum(tokens_of_part(part) for part in message.parts if not isinstance(part, Text))
        case ToolMessage():
            return IMAGE * len(message.images)
        case _:
            return 0


def _tokens_of_tools(specs: Sequence[ToolSpec]) -> int:
    return sum(tokens_of_tool(spec) for spec in specs)


# --- what the output of a call may take


class OutputRoom:
    """What the outputs of one reply's calls may take: a quarter of the window at most, and less as it fills up.

    Calls that run at once share what is left: each has its part before it begins. The history is read once, however
    many calls there are: what each adds to it is known when the call is settled.
    """

    def __init__(self, window: ContextWindow) -> None:
        self._window = window
        self._taken: int | None = None
        """Tokens of the next request, as far as it is known; None before the first call asks."""
        self._claimed: dict[str, int] = {}
        self._all_claimed = 0

    def claim(self, call_id: str) -> int | None:
        """The bytes of the call's output that there is room for; None if the window is not known."""
        room = self._window.room()
        if room is None:
            return None
        if self._taken is None:
            self._taken = self._window.estimate()
        left = room.most - self._taken - self._all_claimed
        claimed = max(LEAST_OUTPUT, min(left // 2, room.share(OUTPUT_SHARE)))
        self._claimed[call_id] = claimed
        self._all_claimed += claimed
        return claimed * BYTES_A_TOKEN

    def release(self, call_id: str, result: ToolResult) -> None:
        """The call is settled: from now on its output counts, and no longer what the call might have written. One that
        was refused has a few words for an output, and never asked."""
        claimed = self._claimed.pop(call_id, None)
        if claimed is not None and self._taken is not None:
            self._all_claimed -= claimed
            self._taken += tokens_of(output_of(call_id, result)) - tokens_of(unfinished_output(call_id))


def fitted_output(result: ToolResult, kind: ToolKind, most: int | None) -> ToolResult:
    """The same result, with a text for the model that takes so many bytes at most. The person still sees all of it."""
    size = tokens_of_text(result.text) * BYTES_A_TOKEN
    # A tool that cuts its output by itself says how to go on: a few words more do not matter.
    if most is None or size <= most + LEAST_OUTPUT * BYTES_A_TOKEN // 2:
        return result
    printed = result.command.printed if result.command else len(result.text)
    output, rest = result.text[:printed], result.text[printed:]
    output = without_middle(output, max(0, len(output) * most // size - len(rest)))
    note = f"\n(Cut to what the model's window has room for. {HOW_TO_GET_LESS.get(kind, 'Ask for less at once.')})"
    command = result.command and replace(result.command, printed=len(output))
    return replace(result, text=f"{output}{rest}{note}", command=command)
