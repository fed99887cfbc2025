"""The terminals of a session: those of running tool calls, those that go on in the background, and their releases."""

import asyncio
from collections.abc import Callable, Mapping

from crow.errors import WorkspaceError
from crow.workspace.base import Commands, Terminal, TerminalExit, TerminalOutput

MOST_IN_BACKGROUND = 16
FAREWELL = 1.2
"""Seconds that closing waits for the releases; those of a client that does not answer go on by themselves."""


class BackgroundCommand:
    """A command that outlives its tool call. It ends with the session at the latest."""

    def __init__(self, id: str, command: str, terminal: Terminal, call_id: str, begun: float) -> None:
        self.id = id
        self.command = command
        self.call_id = call_id
        """The call that started it."""
        self.begun = begun
        """The moment, of `time.monotonic`."""
        self.terminal = terminal
        self.read_to_end = False
        """The model has read of its end in a call, which the person sees too."""
        self.model_knows = False
        """The model has been told of its end, in a call or otherwise."""
        self._watch = asyncio.get_running_loop().create_task(terminal.wait())

    @property
    def exit(self) -> TerminalExit | None:
        """None while it runs."""
        return self._watch.result() if self._watch.done() and not self._watch.cancelled() else None

    def when_ended(self, tell: Callable[[], None]) -> None:
        self._watch.add_done_callback(lambda watch: None if watch.cancelled() else tell())

    def forget(self) -> None:
        self._watch.cancel()


class Terminals:
    """Opens terminals, and lets go of every one of them exactly once."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._open: set[Terminal] = set()
        self._releases: set[asyncio.Task[None]] = set()
        self._background: dict[str, BackgroundCommand] = {}
        self._last_id = 0
        self.on_end: Callable[[BackgroundCommand], None] | None = None
        """Told of each command in the background that ends by itself."""

    async def open(self, command: str, *, cwd: str, environ: Mapping[str, str], output_limit: int) -> Terminal:
        terminal = await self._commands.open_terminal(command, cwd=cwd, environ=environ, output_limit=output_limit)
        self._open.add(terminal)
        return terminal

    def release_soon(self, terminal: Terminal) -> None:
        """Begins when the caller has returned to the event loop.

        A client accepts an update that shows a terminal only while the terminal exists. So the result of a tool
        call must be in the journal first; and it is, if nothing is awaited between the two.
        """
        if terminal in self._open:
            self._open.discard(terminal)
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
        await self.released(FAREWELL)
        await self._commands.close()

    # --- in the background

    def keep(self, terminal: Terminal, command: str, call_id: str, begun: float) -> str:
        """Lets a command go on; the id under which it can be asked for."""
        self._last_id += 1
        kept = BackgroundCommand(f"b{self._last_id}", command, terminal, call_id, begun)
        self._background[kept.id] = kept
        kept.when_ended(lambda: self._tell_end(kept))
        return kept.id

    def _tell_end(self, command: BackgroundCommand) -> None:
        if self.on_end is not None and command.id in self._background:
            self.on_end(command)

    def need_room(self) -> None:
        """Raises WorkspaceError if there are enough of them."""
        if len(self._background) >= MOST_IN_BACKGROUND:
            raise WorkspaceError(
                f"There are already {MOST_IN_BACKGROUND} commands in the background.", remedy="Stop one first."
            )

    def background(self) -> list[BackgroundCommand]:
        """For the person, and for the model when it asks for one that is not there."""
        return list(self._background.values())

    def find(self, id: str) -> BackgroundCommand:
        if id in self._background:
            return self._background[id]
        known = ", ".join(self._background) or "none"
        raise WorkspaceError(f"There is no background command {id[:20]!r}. There are: {known}.")

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
