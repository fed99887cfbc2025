"""`crow chat` in a terminal: puts input line, keys, rows and conversation together, and handles signals, text typed
ahead and leaving.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.output import ColorDepth

from crow.cli.answer_keys import AnswerKeys
from crow.cli.chat.completion import ChatCompleter, ProjectHistory
from crow.cli.chat.conversation import Conversation
from crow.cli.chat.inline import InlineApplication, InlineOutput
from crow.cli.chat.keyboard import ChatInput, typed_ahead
from crow.cli.chat.keys import ChatKeys
from crow.cli.chat.messages import Message, clean_lines
from crow.cli.chat.rows import ChatRows
from crow.cli.chat.transcript import ChatScreen
from crow.cli.interactive_client import complain
from crow.cli.opening import Opening
from crow.cli.render import Renderer
from crow.cli.render_screen import DIM, short_folder
from crow.config.home import home
from crow.config.load import load_settings
from crow.config.settings import ChatSettings
from crow.disk import Disk
from crow.errors import ConfigError, CrowError, FileSystemSilent
from crow.store.base import SessionEntry
from crow.visible import one_line

TICK = 0.1
"""Seconds between two pictures of the spinner."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Chat:
    """One conversation in one terminal."""

    def __init__(self, opening: Opening, attached: Sequence[str]) -> None:
        self._output = InlineOutput(sys.stdout)
        colours = not os.environ.get("NO_COLOR")
        self._screen = ChatScreen(sys.stdout, self._print_above, self.changed, colours=colours)
        self.renderer = Renderer(self._screen, folder=os.path.realpath(opening.cwd), in_chat=True)
        self._questions = AnswerKeys(self.changed, self._insert, lambda: bool(self._buffer.text))
        self.conversation = Conversation(opening, self.renderer, self._questions, self)
        self._attention = Attention(self._write, os.environ, time.monotonic)
        self._completer = ChatCompleter(opening.cwd)
        self._history = ProjectHistory(home(os.environ), opening.cwd)
        self._buffer = Buffer(
            completer=self._completer, complete_while_typing=True, history=self._history, multiline=True
        )
        self._keys = ChatKeys(self._buffer, self.conversation, self._questions, self._insert, self._leave, self.changed)
        self._keys.attached = tuple(attached)
        self._rows = ChatRows(self._output, self._screen, self._buffer, self._keys)
        self._app = self._application()
        self._error: CrowError | None = None
        self._signal = 0

    def _application(self) -> InlineApplication:
        app = InlineApplication(
            layout=self._rows.layout(),
            key_bindings=self._keys.bindings(self._rows.input),
            input=ChatInput(sys.stdin),
            output=self._output,
            color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else ColorDepth.DEPTH_4_BIT,
            erase_when_done=True,
            before_render=lambda app: self._screen.measure(),
        )
        app.shape = self._rows.shape
        app.ttimeoutlen = 0.05
        app.timeoutlen = 0.2
        app.key_processor.before_key_press += self._on_key
        return app

    def _on_key(self, _: object) -> None:
        self._attention.key_pressed()
        self._questions.key_pressed()

    async def run(self, first: str) -> int:
        """Until the person leaves, or the agent does. The exit code."""
        self._say_hello()
        lines, _, rest = typed_ahead(sys.stdin.fileno()).rpartition("\n")
        for text in filter(str.strip, (first, lines)):
            self.conversation.submit(Message(text.strip("\n"), self._keys.attached))
            self._keys.attached = ()
        self._insert(rest)  # which nobody has sent
        talking = asyncio.create_task(self.conversation.run())
        talking.add_done_callback(self._on_end)
        ticking = asyncio.create_task(self._tick())
        self._reading_settings = asyncio.create_task(self._read_settings())
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._on_signal, number)
        try:
            with contextlib.suppress(EOFError):  # the terminal is gone
                await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        finally:
            ticking.cancel()
            self._reading_settings.cancel()
            talking.remove_done_callback(self._on_end)
            self._keep_unsent()
            with contextlib.suppress(OSError):  # as above
                await self._say_goodbye()
            talking.cancel()
            await asyncio.wait([talking])
        if (error := _unforeseen(talking)) is not None:
            raise error
        if self._error is not None and not self._signal:
            return complain(self._error)
        return self._signal

    # --- what the conversation tells

    def changed(self) -> None:
        if self._completer.commands is not self.conversation.commands.offered:
            self._completer.commands = self.conversation.commands.offered
            if self._buffer.text.startswith("/") and self._app.is_running:
                self._buffer.start_completion()  # it was typed before they were known
        self._focus()
        self._app.invalidate()

    def attention(self, words: str) -> None:
        self._screen.draw()  # what it is about stands above what is drawn now

        def call(reading: "asyncio.Task[None]") -> None:
            if not reading.cancelled():
                self._attention.call(words)

        self._reading_settings.add_done_callback(call)  # how it is done is in the settings

    def give_back(self, message: Message) -> None:
        if not self._buffer.text:
            self._insert(message.text)
            self._keys.attached += message.attached
        else:
            self._history.append_string(message.text)

    def takes_reason(self, takes_reason: bool) -> None:
        self._questions.takes_reason = takes_reason

    def _insert(self, text: str) -> None:
        self._buffer.insert_text(clean_lines(text))

    def _focus(self) -> None:
        rows = self._rows
        if self._keys.unfolding.is_open:
            window = rows.unfolded
        else:
            window = rows.question if self._questions.takes_keys else rows.input
        if self._app.layout.current_window is not window and not self._app.layout.is_searching:
            self._app.layout.focus(window)

    def _print_above(self, text: str) -> None:
        self._app.print_above(text)

    def _write(self, sequence: str) -> None:
        self._output.write_raw(sequence)
        self._output.flush()

    async def _tick(self) -> None:
        while True:
            before = self._screen.activity
            if self.conversation.is_running:
                self.renderer.tick()
            else:
                self._screen.end_live()
            if self._screen.activity != before:
                self._app.invalidate()
            await asyncio.sleep(TICK)

    async def _read_settings(self) -> None:
        """Not before the first input line is there. What is wrong with them, the agent says."""
        await asyncio.sleep(TICK)
        folder = home(os.environ)
        with contextlib.suppress(ConfigError, FileSystemSilent):
            self._attention.settings = (await Disk(folder).run(lambda: load_settings(folder))).chat

    # --- beginning and end

    def _say_hello(self) -> None:
        from crow import __version__

        self.renderer.mark("i", f"Crow {__version__} in {short_folder(self.renderer.folder)}", DIM)
        self._screen.draw()

    def _leave(self) -> None:
        if self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _on_end(self, talking: "asyncio.Task[None]") -> None:
        error = None if talking.cancelled() else talking.exception()
        self._error = error if isinstance(error, CrowError) else None
        self._leave()

    def _on_signal(self, number: signal.Signals) -> None:
        self._signal = 128 + number
        self._leave()

    def _keep_unsent(self) -> None:
        """What was not sent can be had back from the history."""
        for text in (*(entry.message.text for entry in self.conversation.outbox.waiting), self._buffer.text):
            if text.strip():
                self._history.append_string(text)

    async def _say_goodbye(self) -> None:
        # Looked up before the line is ended: the words that come meanwhile belong to it.
        how = await self._how_to_go_on() if self.conversation.has_happened else ""
        goes_on = self.conversation.goes_on_elsewhere and self._error is None
        if goes_on:
            self.renderer.forget_calls()
        self.renderer.close()
        if how:
            self.renderer.mark(
                "i", f"{'The turn is still running. To join it' if goes_on else 'To continue'}: {how}", DIM
            )
        self._screen.draw()

    async def _how_to_go_on(self) -> str:
        """`--continue` is shorter, and is said where it would lead to this very conversation."""
        from crow.cli.sessions import sessions_of

        session, folder = self.conversation.session, home(os.environ)
        entries: Sequence[SessionEntry] = ()
        with contextlib.suppress(CrowError, OSError):
            entries = await Disk(folder).run(lambda: sessions_of(os.getcwd()))
        is_last = self._error is None and bool(entries) and entries[0].id == session
        return "crow chat --continue" if is_last else f"crow chat --resume {session}"


