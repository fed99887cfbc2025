"""`crow run PROMPT`: one prompt without an editor, through a real ACP connection to the same agent."""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping

import msgspec

from crow.acp.client import AgentFailed, Client, start_agent
from crow.acp.wire import RequestPermissionRequest, Update
from crow.cli.failure import in_a_folder
from crow.cli.log import log_to_file
from crow.cli.render import Renderer
from crow.cli.render_conversation import AGENT, Interrupts, RenderingClient, exit_code_of, prepare_output, showing
from crow.cli.render_question import Keyboard, Nobody, choices_of, rejection
from crow.cli.render_screen import Screen
from crow.cli.terminal import is_interactive
from crow.config.home import home
from crow.config.settings import MODES
from crow.errors import CrowError
from crow.visible import one_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help='what to do; "-" or nothing reads standard input')
    parser.add_argument("--mode", choices=MODES, help="what may be done without asking")
    parser.add_argument("--model", help="provider/model, instead of the configured one")
    parser.add_argument("--cwd", metavar="D", help="the folder to work in, instead of this one")
    parser.add_argument("--json", action="store_true", help="print the ACP messages' params, one a line")


def main(arguments: argparse.Namespace) -> int:
    if not os.path.isabs(arguments.cwd or "") and not in_a_folder():
        return _wrong_usage("the folder that you are in was deleted. Go to another with cd, or give --cwd.")
    cwd = os.path.abspath(arguments.cwd or os.getcwd())
    prompt = _read_prompt(arguments.prompt)
    if not prompt.strip():
        return _wrong_usage('there is nothing to do. Try: crow run "explain this repository"')
    if not os.path.isdir(cwd):
        return _wrong_usage(f"{one_line(cwd)} is not a folder")
    prepare_output()
    log_to_file(home(os.environ))
    environment = _child_environment(os.environ, arguments.model, arguments.mode)
    conversation = _run_as_json if arguments.json else _run_for_person
    return asyncio.run(conversation(prompt, cwd, environment))


def _read_prompt(words: list[str]) -> str:
    if words and words != ["-"]:
        return " ".join(words)
    if sys.stdin is None or (not words and sys.stdin.isatty()):  # pyright: ignore[reportUnnecessaryComparison] -- None if closed
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _wrong_usage(message: str) -> int:
    print(f"crow run: {message}", file=sys.stderr)
    return 2


def _child_environment(environment: Mapping[str, str], model: str | None, mode: str | None) -> dict[str, str]:
    chosen = {"CROW_MODEL": model, "CROW_MODE": mode}
    return {**environment, **{name: value for name, value in chosen.items() if value}}


async def _run_for_person(prompt: str, cwd: str, environment: Mapping[str, str]) -> int:
    screen = Screen.of(sys.stdout, os.environ)
    renderer = Renderer(screen, folder=os.path.realpath(cwd))
    client = RenderingClient(renderer, Keyboard() if screen.live and is_interactive() else Nobody())

    async def show(interrupts: Interrupts) -> str:
        with showing(renderer):
            async with start_agent(AGENT, client, environment=environment) as agent:
                session = await agent.new_session(cwd)
                renderer.begin_turn()
                with interrupts.cancel(agent, session):
                    stop_reason = await agent.prompt(session, prompt)
                renderer.stop(stop_reason)
        return stop_reason

    return await exit_code_of(show, Interrupts(renderer.interrupted))


async def _run_as_json(prompt: str, cwd: str, environment: Mapping[str, str]) -> int:
    async def print_messages(interrupts: Interrupts) -> str:
        try:
            async with start_agent(AGENT, _JsonClient(), environment=environment, record=_print_line) as agent:
                session = await agent.new_session(cwd)
                with interrupts.cancel(agent, session):
                    return await agent.prompt(session, prompt)
        except CrowError as error:
            if not interrupts.code:
                _print_line(_as_json(error))
            raise

    return await exit_code_of(print_messages, Interrupts())


class _JsonClient(Client):
    """Shows nothing: what arrives is printed as it is. A program reads it, so nobody can be asked."""

    def update(self, update: Update) -> None:
        pass

    async def permit(self, request: RequestPermissionRequest) -> str | None:
        title = one_line(request.tool_call.title or "a tool call")
        print(f"crow: rejected, as there is nobody to ask: {title}", file=sys.stderr)
        option = rejection(choices_of(request.options))
        return option.option_id if option else None


def _as_json(error: CrowError) -> bytes:
    said: dict[str, object] = {"message": str(error)}
    if isinstance(error, AgentFailed):
        said["code"] = error.code
    return msgspec.json.encode({"error": said})


def _print_line(params: bytes) -> None:
    sys.stdout.buffer.write(params + b"\n")
    sys.stdout.buffer.flush()
