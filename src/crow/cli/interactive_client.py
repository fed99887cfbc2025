"""The person's part in `crow run`, `crow demo` and, in part, `crow chat`: who answers a permission request, Ctrl-C and
other signals, and the exit code. What is drawn is up to `render.py`.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Generator, Sequence
from types import TracebackType
from typing import Self

from crow.acp.client import Client, Rejection, RemoteAgent
from crow.acp.wire import Notice, RequestPermissionRequest, Update
from crow.cli.answer_keys import TYPING, Answer, Answerer, AnswerKeys, Choice, Invite, choices_of
from crow.cli.process import heeded_signals
from crow.cli.render import Renderer, is_wait
from crow.cli.render_screen import folded
from crow.errors import CrowError
from crow.visible import one_line

AGENT = (sys.executable, "-m", "crow", "acp")
"""The agent is this very program, started as an editor would."""
LAST_WAIT = 2.0
"""Seconds that an interrupted turn has to end."""
FRAME = 0.1
"""Seconds between two pictures of the spinner."""

# --- who answers a permission request

END_OF_INPUT = "\x04"
BACKSPACE = "\x7f"
ESCAPE = "\x1b"
SPECIAL_KEY = re.compile(r"\x1b(\[[0-9;]*[A-Za-z~]|O.|.)?")
"""Arrows, function keys and the like: they begin with an escape and say nothing here."""


class Keyboard(Answerer):
    """The person at the terminal: one key, see `AnswerKeys`. Ctrl-C still interrupts."""

    def __init__(self, terminal: int, *, at_stake: bool = True) -> None:
        self._terminal = terminal
        self._keys = AnswerKeys(self._show_state, at_stake=at_stake)
        self._invite: Invite = lambda _: None
        self._hint: str | None = None
        """What was shown last; None before anything can be answered."""

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        before = termios.tcgetattr(self._terminal)
        # What was typed so far is discarded: it cannot have been meant for a question that is not yet there. Nor can
        # what is typed while it appears.
        tty.setcbreak(self._terminal, termios.TCSAFLUSH)
        self._keys.key_pressed()
        loop.add_reader(self._terminal, self._read)
        try:
            yield
        finally:
            loop.remove_reader(self._terminal)
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, before)

    async def choose(self, choices: Sequence[Choice], invite: Invite) -> Answer:
        self._invite, self._hint = invite, None
        return await self._keys.choose(choices)

    def _show_state(self) -> None:
        keys = self._keys
        if keys.pressed is not None:
            hint = keys.pressed.how_to_confirm if keys.pressed.is_lasting else one_line(keys.pressed.option.name)
        else:
            hint = "" if keys.takes_keys else TYPING
        is_first = self._hint is None and not keys.takes_keys
        if keys.choices and hint != self._hint and not is_first:
            self._hint = hint
            self._invite(hint)

    def _read(self) -> None:
        try:
            typed = os.read(self._terminal, 64).decode("utf-8", "replace")
        except OSError:
            typed = ""
        if not typed:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._terminal)
        if not typed or END_OF_INPUT in typed:
            self._keys.answer(None)
            return
        self._keys.key_pressed()
        text = SPECIAL_KEY.sub("", typed)
        if typed == ESCAPE or text == BACKSPACE:
            self._keys.take_back()
        elif text and not text.strip("\r\n"):
            self._keys.confirm()
        elif text.strip("\r\n") != text:
            self._keys.type(text)  # a line that came at once was pasted
        elif text:
            self._keys.press(text)


# --- the conversation


class RenderingClient(Client):
    """Shows everything to a person; permission requests are answered by `answerer`."""

    def __init__(self, renderer: Renderer, answerer: Answerer) -> None:
        self.renderer = renderer
        self._answerer = answerer
        self._dialog = asyncio.Lock()
        self._meanwhile: list[Update] = []

    @property
    def can_choose(self) -> bool:
        """Whether there is a person at a keyboard."""
        return isinstance(self._answerer, Keyboard)

    def update(self, update: Update) -> None:
        if self._dialog.locked() and is_wait(update):
            return  # for the person, who knows; it would be no longer true when it is shown
        if self._dialog.locked() and not _is_warning(update):
            self._meanwhile.append(update)  # the question stays the last thing on the screen until it is answered
        else:
            self.show(update)

    def show(self, update: Update) -> None:
        self.renderer.update(update)

    async def permit(self, request: RequestPermissionRequest) -> str | Rejection | None:
        choices = choices_of(request.options)
        words = ""
        async with self._dialog:
            with self._answerer.listening():
                self.show_question(request, choices)
                try:
                    option, words, reason = await self._answerer.choose(choices, self.renderer.invite)
                finally:
                    self.renderer.show_answer(words or self.why_withdrawn())
                    self._catch_up()
        if option is None:
            return None
        return Rejection(option.option_id, reason) if reason else option.option_id

    def show_question(self, request: RequestPermissionRequest, choices: Sequence[Choice]) -> None:
        self.renderer.ask(request, [(choice.key, choice.option.name) for choice in choices])

    def why_withdrawn(self) -> str:
        """What is written in the place of an answer where the question is no longer put."""
        return "cancelled" if self.renderer.is_stopping else "no longer needed"

    def _catch_up(self) -> None:
        for update in self._meanwhile:
            self.show(update)
        self._meanwhile.clear()


def _is_warning(update: Update) -> bool:
    """Whether it is to be seen at once: the code of a client that joins may be what the question is answered with."""
    return isinstance(update, Notice) and update.severity == "warning"


def prepare_output() -> None:
    """A terminal that lacks a character shows a replacement instead of ending the conversation."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] -- whoever started us closed it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- for the rest of the program
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


