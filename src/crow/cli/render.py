"""Renders a conversation in a terminal or a pipe from ACP updates: messages, calls, diffs, plans, notices, and the live
line of what is waited for.

On a terminal there are colours, wrapped text and a live line that says what is being waited for, with the last words
of a running command below it. In a file or a pipe the same things stand line by line, as plain text. Nothing that was
written is ever changed.
"""

import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import assert_never

from crow.acp import wire
from crow.cli.render_calls import (
    APART,
    LONGEST_LINE,
    OUTPUT_BORDER,
    PlanShown,
    RunningCall,
    brought,
    fenced,
    has_exit,
    in_words,
    is_titled,
    lines_printed,
    live_lines,
    message_of,
    shown_diff,
    subagents,
    text_lines,
    title_style,
    unsaid,
)
from crow.cli.render_prose import Prose, Wrapped, prose
from crow.cli.render_screen import (
    BAD,
    BOLD,
    CODE,
    DIM,
    GOOD,
    HEADING,
    PLAIN,
    QUESTION,
    THOUGHT,
    WARNING,
    Screen,
    cells,
    clean_prose,
    counted,
    cut,
    duration,
    folded,
)
from crow.config.settings import shown_amount
from crow.messages import StopReason
from crow.paths import relative_to
from crow.visible import one_line, plain_title

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SILENCE = 1.0
"""Seconds without a word after which a line that is being written gets a spinner at its end."""

NOTICES = {"info": ("i", DIM), "warning": ("!", WARNING), "error": ("✗", BAD)}
DIFF_STYLES = {"+": GOOD, "-": BAD, " ": DIM, APART: DIM}

ENDED = ("completed", "failed")
"""The statuses of a call that has ended."""
WAITS = {"text": "writing", "thought": "thinking", "prompt": "waiting for the model"}
"""What the live line says after some words of each kind."""
STOPPING = "stopping"
ANSWER = "  → "
REST_OF_LINES = "long lines cut"
OUTPUT_LINES = 10
"""Lines that stay of a command's output: the last ones."""
DIFF_LINES = 30
ASKED_LINES = 2000
"""Lines that are shown of what the person is asked about: all of them, where it can be read at all."""
LONGEST_ASKED_LINE = 20_000
"""Columns that are shown of a line of what the person is asked about."""
UNFOLD = "Ctrl-O"
"""The key that shows all of it, where there is one."""
MOST_FOLDED = 50
"""Outputs that can still be unfolded: the last ones."""
PROMPT_ROWS = 10
"""Rows that are shown of a long prompt, such as one that was pasted."""
MOST_SHOWN = 1_000_000
"""Characters of a change, in all its lines: more would only push everything else out of the terminal."""


Fold = tuple[str, Sequence[tuple[str, str]]]
"""The title and the lines, each with its style, of a text of which only a part was shown."""


