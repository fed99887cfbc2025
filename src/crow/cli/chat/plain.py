"""`crow chat` where the terminal can do no more than print lines: one line is typed, the answer is printed below it."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Sequence

from crow.cli.answer_keys import Choice, choice_for
from crow.cli.chat.conversation import TWICE, Conversation
from crow.cli.chat.messages import Message, clean_lines
from crow.cli.chat.questions import REJECTS_ONCE, answer_with
from crow.cli.interactive_client import Answer, Invite, complain
from crow.cli.opening import Opening
from crow.cli.render import Renderer
from crow.cli.render_screen import Screen
from crow.errors import CrowError
from crow.visible import one_line

PROMPT = "> "
PASTE_GAP = 0.1
"""Seconds in which the next piece of a paste comes; whoever presses a key after one takes longer."""
LARGEST_READ = 64 * 1024


class PlainChat:
    """What is typed while a turn runs goes into it, or is queued, as in the other chat; what is typed while a question
    is open answers it."""

    def __init__(self, opening: Opening, attached: Sequence[str]) -> None:
        self._screen = PlainScreen.of(sys.stdout, os.environ)
        self._renderer = PlainRenderer(self._screen, folder=os.path.realpath(opening.cwd))
        self._question: asyncio.Future[Answer] | None = None
        self._choices: Sequence[Choice] = ()
        self._takes_reason = False
        self._conversation = Conversation(opening, self._renderer, self, self)
        self._attached = tuple(attached)
        self._typed = ""
        self._taking: asyncio.TimerHandle | None = None
        self._is_prompted = False
        self._leaves_until = 0.0
        self._end: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run(self, first: str) -> int:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), self._read)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._leave, 128 + number)
        if first.strip():
            self._send(first)
        talking = asyncio.create_task(self._conversation.run())
        talking.add_done_callback(self._on_end)
        try:
            return await self._end
        finally:
            loop.remove_reader(sys.stdin.fileno())
            talking.cancel()
            await asyncio.wait([talking])
            self._screen.end_line()
            self._screen.flush()

    def _leave(self, code: int = 0) -> None:
        if not self._end.done():
            self._end.set_result(code)

    def _on_end(self, talking: "asyncio.Task[None]") -> None:
        error = None if talking.cancelled() else talking.exception()
        if self._end.done() or error is None:
            self._leave()
        elif isinstance(error, CrowError):
            self._renderer.close()
            self._leave(complain(error))
        else:
            self._end.set_exception(error)

    # --- what is typed

    def _read(self) -> None:
        try:
            typed = os.read(sys.stdin.fileno(), LARGEST_READ).decode("utf-8", "replace")
        except OSError:
            typed = ""
        if not typed:  # Ctrl-D, or the terminal is gone
            self._leave()
        self._typed += typed
        if typed.endswith("\n"):
            self._screen.column = 0  # the terminal has shown the line, and its end
            if self._taking is not None:
                self._taking.cancel()
            self._taking = asyncio.get_running_loop().call_later(PASTE_GAP, self._take_lines)

    def _take_lines(self) -> None:
        """Lines that came together were pasted, and are one message."""
        self._taking = None
        self._is_prompted = False
        # The terminal makes a line feed of every carriage return.
        lines, _, self._typed = clean_lines(self._typed.replace("\n", "\r")).rpartition("\n")
        self._take(lines)

    def _take(self, line: str) -> None:
        if self._question is not None:
            self._answer(line.strip())
        elif line.endswith("\\"):
            self._typed = f"{line[:-1]}\n{self._typed}"  # it goes on
        elif self._conversation.leaves(line):
            self._leave()
        elif line.strip():
            self._send(line)
        else:
            self._conversation.send_waiting()
        self.changed()

    def _answer(self, typed: str) -> None:
        choice, reason = choice_for(typed, self._choices), ""
        if choice is None and self._takes_reason:
            key, _, reason = typed.partition(" ")
            choice = choice_for(key, self._choices)
            choice = choice if choice is not None and choice.option.kind == REJECTS_ONCE else None
        if choice is None and typed:
            keys = ", ".join(choice.key for choice in self._choices)
            how = f"This is no answer, and was not sent. Answer with one of these: {keys}"
            self._renderer.mark("!", f"{how}; a reason may follow the n" if self._takes_reason else how)
        elif choice is not None and self._question is not None and not self._question.done():
            self._question.set_result(answer_with(choice, reason))

    def _send(self, text: str) -> None:
        if self._conversation.refuses(text):
            return
        is_steering = self._conversation.steers(text)
        if self._conversation.is_running:
            self._renderer.mark("i", "This goes into the turn." if is_steering else "This is sent after the turn.")
        self._conversation.submit(Message(text, self._attached))
        self._attached = ()

    def _interrupt(self) -> None:
        if time.monotonic() < self._leaves_until:
            self._leave()
            return
        self._leaves_until = time.monotonic() + TWICE
        self._is_prompted = False
        self._typed = ""  # the terminal has forgotten its part too
        if self._conversation.is_running:
            self._conversation.cancel()
        else:
            self._renderer.mark("i", "Ctrl-C again leaves.")
        self.changed()

    # --- what the conversation tells

    def changed(self) -> None:
        """Whenever it is the person's turn, the line begins with a sign that says so. A message that is taken out of
        the queue begins a turn in the same moment."""
        asyncio.get_running_loop().call_soon(self._prompt)

    def _prompt(self) -> None:
        is_free = self._conversation.is_ready and not self._conversation.is_running
        if not is_free:
            self._is_prompted = False
        elif not self._is_prompted and not self._end.done():
            self._is_prompted = True
            self._say_what_is_held()
            self._renderer.pause()
            self._screen.write(f"\n{PROMPT}")
            self._screen.flush()

    def _say_what_is_held(self) -> None:
        outbox = self._conversation.outbox
        for entry in outbox.waiting if outbox.is_held else ():
            self._renderer.mark("i", f"Not sent; Enter on an empty line sends it: {one_line(entry.message.text)}")

    def attention(self, words: str) -> None:
        """Whoever reads line by line is there."""

    def give_back(self, message: Message) -> None:
        """What was typed stands above."""

    def takes_reason(self, takes_reason: bool) -> None:
        self._takes_reason = takes_reason

    # --- questions

    def listening(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        self._choices = choices
        self._question = asyncio.get_running_loop().create_future()
        invite("")
        try:
            return await self._question
        finally:
            self._question = None


class PlainScreen(Screen):
    """What cannot be written is nobody's loss: that the terminal is gone is noticed where it is read."""

    def write(self, text: str, style: str = "") -> None:
        with contextlib.suppress(OSError):
            super().write(text, style)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


class PlainRenderer(Renderer):
    shows_prompts = True

    def prompt(self, text: str) -> None:
        """It was typed here: the terminal shows it."""

    def show_answer(self, answer: str) -> None:
        """Below the key that was typed."""
        if not self._screen.column:
            self._screen.write("    ")
        super().show_answer(answer)
