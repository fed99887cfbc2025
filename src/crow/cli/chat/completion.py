"""Completes a `/command` or an `@file` while it is typed: from the session's commands, the project's files and folders
elsewhere.
"""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from crow.acp.wire import AvailableCommand
from crow.visible import one_line

MOST_OFFERED = 50
MOST_FILES = 50_000
LISTING_TIME = 2.0
"""Seconds in which the project's files are listed; what was not found by then is not offered."""
FRESH = 10.0
"""Seconds for which a list of files is used again."""
_COMMAND = re.compile(r"/\S*")
_MENTION = re.compile(r'(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$')
_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"]")
"""What no name may have that is to be written between quotation marks on one line."""


class ChatCompleter(Completer):
    def __init__(self, folder: str) -> None:
        self.commands: Sequence[AvailableCommand] = ()
        self._files = ProjectFiles(folder)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Commands alone: files take a moment to be listed."""
        before = document.text_before_cursor
        return self._commands(before) if _COMMAND.fullmatch(before) else ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in self.get_completions(document, complete_event):
            yield completion
        if mention := _MENTION.search(document.text_before_cursor):
            typed = mention[1] if mention[1] is not None else mention[2]
            start = mention.start(2 if mention[1] is None else 1) - mention.end()
            for path in await self._files.matching(typed):
                yield _mention(path, start - (mention[1] is not None))

    def _commands(self, typed: str) -> Iterator[Completion]:
        wanted = typed[1:].casefold()
        named = [(command.name.casefold(), command) for command in self.commands]
        found = [command for name, command in named if name.startswith(wanted)]
        found += [command for name, command in named if wanted in name and not name.startswith(wanted)]
        for command in found[:MOST_OFFERED]:
            text = f"/{command.name}" + (" " if command.input else "")
            yield Completion(
                text, -len(typed), display=one_line(f"/{command.name}"), display_meta=one_line(command.description)
            )


def _mention(path: str, start: int) -> Completion:
    """A folder is left open, so that the typing can go on in it."""
    is_folder = path.endswith("/")
    quoted = f'"{path}' + ("" if is_folder else '"') if " " in path else path
    return Completion(quoted if is_folder else f"{quoted} ", start, display=one_line(path))


class ProjectFiles:
    """The files below a folder and the folders they are in, without what git ignores."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._listed_at = -FRESH
        self._paths: list[str] = []
        self._listing: asyncio.Task[list[str]] | None = None

    async def matching(self, typed: str) -> list[str]:
        """Those that may be meant, relative to the folder: what continues the path comes before what contains it."""
        if typed.startswith(("/", "~", "..")):
            return await asyncio.to_thread(_in_folder, self._folder, typed)
        paths = await self._all()
        wanted = typed.casefold()
        direct = [path for path in paths if _is_next(path, typed)]
        begins = [path for path in paths if _name(path).casefold().startswith(wanted)] if typed else []
        contains = [path for path in paths if wanted in path.casefold()] if typed else []
        return list(dict.fromkeys([*direct, *begins, *contains]))[:MOST_OFFERED]

    async def _all(self) -> list[str]:
        if time.monotonic() - self._listed_at > FRESH:
            if self._listing is None:
                self._listing = asyncio.create_task(asyncio.to_thread(_list_project, self._folder))
            self._paths = await asyncio.shield(self._listing)
            self._listing, self._listed_at = None, time.monotonic()
        return self._paths


def _list_project(folder: str) -> list[str]:
    from crow.workspace.listing import walk

    end = time.monotonic() + LISTING_TIME
    found: dict[str, None] = {}
    for path in walk(folder, lambda: time.monotonic() > end, MOST_FILES).paths:
        relative = os.path.relpath(path, folder)
        for place, character in enumerate(relative):
            if character == "/":
                found[relative[: place + 1]] = None
        found[relative] = None
    return [path for path in sorted(found) if not _SPECIAL.search(path)]


def _in_folder(folder: str, typed: str) -> list[str]:
    """The entries of a folder elsewhere that begin as typed."""
    written, _, beginning = typed.rpartition("/")
    if not written and not typed.startswith("/"):
        return [f"{typed}/"]
    try:
        with os.scandir(os.path.join(folder, os.path.expanduser(f"{written}/"))) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
    except OSError:
        return []
    wanted = [name for name in names if name.startswith(beginning) and not _SPECIAL.search(name)]
    return [f"{written}/{name}" for name in sorted(wanted) if beginning or not name.startswith(".")][:MOST_OFFERED]


def _is_next(path: str, typed: str) -> bool:
    """Whether a path continues what was typed, in the folder that was typed so far."""
    return path.casefold().startswith(typed.casefold()) and "/" not in path[len(typed) :].rstrip("/") and path != typed


def _name(path: str) -> str:
    return os.path.basename(path.rstrip("/"))
