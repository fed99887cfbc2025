"""/rename: another title for the conversation, told to the client and kept with the session."""

from collections.abc import Sequence

from crow.events import CommandInfo, Sent, SentText, TitleChanged
from crow.session.archive import Archive
from crow.session.commands import Reply
from crow.session.title import title_of
from crow.turn.conversation import Conversation, TurnIds
from crow.visible import one_line


class Rename:
    info = CommandInfo("rename", "Gives the conversation another title", "[title]")

    def __init__(self, conversation: Conversation, archive: Archive) -> None:
        self._conversation = conversation
        self._archive = archive

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        if not arguments:
            title = one_line((await self._archive.entry()).title) or "Untitled"
            return Reply(f"The title is: {title}\n\n`/rename NEW TITLE` changes it.")
        title = title_of((SentText(arguments),))
        await self._conversation.journal.record(TitleChanged(title))
        return Reply(f"The title is now: {title}")
