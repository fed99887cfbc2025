"""Custom commands: a Markdown file is a prompt with a name. Nothing in it is run; it is text for the model."""

import re

import msgspec

from crow.project.frontmatter import split_head
from crow.project.naming import clean_name, description_in
from crow.visible import made_visible, one_line

LONGEST_HINT = 80

_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9](?!\d))")
_WORD = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")


class CustomCommand(msgspec.Struct, frozen=True):
    name: str
    description: str
    hint: str
    body: str
    path: str

    def expanded(self, arguments: str) -> str:
        """The prompt, with what was typed after the name in its places, or at the end if it has none."""
        words = [next(filter(None, found.groups()), "") for found in _WORD.finditer(arguments)]

        def fill(place: re.Match[str]) -> str:
            if place[1] == "ARGUMENTS":
                return arguments
            number = int(place[1])
            return words[number - 1] if number <= len(words) else ""

        filled, places = _PLACE.subn(fill, self.body)
        return f"{filled}\n\n{arguments}" if arguments and not places else filled


def custom_command(path: str, inner: str, content: bytes) -> CustomCommand | None:
    """`inner` is the path within the folder of commands: `git/review.md` is the command `git:review`."""
    name = clean_name(*inner.removesuffix(".md").split("/"))
    head, body = split_head(content.decode("utf-8", "replace"))
    if not name or not body:
        return None
    hint = one_line(head.get("argument-hint", ""), LONGEST_HINT) or "[text]"
    return CustomCommand(name, description_in(head, body), hint, made_visible(body), path)
