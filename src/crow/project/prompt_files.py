"""The files of a folder that become prompts when they are called by name: commands and skills."""

import msgspec

from crow.project.custom import CustomCommand, custom_command
from crow.project.skills import Skill, skill
from crow.project.snapshot import Layout, Snapshot


class PromptFiles(msgspec.Struct, frozen=True):
    commands: tuple[CustomCommand, ...] = ()
    skills: tuple[Skill, ...] = ()
    unused: tuple[str, ...] = ()
    """What is there and makes no command, with why."""


def prompt_files_in(snapshot: Snapshot, layout: Layout) -> PromptFiles:
    commands: list[CustomCommand] = []
    skills: list[Skill] = []
    unused = list(snapshot.left_out)
    for path, content in snapshot.files.items():
        whole = f"{snapshot.base}/{path}"
        if path.startswith(f"{layout.commands}/"):
            found = custom_command(whole, path.removeprefix(f"{layout.commands}/"), content)
        elif path.startswith(f"{layout.skills}/"):
            found = skill(whole, path.split("/")[-2], content)
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
