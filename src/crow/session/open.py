"""Puts a session together: makes each part once (journal, policy, tools, model, servers), and does what each of its
turns begins with.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from crow.commands.processes import ForkServer
from crow.commands.terminal import seen_by_commands
from crow.commands.terminals import Terminals
from crow.config.discovery import patience_in
from crow.config.settings import McpServerSettings, PermissionRule, amounts_of
from crow.errors import FileSystemSilent
from crow.events import Notice, PromptTold, TurnIds, TurnStarted
from crow.files.output_folder import outputs_folder
from crow.mcp.client.configured import ConfiguredServer
from crow.policy.grants import Grants
from crow.policy.rule_policy import RulePolicy
from crow.project.prompt import Instructions, SystemPrompt
from crow.project.server_programs import said_of_programs
from crow.project.trusted_sources import Sources, skills_folder
from crow.session.builtin_commands import CommandParts, all_commands
from crow.session.faces.faces import Faces
from crow.session.faces.feed import SessionStream
from crow.session.journal import SessionJournal, Title
from crow.session.models import SessionSetup
from crow.session.options import Options
from crow.session.persistence import Persistence
from crow.session.running_turn import Turns
from crow.session.servers import ServerPrompts, ServerQuestions, Servers, configured_servers
from crow.session.session import Session, SessionParts
from crow.session.session_model import SessionModel
from crow.session.trust import ProjectTrust, TrustedProjects
from crow.tools.ask import LeavePlan
from crow.tools.background import end_for_model
from crow.tools.base import Tool, Toolbox
from crow.tools.task import Task
from crow.tools.terminal import RunCommand
from crow.turn.context import TurnContext
from crow.turn.requests import ContextWindow, LiveSettings, Requests, has_small_window
from crow.turn.spending import Purse
from crow.turn.subagent.subagents import Subagents
from crow.turn.waits import PATIENCE, Wait

if TYPE_CHECKING:
    from crow.mcp.client.hub import Hub

SERVER_PATIENCE = 0.1
"""How long a prompt waits for a model's server to tell what it is, of the time after which waits are named: half a
second, which nobody notices."""


class FolderSetup:
    """What a session reads of its folders when it is opened, made beside the event loop: a file system may hang."""

    def __init__(self, id: str, setup: SessionSetup, roots: Sequence[str], home: str) -> None:
        self.policy = policy = _policy(id, setup, roots, home)
        self.sources = Sources(home, roots)
        self.prompt = SystemPrompt(
            roots, time.strftime("%Y-%m-%d"), policy.is_secret, home, skills=self.sources.skills_listing
        )
        self.prompt.instructions.refresh()
        self.warnings = [policy.warning] if policy.warning else []
        self.warnings += self.prompt.instructions.remarks()


class Environment(msgspec.Struct):
    """What a session works with, and through whom."""

    faces: Faces
    """Their files, commands and dialogs, or this machine's where they have none."""
    fork_server: ForkServer
    environ: Mapping[str, str]
    servers: Mapping[str, McpServerSettings]
    """The MCP servers that the editor hands over, by name."""


class Preparations:
    """What is done in each turn before the model is asked: trust is asked for, servers are waited for."""

    def __init__(
        self,
        trust: ProjectTrust,
        servers: Servers,
        instructions: Instructions,
        window: ContextWindow,
        waiting: Callable[[str], Wait],
        patience: float,
    ) -> None:
        self._trust = trust
        self._servers = servers
        self._instructions = instructions
        self._window = window
        self._waiting = waiting
        self._patience = patience

    async def make(self, ids: TurnIds) -> None:
        with self._waiting("the preparations of this turn"):
            await self._trust.prepare(ids)
            with contextlib.suppress(FileSystemSilent):  # said when the turn began: the model is told what was known
                await self._instructions.refresh_in_thread()
        await self._ask_model_server()
        await self._servers.prepare()

    async def _ask_model_server(self) -> None:
        """A server on this machine or nearby knows best how large its window is, and may have been started anew."""
        model = self._window.requests.model
        if not isinstance(model, SessionModel):
            return
        window = model.info.context_window
        await model.ask_server(SERVER_PATIENCE * self._patience)
        if model.info.context_window != window:
            self._window.tell_usage()


