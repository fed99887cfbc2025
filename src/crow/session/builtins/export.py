"""/export: the conversation as a Markdown file."""

import os
import re
import time
from collections.abc import Sequence

from crow.config.home import write_new_file
from crow.disk import Disk
from crow.errors import CrowError
from crow.events import CommandInfo, Sent
from crow.paths import shown, spelled
from crow.session.archive import Archive
from crow.session.commands import Reply
from crow.session.export import markdown
from crow.turn.conversation import TurnIds
from crow.visible import one_line

LONGEST_NAME = 50
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


class Export:
    info = CommandInfo("export", "Writes the conversation to a Markdown file", "[path]")

    def __init__(self, archive: Archive, folder: str) -> None:
        self._archive = archive
        self._folder = folder
        self._disk = Disk(folder)

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        entry = await self._archive.entry()
        past = await self._archive.events()
        path = spelled(arguments or _name(entry.title), self._folder)
        if "\0" in path:
            raise CrowError("A path cannot have a null character in it.")

        def write() -> str:
            place = os.path.join(path, _name(entry.title)) if os.path.isdir(path) else path
            write_new_file(place, markdown(entry, past).encode("utf-8", "replace"))
            return place

        path = await self._disk.run(write)
        return Reply(f"Written to `{one_line(shown(path), 1000)}`.")


def _name(title: str) -> str:
    words = _NOT_IN_NAMES.sub("-", title.lower()).strip("-.")[:LONGEST_NAME].strip("-.")
    return f"{words or 'conversation'}-{time.strftime('%Y-%m-%d')}.md"
