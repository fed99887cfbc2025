"""What is done in each turn before the model is asked: trust is asked for, servers are waited for."""

from crow.session.servers import Servers
from crow.session.trusting import Trusting
from crow.turn.conversation import Conversation, TurnIds
from crow.turn.waits import waiting


class Preparations:
    def __init__(self, conversation: Conversation, trusting: Trusting, servers: Servers) -> None:
        self._conversation = conversation
        self._trusting = trusting
        self._servers = servers

    async def make(self, ids: TurnIds) -> None:
        with waiting(self._conversation, "the preparations of this turn"):
            await self._trusting.prepare(ids)
        await self._servers.prepare()
