"""Reads custom commands and skills out of Markdown files: their names and descriptions, and the prompts that they
become.

A custom command is a Markdown file: a prompt with a name. A skill is a folder with a `SKILL.md`: instructions for a
special task. The model is given the names and descriptions of skills and reads the file itself when one fits; a person
can also call a skill by name, like a command. Nothing in either is run; both are text for the model.
"""

import re

import msgspec

from crow.paths import shown
from crow.project.folder_files import Layout, Snapshot
from crow.visible import BYTE_ORDER_MARK, made_visible, one_line

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
                unused.append(f"{path}: it has no text, or no name that can be typed")
    return PromptFiles(tuple(commands), tuple(skills), tuple(unused))
