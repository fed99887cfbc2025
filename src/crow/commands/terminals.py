"""The terminals of a session: how many commands may run in the background, and releasing each terminal once."""

import asyncio
import time
from collections.abc import Callable

from crow.commands.base import CommandRequest, Commands, Terminal, TerminalExit, TerminalOutput
from crow.commands.terminal_buffer import KeptOutput
from crow.errors import WorkspaceError

MOST_IN_BACKGROUND = 16
FRAME = 0.25
"""Seconds between two times that somebody is told of the growth of a background command's output."""
RELEASE_TIMEOUT = 1.2
"""Seconds that closing waits for the releases; those of a client that does not answer go on by themselves."""


class BackgroundCommand:
    """A command that outlives its tool call. It ends with the session at the latest. `grew` is told of its output."""

    def __init__(
        self,
        id: str,
        command: str,
        terminal: Terminal,
        call_id: str,
        begun: float,
        grew: Callable[["BackgroundCommand"], None],
    ) -> None:
        self.id = id
        self.command = command
        self.call_id = call_id
        """The call that started it."""
        self.begun = begun
        """The moment, of `time.monotonic`."""
        self.terminal = terminal
        self.read_to_end = False
        """The model has read of its end in a call, which the person sees too."""
        self.is_stopped = False
        """The person has stopped it."""
        self.model_knows = False
        """The model has been told of its end, in a call or otherwise."""
        loop = asyncio.get_running_loop()
        self._watch = loop.create_task(terminal.wait())
        self._following = loop.create_task(self._follow(grew))

    @property
    def seconds(self) -> float:
        """For how long it has run by now."""
        return round(time.monotonic() - self.begun, 3)

    @property
    def exit(self) -> TerminalExit | None:
        """How the command ended; None while it runs."""
        return self._watch.result() if self._watch.done() and not self._watch.cancelled() else None

    def when_ended(self, tell: Callable[[], None]) -> None:
        self._watch.add_done_callback(lambda watch: None if watch.cancelled() else tell())

    def forget(self) -> None:
        self._watch.cancel()
        self._following.cancel()

    async def _follow(self, grew: Callable[["BackgroundCommand"], None]) -> None:
        while not self._watch.done():
            await self.terminal.grew()
            grew(self)
            await asyncio.wait([self._watch], timeout=FRAME)


class Terminals:
    """Opens terminals, and lets go of every one of them exactly once."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._open: dict[Terminal, str] = {}
        """With the command line that runs in each."""
        self._releases: set[asyncio.Task[None]] = set()
        self._background: dict[str, BackgroundCommand] = {}
        self._by_call: dict[str, Terminal] = {}
        """The open terminals, by the call that each was opened for."""
        self._stopped: set[str] = set()
        """The calls whose commands the person has stopped."""
        self._kept: dict[str, KeptOutput] = {}
        """All that was written by the commands that Crow runs itself, by the call that started each."""
        self._last_id = 0
        self.on_growth: Callable[[BackgroundCommand], None] | None = None
        """Told of each command in the background that has printed something, a few times a second at most."""
        self.on_end: Callable[[BackgroundCommand], None] | None = None
        """Told of each command in the background that ends by itself."""

    async def open(self, request: CommandRequest, call_id: str = "") -> Terminal:
        """`call_id` is that of the call for which it is opened."""
        terminal = await self._commands.open_terminal(request)
        self._open[terminal] = request.command
        if call_id:
            self._by_call[call_id] = terminal
        if call_id and terminal.kept is not None:
            self._kept[call_id] = terminal.kept
        return terminal

    async def stop_call(self, call_id: str) -> bool:
        """Ends the command of a call because the person wants it, and nothing else; false if none runs."""
        terminal = self._by_call.get(call_id)
        command = next((one for one in self._background.values() if one.call_id == call_id), None)
        if terminal is None or (command is not None and command.exit is not None):
            return False
        self._stopped.add(call_id)
        if command is not None:
            command.is_stopped = True
        await terminal.kill()
        return True

    def typed_into(self, call_id: str) -> Terminal | None:
        """The terminal of a call's command, if that runs and can be typed into."""
        terminal = self._by_call.get(call_id)
        return terminal if terminal is not None and terminal.takes_input else None

    def was_stopped(self, call_id: str) -> bool:
        """Whether the person has stopped the command of a call."""
        return call_id in self._stopped

    def kept_output(self, call_id: str) -> KeptOutput | None:
        """All that the command of a call has written, as long as the session is open; None if that is not known."""
        return self._kept.get(call_id)

    def release_soon(self, terminal: Terminal) -> None:
        """Begins when the caller has returned to the event loop.

        A client accepts an update that shows a terminal only while the terminal exists. So the result of a tool
        call must be in the journal first; and it is, if nothing is awaited between the two.
        """
        if terminal in self._open:
            del self._open[terminal]
            self._by_call = {call_id: other for call_id, other in self._by_call.items() if other is not terminal}
            task = asyncio.get_running_loop().create_task(terminal.release())
            self._releases.add(task)
            task.add_done_callback(self._releases.discard)

    async def released(self, patience: float) -> None:
        """Waits a moment for the releases that are under way."""
        if self._releases:
            await asyncio.wait(self._releases, timeout=patience)

    async def close(self) -> None:
        """Ends everything."""
        for command in self._background.values():
            command.forget()
        self._background.clear()
        for terminal in list(self._open):
            self.release_soon(terminal)
        await self.released(RELEASE_TIMEOUT)
        await self._commands.close()

    def running(self) -> tuple[str, ...]:
        """The command lines that have not ended."""
        ended = {command.terminal for command in self._background.values() if command.exit is not None}
        return tuple(command for terminal, command in self._open.items() if terminal not in ended)

    # --- in the background

    def keep(self, terminal: Terminal, command: str, call_id: str, begun: float) -> str:
        """Lets a command go on; the id under which it can be asked for."""
        self._last_id += 1
        kept = BackgroundCommand(f"b{self._last_id}", command, terminal, call_id, begun, self._tell_growth)
        self._background[kept.id] = kept
        kept.when_ended(lambda: self._tell_end(kept))
        return kept.id

    def _tell_growth(self, command: BackgroundCommand) -> None:
        if self.on_growth is not None and command.id in self._background:
            self.on_growth(command)

    def _tell_end(self, command: BackgroundCommand) -> None:
        if self.on_end is not None and command.id in self._background:
            self.on_end(command)

    def need_room(self) -> None:
        """Raises WorkspaceError if there are enough of them."""
        if len(self._background) >= MOST_IN_BACKGROUND:
            raise WorkspaceError(
                f"Too many background commands: {MOST_IN_BACKGROUND} are running.", advice="Stop one first."
            )

    def background(self) -> list[BackgroundCommand]:
        """For the person, and for the model when it asks for one that is not there."""
        return list(self._background.values())

    def ends_to_tell(self) -> list[BackgroundCommand]:
        """The commands that have ended since the model was last asked, which it does not know yet: each once."""
        ended = [one for one in self._background.values() if one.exit is not None and not one.model_knows]
        for command in ended:
            command.model_knows = True
        return ended

    def find(self, id: str) -> BackgroundCommand:
        if id in self._background:
            return self._background[id]
        known = ", ".join(self._background) or "none"
        raise WorkspaceError(f"Unknown background command {id[:20]!r}. Available: {known}.")

    async def stop(self, id: str) -> TerminalOutput:
        """Ends a command and lets go of it; the last of its output."""
        command = self.find(id)
        del self._background[id]
        command.forget()
        try:
            await command.terminal.kill()
            return await command.terminal.output()
        finally:
            self.release_soon(command.terminal)
