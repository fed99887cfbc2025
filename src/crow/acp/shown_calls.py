"""Decides when a client is first told of a tool call (it is held back until its title is known), and what each further
update of the call says.

A call is reported once its title says what it is about, since some clients keep the first title for good: as soon as
the title's argument is there, or all arguments are, and a moment after the call got its name at the latest. From then
on each update tells what is new.

To a client that shows raw output, the report of a call that runs commands announces a terminal under the call's id. If
Crow runs the command itself, that terminal is the call's content, and each update brings what was written since.
"""

import asyncio
from collections.abc import Callable, Container
from typing import assert_never

from msgspec.structs import replace

from crow import events
from crow.acp import translate, wire
from crow.results import DisplayBlock, HiddenOutput, Location, TerminalBlock, TextBlock, ToolKind, ToolResult
from crow.session.replay import PastCall
from crow.visible import call_title, one_line

MOMENT = 0.12
"""Seconds that a call without a target waits for one before it is shown."""

_Step = (
    events.CallRequested | events.CallDescribed | events.PermissionAsked | events.CallStarted | events.CallProgressed
)
"""What happens to a call between its arguments and its end."""
CallEvent = (
    events.CallOpened
    | events.CallPreviewed
    | _Step
    | events.OutputGrew
    | events.TerminalSeen
    | events.CallSettled
    | events.BackgroundEnded
)


class _Call:
    """A call that has not ended: as the client knows it, or, before it is reported, as it will be reported."""

    def __init__(self, opened: events.CallOpened) -> None:
        self.opened = opened
        self.title = opened.title
        self.kind: ToolKind = opened.kind
        self.locations: tuple[Location, ...] = ()
        self.display: tuple[DisplayBlock, ...] = ()
        """The blocks that it will be reported with; empty once it is."""
        self.arguments: str | None = None
        self.is_titled = False
        """Whether its title says what it is about."""
        self.is_shown = False
        self.is_described = False
        self.has_content = False
        self.is_terminal = False
        """Its content is a terminal that shows what its command writes."""
        self.takes_input = False
        """Its command can be typed into."""
        self.asked: tuple[DisplayBlock, ...] = ()
        """The blocks that a question about it has shown."""

    def as_update(self) -> wire.Update:
        return wire.ToolCall(
            tool_call_id=self.opened.call_id,
            title=call_title(self.title),
            name=one_line(self.opened.tool, 200),
            kind=self.kind,
            status="pending",
            content=translate.tool_content(self.display) or None,
            locations=translate.locations(self.locations),
            raw_input=None if self.arguments is None else translate.raw_input(self.arguments),
        )


