"""Completes a `/command` or an `@file` while it is typed: from the session's commands, the project's files and folders
elsewhere.
"""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from crow.acp.wire import AvailableCommand
from crow.visible import one_line
from crow.workspace.project_files import ProjectFiles

MOST_OFFERED = 50
_COMMAND = re.compile(r"/\S*")
_MENTION = re.compile(r'(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$')
_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"]")
"""What no name may have that is to be written between quotation marks on one line."""


class ChatCompleter(Completer):
    def __init__(self, folder: str) -> None:
        self.commands: Sequence[AvailableCommand] = ()
        self._folder = folder
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
            for path in await self._offered(typed):
                yield _mention(path, start - (mention[1] is not None))

    async def _offered(self, typed: str) -> list[str]:
        if typed.startswith(("/", "~", "..")):
            return await asyncio.to_thread(_in_folder, self._folder, typed)
        return [path for path in await self._files.matching(typed, MOST_OFFERED) if not _SPECIAL.search(path)]

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
