"""Runs one tool call of an MCP client: the policy alone decides, as nobody can be asked, and progress is reported to
the host.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from crow.actions import Deed
from crow.commands.terminal_text import last_part
from crow.events import CallProgressed, Event
from crow.files.base import Workspace
from crow.messages import ToolCall
from crow.policy.base import Allow, Deny
from crow.results import TextBlock, ToolResult
from crow.tools.base import Action, ReadNeeded, Tool
from crow.turn.call import Call

LONGEST_PROGRESS = 1000
"""Bytes of growing output that one progress message carries: the last of it."""

Judge = Callable[[Deed], str]
"""Why something is refused although the host allowed the call; empty if it is not."""

Report = Callable[[float, str], Awaitable[None]]
"""Tells the host how far a call has come: a number that grows, and words."""


class OpenFolders(msgspec.Struct, frozen=True):
    """The folders in which a call may work, and who judges what is done there."""

    workspace: Workspace
    judge: Judge


async def serve_call(tool: Tool, call: ToolCall, folders: OpenFolders, report: Report) -> ToolResult:
    """Never fails: what goes wrong is a result, which the model can do something about."""
    journal = ProgressJournal()
    telling = asyncio.get_running_loop().create_task(journal.tell(report))
    try:
        return await Call(call.id, journal, Unattended(folders.judge)).run(tool, call, folders.workspace)
    finally:
        telling.cancel()


class Unattended(msgspec.Struct, frozen=True):
    """The permission of a call with nobody to be asked: the judge alone decides."""

    judge: Judge

    async def verdict_on(self, call_id: str, action: Action | ReadNeeded) -> Allow | Deny:
        reason = self.judge(action.deed)
        return Deny("crow mcp", reason) if reason else Allow("crow mcp")


class ProgressJournal:
    """A journal of which nothing is kept but the last thing that was shown, until the host has been told of it."""

    def __init__(self) -> None:
        self._shown = ""
        self._news = asyncio.Event()

    @property
    def has_room(self) -> bool:
        return not self._news.is_set()

    def append(self, event: Event) -> None:
        match event:
            case CallProgressed(display=(TextBlock(text=text), *_)):
                self._shown = text
                self._news.set()
            case _:
                pass

    async def record(self, *events: Event) -> None:
        for event in events:
            self.append(event)

    async def room(self) -> None:
        pass

    async def tell(self, report: Report) -> None:
        """Until it is cancelled. The numbers only grow, as the protocol wants: nobody knows how much is to come."""
        number = 0
        while True:
            await self._news.wait()
            number += 1
            await report(number, last_part(self._shown, LONGEST_PROGRESS))
            self._news.clear()
