"""The messages of `crow chat`: a text with the files that it names by `@`, a text that is a slash command, and the
queue of messages that wait to be sent.
"""

import asyncio
import contextlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence

import msgspec

from crow.acp.wire import AvailableCommand, AvailableCommandsUpdate, ContentBlock, ResourceLink
from crow.cli.opening import link_to
from crow.config.toml import nearest
from crow.timeouts import timeout
from crow.visible import one_line

MENTION = re.compile(r"""(?<![^\s([{])@(?:"([^"\n]+)(?:"|$)|(\S+))""", re.MULTILINE)
"""A file that a text names; with quotation marks around it if it has blanks. At the end of a line the second one may be
missing: a folder that was completed is left open."""
_LINES = re.compile(r"#(L\d+(?:-L?\d+)?)$", re.ASCII)
_FILE = re.compile(r"[\w ./~+-]*\w\.\w{1,5}(?:#L\d.*)?")
_PUNCTUATION = ".,;:!?)]}'\""
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
LONGEST_PATH = 4096


def clean_lines(text: str) -> str:
    """The text with a line feed alone at the end of each line, whatever came from a paste or a command line.

    Some terminals make a carriage return of every line feed that is pasted, so that a CRLF becomes two of them. A text
    that has nothing but pairs is taken for one with CRLF if its lines leave no doubt: paragraphs have pairs too.
    """
    if "\n" not in text and _is_doubled(text):
        text = text.replace("\r\r", "\n")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_doubled(text: str) -> bool:
    runs = [len(run) for run in re.findall(r"\r+", text)]
    return bool(runs) and not any(run % 2 for run in runs) and (max(runs) > 2 or text.endswith("\r"))


class Message(msgspec.Struct, frozen=True):
    text: str
    attached: tuple[str, ...] = ()
    """The paths of files that go with it and are not named in it."""

    @property
    def shown(self) -> str:
        """The text, and what goes with it unsaid."""
        return " ".join([self.text, *(f"[{one_line(os.path.basename(path))}]" for path in self.attached)])

    def attachments(self, folder: str) -> list[ContentBlock]:
        """Links to all files that go with the message; the agent follows them, as it knows what the model can take."""
        links = [link_to(path) for path in self.attached]
        return list({link.uri: link for link in (*links, *mentioned(self.text, folder))}.values())


def picture_mention(text: str, folder: str) -> str:
    """The mention of a picture whose path is the whole text, as terminals write what is dropped on them: in quotation
    marks, or with backslashes; empty if it is none."""
    text = text.strip()
    # First what costs nothing: taking a text apart costs the square of its length, and a disk may hang.
    if len(text) > LONGEST_PATH or "\n" in text or not text.rstrip("'\"").lower().endswith(PICTURES):
        return ""
    try:
        paths = shlex.split(text)
    except ValueError:
        return ""
    path = paths[0] if len(paths) == 1 else ""
    is_whole = path.startswith(("/", "~/")) and '"' not in path
    if not is_whole or not path.lower().endswith(PICTURES) or _link(path, folder) is None:
        return ""
    return f'@"{path}" ' if re.search(r"\s", path) else f"@{path} "


def mentioned(text: str, folder: str) -> list[ResourceLink]:
    """Links to the files and folders that a text names with `@`. What is no file is just text, such as an address."""
    links = (next(filter(None, (_link(name, folder) for name in names)), None) for names in _named(text))
    return [link for link in links if link is not None]


def missing(text: str, folder: str) -> str:
    """Says which files a text names with `@` that are not there; empty if none. Only what looks like a file counts:
    decorators, packages and people are written so, too."""
    names = [names[-1] for names in _named(text) if not any(_link(name, folder) for name in names)]
    files = list(dict.fromkeys(one_line(_LINES.sub("", name)) for name in names if _looks_like_a_file(name, folder)))
    if not files:
        return ""
    return f"File not found: {', '.join(files)}. Your message is sent as it is."


def _named(text: str) -> Iterator[list[str]]:
    """Of all mentions, the names that each may mean."""
    for quoted, plain in MENTION.findall(text):
        yield [quoted] if quoted else [plain, plain.rstrip(_PUNCTUATION)]


def _looks_like_a_file(name: str, folder: str) -> bool:
    first, slash, _ = name.partition("/")
    return bool(_FILE.fullmatch(name)) or (bool(slash) and os.path.isdir(os.path.join(folder, first)))


def _link(name: str, folder: str) -> ResourceLink | None:
    """A link to the file of that name; `#L5-7` at its end are lines, unless it is a part of the name."""
    lines = _LINES.search(name)
    for written, chosen in ((name, ""), (name[: lines.start()], lines[1]) if lines else ("", "")):
        path = os.path.join(folder, os.path.expanduser(written))
        if written and os.path.exists(path):
            return link_to(path, chosen)
    return None


