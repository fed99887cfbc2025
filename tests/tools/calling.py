"""Calling the file tools as a turn does: prepare, then perform."""

from typing import Any

import msgspec

from crow.events import Journal
from crow.files.base import Workspace
from crow.messages import ToolCall
from crow.results import ToolResult
from crow.tools.base import Action
from crow.tools.edit import Edit
from crow.tools.read import Read, ReadTracker
from crow.tools.write import Write
from tests.support.recording import RecordingJournal


class Hand:
    """The file tools of one session, in one workspace."""

    def __init__(self, workspace: Workspace, journal: Journal | None = None) -> None:
        self.workspace = workspace
        self.journal = journal or RecordingJournal()
        self.call_id = "c1"
        self.seen = ReadTracker()
        self._tools = {"read": Read(self.seen), "write": Write(self.seen), "edit": Edit(self.seen)}

    async def prepare(self, tool: str, **arguments: Any) -> Action:
        call = ToolCall(self.call_id, tool, msgspec.json.encode(arguments).decode())
        return await self._tools[tool].prepare(call, self.workspace)

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        return await (await self.prepare(tool, **arguments)).perform(self.journal)

    async def edit(self, path: str, old: str, new: str, **more: Any) -> ToolResult:
        return await self.call("edit", path=path, edits=[{"old": old, "new": new, **more}])
