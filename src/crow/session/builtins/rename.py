"""/rename: another title for the conversation, told to the client and kept with the session."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent
from crow.session.commands import Reply
from crow.session.title import Title
from crow.turn.conversation import TurnIds


class Rename:
    info = CommandInfo("rename", "Gives the conversation another title", "[title]")

    def __init__(self, title: Title) -> None:
        self._title = title

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        if not arguments:
            return Reply(f"The title is: {self._title.text or 'Untitled'}\n\n`/rename NEW TITLE` changes it.")
        await self._title.change(arguments)
        return Reply(f"The title is now: {self._title.text}")
