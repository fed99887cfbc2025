"""The slash commands about the session: /help, /init, /compact, /clear, /context, /export, /rename, /undo; and the list
of all commands.
"""

import os
import re
import time
from collections.abc import Iterator, Sequence

from crow.config.home import write_new_file
from crow.disk import Disk
from crow.errors import CrowError
from crow.events import CommandInfo, HistoryCleared, Sent, SentText, TurnIds
from crow.files.base import Workspace
from crow.paths import shown, spelled
from crow.project.folder_files import CustomCommand, Skill
from crow.session.commands import Command, CommandAnswer, CommandSource, FileCommands
from crow.session.export import markdown
from crow.session.journal import Title
from crow.session.options import Options
from crow.session.persistence import Archive
from crow.turn.compaction import Waiting, compact
from crow.turn.requests import ContextUse, ContextWindow
from crow.turn.spending import in_words
from crow.visible import one_line

WRITE_AGENTS_MD = """\
Look at this project and write its AGENTS.md, in the working directory: what an agent has to know to work here.

- First read what is there: the README, the build files, the CI configuration, the layout of the source, and AGENTS.md
  itself if there is one. If there is, keep what still holds and fix what does not.
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


class SessionCommands:
    """The commands about the conversation itself."""

    def __init__(
        self,
        window: ContextWindow,
        waiting: Waiting,
        workspace: Workspace,
        options: Options,
        archive: Archive,
        title: Title,
    ) -> None:
        self._window = window
        self._waiting = waiting
        self._workspace = workspace
        self._options = options
        self._archive = archive
        self._title = title

    def commands(self) -> list[Command]:
        return [
            Command(
                CommandInfo("init", "Write AGENTS.md for this project, or update it", "[what matters most]"), self._init
            ),
            Command(
                CommandInfo("compact", "Summarise the conversation to free up context", "[what to keep]"), self._compact
            ),
            Command(
                CommandInfo(
                    "clear", "Clear the model's context; you still see the conversation, and files stay as they are"
                ),
                self._clear,
            ),
            Command(CommandInfo("context", "Show what fills the context window, and what was spent"), self._context),
            Command(CommandInfo("export", "Export the conversation to a Markdown file", "[path]"), self._export),
            Command(CommandInfo("rename", "Rename the conversation", "[title]"), self._rename),
            Command(
                CommandInfo("undo", "Undo the last turn: restore its files, remove it from the model's context"),
                self._undo,
            ),
        ]

    async def _init(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        wish = f"\nThe user adds: {arguments}\n" if arguments else ""
        return SentText(WRITE_AGENTS_MD + wish), *rest

    async def _compact(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        return await compact(self._window, ids, self._waiting, focus=arguments, reason="you asked for it.")

    async def _clear(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        ratio = self._window.provider_ratio()
        await self._window.journal.record(HistoryCleared())
        self._window.tell_usage(ratio)
        return "Context cleared: the model no longer knows what was said above. Files stay as they are."

    async def _context(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        await self._options.find_window()
        budgets = self._window.budgets
        spent = {
            "In the last turn": budgets.last_turn.in_words(),
            "In this session": budgets.session.in_words(),
            "Today, in all sessions": in_words(await budgets.today()),
        }
        lines = [f"- {when}: {what}" for when, what in spent.items() if what]
        table = _table(self._window.use(), self._window.requests.info.name)
        return "\n".join([*table, *(["\nSpent:", *lines] if lines else [])])

    async def _export(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        entry = await self._archive.entry()
        past = await self._archive.events()
        folder = self._workspace.roots[0]
        path = spelled(arguments or _file_name(entry.title), folder)
        if "\0" in path:
            raise CrowError("A path cannot contain a null character.")

        def write() -> str:
            place = os.path.join(path, _file_name(entry.title)) if os.path.isdir(path) else path
            write_new_file(place, markdown(entry, past).encode("utf-8", "replace"))
            return place

        return f"Exported to `{one_line(shown(await Disk(folder).run(write)), 1000)}`."

    async def _rename(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        if not arguments:
            return f"Title: {self._title.text or 'Untitled'}\n\n`/rename NEW TITLE` changes it."
        await self._title.change(arguments)
        return f"Renamed to: {self._title.text}"

    async def _undo(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        from crow.session.undo import undo_last_turn  # which brings the tools that change files

        past = await self._archive.events(former_texts=True)
        ratio = self._window.provider_ratio()
        told = await undo_last_turn(past, self._window.journal, self._workspace, arguments)
        self._window.tell_usage(ratio)
        return told


def _table(use: ContextUse, model: str) -> Iterator[str]:
    window = f" of {use.window:,} ({use.total / use.window:.0%})" if use.window else ""
    yield f"The next request to {model} takes about {use.total:,} tokens{window}.\n"
    parts = {
        "System prompt": use.system_prompt,
        "Tools": use.tools,
        "Your messages": use.person,
        "Model's replies": use.model,
        "Tool output": use.outputs,
        "Images and audio": use.images,
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
        yield "\nThe context window is nearly full. `/compact` summarises the conversation, `/clear` starts afresh."
    if not use.window:
        yield "\nContext window unknown. Set `context_window` of the model in your `config.toml`."


def _file_name(title: str) -> str:
    words = _NOT_IN_NAMES.sub("-", title.lower()).strip("-.")[:LONGEST_NAME].strip("-.")
    return f"{words or 'conversation'}-{time.strftime('%Y-%m-%d')}.md"


def help_command(built_in: Sequence[CommandInfo], from_files: FileCommands, of_servers: CommandSource) -> Command:
    info = CommandInfo("help", "List all commands")

    async def run(arguments: str, rest: Sequence[Sent], ids: TurnIds) -> CommandAnswer:
        groups = {
            "Built in": [info, *built_in],
            "Skills": from_files.infos_of(Skill),
            "Commands from files": from_files.infos_of(CustomCommand),
            "Prompts of MCP servers": [command.info for command in of_servers.commands()],
        }
        sections = [f"**{title}**\n\n" + "\n".join(map(_line, infos)) for title, infos in groups.items() if infos]
        if unused := from_files.unused():
            sections.append("**Files not used**\n\n" + "\n".join(f"- {text}" for text in unused))
        return "\n\n".join(sections)

    return Command(info, run)


def _line(info: CommandInfo) -> str:
    return f"- `/{info.name}{' ' + info.hint if info.hint else ''}`: {one_line(info.description)}"
