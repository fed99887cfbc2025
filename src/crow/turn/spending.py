"""Counts what a session spends, and keeps to the budgets of a turn, a session and a day: warns, asks, or stops the
turn.

Budgets are checked before each request to the model, so that no budget is overrun by more than the reply that is
running. Subagents spend from the same budgets, and so does making room.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from crow.actions import Person, Question
from crow.config.settings import TOKENS, Amount, shown_amount
from crow.errors import StorageFailed, TurnCancelled
from crow.events import (
    BudgetRaised,
    BudgetScope,
    Event,
    Journal,
    Remark,
    SubagentDid,
    UsageReported,
    local_day,
    milliseconds_now,
)
from crow.model.base import ModelInfo

logger = logging.getLogger(__name__)

WARN_AT = 0.8
COMPACT = "Compact the conversation, then continue"
STOP = "Stop"

_WHOSE: dict[BudgetScope, str] = {"turn": "this turn", "session": "this session", "day": "today"}

Totals = Mapping[str, float]
"""What was spent, by currency, and under `TOKENS` in tokens."""
Verdict = Literal["go on", "compact", "cheaper", "stop"]


class Spending:
    """How full the model's window is, and what everything cost: a fold of a session's events."""

    def __init__(self) -> None:
        self.usage: UsageReported | None = None
        """The usage of the last reply, but not of a subagent's, which fills a window of its own."""
        self.cost: dict[str, float] = {}
        """The cost by currency, the one last used at the end, with what subagents cost."""
        self.tokens = 0

    def apply(self, event: Event) -> None:
        used = event.what if isinstance(event, SubagentDid) else event
        if not isinstance(used, UsageReported):
            return
        self.tokens += used.paid_tokens
        if used.cost is not None:
            self.cost[used.currency] = self.cost.pop(used.currency, 0.0) + used.cost
        if used is event:
            self.usage = used

    @property
    def totals(self) -> dict[str, float]:
        return {**self.cost, TOKENS: self.tokens}

    def in_words(self) -> str:
        """Such as `0.12 USD, 45,678 tokens`; empty if nothing was spent."""
        return in_words(self.totals)


def in_words(totals: Totals) -> str:
    money = [shown_amount(value, unit) for unit, value in totals.items() if unit != TOKENS]
    tokens = totals.get(TOKENS, 0)
    return ", ".join([*money, *([shown_amount(tokens, TOKENS)] if tokens else [])])


class _Used(msgspec.Struct, frozen=True):
    """A budget, and how much of it is gone."""

    scope: BudgetScope
    amount: Amount
    limit: float
    """The amount, or more if the person said so."""
    spent: float
    day: str
    """The date, for the budget of a day."""

    @property
    def key(self) -> tuple[BudgetScope, str, str]:
        return self.scope, self.amount.unit, self.day

    def sentence(self, state: str) -> str:
        """For the person; `state` says how much of the budget is gone, such as "used up"."""
        limit, spent = shown_amount(self.limit, self.amount.unit), shown_amount(self.spent, self.amount.unit)
        return f"The budget of {_WHOSE[self.scope]}, {limit}, is {state}: {spent} so far."


async def _no_day() -> Totals:
    return {}


