"""Reads the files that a project or the user's own folder has for Crow, and makes custom commands and skills of them.

They are read once and within limits: what is shown, trusted and used is the same text. In a project no symbolic link is
followed: cloning a repository must not make Crow load what lies elsewhere. In the user's own folder links are fine.

A custom command is a Markdown file: a prompt with a name. A skill is a folder with a `SKILL.md`: instructions for a
special task. The model is given the names and descriptions of skills and reads the file itself when one fits; a person
can also call a skill by name, like a command. Nothing in either is run; both are text for the model.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import msgspec

from crow.config.home import read_file, reason
from crow.paths import shown
from crow.project.watching import WatchList
from crow.visible import BYTE_ORDER_MARK, made_visible, one_line

LARGEST_FILE = 64 * 1024
MOST_TO_SHOW = 256 * 1024
"""Bytes that a project may bring in all: the person is shown every one of them before they trust it."""
MOST_FILES = 200
MOST_FOLDERS = 100
MOST_NAMES = 1000
"""In one folder. A look stays quick, whatever a repository holds."""
DEEPEST = 4
"""Folders within folders that are looked at for commands."""
SKILL_FILE = "SKILL.md"
LOOK_PATIENCE = 5.0
"""Seconds for a look at the dates of some files, before the file system is called silent."""

Stamp = tuple[str, int, int, int]
"""A path, and of what lies there when it was changed, its size and its inode."""


class Layout(msgspec.Struct, frozen=True):
    """Where in a folder the files are, relative to it."""

    single: tuple[str, ...]
    commands: str
    skills: str
    links: bool
    """Whether symbolic links are followed."""
    most: int | None = None
    """Bytes of all files together; what comes after them is left out."""


OF_USER = Layout((), "commands", "skills", links=True)
OF_PROJECT = Layout(
    (".crow/config.toml", ".mcp.json"), ".crow/commands", ".crow/skills", links=False, most=MOST_TO_SHOW
)


class Snapshot(msgspec.Struct, frozen=True):
    base: str
    files: dict[str, bytes]
    """The contents by path, relative to the base, in order."""
    left_out: tuple[str, ...] = ()
    """The files that were not taken, each with the reason."""

    @property
    def digest(self) -> str:
        """The digest of every path and every byte."""
        import hashlib  # not before it is needed: most folders bring nothing

        digest = hashlib.sha256()
        for path, content in self.files.items():
            name = os.fsencode(path)
            digest.update(b"%d %d %s %s" % (len(name), len(content), name, content))
        return digest.hexdigest()


class WatchedFolder:
    """A folder's files, read again only when a look at their dates shows a change."""

    def __init__(self, base: str, layout: Layout) -> None:
        self._base = base
        self._layout = layout
        self._stamps: list[Stamp] | None = None
        self._folders: set[str] = set()
        self.now = Snapshot(base, {})

    def refresh(self) -> bool:
        """Whether anything has changed since the last look."""
        walk = _Walk(self._base, self._layout)
        paths = list(walk.paths())
        stamps = [stamp_of(self._base, path) for path in paths]
        self._folders = walk.folders
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        self.now = _read(self._base, paths, walk.refused, self._layout)
        return True

    def watch_list(self) -> WatchList:
        """Where the next change can be seen, as of the last look: the folders, and the names in those above them."""
        folders = {*self._folders, self._layout.commands, self._layout.skills}
        names: dict[str, set[str]] = {}
        for path in (*self._layout.single, *folders):
            parts = path.split("/")
            for depth, name in enumerate(parts):
                names.setdefault("/".join(parts[:depth]), set()).add(name)
        # A link's file lies elsewhere, and is watched by itself.
        links = {path for path, *_ in self._stamps or () if os.path.islink(os.path.join(self._base, path))}
        whole = folders | links
        return {
            os.path.join(self._base, path) if path else self._base: None if path in whole else frozenset(names[path])
            for path in sorted({*names, *whole})
        }