@contextlib.contextmanager
def showing(renderer: Renderer) -> Generator[None]:
    """Keeps the live line alive, and leaves the terminal tidy."""
    ticking = asyncio.create_task(_tick(renderer))
    renderer.wait("starting")
    try:
        yield
    finally:
        ticking.cancel()
        renderer.close()


async def _tick(renderer: Renderer) -> None:
    while True:
        renderer.tick()
        await asyncio.sleep(FRAME)


# --- the end


async def exit_code_of(conversation: Callable[["Interrupts"], Awaitable[str]], interrupts: "Interrupts") -> int:
    """Plays it and turns its end into what the shell is told: 0 only if the turn came to its natural end."""
    with interrupts:
        try:
            stop_reason = await conversation(interrupts)
        except CrowError as error:
            return interrupts.code or complain(error)
        except asyncio.CancelledError:
            if not interrupts.code:
                raise
            return interrupts.code
    return interrupts.code or (0 if stop_reason == "end_turn" else 1)


def complain(error: CrowError) -> int:
    """One sentence, in which nothing that the agent or a provider said can play tricks on the terminal."""
    said = f"crow: {one_line(' '.join(str(error).split()), 2000)}"
    if sys.stderr.isatty():  # which would break it in the middle of a word
        said = "\n".join(piece.rstrip() for piece in folded(said, shutil.get_terminal_size().columns))
    print(said, file=sys.stderr)
    return 1


# --- Ctrl-C and other ways to be told to leave


class Interrupts:
    """Ctrl-C asks the running turn to stop; again, or if that takes too long, leaves. Other signals leave at once."""

    def __init__(self, on_interrupt: Callable[[], None] = lambda: None) -> None:
        self.code = 0
        """The exit code that tells of the signal, once there was one."""
        self._on_interrupt = on_interrupt
        self._heeded = heeded_signals()
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._turn: tuple[RemoteAgent, str] | None = None
        self._deadline: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        for number in self._heeded:
            self._loop.add_signal_handler(number, self._on_signal, number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in self._heeded:
            self._loop.remove_signal_handler(number)

    @contextlib.contextmanager
    def cancel(self, agent: RemoteAgent, session: str) -> Generator[None]:
        """While this lasts, the first Ctrl-C cancels the turn."""
        self._turn = agent, session
        try:
            yield
        finally:
            self._turn = None
            if self._deadline is not None:
                self._deadline.cancel()

    def _on_signal(self, number: signal.Signals) -> None:
        is_first = not self.code
        self.code = 128 + number
        if number == signal.SIGINT:
            self._on_interrupt()
        if number == signal.SIGINT and is_first and self._turn is not None:
            agent, session = self._turn
            agent.cancel(session)
            self._deadline = self._loop.call_later(LAST_WAIT, self._leave)
        else:
            self._leave()

    def _leave(self) -> None:
        if self._turn is not None:
            agent, _ = self._turn
            agent.kill()
        if self._task is not None:
            self._task.cancel()