class Budgets:
    """What the turns of a session have spent, and may spend.

    `day` reads what was spent today, by all processes. `cheaper` names a model that costs less; empty if there is none.
    """

    def __init__(
        self,
        budgets: Mapping[str, Sequence[Amount]] | None = None,
        journal: Journal | None = None,
        person: Person | None = None,
        *,
        day: Callable[[], Awaitable[Totals]] = _no_day,
        cheaper: Callable[[], str] = str,
    ) -> None:
        self.session = Spending()
        self.turn = Spending()
        self.last_turn = Spending()
        """The turn before, of those that spent anything."""
        self.cheaper = cheaper
        self.why_stopped = ""
        """Of the turn that runs; empty while it may go on."""
        self._budgets: dict[tuple[BudgetScope, str], Amount] = {}
        self._raised: dict[tuple[BudgetScope, str, str], float] = {}
        self._warned: set[tuple[BudgetScope, str, str]] = set()
        self._doubted: set[str] = set()
        """Models and currencies of which it was said that a budget in money may not hold."""
        self._journal = journal
        self._person = person
        self._day = day
        self._spent_today: Totals = {}
        self.lower(budgets or {})

    @property
    def has_budgets(self) -> bool:
        return bool(self._budgets)

    def lower(self, budgets: Mapping[str, Sequence[Amount]]) -> None:
        """Further budgets hold beside those there are; of two in the same unit the smaller one counts."""
        for scope in _WHOSE:
            for amount in budgets.get(scope, ()):
                key = scope, amount.unit
                if key not in self._budgets or amount.value < self._budgets[key].value:
                    self._budgets[key] = amount

    def remember(self, past: Iterable[Event]) -> None:
        """What was spent before the session was opened, and which budgets were raised."""
        for event in past:
            self.session.apply(event)
            if isinstance(event, BudgetRaised):
                self._raised[event.scope, event.unit, event.day] = event.limit
        self._warned.update(used.key for used in self._used("session") if _is_near(used))

    async def today(self) -> Totals:
        """What was spent today; what is known of it, if it cannot be read."""
        try:
            self._spent_today = await self._day()
        except StorageFailed as failed:
            logger.info("what was spent today cannot be read: %s", failed)
            own, known = self.session.totals, self._spent_today
            self._spent_today = {**known, **{unit: max(spent, known.get(unit, 0.0)) for unit, spent in own.items()}}
        return self._spent_today

    # --- while a turn runs

    def begin_turn(self, info: ModelInfo) -> None:
        self.last_turn = self.turn if self.turn.tokens or self.turn.cost else self.last_turn
        self.turn = Spending()
        self.why_stopped = ""
        self._raised = {key: limit for key, limit in self._raised.items() if key[0] != "turn"}
        self._warned = {key for key in self._warned if key[0] != "turn"}
        for doubt in self.doubts(info):
            self._tell(doubt)

    def count(self, usage: UsageReported) -> None:
        """A reply came, or a summary: the session's, or a subagent's."""
        self.turn.apply(usage)
        self.session.apply(usage)
        if usage.cost and usage.currency not in self._doubted:
            self._doubted.add(usage.currency)  # which its provider says, whatever the price is in
            for doubt in self._uncounted("the cost of the last reply", usage.currency):
                self._tell(doubt)
        self._warn("turn", "session")

    async def check(self, dialog: asyncio.Lock) -> Verdict:
        """Before a request to the model. `dialog` is held while the person is asked."""
        if self.why_stopped:
            return "stop"
        if not self._budgets or not await self._gone():
            return "go on"
        async with dialog:
            gone = await self._gone()  # meanwhile the person may have answered a subagent's question
            if self.why_stopped:
                return "stop"
            return await self._ask(gone) if gone else "go on"

    def doubts(self, info: ModelInfo) -> list[str]:
        """Why a budget in money cannot be kept with this model, said once of each model."""
        units = {unit for _, unit in self._budgets if unit != TOKENS}
        if not units or info.name in self._doubted:
            return []
        self._doubted.add(info.name)
        if info.price is None:
            doubt = (
                f"The price of {info.name} is unknown, so a budget in money cannot stop it unless the provider reports "
                "what each reply costs. Set `price_input` and `price_output` of the model in your "
                "`config.toml`, or set the budget in tokens."
            )
            return [doubt]
        self._doubted.add(info.price.currency)
        return self._uncounted(f"the cost of {info.name}", info.price.currency)

    # --- inside

    def _uncounted(self, what: str, currency: str) -> list[str]:
        units = {unit for _, unit in self._budgets if unit != TOKENS}
        return [
            f"The budget in {unit} does not count {what}, which is in {currency}."
            for unit in sorted(units - {currency})
        ]

    async def _gone(self) -> list[_Used]:
        if any(scope == "day" for scope, _ in self._budgets):
            await self.today()
            self._warn("day")
        return [used for used in self._used(*_WHOSE) if used.spent >= used.limit]

    def _used(self, *scopes: BudgetScope) -> Iterator[_Used]:
        for (scope, unit), amount in self._budgets.items():
            if scope in scopes:
                day = local_day(milliseconds_now()) if scope == "day" else ""
                limit = max(amount.value, self._raised.get((scope, unit, day), 0.0))
                yield _Used(scope, amount, limit, self._totals(scope).get(unit, 0.0), day)

    def _totals(self, scope: BudgetScope) -> Totals:
        match scope:
            case "turn":
                return self.turn.totals
            case "session":
                return self.session.totals
            case "day":
                return self._spent_today

    def _warn(self, *scopes: BudgetScope) -> None:
        for used in self._used(*scopes):
            if _is_near(used) and used.key not in self._warned:
                self._warned.add(used.key)
                if used.spent < used.limit:  # else they are asked, or told that it stops
                    self._tell(used.sentence(f"used to {used.spent / used.limit:.0%}"))

    async def _ask(self, gone: Sequence[_Used]) -> Verdict:
        """Asks how to go on: the first budget that is used up is named, and the answer counts for all of them."""
        more = " and ".join(str(used.amount) for used in gone)
        go_on, cheaper = f"Continue with {more} more", self.cheaper()
        on_cheaper = f"Continue with {more} more, on {cheaper}"
        options = (go_on, COMPACT, *([on_cheaper] if cheaper else []), STOP)
        text = f"{gone[0].sentence('used up')} How do you want to continue?"
        answer = await self._person.choose(Question("", text, options)) if self._person is not None else None
        if answer is not None and answer.cancelled:
            raise TurnCancelled
        choices: dict[str, Verdict] = {go_on: "go on", COMPACT: "compact", on_cheaper: "cheaper"}
        verdict = choices.get(answer.text, "stop") if answer is not None else "stop"
        if verdict == "stop":
            self._stop(gone[0], more)
        # A turn that stops is raised too: the person sees that it stopped, and their next prompt says to go on.
        for used in gone:
            self._raise(used)
        return verdict

    def _stop(self, used: _Used, more: str) -> None:
        self.why_stopped = used.sentence("used up")
        remedy = (
            f"To continue with {more} more, send another prompt, such as “go on”. Set `[budget]` in your `config.toml` "
            "to change it."
        )
        if self._journal is not None:
            self._journal.append(Remark("warning", self.why_stopped, remedy, why_stopped=True))

    def _raise(self, used: _Used) -> None:
        limit = self._raised[used.key] = used.spent + used.amount.value
        self._warned.discard(used.key)
        if self._journal is not None and used.scope != "turn":
            self._journal.append(BudgetRaised(used.scope, used.amount.unit, limit, used.day))

    def _tell(self, title: str) -> None:
        if self._journal is not None:
            self._journal.append(Remark("warning", title))


def _is_near(used: _Used) -> bool:
    return used.spent >= WARN_AT * used.limit