class Renderer:
    """Shows the updates of a session on a screen.

    `in_chat`: prompts of a replay and of other clients are shown too, what is folded can be unfolded, and choices,
    usage and what is being waited for stand in the rows below.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        folder: str = "",
        in_chat: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        """The project's, without links: paths in it are shown relative to it."""
        self.folds: list[Fold] = []
        """What was folded in a chat and can still be unfolded."""
        self._screen = screen
        self._in_chat = in_chat
        self._clock = clock
        self._block = ""
        """What the last line belongs to: between different things there is an empty line."""
        self._prose: Prose | None = None
        self._calls: dict[str, RunningCall] = {}
        self._ended_calls: set[str] = set()
        self._plan = PlanShown()
        self._usage: wire.UsageUpdate | None = None
        self._waiting = ""
        self._waiting_since = self._turn_since = self._last_word = clock()
        self._retry_at: float | None = None
        self._asking = False
        self._asked = ""
        """The title of what was asked last."""
        self._hint: str | None = None
        """What stands where the answer to it will be; None while none is taken."""
        self._prompt = ""
        """The prompt that was shown last."""
        self._prompts_sent = 0

    # --- the frame around a turn

    def scene(self, title: str) -> None:
        """A heading over what follows."""
        self._open_block("scene " + title)
        self._screen.line(title, HEADING)
        self._screen.line("─" * min(cells(title), self._screen.width or 100), DIM)
        self._screen.flush()

    def prompt(self, text: str) -> None:
        """Shows what the person sends here, as it is shown when the conversation is loaded again."""
        self._prompts_sent += 1
        self._show_prompt(wire.TextContent(text=text), f"sent {self._prompts_sent}")
        self.pause()

    def wait(self, label: str) -> None:
        """From now on the live line says this, with the time that passes."""
        self._waiting, self._waiting_since, self._retry_at = label, self._clock(), None

    def begin_turn(self) -> None:
        self._turn_since = self._clock()
        self._usage = None
        self._wait_for_the_rest()  # a turn that was joined may have calls that run

    def pause(self) -> None:
        """Something is about to be written elsewhere: shows what was held back, and ends the line."""
        self._end_prose()
        self._screen.end_line()
        self._screen.flush()

    def interrupted(self) -> None:
        """The person pressed Ctrl-C, which most terminals show as ^C: what follows begins on a new line."""
        self._end_prose()
        if self._screen.live:
            self._screen.write("\n")
        self.wait(STOPPING)

    def stop(self, reason: str, left_open: str = "") -> None:
        """The turn ended: says why, how long it took and, if known, how full the model's window is.

        `left_open` is what it ended with, if it is for the person to go on; see PromptFacts.
        """
        self._close_turn()
        took = duration(self._clock() - self._turn_since)
        words = how_it_stopped(reason, left_open)
        if self._usage is not None and not self._in_chat:
            window = f" of {self._usage.size:,}" if self._usage.size else ""
            usage = f"{self._usage.used:,}{window} tokens"
            if (cost := self._usage.cost) is not None:
                usage += f" · {shown_amount(cost.amount, cost.currency)}"
        else:
            usage = ""
        self._open_block("end")
        mark, style = ("✓", DIM) if reason == "end_turn" else ("■", WARNING)
        self._line(f"{mark} ", style, (" · ".join(filter(None, (words, took, usage))), style))
        self._screen.flush()

    def fail(self, message: str) -> None:
        """The turn ended with an error."""
        self._close_turn()
        self.mark("✗", message, BAD)

    @property
    def held(self) -> str:
        """What is held back of the line that is being written: it may turn out to be a part of something."""
        return self._prose.held if self._prose is not None else ""

    @property
    def is_stopping(self) -> bool:
        """Whether the person has pressed Ctrl-C in this turn."""
        return self._waiting == STOPPING

    def forget_calls(self) -> None:
        """What runs now goes on without us: it has not ended here."""
        self._calls.clear()

    def close(self) -> None:
        """Leaves the cursor on a line of its own, whatever happened before."""
        self._close_turn()
        self._screen.flush()

    # --- what the agent says

    def update(self, update: wire.Update) -> None:
        match update:
            case wire.AgentMessageChunk():
                self._say("text", update.content, update.message_id)
            case wire.AgentThoughtChunk():
                self._say("thought", update.content, update.message_id)
            case wire.ToolCall() | wire.ToolCallUpdate():
                self._follow(update)
            case wire.Plan():
                self._show_plan(update)
            case wire.Notice():
                self._notice(update)
            case wire.UsageUpdate():
                self._usage = update
            case wire.UserMessageChunk():
                if self._in_chat:
                    self._show_prompt(update.content, update.message_id)
            case (
                wire.AvailableCommandsUpdate()
                | wire.CurrentModeUpdate()
                | wire.ConfigOptionUpdate()
                | wire.SessionInfoUpdate()
                | wire.CompactionUpdate()
            ):
                pass  # of use to a client in which one can choose
            case _:
                assert_never(update)
        self._screen.flush()

    def mark(self, mark: str, text: str, style: str = "") -> None:
        """A line of our own with a sign in front; a long one is wrapped and indented."""
        self._open_block("mark " + mark)
        self._line(f"{mark} ", style, (clean_prose(text), style))
        self._screen.flush()

    def _say(self, kind: str, content: wire.ContentBlock, message_id: str | None) -> None:
        block = f"{kind} {message_id}"
        words = in_words(content)
        if block != self._block or self._prose is None:
            self._open_block(block)
            self._prose = self._new_prose(kind)
            words = words.lstrip("\n")  # it begins on a line of its own here anyway
        self._prose.feed(words)
        label = WAITS[kind]
        if self._waiting != label:
            self.wait(label)
        self._last_word = self._clock()

    def _show_prompt(self, content: wire.ContentBlock, message_id: str | None) -> None:
        if isinstance(content, wire.ResourceLink):
            if content.name not in self._prompt:
                self._say("prompt", wire.TextContent(text=f" [{one_line(content.name)}]"), message_id)
            return
        if not isinstance(content, wire.TextContent) or not self._in_chat:
            self._say("prompt", content, message_id)
            return
        self._prompt = content.text
        lines = content.text.split("\n")
        shown = first_rows(lines, max((self._screen.width or 80) - 2, 1), PROMPT_ROWS)
        self._say("prompt", wire.TextContent(text="\n".join(shown)), message_id)
        if shown != lines:
            self.pause()
            whole = [(f"  {line}", PLAIN) for line in clean_prose(content.text).split("\n")]
            self._more("Your message", len(shown), whole, is_cut=shown != lines[: len(shown)])

    def _new_prose(self, kind: str) -> Prose:
        if kind == "thought":
            return prose(self._screen, first="… ", rest="  ", style=THOUGHT, markdown=False)
        if kind == "prompt":
            return prose(self._screen, first="▸ ", rest="  ", style=BOLD, markdown=False)
        return prose(self._screen)

    def _notice(self, notice: wire.Notice) -> None:
        if is_wait(notice) and (self._screen.live or self._asking):
            return  # the live line says it while it lasts, and a person who is asked knows
        mark, style = NOTICES.get(notice.severity, NOTICES["info"])
        self.mark(mark, f"{notice.title}\n{notice.description or ''}", style)
        if self._asking and self._hint is not None:
            self._name_question()
            self.invite(self._hint)
        if self._waiting != STOPPING and not self._calls:  # else the live line names one that runs
            self.wait("waiting for the model")
        if notice.meta is not None and (seconds := notice.meta.crow.retry_in or 0) >= 1:
            self._retry_at = self._clock() + seconds

    # --- tool calls

    def _follow(self, update: wire.ToolCall | wire.ToolCallUpdate) -> None:
        if update.tool_call_id in self._ended_calls and (
            # How a command in the background has ended: a notice says it too.
            isinstance(update, wire.ToolCallUpdate)
            # A call of a turn that was cut off, told again by the process that goes on with the session.
            or update.status in ENDED
        ):
            return
        call = self._know(update)
        if update.status in ENDED:
            self._settle(update.tool_call_id, call, ok=update.status == "completed")
            return
        if update.status == "in_progress":  # the model has said what it had to say before it
            self._end_prose()
            self._screen.end_line()
        if self._waiting != call.title:
            self.wait(call.title)

    def _know(self, update: wire.ToolCall | wire.ToolCallFields) -> RunningCall:
        self._ended_calls.discard(update.tool_call_id)
        call = self._calls.get(update.tool_call_id)
        if call is None:
            call = self._calls[update.tool_call_id] = RunningCall("Tool call", self._clock())
        if update.title:
            call.title = one_line(plain_title(update.title))
            call.title_tells_end = update.status in ENDED
        call.kind = update.kind or call.kind
        call.is_task = call.is_task or (isinstance(update, wire.ToolCall) and update.name == "task")
        if update.status == "in_progress" and call.status != "in_progress":
            call.started = self._clock()
            call.content = []  # from now on it is what the call brings, no longer what it is about to do
        if update.content is not None:
            call.content = update.content
        call.message = message_of(update.raw_output) or call.message
        call.has_exit = has_exit(update.raw_output)
        call.lines_printed = lines_printed(update.raw_output)
        call.status = update.status or call.status
        return call

    def _settle(self, call_id: str, call: RunningCall, *, ok: bool) -> None:
        del self._calls[call_id]
        self._ended_calls.add(call_id)
        if not ok or call.kind != "think" or call.content:  # a plan shows itself
            self._show_end(call, ok=ok)
        self._wait_for_the_rest()

    def _wait_for_the_rest(self) -> None:
        """The live line names a call that still runs, if there is one."""
        running = list(self._calls.values())
        self.wait(running[-1].title if running else "waiting for the model")

    def _show_end(self, call: RunningCall, *, ok: bool) -> None:
        """One line, and below it what the person has not seen yet: why it failed, the change, the last output."""
        fact, lines = brought(call, ok=ok)
        is_command = call.kind == "execute"
        seconds = self._clock() - call.started
        took = "" if is_command and call.message else duration(seconds)
        facts = unsaid([fact, took], call.title)
        if fact in facts and call.has_exit and call.title_tells_end:
            facts = [f"{seconds:.1f} s"]  # all that the title does not tell of how the command ended
        self._call_line("✓" if ok else "✗", GOOD if ok else BAD, call, facts)
        if is_command or call.is_task:
            self._output(call.title, lines, max(call.lines_printed, len(lines)))
        else:
            self._details(call.title, lines)
        for item in call.content:
            if isinstance(item, wire.DiffToolContent) and item not in call.asked:
                self._diff(call.title, item, DIFF_LINES, LONGEST_LINE)

    def _call_line(self, mark: str, style: str, call: RunningCall, facts: list[str]) -> None:
        self._open_block("calls")
        title = (call.title, title_style(call.kind))
        self._line(f"{mark} ", style, title, *((f" · {fact}", DIM) for fact in facts))

    def _details(self, title: str, lines: list[str], most: int = 8) -> None:
        most = most if len(lines) > most + 1 else len(lines)
        for line in lines[:most]:
            self._line("  ", DIM, (line, DIM))
        self._more(title, most, [(f"  {line}", DIM) for line in lines])

    @property
    def output_columns(self) -> int:
        """How wide a line of a command's output can be to be shown in one; 0 if any can."""
        width = self._screen.width
        return width - cells(OUTPUT_BORDER) if width else 0

    def _output(self, title: str, lines: list[str], total: int) -> None:
        """The end of it, where programs say how it went. `total`: lines that were printed, also those not here."""
        last = lines[-OUTPUT_LINES:]
        shown = [cut(line, LONGEST_LINE) for line in last]
        before = f"{counted(total - len(last), 'earlier line')}" if total > len(last) else ""
        whole = [(f"  {line}", PLAIN) for line in lines]
        self._say_what_is_left_out(OUTPUT_BORDER, before, title, whole, is_cut=shown != last)
        for line in shown:
            self._code(OUTPUT_BORDER, line, DIM)

    def _diff(self, title: str, change: wire.DiffToolContent, most: int, longest: int) -> None:
        """At most so many lines of a change, each of at most so many columns."""
        size, lines = shown_diff(change)
        path = one_line(relative_to(change.path, self.folder) if self.folder else change.path)
        new = " (new)" if change.old_text is None else ""
        self._line("  ", DIM, (path, BOLD), (f"{new} · {size}", DIM))
        most = most if len(lines) > most + 1 else len(lines)
        shown = _that_fit([cut(text, longest) for _, text in lines[:most]])
        for (mark, _), text in zip(lines, shown, strict=False):
            self._code(f"  {mark} ", text, DIFF_STYLES[mark])
        is_cut = any(text != line.text for text, line in zip(shown, lines, strict=False))
        whole = title if path in title else f"{title} · {path}"
        self._more(whole, len(shown), [(f"  {mark} {text}", DIFF_STYLES[mark]) for mark, text in lines], is_cut=is_cut)

    def _more(self, title: str, shown: int, lines: Sequence[tuple[str, str]], *, is_cut: bool = False) -> None:
        """`is_cut`: of a line that is shown, not all is."""
        more = counted(len(lines) - shown, "more line") if len(lines) > shown else ""
        self._say_what_is_left_out("  ", more, title, lines, is_cut=is_cut)

    def _say_what_is_left_out(
        self, border: str, more: str, title: str, lines: Sequence[tuple[str, str]], *, is_cut: bool
    ) -> None:
        """Nothing, if all is shown. `more` counts whole lines; that others are cut helps only who can unfold them."""
        if words := ", ".join(filter(None, (more, REST_OF_LINES if is_cut and self._in_chat else ""))):
            self._left_out(f"{border}… {words}", title, lines)

    def _left_out(self, words: str, title: str, lines: Sequence[tuple[str, str]]) -> None:
        """Says that not all lines of something are shown, and in a chat keeps them to be unfolded."""
        if self._in_chat:
            self.folds = [*self.folds[1 - MOST_FOLDED :], (title, lines)]
            words += f" · {UNFOLD}"
        self._screen.line(words, DIM)

    def print_fold(self, fold: Fold) -> None:
        """Prints all of what was folded, to stay."""
        title, lines = fold
        self.mark("▾", title, DIM)
        for text, style in lines:
            self._code("", text, style)
        self._screen.flush()

    # --- the plan

    def _show_plan(self, plan: wire.Plan) -> None:
        heading, steps = self._plan.changes(plan)
        if not heading:
            return
        self._open_block("plan " + heading)
        self._screen.line(heading, DIM)
        for step in steps:
            self._line(f"  {step.tick} ", step.tick_style, (step.text, step.text_style))

    # --- questions

    def ask(self, request: wire.RequestPermissionRequest, choices: Sequence[tuple[str, str]] = ()) -> None:
        """Shows what is asked and why, and the choices as keys and words. The live line rests until `show_answer`."""
        call = self._know(request.tool_call)
        self._asking, self._asked, self._hint = True, call.title, None
        content = request.tool_call.content or []
        call.asked = content
        self._open_block("question")
        if call.kind != "execute" and is_titled(text_lines(content), call.title):  # something is to be known, not done
            self._line("? ", QUESTION, (call.title, BOLD))
            self._calls.pop(request.tool_call.tool_call_id)  # so it does not end either
        else:
            self._line("? ", QUESTION, ("Permission needed: ", BOLD), (call.title, title_style(call.kind, BOLD)))
            self._show_asked(content, call.title)
        for key, words in () if self._in_chat else choices:
            self._line(f"  {key}  ", QUESTION, (one_line(words), PLAIN))
        self._screen.flush()

    def _show_asked(self, content: list[wire.ToolContent], title: str) -> None:
        """Everything that would be done, and why it is asked."""
        for item in content:
            match item:
                case wire.DiffToolContent():
                    self._diff(title, item, ASKED_LINES, LONGEST_ASKED_LINE)
                case wire.ContentToolContent():
                    code = fenced(item)
                    if code and not is_titled(code, title):
                        for line in code:
                            self._code(OUTPUT_BORDER, line, CODE)
                    elif not code:
                        self._details(title, text_lines([item]), most=ASKED_LINES)
                case wire.TerminalToolContent():
                    pass  # we offer no terminals, so there is none to look into
                case _:
                    assert_never(item)

    def invite(self, hint: str = "") -> None:
        """From now on an answer is taken. The hint is shown where the answer will stand, until it does."""
        self._hint = hint
        self._screen.hide_live()
        if not self._screen.column:
            self._screen.write(ANSWER, QUESTION)
        if hint and self._screen.live:
            self._screen.show_live(hint)
        elif hint:
            self._screen.write(f"{hint} ")
        self._screen.flush()

    def show_answer(self, answer: str) -> None:
        self._asking = False
        self._name_question()
        if not self._screen.column:
            self._screen.write(ANSWER, QUESTION)
        self._screen.write(one_line(answer))
        self._screen.end_line()
        for call in self._calls.values():
            call.started = self._clock()  # the time in which a person was asked is not the tool's
        self.wait("waiting for the model")
        self._screen.flush()

    def _name_question(self) -> None:
        """What an answer is about, if something was said meanwhile."""
        if self._block != "question":
            self._open_block("question")
            self._line("? ", QUESTION, (self._asked, BOLD))

    # --- the live line

    def tick(self) -> None:
        """Called several times a second: shows what is being waited for, and for how long."""
        if self._asking or not self._waiting:
            self._screen.end_live()
            return
        self._screen.measure()
        now = self._clock()
        frame = SPINNER[int(now * 10) % len(SPINNER)]
        if self._screen.column and not self._in_chat:
            silence = now - self._last_word
            if silence >= SILENCE:
                self._screen.show_live(f" {frame} {silence:.0f} s")
            return
        label, elapsed = self._live_label(now)
        words = label + (f" {elapsed:.0f} s" if elapsed >= 1 else "")
        self._screen.show_live(f"{frame} {words}", live_lines(self._calls.values(), label))

    def _live_label(self, now: float) -> tuple[str, float]:
        """What is being waited for, and for how many seconds."""
        if self._retry_at is not None and self._retry_at > now:
            return f"retrying in {self._retry_at - now:.0f} s", 0
        together = subagents(self._calls.values())
        if len(together) > 1:
            return f"{len(together)} subagents running", now - min(call.started for call in together)
        return self._waiting, now - self._waiting_since

    # --- lines and blocks

    def _line(self, start: str, style: str, *pieces: tuple[str, str]) -> None:
        """A line of pieces, each with its style. What does not fit goes on below, indented like the first piece."""
        line = Wrapped(self._screen, start, " " * cells(start), style)
        for text, its_style in pieces:
            line.add(text, its_style)
        line.end()
        self._screen.end_line()

    def _code(self, start: str, text: str, style: str) -> None:
        """A line that keeps its blanks; what does not fit goes on below, as far as the text reaches."""
        width = self._screen.width
        first, *rest = folded(text, width - cells(start)) if width else [text]
        self._screen.line((start + first).rstrip(), style)
        for piece in rest:
            self._screen.line(" " * cells(start) + piece, style)

    def _open_block(self, block: str) -> None:
        """Ends what was being written. Something else than before gets an empty line in between."""
        self._end_prose()
        self._screen.end_line()
        if self._block and block != self._block:
            self._screen.line()
        self._block = block

    def _end_prose(self) -> None:
        if self._prose is not None:
            self._prose.end()
            self._prose = None

    def _close_turn(self) -> None:
        for call in self._calls.values():
            self._call_line("■", WARNING, call, ["not finished"])
        self._calls.clear()
        self._end_prose()
        self._screen.end_live()
        self._screen.end_line()
        self._waiting = ""
        self._asking = False


