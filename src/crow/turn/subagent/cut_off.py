"""What subagents had done when Crow was stopped: read from the session's past, for the calls that they worked for."""

from msgspec.structs import replace

from crow import events
from crow.results import ToolResult
from crow.turn.subagent.steps import Steps


class CutOff:
    """Fed with every event of a session, in order."""

    def __init__(self) -> None:
        self._steps: dict[str, Steps] = {}
        """By the call that a subagent works for, until that has ended."""
        self._parents: dict[str, str] = {}
        """For each call of a subagent the call that the subagent works for."""

    def apply(self, event: events.Event) -> None:
        match event:
            case events.SubagentDid(call_id=call_id, what=what):
                if isinstance(what, events.CallOpened):
                    self._parents[what.call_id] = call_id
                self._steps.setdefault(call_id, Steps()).apply(what)
            case events.CallSettled() if event.call_id in self._steps:
                del self._steps[event.call_id]
            case (
                events.PermissionAsked()
                | events.PermissionAnswered()
                | events.CallStarted()
                | events.CallSettled()
                | events.FileWritten()
            ):
                # Files, and what follows when the person is asked about a call, are the session's own events.
                steps = self._steps.get(self._parents.get(event.call_id, ""))
                if steps is not None:
                    steps.apply(event)
            case _:
                pass

    def told(self, call_id: str, interrupted: ToolResult) -> ToolResult:
        """The end of a call, with what a subagent did in it if there was one."""
        steps = self._steps.get(call_id)
        if steps is None:
            return interrupted
        steps.cut_off()
        text = f"{interrupted.text}{steps.steps_told()}{steps.files_told()}"
        return replace(interrupted, text=text, display=steps.ended(interrupted.message))
