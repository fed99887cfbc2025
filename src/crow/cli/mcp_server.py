"""Puts the server of `crow mcp` together from configuration and command line (its folders, its policy, how it runs
commands), and runs it.
"""

import argparse
import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from crow.actions import Deed
from crow.cli.process import log_to_file, serve_until_shutdown
from crow.commands.processes import ForkServer
from crow.commands.terminal import LocalCommands, seen_by_commands
from crow.config.discovery import key_variables
from crow.config.home import home
from crow.config.load import load_settings
from crow.config.settings import Settings
from crow.files.output_folder import outputs_folder
from crow.mcp.server.clients import CommandRunner, Judge, ServerOptions
from crow.mcp.server.file_editor import ADVICE
from crow.mcp.server.server import CrowServer
from crow.policy.rule_policy import judge_in
from crow.results import ToolKind
from crow.threads import Pool
from crow.tools.web import HostVerdict, JudgeHost, WebFetch, WebSearch


def run(arguments: argparse.Namespace, serve: Callable[[CrowServer], Coroutine[Any, Any, None]]) -> int:
    """Serves until the client leaves or we are told to go; the exit status."""
    folder = home(os.environ)
    log_to_file(folder)
    settings = load_settings(folder)

    async def serve_and_leave() -> int:
        asyncio.get_running_loop().set_default_executor(Pool(thread_name_prefix="crow"))
        fork_server = ForkServer()
        server = CrowServer(_options(arguments, settings, folder, fork_server))

        async def close() -> None:
            await server.close()
            await fork_server.close()

        status = await serve_until_shutdown(serve(server), close)
        # Not by returning: the interpreter would wait for the thread that reads standard input.
        logging.shutdown()
        os._exit(status)

    return asyncio.run(serve_and_leave())


def _options(
    arguments: argparse.Namespace, settings: Settings, crow_home: str, fork_server: ForkServer
) -> ServerOptions:
    roots: Sequence[str] = arguments.root
    judge = partial(
        judge_in, home=crow_home, rules=settings.permission.rules, allow_protected=arguments.allow_protected
    )
    judge_host = _judge_of_hosts(judge(roots=(), outputs=""))
    return ServerOptions(
        folder=_start_folder(),
        roots=tuple(os.path.realpath(root) for root in roots),
        judge_in=judge,
        web_tools=lambda: (
            WebSearch(settings.web, os.environ, ADVICE),
            WebFetch(settings.web, judge_host, ADVICE),
        ),
        commands=(lambda: _command_runner(settings, fork_server, os.environ)) if arguments.terminal else None,
    )


def _start_folder() -> str:
    """Empty if it has been deleted: the web can be used without any folder."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _judge_of_hosts(judge: Judge) -> JudgeHost:
    """The judge of calls judges redirects too. A host that is not refused is still one that the user was not shown."""

    def judge_host(host: str) -> HostVerdict:
        reason = judge(Deed("web_fetch", ToolKind.FETCH, host=host))
        return HostVerdict("deny", reason) if reason else HostVerdict("ask")

    return judge_host


def _command_runner(settings: Settings, fork_server: ForkServer, environ: Mapping[str, str]) -> CommandRunner:
    """For one client. Commands see no key of ours, and nothing that changes what a line means."""
    visible = seen_by_commands(environ, key_variables(settings.providers.values(), settings.web))
    outputs = outputs_folder(f"mcp-{os.urandom(8).hex()}")
    return CommandRunner(LocalCommands(fork_server, outputs, visible), outputs, settings.terminal.timeout)
