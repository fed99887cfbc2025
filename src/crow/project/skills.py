"""Skills: instructions for special tasks, a folder each, with a SKILL.md that says what it is for.

The model is told their names and what they are good for; it reads the file itself when one fits. A person can also
call one by name, like a command.
"""

from collections.abc import Sequence

import msgspec

from crow.paths import shown
from crow.project.frontmatter import split_head
from crow.project.naming import clean_name, description_in
from crow.visible import made_visible

LONGEST_LISTING = 4000
"""Characters of the system prompt that the list of skills may take."""
_INTRODUCTION = "Skills: instructions for special tasks. When one fits what you are to do, first `read` its file."


class Skill(msgspec.Struct, frozen=True):
    name: str
    description: str
    body: str
    path: str
    """Of its SKILL.md."""

    def called(self, arguments: str) -> str:
        """The prompt that calling it by name stands for."""
        asked = f"\n\nWhat the user wants with it: {arguments}" if arguments else ""
        return f"Use the skill {self.name}. Its instructions, from {shown(self.path)}:\n\n{self.body}{asked}"


def skill(path: str, folder: str, content: bytes) -> Skill | None:
    """Called as its head says, else like its folder."""
    head, body = split_head(content.decode("utf-8", "replace"))
    name = clean_name(head.get("name", "")) or clean_name(folder)
    if not name or not body:
        return None
    return Skill(name, description_in(head, body), made_visible(body), path)


def listing(skills: Sequence[Skill]) -> str:
    """For the system prompt; empty if there are none."""
    if not skills:
        return ""
    text = f"\n{_INTRODUCTION}\n"
    for number, known in enumerate(skills):
        line = f"- {known.name}: {known.description} ({shown(known.path)})\n"
        if len(text) + len(line) > LONGEST_LISTING:
            return f"{text}({len(skills) - number} more are not listed.)\n"
        text += line
    return text
