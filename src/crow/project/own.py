"""The commands and skills of a folder's snapshot."""

import msgspec

from crow.project.custom import CustomCommand, custom_command
from crow.project.skills import Skill, skill
from crow.project.snapshot import Layout, Snapshot


class Own(msgspec.Struct, frozen=True):
    commands: tuple[CustomCommand, ...] = ()
    skills: tuple[Skill, ...] = ()


def own_of(snapshot: Snapshot, layout: Layout) -> Own:
    commands: list[CustomCommand | None] = []
    skills: list[Skill | None] = []
    for path, content in snapshot.files.items():
        whole = f"{snapshot.base}/{path}"
        if path.startswith(f"{layout.commands}/"):
            commands.append(custom_command(whole, path.removeprefix(f"{layout.commands}/"), content))
        elif path.startswith(f"{layout.skills}/"):
            skills.append(skill(whole, path.split("/")[-2], content))
    return Own(tuple(filter(None, commands)), tuple(filter(None, skills)))
