"""The subagents of a session."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crow.tools.base import Tool
from crow.tools.task import Errand
from crow.turn.conversation import Conversation
from crow.turn.subagent.places import Places

if TYPE_CHECKING:
    from crow.turn.subagent.run import SubagentRun


class Subagents:
    """`fresh` makes tools that know nothing of what others have read."""

    def __init__(self, parent: Conversation, fresh: Callable[[], Sequence[Tool]]) -> None:
        self._parent = parent
        self._fresh = fresh
        self._places = Places()

    def subagent_for(self, errand: Errand) -> "SubagentRun":
        """One that is ready to go. Nothing is known of it before it works."""
        from crow.turn.subagent.run import SubagentRun  # few sessions send one
        from crow.turn.subagent.tools import tools_for

        tools = tools_for(errand.kind, self._parent.tools, self._fresh())
        return SubagentRun(errand, self._parent, tools, self._places)

    def errand_of(self, call_id: str) -> Errand | None:
        """Of the subagent at work that makes this call; None if the call is the session's own."""
        return self._places.errand_of(call_id)
