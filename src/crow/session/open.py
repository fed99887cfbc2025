"""Puts a session together: makes each part once (journal, policy, tools, model, servers), and does what each of its
turns begins with.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from crow.actions import Person
from crow.commands.base import Commands
from crow.commands.processes import ForkServer
from crow.commands.terminal import seen_by_commands
from crow.commands.terminals import Terminals
from crow.config.discovery import patience_in
from crow.config.settings import McpServerSettings, PermissionRule, WebSettings, amounts_of
from crow.errors import FileSystemSilent
from crow.events import Notice, TurnIds, TurnStarted
from crow.files.base import Workspace
from crow.files.output_folder import outputs_folder
from crow.mcp.client.configured import ConfiguredServer
from crow.policy.grants import Grants
from crow.policy.rule_policy import RulePolicy
from crow.project.prompt import SystemPrompt
from crow.project.server_programs import said_of_programs
from crow.project.trusted_sources import Sources, skills_folder
from crow.session.builtin_commands import SessionCommands, help_command
from crow.session.commands import FileCommands, SlashCommands
from crow.session.journal import SessionJournal, Title
from crow.session.models import SessionSetup
from crow.session.options import Options
from crow.session.persistence import Persistence
from crow.session.running_turn import Turns
from crow.session.servers import ServerPrompts, ServerQuestions, Servers, configured_servers
from crow.session.session import Audience, Session
from crow.session.session_model import SessionModel
from crow.session.settings_commands import SettingsCommands
from crow.session.trust import ProjectTrust, TrustedProjects
from crow.tools.ask import LeavePlan
from crow.tools.background import end_for_model
from crow.tools.base import Tool, Toolbox
from crow.tools.task import Task
from crow.tools.terminal import RunCommand
from crow.turn.context import TurnContext
from crow.turn.history import History
from crow.turn.requests import ContextWindow, LiveSettings, Requests, has_small_window
from crow.turn.spending import Budgets
from crow.turn.subagents import Subagents
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

    workspace: Workspace
    commands: Commands
    person: Person
    audience: Audience
    fork_server: ForkServer
    environ: Mapping[str, str]
    servers: Mapping[str, McpServerSettings]
    """The MCP servers that the editor hands over, by name."""


def open_session(
    id: str, setup: SessionSetup, environment: Environment, persistence: Persistence, home: str, folder: FolderSetup
) -> Session:
    """Makes each part of a session once, in the order in which they need each other."""
    settings, policy, past = setup.settings, folder.policy, persistence.past
    live = LiveSettings(SessionModel(setup.first), settings.limits)
    patience = patience_in(environment.environ, PATIENCE)
    dialog = asyncio.Lock()
    remarks_shown: set[str] = set()
    turns = Turns(past)

    journal = SessionJournal(persistence.log, patience)
    journal.remember(past)
    budgets = Budgets(
        *(amounts_of(settings.budget), journal, environment.person),
        day=persistence.archive.spent_today,
        cheaper=lambda: setup.cheaper_than(live.model.info),
    )
    budgets.remember(past)
    title = Title(journal, past)

    def waiting(what: str) -> Wait:
        return Wait(journal, what, "", patience, dialog.locked)

    def turn_context() -> TurnContext:
        return TurnContext(
            requests=requests,
            workspace=environment.workspace,
            policy=policy,
            person=environment.person,
            journal=journal,
            budgets=budgets,
            dialog=dialog,
            prepare=prepare,
            news=lambda: [end_for_model(command) for command in terminals.ends_to_tell()],
            choose_model=options.choose_model,
            remarks_shown=remarks_shown,
            patience=patience,
        )

    # Tools and servers are asked for by a turn: what they name below is made by then.
    terminals = Terminals(environment.commands)
    run_command = RunCommand(terminals, settings.terminal.timeout)
    subagents = Subagents(turn_context, _file_tools)

    def wanted_servers() -> dict[str, ConfiguredServer]:
        return configured_servers(environment.servers, settings.mcp_servers, trusted.servers)

    policy.programs = lambda: said_of_programs(
        {server.name: server.settings for server in wanted_servers().values()}, environment.workspace.roots
    )
    questions = ServerQuestions(environment.person, dialog, journal, subagents.task_of)
    servers = Servers(wanted_servers, lambda: _hub(environment, home, questions, live, journal), journal, waiting)
    tools = Toolbox(_session_tools(environment, policy, terminals, run_command, settings.web), servers)
    tools.add(Task(subagents.subagent_for, lambda: policy.mode))
    tools.add(LeavePlan(lambda: policy.mode, lambda mode: options.choose("mode", mode)))

    requests = _requests(id, live, tools, journal.history, folder.prompt)
    window = ContextWindow(requests, journal, budgets)
    options = Options(window, policy, setup)
    seen = seen_by_commands(environment.environ, setup.key_variables)
    trusted = TrustedProjects(live, budgets, policy, options, run_command, seen)
    trust = ProjectTrust(folder.sources, trusted, journal, environment.person, dialog)

    async def prepare(ids: TurnIds) -> None:
        """What is done in each turn before the model is asked."""
        with waiting("the preparations of this turn"):
            await trust.prepare(ids)
            with contextlib.suppress(FileSystemSilent):  # said when the turn began: the model is told what was known
                await folder.prompt.instructions.refresh_in_thread()
        await _ask_model_server(window, patience)
        await servers.prepare()

    prompts = ServerPrompts(servers, prepare)
    built_in = [
        *SessionCommands(window, waiting, environment.workspace, options, persistence.archive, title).commands(),
        *SettingsCommands(options, policy, environment.workspace, servers).commands(),
    ]
    infos = [command.info for command in built_in]
    from_files = FileCommands(folder.sources, trust, journal, {"help", *(info.name for info in infos)})
    session = Session(
        id,
        journal=journal,
        archive=persistence.archive,
        turns=turns,
        turn_context=turn_context,
        commands=SlashCommands([help_command(infos, from_files, prompts), *built_in], [from_files, prompts]),
        options=options,
        servers=servers,
        terminals=terminals,
        title=title,
        audience=environment.audience,
    )
    # What was chosen in the session comes after what is trusted: it wins.
    notices = trust.begin(new=not any(isinstance(event, TurnStarted) for event in past))
    notices += options.restore(past)
    doubts = budgets.doubts(live.model.info)
    for notice in (*notices, *(Notice("warning", text) for text in (*folder.warnings, *doubts))):
        session.tell(notice)
    return session


def _requests(id: str, live: LiveSettings, tools: Toolbox, history: History, prompt: SystemPrompt) -> Requests:
    def small_window() -> int | None:
        """The model's window, if it is a small one."""
        return live.model.info.context_window if has_small_window(live.model.info) else None

    def system_prompt() -> str:
        window = small_window()
        return prompt.short_text(window, history.prompt) if window else prompt.text(history.prompt)

    return Requests(live, tools, history, system_prompt, id, lambda: prompt.news(history.told_prompt, small_window()))