def open_session(
    id: str, setup: SessionSetup, environment: Environment, persistence: Persistence, home: str, folder: FolderSetup
) -> Session:
    assembly = _Assembly(id, setup, environment, persistence, home, folder)
    session = Session(id, assembly.session_parts)
    for notice in assembly.begin():
        session.tell(notice)
    return session


class _Assembly:
    """Puts a session together: each part is made once, when another part first needs it."""

    def __init__(
        self,
        id: str,
        setup: SessionSetup,
        environment: Environment,
        persistence: Persistence,
        home: str,
        folder: FolderSetup,
    ) -> None:
        self._id = id
        self._setup = setup
        self._environment = environment
        self._persistence = persistence
        self._home = home
        self._folder = folder
        self._live = LiveSettings(SessionModel(setup.first), setup.settings.limits)
        self._patience = patience_in(environment.environ, PATIENCE)
        self._dialog = asyncio.Lock()
        self._told: set[str] = set()
        self._faces = environment.faces
        self._turns = Turns(persistence.past)
        self._terminals = Terminals(environment.faces.commands)
        self._run_command = RunCommand(self._terminals, setup.settings.terminal.timeout)
        self._subagents = Subagents(self.turn_context, _file_tools)

    @property
    def session_parts(self) -> SessionParts:
        return SessionParts(
            journal=self._journal,
            terminals=self._terminals,
            options=self._options,
            commands=all_commands(self._command_parts),
            servers=self._servers,
            title=self._title,
            faces=self._faces,
            archive=self._persistence.archive,
            turns=self._turns,
            turn_context=self.turn_context,
        )

    def begin(self) -> list[Notice]:
        """Puts into effect what is trusted, then what was chosen in the session: it comes second because it wins.

        Gives what the person should know of it all.
        """
        past = self._persistence.past
        notices = self._trust.begin(new=not any(isinstance(event, TurnStarted) for event in past))
        notices += self._options.restore(past)
        doubts = self._purse.doubts(self._live.model.info)
        return notices + [Notice("warning", text) for text in (*self._folder.warnings, *doubts)]

    def turn_context(self) -> TurnContext:
        """What a turn that begins now may know."""
        return TurnContext(
            requests=self._requests,
            workspace=self._faces.workspace,
            policy=self._folder.policy,
            person=self._faces.person,
            journal=self._journal,
            purse=self._purse,
            dialog=self._dialog,
            prepare=self._preparations.make,
            news=lambda: [end_for_model(command) for command in self._terminals.ends_to_tell()],
            choose_model=self._options.choose_model,
            remarks_shown=self._told,
            patience=self._patience,
        )

    def _waiting(self, what: str) -> Wait:
        return Wait(self._journal, what, "", self._patience, self._dialog.locked)

    # --- what happens, and what it costs

    @cached_property
    def _journal(self) -> SessionJournal:
        journal = SessionJournal(self._persistence.log, self._patience)
        journal.remember(self._persistence.past)
        self._faces.begin(SessionStream(journal, self._persistence.archive), self._turns)
        return journal

    @cached_property
    def _purse(self) -> Purse:
        purse = Purse(
            *(amounts_of(self._setup.settings.budget), self._journal, self._faces.person),
            day=self._persistence.archive.spent_today,
            cheaper=lambda: self._setup.cheaper_than(self._live.model.info),
        )
        purse.remember(self._persistence.past)
        return purse

    @cached_property
    def _title(self) -> Title:
        return Title(self._journal, self._persistence.past)

    # --- what the model is sent

    @cached_property
    def _requests(self) -> Requests:
        policy = self._folder.policy
        tools = Toolbox(self._session_tools(), self._servers)
        tools.add(Task(self._subagents.subagent_for, lambda: policy.mode))
        tools.add(LeavePlan(lambda: policy.mode, lambda mode: self._options.choose("mode", mode)))
        history = self._journal.history
        return Requests(self._live, tools, history, self._system_prompt, self._id, self._prompt_news)

    @cached_property
    def _window(self) -> ContextWindow:
        return ContextWindow(self._requests, self._journal, self._purse)

    def _system_prompt(self) -> str:
        prompt, told, window = self._folder.prompt, self._journal.history.prompt, self._small_window
        return prompt.short_text(window, told) if window else prompt.text(told)

    def _prompt_news(self) -> PromptTold | None:
        return self._folder.prompt.news(self._journal.history.told_prompt, self._small_window)

    @property
    def _small_window(self) -> int | None:
        """The model's window, if it is a small one."""
        info = self._live.model.info
        return info.context_window if has_small_window(info) else None

    def _session_tools(self) -> Iterator[Tool]:
        from crow.session.toolset import session_tools  # for the first request, not for the session's beginning

        yield from session_tools(
            *(self._faces.person, self._environment.environ, self._folder.policy),
            *(self._terminals, self._run_command, self._setup.settings.web),
        )

    # --- what was chosen, trusted and started

    @cached_property
    def _options(self) -> Options:
        return Options(self._window, self._folder.policy, self._setup)

    @cached_property
    def _projects(self) -> TrustedProjects:
        seen = seen_by_commands(self._environment.environ, self._setup.key_variables)
        return TrustedProjects(self._live, self._purse, self._folder.policy, self._options, self._run_command, seen)

    @cached_property
    def _trust(self) -> ProjectTrust:
        return ProjectTrust(self._folder.sources, self._projects, self._journal, self._faces.person, self._dialog)

    @cached_property
    def _servers(self) -> Servers:
        handed_over, configured = self._environment.servers, self._setup.settings.mcp_servers

        def wanted() -> dict[str, ConfiguredServer]:
            return configured_servers(handed_over, configured, self._projects.servers)

        roots = self._faces.workspace.roots
        self._folder.policy.programs = lambda: said_of_programs(
            {server.name: server.settings for server in wanted().values()}, roots
        )
        return Servers(wanted, self._hub, self._journal, self._waiting)

    def _hub(self) -> "Hub":
        from crow.mcp.client.hub import Hub
        from crow.mcp.client.inventory import ConnectionContext  # the library behind it is loaded for servers only

        environment = self._environment
        around = ConnectionContext(
            fork_server=environment.fork_server,
            home=self._home,
            roots=self._faces.workspace.roots,
            environ=environment.environ,
            asker=ServerQuestions(self._faces.person, self._dialog, self._journal, self._subagents.task_of),
            limits=lambda: self._live.limits,
            tell=self._journal.append,
        )
        return Hub(around, lambda: self._live.model.info.context_window)

    @cached_property
    def _preparations(self) -> Preparations:
        instructions = self._folder.prompt.instructions
        return Preparations(self._trust, self._servers, instructions, self._window, self._waiting, self._patience)

    @property
    def _command_parts(self) -> CommandParts:
        return CommandParts(
            window=self._window,
            waiting=self._waiting,
            workspace=self._faces.workspace,
            policy=self._folder.policy,
            options=self._options,
            archive=self._persistence.archive,
            servers=self._servers,
            prompts=ServerPrompts(self._servers, self._preparations.make),
            title=self._title,
            sources=self._folder.sources,
            trust=self._trust,
        )


def _file_tools() -> Sequence[Tool]:
    from crow.session.toolset import file_tools

    return file_tools()


def _policy(id: str, setup: SessionSetup, roots: Sequence[str], home: str) -> RulePolicy:
    readable = (outputs_folder(id), skills_folder(home))
    return RulePolicy(
        roots,
        [home],
        readable=[skills_folder(home)],
        mode=setup.mode,
        own_rules=[PermissionRule(tool="read", path=f"{folder}/**", decision="allow") for folder in readable],
        user_rules=setup.settings.permission.rules,
        grants=Grants(home, roots[0]),
    )