class _Walk:
    """A walk through what a folder brings."""

    def __init__(self, base: str, layout: Layout) -> None:
        self._base = base
        self._layout = layout
        self.refused: list[str] = []
        """The files that are skipped, each with the reason."""
        self.folders: set[str] = set()
        """The folders that were looked into."""

    def paths(self) -> Iterator[str]:
        for path in self._layout.single:
            if os.path.lexists(os.path.join(self._base, path)) and self._may_follow(path):
                yield path
        found = chain(self._commands(), self._skills())
        yield from sorted(islice(found, MOST_FILES))
        if next(found, None) is not None:
            self.refused.append(f"all files but {MOST_FILES}: more are not read")

    def _commands(self) -> Iterator[str]:
        folders: list[tuple[str, ...]] = []
        """Each with those that it lies in, links resolved: one that leads back to them is not looked into again."""
        if self._is_folder(self._layout.commands):
            folders.append((self._layout.commands, self._real(self._layout.commands)))
        for _ in range(MOST_FOLDERS):
            if not folders:
                return
            folder, *way = folders.pop(0)
            for name in self._names(folder):
                path = f"{folder}/{name}"
                if name.endswith(".md"):
                    if self._may_follow(path):
                        yield path
                elif len(way) < DEEPEST and self._is_folder(path) and (real := self._real(path)) not in way:
                    folders.append((path, *way, real))

    def _skills(self) -> Iterator[str]:
        if not self._is_folder(self._layout.skills):
            return
        for name in self._names(self._layout.skills):
            folder = f"{self._layout.skills}/{name}"
            path = f"{folder}/{SKILL_FILE}"
            is_there = self._is_folder(folder) and os.path.lexists(os.path.join(self._base, path))
            if is_there and self._may_follow(path):
                yield path

    def _real(self, path: str) -> str:
        return os.path.realpath(os.path.join(self._base, path))

    def _names(self, folder: str) -> Sequence[str]:
        try:
            names = os.listdir(os.path.join(self._base, folder))
        except OSError:
            return ()
        return sorted(name for name in names if not name.startswith("."))[:MOST_NAMES]

    def _is_folder(self, path: str) -> bool:
        if not os.path.isdir(os.path.join(self._base, path)) or not self._may_follow(path):
            return False
        self.folders.add(path)
        return True

    def _may_follow(self, path: str) -> bool:
        if self._layout.links or not _through_link(self._base, path):
            return True
        self.refused.append(f"{path}: symbolic link")
        return False


def _through_link(base: str, path: str) -> bool:
    """Whether a component of the path, below the base, is a symbolic link."""
    while path:
        if os.path.islink(os.path.join(base, path)):
            return True
        path = os.path.dirname(path)
    return False


def stamp_of(base: str, path: str) -> Stamp:
    try:
        status = os.stat(os.path.join(base, path))
    except OSError:
        return path, 0, 0, 0
    return path, status.st_ctime_ns, status.st_size, status.st_ino


def _read(base: str, paths: Sequence[str], refused: list[str], layout: Layout) -> Snapshot:
    files: dict[str, bytes] = {}
    size = 0
    for path in paths:
        try:
            content = read_file(os.path.join(base, path), LARGEST_FILE + 1, links=layout.links)
        except OSError as error:
            refused.append(f"{path}: {reason(error)}")
            continue
        if len(content) > LARGEST_FILE:
            refused.append(f"{path}: larger than {LARGEST_FILE // 1024} kB")
        elif layout.most is not None and size + len(content) > layout.most:
            refused.append(f"{path}: all files together would be larger than {layout.most // 1024} kB")
        else:
            size += len(content)
            files[path] = content
    return Snapshot(base, files, tuple(refused))


# --- commands and skills

LONGEST_HINT = 80

_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9](?!\d))")
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")


LONGEST_NAME = 64
LONGEST_DESCRIPTION = 200

_NOT_IN_NAMES = re.compile(r"[^\w-]+")

FENCE = "---"


class CustomCommand(msgspec.Struct, frozen=True):
    name: str
    description: str
    hint: str
    body: str
    path: str

    def expand(self, arguments: str) -> str:
        """The prompt, with what was typed after the name in its places, or at the end if it has none."""
        words = [next(filter(None, found.groups()), "") for found in _WORD.finditer(arguments)]

        def fill(place: re.Match[str]) -> str:
            if place[1] == "ARGUMENTS":
                return arguments
            number = int(place[1])
            return words[number - 1] if number <= len(words) else ""

        filled, places = _PLACE.subn(fill, self.body)
        return f"{filled}\n\n{arguments}" if arguments and not places else filled