class ShownCalls:
    """The open calls of one session, each as its client has been shown it.

    `terminals` are the ids of those that the client runs. It is shown the text of any other terminal, unless it shows
    what Crow's own commands write: `shows_output_in` is the session's folder then, as in `UpdateSink`. `takes_changes`:
    it has asked which lines of a diff are changed. While a call's arguments arrive, nobody knows. `can_type`: it is
    told which commands can be typed into.
    """

    def __init__(
        self,
        send: Callable[[wire.Update], None],
        terminals: Container[str] = (),
        shows_output_in: str | None = None,
        *,
        takes_changes: bool = False,
        can_type: bool = False,
    ) -> None:
        self._send = send
        self._can_type = can_type
        self._takes_changes = takes_changes
        self._terminals = terminals
        self._shows_output_in = shows_output_in
        self._loop = asyncio.get_running_loop()
        self._calls: dict[str, _Call] = {}
        self._held: dict[str, asyncio.TimerHandle] = {}
        """By call id: the timers of calls that wait for their title."""
        self._elsewhere: dict[str, str] = {}
        """The calls whose commands run in another client's terminal, by the terminal's id."""
        self._left_running: dict[str, _Call] = {}
        """The calls that have ended, and left a command running."""

    def adopt(self, past: PastCall) -> None:
        """A call that the client has been shown as what it was when the client joined."""
        if past.result is not None and not past.result.background:
            return
        opened = events.CallOpened(past.call_id, past.tool, past.kind, past.title, quiet=past.quiet)
        call = _Call(opened)
        (self._calls if past.result is None else self._left_running)[past.call_id] = call
        call.locations, call.arguments = past.locations, past.arguments
        call.is_titled = call.is_described = True
        call.is_shown, call.has_content = not past.quiet, bool(past.display)

    def announced(self, report: wire.Update) -> wire.Update:
        """The report of a call; if it runs commands and the client shows raw output, with a terminal for that."""
        if self._shows_output_in is None or not isinstance(report, wire.ToolCall) or report.kind != ToolKind.EXECUTE:
            return report
        return replace(report, meta=translate.terminal_announced(report.tool_call_id, self._shows_output_in))

    def title_of(self, call_id: str) -> str:
        """The title of a call that is shown; empty if it is not."""
        call = self._calls.get(call_id)
        return call_title(call.title) if call is not None and call.is_shown else ""

    def answered(self, event: events.PermissionAnswered) -> None:
        """Whoever asked about the call elsewhere has an answer: a client that keeps the question open drops it."""
        call = self._calls.get(event.call_id)
        if call is not None and call.is_shown:
            meta = wire.CallMeta(crow=wire.CallFacts(answered_by=event.by, allowed=event.allowed))
            self._send(wire.ToolCallUpdate(tool_call_id=event.call_id, meta=meta))

    def show_held(self) -> None:
        """Whatever waits for its title is shown now: what comes next must not overtake it."""
        for call_id in list(self._held):
            self._show(self._calls[call_id])

    def close(self) -> None:
        """What waits for its title is never shown."""
        for timer in self._held.values():
            timer.cancel()
        self._held.clear()

    def take(self, event: CallEvent) -> None:
        match event:
            case events.CallOpened():
                self._open(event)
            case events.CallSettled():
                self._settle(event)
            case events.CallPreviewed():
                self._preview(event)
            case events.BackgroundEnded():
                self._end_in_background(event)
            case events.TerminalSeen():
                self._show_terminal(event)
            case events.OutputGrew():
                self._grow(event)
            case _:
                self._go_on(event)

    def wait(self, wait: events.StillWaiting) -> None:
        """Names a wait in the call that waits, unless that shows something better."""
        call = self._calls.get(wait.call_id)
        if call is not None and call.is_shown and not call.has_content:
            content = translate.tool_content((translate.wait_in_call(wait),))
            self._send(wire.ToolCallUpdate(tool_call_id=wait.call_id, content=content))

    def _open(self, event: events.CallOpened) -> None:
        self._calls[event.call_id] = call = _Call(event)
        if not event.quiet:
            self._held[event.call_id] = self._loop.call_later(MOMENT, self._show, call)

    def _show(self, call: _Call) -> None:
        if call.is_shown:
            return
        while call.opened.call_id in self._held:  # in the order in which they began
            self._show_first_held()
        if not call.is_shown:
            self._report(call)

    def _show_titled(self) -> None:
        while self._held and self._calls[next(iter(self._held))].is_titled:
            self._show_first_held()

    def _show_first_held(self) -> None:
        first = next(iter(self._held))
        self._held.pop(first).cancel()
        self._report(self._calls[first])

    def _report(self, call: _Call) -> None:
        self._send(self.announced(call.as_update()))
        call.is_shown, call.has_content, call.display = True, bool(call.display), ()

    def _preview(self, event: events.CallPreviewed) -> None:
        call = self._calls.get(event.call_id)
        if call is None:
            return
        call.title = event.title or call.title
        call.locations = event.locations or call.locations
        if call.is_shown:
            call.has_content = call.has_content or bool(event.display)
            self._send(translate.preview(event))
            return
        call.display = event.display or call.display
        call.is_titled = call.is_titled or bool(event.title)
        self._show_titled()

    def _go_on(self, event: _Step) -> None:
        call = self._calls.get(event.call_id)
        if call is None:
            return
        if call.opened.quiet and not call.is_shown and not isinstance(event, events.PermissionAsked):
            if isinstance(event, events.CallRequested):
                call.arguments = event.used
            return
        if not call.is_shown and isinstance(event, events.CallRequested):
            call.arguments = event.used
            self._show(call)
            return
        self._show(call)
        self._change(call, event)

    def _change(self, call: _Call, event: _Step) -> None:
        match event:
            case events.CallRequested():
                self._send(wire.ToolCallUpdate(tool_call_id=event.call_id, raw_input=translate.raw_input(event.used)))
            case events.CallDescribed():
                self._describe(call, event)
            case events.PermissionAsked():
                call.asked, call.has_content = event.display, True
            case events.CallStarted():
                self._send(wire.ToolCallUpdate(tool_call_id=event.call_id, status="in_progress"))
            case events.CallProgressed() if call.is_terminal:
                pass  # the same, as text
            case events.CallProgressed():
                self._show_progress(call, event)
            case _:
                assert_never(event)

    def _show_progress(self, call: _Call, event: events.CallProgressed) -> None:
        visible = self._visible(event.display)
        if visible is not event.display:
            shown = (block.terminal_id for block in event.display if isinstance(block, TerminalBlock))
            self._elsewhere.update(dict.fromkeys(shown, event.call_id))
        if visible or not event.display:
            call.has_content = True
            content = translate.tool_content(visible, with_changes=self._takes_changes)
            self._send(wire.ToolCallUpdate(tool_call_id=event.call_id, content=content))

    def _grow(self, event: events.OutputGrew) -> None:
        call = self._calls.get(event.call_id) or self._left_running.get(event.call_id)
        if call is None or self._shows_output_in is None:
            return
        if call.is_terminal:
            if event.data:
                self._send(self._typable(call, translate.terminal_growth(event)))
            return
        self._show(call)
        call.is_terminal = call.has_content = True
        call.takes_input = event.takes_input
        elsewhere = event.cwd not in ("", self._shows_output_in)
        begun = translate.terminal_begun(event, (TextBlock(f"in {one_line(event.cwd)}"),) if elsewhere else ())
        self._send(self._typable(call, begun))

    def _typable(self, call: _Call, update: wire.Update) -> wire.Update:
        """An update of a command, for a client that wants to know whether it can be typed into."""
        if not (self._can_type and call.takes_input and isinstance(update, wire.ToolCallUpdate)):
            return update
        return replace(update, meta=replace(update.meta or wire.CallMeta(), crow=wire.CallFacts(input="open")))

    def _show_terminal(self, event: events.TerminalSeen) -> None:
        """Shows the text of another client's terminal in the call that it belongs to."""
        call = self._calls.get(self._elsewhere.get(event.terminal_id, ""))
        if call is not None:
            self._show_progress(call, events.CallProgressed(call.opened.call_id, (TextBlock(event.text),)))

    def _describe(self, call: _Call, event: events.CallDescribed) -> None:
        """A second description is sent even if it says nothing new: something else may stand in the call's place."""
        known = (call.title, call.kind, call.locations) == (event.title, event.kind, event.locations or call.locations)
        if known and not call.is_described:
            call.is_described = True
            return
        call.is_described = True
        call.title, call.kind, call.locations = event.title, event.kind, event.locations or call.locations
        self._send(
            wire.ToolCallUpdate(
                tool_call_id=event.call_id,
                title=call_title(event.title),
                kind=event.kind,
                locations=translate.locations(event.locations),
            )
        )

    def _settle(self, event: events.CallSettled) -> None:
        call = self._calls.get(event.call_id)
        if call is None:
            return
        requested = call.arguments is not None
        if call.is_shown or not translate.is_never_shown(
            quiet=call.opened.quiet, requested=requested, result=event.result
        ):
            self._show(call)
            self._send(self._timed(self._end_of(call, event), event.seconds))
            if event.result.background:
                self._left_running[event.call_id] = call
        self._elsewhere = {id: call_id for id, call_id in self._elsewhere.items() if call_id != event.call_id}
        del self._calls[event.call_id]

    def _end_of(self, call: _Call, event: events.CallSettled) -> wire.Update:
        """What the client has is not sent once more: a large diff that was asked about, and its own terminal.

        After such a diff a word on how it ended stands in the title, and in the raw output.
        """
        result = self._visible_result(event.result)
        if call.is_terminal:
            return translate.settled_terminal(event.call_id, result, call.title)
        display = result.display
        known = bool(call.asked) and call.asked == display[: len(call.asked)] and translate.is_large(call.asked)
        with_content = not known and not _has_terminal(display)
        return self._settled(event.call_id, result, call.title, with_content=with_content)

    def _settled(self, call_id: str, result: ToolResult, title: str, *, with_content: bool) -> wire.Update:
        return translate.settled(call_id, result, title, with_content=with_content, with_changes=self._takes_changes)

    def _end_in_background(self, event: events.BackgroundEnded) -> None:
        """A client may be shown more of a call that has ended; one that takes no such update gets the notice."""
        call = self._left_running.pop(event.call_id, None)
        if call is None:
            return
        result = self._visible_result(event.result)
        if call.is_terminal:
            ended = translate.settled_terminal(event.call_id, result, call.title)
        else:
            with_content = not _has_terminal(result.display)
            ended = self._settled(event.call_id, result, call.title, with_content=with_content)
        self._send(self._timed(ended, event.seconds))

    def _timed(self, ended: wire.Update, seconds: float | None) -> wire.Update:
        """The end of a call, for a client that has asked how long it took."""
        if not self._takes_changes or seconds is None or not isinstance(ended, wire.ToolCallUpdate):
            return ended
        return replace(ended, meta=replace(ended.meta or wire.CallMeta(), crow=wire.CallFacts(seconds=seconds)))

    def _visible_result(self, result: ToolResult) -> ToolResult:
        display = self._visible(result.display)
        return result if display is result.display else replace(result, display=display)

    def _visible(self, display: tuple[DisplayBlock, ...]) -> tuple[DisplayBlock, ...]:
        """The blocks as this client can show them: of another client's terminal, what was seen there."""
        if all(block.terminal_id in self._terminals for block in display if isinstance(block, TerminalBlock)):
            return display
        shown = (block for block in display if not isinstance(block, TerminalBlock))
        return tuple(TextBlock(block.text) if isinstance(block, HiddenOutput) else block for block in shown)


def _has_terminal(display: tuple[DisplayBlock, ...]) -> bool:
    """Whether the client shows it by itself, in a terminal of its own that may be released by now."""
    return any(isinstance(block, TerminalBlock) for block in display)
