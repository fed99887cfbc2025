"""One call of a tool: judged, prepared, judged again, performed, as a session does it, but with nobody to be asked."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from crow.actions import Deed
from crow.events import CallProgressed, Event
from crow.messages import ToolCall
from crow.results import TextBlock, ToolResult
from crow.tools.base import Action, LooksFirst, Tool
from crow.tools.toolbox import failure
from crow.workspace.base import Workspace
from crow.workspace.terminal_text import last_part

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
        action = await _prepared(tool, call, folders)
        if isinstance(action, str):
            return ToolResult.refused(action)
        if reason := folders.judge(action.deed):
            return ToolResult.refused(reason)
        return await action.perform(journal)
    except Exception as error:  # noqa: BLE001 -- the edge of a tool: its failure is a result, not ours
        return failure(call, error)
    finally:
        telling.cancel()


async def _prepared(tool: Tool, call: ToolCall, folders: OpenFolders) -> Action | str:
    """What the call is to do; or why what would have to be looked at for it must not be."""
    look = await tool.look(call, folders.workspace) if isinstance(tool, LooksFirst) else None
    if look is None or not isinstance(tool, LooksFirst):
        return await tool.prepare(call, folders.workspace)
    if look.path.existed and (reason := folders.judge(look.deed)):
        return reason
    return await tool.prepare_after(call, folders.workspace, look)


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