# --- slash commands

LEAVING = ("/exit", "/quit")
"""What leaves the chat, unless the session has a command of that name."""
TOLD_IN = 2.0
"""Seconds in which a session tells its commands after it was opened; it does so at once."""
_COMMAND = re.compile(r"/([\w:-]+)(?!\S)")


class Commands:
    """Those that the session has told."""

    def __init__(self) -> None:
        self.offered: Sequence[AvailableCommand] = ()
        self._others: Sequence[str] = ()
        """The names of those that are not offered, and can be given all the same."""
        self._told = asyncio.Event()

    def take(self, update: AvailableCommandsUpdate) -> None:
        self.offered = update.available_commands
        self._others = update.meta.crow.untrusted if update.meta is not None else ()
        self._told.set()

    def has(self, text: str) -> bool:
        """Whether a text is a command that is offered."""
        name = text.split(maxsplit=1)[0].removeprefix("/") if text.startswith("/") else ""
        return any(command.name == name for command in self.offered)

    def refusal(self, text: str) -> str:
        """Why a text is not sent that looks like a command, where there is none of that name: a slip is not to be paid
        for. Empty for all other text, and as long as the commands are not known."""
        name = _name(text)
        known = [*(command.name for command in self.offered), *self._others, *(word[1:] for word in LEAVING)]
        if not name or not self._told.is_set() or name in known:
            return ""
        meant = next((other for other in known if other.startswith(name)), "") or nearest(name, known)
        instead = f"Did you mean /{meant}?" if meant else "For a list: /help."
        return f'Unknown command "/{name}". {instead} To send it as a message, put a space before it.'

    async def known_for(self, text: str) -> None:
        """Waits until the commands are known, for a text that looks like one."""
        if _name(text):
            with contextlib.suppress(TimeoutError):
                async with timeout(TOLD_IN):
                    await self._told.wait()


def _name(text: str) -> str:
    """The name of the command that a text looks like; empty for a path, as in `/etc/hosts is wrong` or `/tmp is full`,
    and for the prompt of a server, which may still be starting."""
    found = _COMMAND.match(text)
    if found is None or found[1].startswith("mcp:") or os.path.lexists(found[0]):
        return ""
    return found[1]


# --- the queue


class Waiting(msgspec.Struct, eq=False):
    """A message that has not been sent yet, or not been taken in by the running turn."""

    message: Message
    is_due: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    """Whether it is to be sent at once, and not after the time in which it can be taken back."""
    steering: "asyncio.Task[None] | None" = None
    """While it is to go into the running turn."""


class Outbox:
    """The messages that wait, the oldest first."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._waiting: list[Waiting] = []
        self._changed = changed
        self.is_held = False
        """After a turn that did not end as it should: nothing is sent before the person says so."""

    @property
    def waiting(self) -> Sequence[Waiting]:
        return self._waiting

    @property
    def has_queued(self) -> bool:
        return any(entry.steering is None for entry in self._waiting)

    @property
    def is_steering(self) -> bool:
        return any(entry.steering is not None for entry in self._waiting)

    def add(self, message: Message) -> Waiting:
        entry = Waiting(message)
        self._waiting.append(entry)
        self._changed()
        return entry

    def begin_turn(self) -> None:
        """What is queued from now on is meant for after this turn; what was held before it still is."""
        self.is_held = self.is_held and bool(self._waiting)

    def hurry(self) -> None:
        """Sends what is to go into the turn without waiting longer."""
        for entry in self._waiting:
            entry.is_due.set()

    def put_first(self, message: Message) -> None:
        self._waiting.insert(0, Waiting(message))
        self._changed()

    def remove(self, entry: Waiting) -> bool:
        """False if the person has taken it back."""
        if entry not in self._waiting:
            return False
        self._waiting.remove(entry)
        self._changed()
        return True

    def next(self) -> Message | None:
        """The message to send now, if nothing speaks against it. As long as it is not known whether the turn took in
        what was meant for it, no other turn is begun: that would be overtaken, or end up there."""
        if not self._waiting or self.is_steering or self.is_held:
            return None
        entry = self._waiting[0]
        self.remove(entry)
        return entry.message

    def take_back(self) -> Message | None:
        """The newest of them, for the person to change; one that is being put into the turn is withdrawn."""
        if not self._waiting:
            return None
        entry = self._waiting.pop()
        if entry.steering is not None:
            entry.steering.cancel()
        self.is_held = self.is_held and self.has_queued
        self._changed()
        return entry.message
