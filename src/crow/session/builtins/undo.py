"""/undo: takes back the last turn."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent
from crow.session.archive import Archive
from crow.session.commands import Reply
from crow.turn.budget import provider_ratio, tell_usage
from crow.turn.conversation import Conversation, TurnIds


class Undo:
    info = CommandInfo("undo", "Takes back the last turn: its changes to files, and the turn from the model's memory")

    def __init__(self, archive: Archive, conversation: Conversation) -> None:
        self._archive = archive
        self._conversation = conversation

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        from crow.session.undo import undo_last_turn  # which brings the tools that change files

        past = await self._archive.events(former_texts=True)
        ratio = provider_ratio(self._conversation)
        told = await undo_last_turn(past, self._conversation.journal, self._conversation.workspace)
        tell_usage(self._conversation, ratio)
        return Reply(told)
