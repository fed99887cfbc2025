"""What is done in each turn before the model is asked: trust is asked for, servers are waited for."""

from contextlib import suppress

from crow.disk import Disk
from crow.errors import FileSystemSilent
from crow.project.instructions import Instructions
from crow.project.sources import PATIENCE
from crow.session.servers import Servers
from crow.session.trusting import Trusting
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.waits import waiting


class Preparations:
    def __init__(
        self, conversation: Conversation, trusting: Trusting, servers: Servers, instructions: Instructions
    ) -> None:
        self._conversation = conversation
        self._trusting = trusting
        self._servers = servers
        self._instructions = instructions
        self._disk = Disk(conversation.workspace.roots[0])

    async def make(self, ids: TurnIds) -> None:
        with waiting(self._conversation, "the preparations of this turn"):
            await self._trusting.prepare(ids)
            with suppress(FileSystemSilent):  # said when the turn began: the model is told what was known before
                await self._disk.run(self._instructions.look, PATIENCE)
        await self._servers.prepare()