async def _ask_model_server(window: ContextWindow, patience: float) -> None:
    """A server on this machine or nearby knows best how large its window is, and may have been started anew."""
    model = window.requests.model
    if not isinstance(model, SessionModel):
        return
    size = model.info.context_window
    await model.ask_server(SERVER_PATIENCE * patience)
    if model.info.context_window != size:
        window.tell_usage()


def _session_tools(
    environment: Environment, policy: RulePolicy, terminals: Terminals, run_command: RunCommand, web: WebSettings
) -> Iterator[Tool]:
    from crow.session.toolset import session_tools  # for the first request, not for the session's beginning

    person, environ = environment.person, environment.environ
    yield from session_tools(person, environ, policy, terminals, run_command, web)


def _hub(
    environment: Environment, home: str, questions: ServerQuestions, live: LiveSettings, journal: SessionJournal
) -> "Hub":
    from crow.mcp.client.hub import Hub
    from crow.mcp.client.inventory import ConnectionContext  # the library behind it is loaded for servers only

    around = ConnectionContext(
        fork_server=environment.fork_server,
        home=home,
        roots=environment.workspace.roots,
        environ=environment.environ,
        asker=questions,
        limits=lambda: live.limits,
        tell=journal.append,
    )
    return Hub(around, lambda: live.model.info.context_window)


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
