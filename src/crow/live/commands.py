"""Decides whose terminal a command runs in: the client's own while it is alone, else Crow's, which every face can show.

A command that runs in a client's terminal when another face joins stays there. The others are shown its output as text:
one client's terminal means nothing to another.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

import msgspec

from crow.commands.base import CommandRequest, Commands, Terminal, TerminalExit, TerminalOutput
from crow.commands.terminal_text import last_part
from crow.events import Event, TerminalSeen
from crow.live.face import Face

POLL_INTERVAL = 1.0
"""Seconds between two looks at a client's terminal for the faces that cannot show it."""
SHOWN = 2000
"""Bytes of its output that they are shown while it runs."""


class FacesCommands:
    """`faces` gives those that are there now, `lead` the one that prompted last; `local` runs commands on this machine;
    `tell` appends to the journal."""

    def __init__(
        self,
        local: Commands,
        faces: Callable[[], Sequence[Face]],
        lead: Callable[[], Face | None],
        tell: Callable[[Event], None],
    ) -> None:
        self._local = local
        self._faces = faces
        self._lead = lead
        self._tell = tell
        self._more_came = asyncio.Event()
        self.is_input_open = False
        """Commands begin with an input that can be typed into, as long as somebody is there who can."""
        self.on_begin: Callable[[], None] = lambda: None
        """Called before each command begins."""

    async def open_terminal(self, request: CommandRequest) -> Terminal:
        faces = self._faces()
        self.on_begin()
        alone = faces[0].commands if len(faces) == 1 and faces[0].is_trusted else None
        if alone is None:
            columns = lead.known.columns if (lead := self._lead()) else 0
            can_type = any(face.known.can_type for face in faces if face.is_trusted)
            takes_input = can_type and (self.is_input_open or request.takes_input)
            request = msgspec.structs.replace(request, columns=columns, takes_input=takes_input)
            return await self._local.open_terminal(request)
        terminal = await alone.open_terminal(msgspec.structs.replace(request, takes_input=False))
        return _MirroredTerminal(terminal, self._mirror(terminal)) if terminal.client_id else terminal

    async def close(self) -> None:
        await self._local.close()

    def face_joined(self) -> None:
        """From now on somebody may watch who cannot show a terminal that is open."""
        self._more_came.set()

    async def _mirror(self, terminal: Terminal) -> None:
        """Tells what a client's terminal shows, for as long as other faces watch."""
        shown = ""
        while True:
            if len(self._faces()) < 2:
                self._more_came.clear()
                await self._more_came.wait()
            output = await terminal.output()
            text = last_part(output.text, SHOWN)
            if output.exit is not None:
                return  # the call's end tells the rest
            if text != shown:
                shown = text
                self._tell(TerminalSeen(terminal.client_id, text))
            await asyncio.sleep(POLL_INTERVAL)


class _MirroredTerminal(Terminal):
    """A client's terminal, which others are shown as text until it is released."""

    def __init__(self, terminal: Terminal, mirror: Coroutine[None, None, None]) -> None:
        self.client_id, self.remark = terminal.client_id, terminal.remark
        self._terminal = terminal
        self._mirroring = asyncio.get_running_loop().create_task(mirror)

    async def grew(self) -> None:
        await self._terminal.grew()

    def glimpse(self) -> str:
        return self._terminal.glimpse()

    async def wait(self) -> TerminalExit:
        return await self._terminal.wait()

    async def output(self, since: int = 0) -> TerminalOutput:
        return await self._terminal.output(since)

    async def kill(self) -> None:
        await self._terminal.kill()

    async def release(self) -> None:
        self._mirroring.cancel()
        await self._terminal.release()
