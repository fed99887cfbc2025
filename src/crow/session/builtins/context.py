"""/compact, /clear, /context: what the model has in mind of the conversation."""

from collections.abc import Iterator, Sequence

from crow.events import CommandInfo, HistoryCleared, Sent
from crow.session.commands import Reply
from crow.turn.budget import ContextUse, context_use, provider_ratio, tell_usage
from crow.turn.compaction import compact
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.spending import in_words

NEARLY_FULL = 0.7
"""The part of the window from which on it is worth doing something about."""
BAR = 10
"""Columns of the longest bar: a line is to fit into a narrow panel."""


class Compact:
    info = CommandInfo("compact", "Makes room: sums up the conversation for the model", "[what to keep in view]")

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        return Reply(await compact(self._conversation, ids, focus=arguments, reason="You asked for it."))


class Clear:
    info = CommandInfo("clear", "Lets the model start afresh; you still see what was, and files stay as they are")

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        ratio = provider_ratio(self._conversation)
        await self._conversation.journal.record(HistoryCleared())
        tell_usage(self._conversation, ratio)
        return Reply("The model starts afresh: it knows nothing of what was said above. Files stay as they are.")


class Context:
    info = CommandInfo("context", "Shows what fills the model's window, and what was spent")

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        table = _table(context_use(self._conversation), self._conversation.model.info.name)
        return Reply("\n".join([*table, *await self._spent()]))

    async def _spent(self) -> list[str]:
        purse = self._conversation.purse
        spent = {
            "In the last turn": purse.last_turn.in_words(),
            "In this session": purse.session.in_words(),
            "Today, in all sessions": in_words(await purse.today()),
        }
        lines = [f"- {when}: {what}" for when, what in spent.items() if what]
        return ["\nSpent:", *lines] if lines else []


def _table(use: ContextUse, model: str) -> Iterator[str]:
    window = f" of {use.window:,} ({use.total / use.window:.0%})" if use.window else ""
    yield f"The next request to {model} takes about {use.total:,} tokens{window}.\n"
    parts = {
        "System prompt": use.system_prompt,
        "Tools": use.tools,
        "What you sent": use.person,
        "What the model said": use.model,
        "What tools gave": use.outputs,
        "Pictures and sound": use.images,
    }
    whole = use.total or 1
    # Between fences, since not every client shows tables, and a pipe shows them as they are written.
    yield "```text"
    name_width, number_width = max(map(len, parts)), len(f"{use.total:,}")
    for name, tokens in parts.items():
        bar = "█" * round(BAR * tokens / whole)
        yield f"{name:{name_width}}  {tokens:{number_width},}  {bar}".rstrip()
    yield "```"
    if use.window and use.total > NEARLY_FULL * use.window:
        yield "\nIt is nearly full. `/compact` sums up the conversation, `/clear` lets the model start afresh."
    if not use.window:
        yield "\nHow large the window is, is not known: `context_window` of the model in your `config.toml` says it."