def is_wait(update: wire.Update) -> bool:
    """Whether it only says that something is still being waited for."""
    return isinstance(update, wire.Notice) and update.meta is not None and update.meta.crow.is_wait


def how_it_stopped(reason: str, left_open: str = "") -> str:
    """A stop reason in words."""
    if left_open == "repetition":
        return "stopped: the same call kept repeating"
    if left_open == "budget":
        return "stopped: budget used up"
    if left_open == "question":
        return "waiting for you"
    if reason == StopReason.END_TURN:
        return "done"
    if reason == StopReason.CANCELLED:
        return "cancelled"
    known = StopReason(reason).why if reason in StopReason.__members__.values() else ""
    return f"stopped: {known}" if known else one_line(f"stopped: {reason}")


def first_rows(lines: list[str], width: int, most: int) -> list[str]:
    """All lines, or if they fill more than twice as many rows as `most`, the first ones; the last may be cut."""
    rows = [-(-max(cells(line), 1) // width) for line in lines]
    if sum(rows) <= 2 * most:
        return lines
    shown: list[str] = []
    for line, its_rows in zip(lines, rows, strict=True):
        if most <= 0:
            break
        shown.append(line if its_rows <= most else cut(line, most * width))
        most -= its_rows
    return shown


def _that_fit(lines: list[str]) -> list[str]:
    """The first of these lines, until they have too many characters together."""
    return lines[: sum(total <= MOST_SHOWN for total in accumulate(map(len, lines)))]
