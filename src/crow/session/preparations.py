"""What is done in each turn before the model is asked: trust is asked for, servers are waited for."""

from contextlib import suppress

from crow.disk import Disk
from crow.errors import FileSystemSilent
from crow.project.instructions import Instructions
from crow.project.sources import PATIENCE
from crow.session.late_model import LateModel
from crow.session.servers import Servers
from crow.session.trusting import Trusting
from crow.turn.budget import tell_usage
from crow.turn.conversation import Conversation
from crow.turn.ids import TurnIds
from crow.turn.waits import waiting

SERVER_PATIENCE = 0.1
"""How long a prompt waits for a model's server to tell what it is, of the time after which waits are named: half a
second, which nobody notices."""


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
        await self._ask_model_server()
        await self._servers.prepare()

    async def _ask_model_server(self) -> None:
        """A server on this machine or nearby knows best how large its window is, and may have been started anew."""
        model = self._conversation.model
        if not isinstance(model, LateModel):
            return
        window = model.info.context_window
        await model.ask_server(SERVER_PATIENCE * self._conversation.patience)
        if model.info.context_window != window:
            tell_usage(self._conversation)
