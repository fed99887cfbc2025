"""The slash commands about the session: /help, /init, /compact, /clear, /context, /export, /rename, /undo; and the list
of all commands.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence

import msgspec

from crow.config.home import write_new_file
from crow.disk import Disk
from crow.errors import CrowError
from crow.events import CommandInfo, HistoryCleared, Sent, SentText, TurnIds
from crow.files.base import Workspace
from crow.paths import shown, spelled
from crow.policy.base import Policy
from crow.project.trusted_sources import Sources
from crow.session.commands import Command, CommandPrompt, CommandReply, CommandSource, FileCommands, SlashCommands
from crow.session.export import markdown
from crow.session.journal import Title
from crow.session.options import Options
from crow.session.persistence import Archive
from crow.session.servers import ServerPrompts, Servers
from crow.session.settings_commands import Mcp, Permissions, Plan, mode_command, model_command
from crow.session.trust import ProjectTrust
from crow.turn.compaction import Waiting, compact
from crow.turn.requests import ContextUse, ContextWindow
from crow.turn.spending import in_words
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

NEARLY_FULL = 0.7
"""The part of the window from which on it is worth doing something about."""
BAR = 10
"""Columns of the longest bar: a line is to fit into a narrow panel."""

LONGEST_NAME = 50
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


class Init:
    info = CommandInfo("init", "Looks at the project and writes AGENTS.md, or mends it", "[what matters most]")

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandPrompt:
        wish = f"\nThe user adds: {arguments}\n" if arguments else ""
        return CommandPrompt((SentText(WRITE_AGENTS_MD + wish), *rest))


class Compact:
    info = CommandInfo("compact", "Makes room: sums up the conversation for the model", "[what to keep in view]")

    def __init__(self, window: ContextWindow, waiting: Waiting) -> None:
        self._window = window
        self._waiting = waiting

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        return CommandReply(
            await compact(self._window, ids, self._waiting, focus=arguments, reason="You asked for it.")
        )


class Clear:
    info = CommandInfo("clear", "Lets the model start afresh; you still see what was, and files stay as they are")

    def __init__(self, window: ContextWindow) -> None:
        self._window = window

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        ratio = self._window.provider_ratio()
        await self._window.journal.record(HistoryCleared())
        self._window.tell_usage(ratio)
        return CommandReply("The model starts afresh: it knows nothing of what was said above. Files stay as they are.")


class Context:
    info = CommandInfo("context", "Shows what fills the model's window, and what was spent")

    def __init__(self, window: ContextWindow, options: Options) -> None:
        self._window = window
        self._options = options

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        await self._options.find_window()
        table = _table(self._window.use(), self._window.requests.info.name)
        return CommandReply("\n".join([*table, *await self._spent()]))

    async def _spent(self) -> list[str]:
        purse = self._window.purse
        spent = {
            "In the last turn": purse.last_turn.in_words(),
            "In this session": purse.session.in_words(),
            "Today, in all sessions": in_words(await purse.today()),
        }
        lines = [f"- {when}: {what}" for when, what in spent.items() if what]
        return ["\nSpent:", *lines] if lines else []


def _table(use: ContextUse, model: str) -> Iterator[str]:
    window = f" of {use.window:,} ({use.total / use.window:.0%})" if use.window else ""
    yield f"The next request to {model} takes about {use.total:,} tokens{window}.\n"
    parts = {
        "System prompt": use.system_prompt,
        "Tools": use.tools,
        "What you sent": use.person,
        "What the model said": use.model,
        "What tools gave": use.outputs,
        "Pictures and sound": use.images,
    }
    whole = use.total or 1
    # Between fences, since not every client shows tables, and a pipe shows them as they are written.
    yield "```text"
    name_width, number_width = max(map(len, parts)), len(f"{use.total:,}")
    for name, tokens in parts.items():
        bar = "█" * round(BAR * tokens / whole)
        yield f"{name:{name_width}}  {tokens:{number_width},}  {bar}".rstrip()
    yield "```"
    if use.window and use.total > NEARLY_FULL * use.window:
        yield "\nIt is nearly full. `/compact` sums up the conversation, `/clear` lets the model start afresh."
    if not use.window:
        yield "\nHow large the window is, is not known: `context_window` of the model in your `config.toml` says it."


class Export:
    info = CommandInfo("export", "Writes the conversation to a Markdown file", "[path]")

    def __init__(self, archive: Archive, folder: str) -> None:
        self._archive = archive
        self._folder = folder
        self._disk = Disk(folder)

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        entry = await self._archive.entry()
        past = await self._archive.events()
        path = spelled(arguments or _file_name(entry.title), self._folder)
        if "\0" in path:
            raise CrowError("A path cannot have a null character in it.")

        def write() -> str:
            place = os.path.join(path, _file_name(entry.title)) if os.path.isdir(path) else path
            write_new_file(place, markdown(entry, past).encode("utf-8", "replace"))
            return place

        path = await self._disk.run(write)
        return CommandReply(f"Written to `{one_line(shown(path), 1000)}`.")


def _file_name(title: str) -> str:
    words = _NOT_IN_NAMES.sub("-", title.lower()).strip("-.")[:LONGEST_NAME].strip("-.")
    return f"{words or 'conversation'}-{time.strftime('%Y-%m-%d')}.md"


class Rename:
    info = CommandInfo("rename", "Gives the conversation another title", "[title]")

    def __init__(self, title: Title) -> None:
        self._title = title

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        if not arguments:
            return CommandReply(f"The title is: {self._title.text or 'Untitled'}\n\n`/rename NEW TITLE` changes it.")
        await self._title.change(arguments)
        return CommandReply(f"The title is now: {self._title.text}")


class Undo:
    info = CommandInfo("undo", "Takes back the last turn: its changes to files, and the turn from the model's memory")

    def __init__(self, archive: Archive, window: ContextWindow, workspace: Workspace) -> None:
        self._archive = archive
        self._window = window
        self._workspace = workspace

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        from crow.session.undo import undo_last_turn  # which brings the tools that change files

        past = await self._archive.events(former_texts=True)
        ratio = self._window.provider_ratio()
        told = await undo_last_turn(past, self._window.journal, self._workspace, arguments)
        self._window.tell_usage(ratio)
        return CommandReply(told)


class CommandParts(msgspec.Struct, frozen=True):
    """The parts of a session that its commands work with."""

    window: ContextWindow
    waiting: Waiting
    workspace: Workspace
    policy: Policy
    options: Options
    archive: Archive
    servers: Servers
    title: Title
    prompts: ServerPrompts
    sources: Sources
    trust: ProjectTrust


def all_commands(parts: CommandParts) -> SlashCommands:
    options, archive, window, workspace = parts.options, parts.archive, parts.window, parts.workspace
    built_in: list[Command] = [
        Init(),
        Compact(window, parts.waiting),
        Clear(window),
        Plan(options),
        mode_command(options),
        model_command(options),
        Permissions(parts.policy, workspace),
        Context(window, options),
        Mcp(parts.servers),
        Export(archive, workspace.roots[0]),
        Rename(parts.title),
        Undo(archive, window, workspace),
    ]
    taken = {Help.info.name, *(command.info.name for command in built_in)}
    from_files = FileCommands(parts.sources, parts.trust, window.journal, taken)
    return SlashCommands([Help(built_in, from_files, parts.prompts), *built_in], [from_files, parts.prompts])


class Help:
    info = CommandInfo("help", "Lists the commands there are")

    def __init__(self, built_in: Sequence[Command], from_files: FileCommands, of_servers: CommandSource) -> None:
        self._built_in = (self, *built_in)
        self._from_files = from_files
        self._of_servers = of_servers

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandReply:
        groups = [
            ("Built in", [command.info for command in self._built_in]),
            ("Skills", self._from_files.skill_infos()),
            ("Commands from files", self._from_files.custom_infos()),
            ("Prompts of MCP servers", [command.info for command in self._of_servers.commands()]),
        ]
        sections = [_group(title, infos) for title, infos in groups if infos]
        if unused := self._from_files.unused():
            sections.append("**Files that are not used**\n\n" + "\n".join(f"- {text}" for text in unused))
        return CommandReply("\n\n".join(sections))


def _group(title: str, infos: Sequence[CommandInfo]) -> str:
    return f"**{title}**\n\n" + "\n".join(_line(info) for info in infos)


def _line(info: CommandInfo) -> str:
    return f"- `/{info.name}{' ' + info.hint if info.hint else ''}`: {one_line(info.description)}"
