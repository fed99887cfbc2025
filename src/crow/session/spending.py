"""What a session has used: how full the model's window is, and what everything cost. A fold of its events."""

from crow.events import Event, SubagentDid, UsageReported


class Spending:
    def __init__(self) -> None:
        self.usage: UsageReported | None = None
        """Of the last reply; a subagent's fills a window of its own."""
        self.cost: dict[str, float] = {}
        """By currency, the one last used at the end; subagents' included."""

    def apply(self, event: Event) -> None:
        used = event.what if isinstance(event, SubagentDid) else event
        if not isinstance(used, UsageReported):
            return
        if used.cost is not None:
            self.cost[used.currency] = self.cost.pop(used.currency, 0.0) + used.cost
        if used is event:
            self.usage = used
