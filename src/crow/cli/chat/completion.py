"""Completes a `/command` or an `@file` while it is typed in `crow chat`, and keeps the history of what was typed.

Commands are those of the session; files those of the project, and of folders elsewhere.
"""

import contextlib
import os
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from crow.acp.wire import AvailableCommand
from crow.config.home import LOG_FLAGS, create_folder, read_file, write_file
from crow.disk import Disk
from crow.errors import ConfigError, FileSystemSilent
from crow.search.listing import ProjectFiles
from crow.visible import one_line

MOST_OFFERED = 50
LISTING_TIME = 2.0
"""Seconds in which a folder is listed; what was not found by then is not offered."""
_COMMAND = re.compile(r"/\S*")
_MENTION = re.compile(r'(?:^|[\s([{])@(?:"([^"\n]*)|([^\s"]*))$')
_BLANK = re.compile(r"\s")
_SPECIAL = re.compile(r"[\x00-\x1f\x7f\"\ud800-\udfff]")
"""What no name may have that is to be written between quotation marks on one line, and sent."""


class ChatCompleter(Completer):
    def __init__(self, folder: str) -> None:
        self.commands: Sequence[AvailableCommand] = ()
        self._folder = folder
        self._files = ProjectFiles(folder)
        self._disk = Disk("/")

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Commands alone: files take a moment to be listed."""
        before = document.text_before_cursor
        return self._commands(before, document) if _COMMAND.fullmatch(before) and _ends_here(document) else ()

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in self.get_completions(document, complete_event):
            yield completion
        mention = _MENTION.search(document.text_before_cursor)
        if mention is None:
            return
        is_quoted = mention[1] is not None
        is_closed = is_quoted and document.current_char == '"'
        if not is_closed and not _ends_here(document):
            return
        typed = mention[1] if is_quoted else mention[2]
        for path in await self._offered(typed):
            text = path if is_closed else _mention(path) + _blank_after(path, document)
            yield Completion(text, -len(typed) - (is_quoted and not is_closed), display=one_line(path))

    async def _offered(self, typed: str) -> list[str]:
        if typed.startswith(("/", "~", "..", "./")):
            return await self._listed(typed)
        known = [path for path in await self._files.matching(typed, MOST_OFFERED) if not _SPECIAL.search(path)]
        others = [path for path in known if not _is_next(path, typed)]
        links = await self._listed(typed, links_alone=True)
        found = [*sorted({*known, *links}.difference(others)), *others]
        if typed.endswith("/"):  # a folder that is written already
            found = [path for path in found if path != typed]
        if not found and "/" in typed:  # it is ignored, or behind a link
            found = await self._listed(typed)
        return found[:MOST_OFFERED]

    async def _listed(self, typed: str, *, links_alone: bool = False) -> list[str]:
        """What is in the folder that was typed so far; nothing where the file system does not answer."""
        try:
            return await self._disk.run(lambda: _in_folder(self._folder, typed, links_alone), 2 * LISTING_TIME)
        except FileSystemSilent:
            return []

    def _commands(self, typed: str, document: Document) -> Iterator[Completion]:
        wanted = typed[1:].casefold()
        found = [command for command in self.commands if wanted in command.name.casefold()]
        # Its own name first, which Enter takes: `/mode` is not meant for `/model`.
        found.sort(key=lambda command: (command.name != typed[1:], not command.name.casefold().startswith(wanted)))
        for command in found[:MOST_OFFERED]:
            text = f"/{command.name}" + (_blank_after(command.name, document) if command.input else "")
            yield Completion(
                text, -len(typed), display=one_line(f"/{command.name}"), display_meta=one_line(command.description)
            )


def marked(state: CompletionState | None) -> Completion | None:
    """The completion that Enter takes: the one that was chosen; of commands, which are marked as soon as they are
    offered, the first."""
    if state is None:
        return None
    if state.current_completion is None and _COMMAND.fullmatch(state.original_document.text_before_cursor):
        return state.completions[0] if state.completions else None
    return state.current_completion


def _ends_here(document: Document) -> bool:
    """Whether the word before the cursor ends there: in the middle of one, nothing can be put in its place."""
    return not document.current_char or document.current_char.isspace()


def _blank_after(name: str, document: Document) -> str:
    """None after a folder, which is left open, so that the typing can go on in it; nor where there is one already."""
    return "" if name.endswith("/") or document.current_char.isspace() else " "


def _mention(path: str) -> str:
    if not _BLANK.search(path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


def _in_folder(folder: str, typed: str, links_alone: bool) -> list[str]:
    """The entries of a folder that begin as typed, be it elsewhere; or the links among them."""
    written, slash, beginning = typed.rpartition("/")
    if typed.startswith(("~", "..")) and not slash:
        return [f"{typed}/"]
    wanted = beginning.casefold()
    found: list[str] = []
    try:
        with os.scandir(os.path.join(folder, os.path.expanduser(written + slash))) as entries:
            for entry in entries:
                is_wanted = entry.name.casefold().startswith(wanted) and not _SPECIAL.search(entry.name)
                if is_wanted and (not links_alone or (entry.is_symlink() and os.path.exists(entry.path))):
                    found.append(f"{entry.name}/" if entry.is_dir() else entry.name)
    except (OSError, ValueError):  # there is none, it may not be read, or no path can be so
        return []
    return [written + slash + name for name in sorted(found) if beginning or not name.startswith(".")][:MOST_OFFERED]


def _is_next(path: str, typed: str) -> bool:
    """Whether a path continues what was typed, in the folder that was typed so far."""
    return path.casefold().startswith(typed.casefold()) and "/" not in path[len(typed) :].rstrip("/")


# --- history: a file below CROW_HOME that several chats may add to at once

MOST_ENTRIES = 1000
LARGEST_FILE = 4 * 1024 * 1024
LONGEST_ENTRY = 256 * 1024


class ProjectHistory(History):
    """The newest entries, each a JSON string on a line of its own. What cannot be stored is known until the end."""

    def __init__(self, home: str, folder: str) -> None:
        super().__init__()
        self._home = home
        self._folder = folder

    @cached_property
    def _path(self) -> str:
        import hashlib  # loads a library of cryptography: not before the first input line is there

        digest = hashlib.sha256(os.fsencode(os.path.realpath(self._folder))).hexdigest()[:16]
        return os.path.join(self._home, "history", f"{digest}.jsonl")

    def load_history_strings(self) -> Iterable[str]:
        """The newest first."""
        try:
            content = read_file(self._path)
        except OSError:
            return
        lines = content.splitlines()
        if len(content) > LARGEST_FILE or len(lines) > 2 * MOST_ENTRIES:
            lines = _newest(lines)
            with contextlib.suppress(ConfigError):
                write_file(self._path, b"".join(line + b"\n" for line in lines))
        for line in reversed(lines[-MOST_ENTRIES:]):
            with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
                yield msgspec.json.decode(line, type=str)

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST_ENTRY:
            return
        with contextlib.suppress(OSError, ConfigError):
            create_folder(os.path.dirname(self._path))
            descriptor = os.open(self._path, LOG_FLAGS | os.O_NOFOLLOW, 0o600)
            try:
                os.write(descriptor, msgspec.json.encode(string) + b"\n")
            finally:
                os.close(descriptor)


def _newest(lines: list[bytes]) -> list[bytes]:
    """As many of the last lines as there may be, and half as many bytes."""
    kept: list[bytes] = []
    room = LARGEST_FILE // 2
    for line in reversed(lines[-MOST_ENTRIES:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