def _unforeseen(talking: "asyncio.Task[None]") -> BaseException | None:
    error = None if talking.cancelled() else talking.exception()
    return None if isinstance(error, CrowError) else error


# --- calling a person who has not typed for a while

LONGEST_NOTIFICATION = 200


def attention_sequence(settings: ChatSettings, words: str, environment: Mapping[str, str]) -> str:
    """What is written to the terminal: a bell, or a notification that the terminal shows on the desktop."""
    if settings.notify == "off":
        return ""
    if settings.notify == "bell":
        return "\a"
    text = one_line(words, LONGEST_NOTIFICATION).replace(";", ",")
    # Two ways are common: urxvt's, which foot and the terminals of GNOME know too, and iTerm's, which most others know.
    is_urxvt = environment.get("VTE_VERSION") or environment.get("TERM", "").startswith(("rxvt", "foot"))
    sequence = f"\x1b]777;notify;Crow;{text}\x1b\\" if is_urxvt else f"\x1b]9;{text}\x1b\\"
    if environment.get("TMUX"):  # passed on to the terminal that tmux runs in, if it is allowed to
        escaped = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{escaped}\x1b\\\a"
    return sequence


class Attention:
    """Calls the person, if they have not touched the keyboard for a while."""

    def __init__(
        self, write: Callable[[str], None], environment: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        self.settings = ChatSettings()
        self._write = write
        self._environment = environment
        self._clock = clock
        self._last_key = clock()

    def key_pressed(self) -> None:
        self._last_key = self._clock()

    def call(self, words: str) -> None:
        if self._clock() - self._last_key >= self.settings.notify_after:
            self._write(attention_sequence(self.settings, words, self._environment))
