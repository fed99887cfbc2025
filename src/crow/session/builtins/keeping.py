"""/export, /undo: what was kept of the session, written out or taken back."""

import asyncio
import os
import re
import time
from collections.abc import Sequence

from crow.config.home import reason
from crow.errors import CrowError
from crow.events import CommandInfo, Sent
from crow.paths import shown, spelled
from crow.session.archive import Archive
from crow.session.commands import Reply
from crow.session.export import markdown
from crow.session.journal import SessionJournal
from crow.session.undo import undo_last_turn
from crow.turn.conversation import TurnIds
from crow.visible import one_line
from crow.workspace.base import Workspace

LONGEST_NAME = 50
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


class Export:
    info = CommandInfo("export", "Writes the conversation to a Markdown file", "[path]")

    def __init__(self, archive: Archive, journal: SessionJournal, folder: str) -> None:
        self._archive = archive
        self._journal = journal
        self._folder = folder

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        await self._journal.kept()
        entry = await self._archive.entry()
        past = await self._archive.events()
        path = spelled(arguments or _name(entry.title), self._folder)
        if "\0" in path:
            raise CrowError("A path cannot have a null character in it.")
        if os.path.isdir(path):
            path = os.path.join(path, _name(entry.title))
        await asyncio.to_thread(lambda: _write_new(path, markdown(entry, past)))
        return Reply(f"Written to `{one_line(shown(path), 1000)}`.")


def _name(title: str) -> str:
    words = _NOT_IN_NAMES.sub("-", title.lower()).strip("-.")[:LONGEST_NAME].strip("-.")
    return f"{words or 'conversation'}-{time.strftime('%Y-%m-%d')}.md"


def _write_new(path: str, text: str) -> None:
    name = one_line(shown(path), 1000)
    try:
        # For its owner alone: what was said may be private.
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise CrowError(f"{name} is there already, and is not overwritten.", remedy="Name another path.") from None
    except OSError as error:
        raise CrowError(f"{name} cannot be written: {reason(error)}.") from error
    with open(file, "w", encoding="utf-8", errors="replace") as stream:
        stream.write(text)


class Undo:
    info = CommandInfo("undo", "Takes back the last turn: its changes to files, and the turn from the model's memory")

    def __init__(self, archive: Archive, journal: SessionJournal, workspace: Workspace) -> None:
        self._archive = archive
        self._journal = journal
        self._workspace = workspace

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        await self._journal.kept()
        past = await self._archive.events(images=True)
        return Reply(await undo_last_turn(past, self._journal, self._workspace))
