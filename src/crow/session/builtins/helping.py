"""/help, /init, /mcp: finding one's way."""

from collections.abc import Callable, Sequence

from crow.events import CommandInfo, Sent, SentText
from crow.session.commands import Command, Prompt, Reply
from crow.session.own_commands import OwnCommands
from crow.turn.conversation import TurnIds
from crow.visible import one_line

WRITE_AGENTS_MD = """\
Look at this project and write its AGENTS.md, in the working directory: what an agent has to know to work here.

- First read what is there: the README, the build files, the CI configuration, the layout of the source, and AGENTS.md
  itself if there is one. If there is, keep what still holds and mend what does not.
- Say how to build, how to run all tests and how to run one, how to check and format: the exact commands, found in the
  project, not guessed.
- Say how the source is laid out and what a change has to respect: conventions that are not plain from the code alone.
- Leave out what any agent knows, and what the README already says well. At most about 60 lines.
"""


class Help:
    info = CommandInfo("help", "Lists the commands there are")

    def __init__(self, built_in: Sequence[Command], own: OwnCommands) -> None:
        self._built_in = (self, *built_in)
        self._own = own

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        groups = [
            ("Built in", [command.info for command in self._built_in]),
            ("Skills", self._own.skill_infos()),
            ("Own commands", self._own.custom_infos()),
        ]
        return Reply("\n\n".join(_group(title, infos) for title, infos in groups if infos))


def _group(title: str, infos: Sequence[CommandInfo]) -> str:
    return f"**{title}**\n\n" + "\n".join(_line(info) for info in infos)


def _line(info: CommandInfo) -> str:
    return f"- `/{info.name}{' ' + info.hint if info.hint else ''}`: {one_line(info.description)}"


class Init:
    info = CommandInfo("init", "Looks at the project and writes AGENTS.md, or mends it", "[what matters most]")

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Prompt:
        wish = f"\nThe user adds: {arguments}\n" if arguments else ""
        return Prompt((SentText(WRITE_AGENTS_MD + wish), *rest))


class Mcp:
    info = CommandInfo("mcp", "Says which MCP servers are connected")

    def __init__(self, configured: Callable[[], Sequence[str]]) -> None:
        self._configured = configured

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        text = "No MCP servers are connected: this version of Crow does not start any."
        if names := self._configured():
            text += f" Configured: {', '.join(f'`{name}`' for name in names)}."
        return Reply(text)