def read_command(path: str, inner: str, content: bytes) -> CustomCommand | None:
    """`inner` is the path within the folder of commands: `git/review.md` is the command `git:review`."""
    name = clean_name(*inner.removesuffix(".md").split("/"))
    head, body = split_head(content.decode("utf-8", "replace"))
    if not name or not body:
        return None
    hint = one_line(head.get("argument-hint", ""), LONGEST_HINT) or "[text]"
    return CustomCommand(name, description_in(head, body), hint, made_visible(body), path)


class Skill(msgspec.Struct, frozen=True):
    name: str
    description: str
    body: str
    path: str
    """The path of its SKILL.md."""

    def expand(self, arguments: str) -> str:
        """The prompt that calling the skill by name stands for."""
        asked = f"\n\nWhat the user wants with it: {arguments}" if arguments else ""
        return f"Use the skill {self.name}. Its instructions, from {shown(self.path)}:\n\n{self.body}{asked}"


def read_skill(path: str, folder: str, content: bytes) -> Skill | None:
    """The skill that a SKILL.md makes; its name is in the head of the file, else it is that of the folder."""
    head, body = split_head(content.decode("utf-8", "replace"))
    name = clean_name(head.get("name", "")) or clean_name(folder)
    if not name or not body:
        return None
    return Skill(name, description_in(head, body), made_visible(body), path)


def clean_name(*parts: str) -> str:
    """A name of letters, digits, `-` and `_`, the parts joined by colons; empty if nothing is left of them."""
    cleaned = [_NOT_IN_NAMES.sub("-", part).strip("-") for part in parts]
    return ":".join(part for part in cleaned if part)[:LONGEST_NAME]


def description_in(head: dict[str, str], body: str) -> str:
    """The description in the head of the file, else the first line of its text."""
    first = next((line.strip("# \t") for line in body.splitlines() if line.strip("# \t")), "")
    return one_line(head.get("description", "") or first, LONGEST_DESCRIPTION)


def split_head(text: str) -> tuple[dict[str, str], str]:
    """The head's values by key, and the rest of the text. A head that is never closed is none."""
    lines = text.removeprefix(BYTE_ORDER_MARK).splitlines()
    if not lines or lines[0].rstrip() != FENCE:
        return {}, text.removeprefix(BYTE_ORDER_MARK).strip()
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        return {}, text.strip()
    return _values(lines[1:end]), "\n".join(lines[end + 1 :]).strip()


def _values(lines: list[str]) -> dict[str, str]:
    """An indented line goes on with the value before it, as in a description of several lines."""
    values: dict[str, str] = {}
    key = ""
    for line in lines:
        name, colon, value = line.partition(":")
        if line[:1].isspace():
            if key and line.strip():
                values[key] = f"{values[key]} {line.strip()}".strip()
        elif colon and name.strip() and not name.startswith("#"):
            key = name.strip().lower()
            values[key] = _unquoted(value.strip())
        else:
            key = ""
    return values


def _unquoted(value: str) -> str:
    if value in (">", "|", ">-", "|-"):
        return ""  # the text follows on indented lines
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


class PromptFiles(msgspec.Struct, frozen=True):
    commands: tuple[CustomCommand, ...] = ()
    skills: tuple[Skill, ...] = ()
    unused: tuple[str, ...] = ()
    """The files that make no command, each with the reason."""


def prompt_files_in(snapshot: Snapshot, layout: Layout) -> PromptFiles:
    commands: list[CustomCommand] = []
    skills: list[Skill] = []
    unused = list(snapshot.left_out)
    for path, content in snapshot.files.items():
        whole = f"{snapshot.base}/{path}"
        if path.startswith(f"{layout.commands}/"):
            found = read_command(whole, path.removeprefix(f"{layout.commands}/"), content)
        elif path.startswith(f"{layout.skills}/"):
            found = read_skill(whole, path.split("/")[-2], content)
        else:
            continue
        match found:
            case CustomCommand():
                commands.append(found)
            case Skill():
                skills.append(found)
            case None:
                unused.append(f"{path}: no text, or no name that can be typed")
    return PromptFiles(tuple(commands), tuple(skills), tuple(unused))
