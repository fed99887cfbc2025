"""`crow run PROMPT`: one prompt without an editor; decides what goes to standard output, what to standard error, and
what is printed as JSON.

In a terminal everything is shown there. In a pipe or a file, the model's words alone go to standard output; what
happens meanwhile goes to standard error. Questions are asked in the terminal there is, wherever the output goes.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TextIO

import msgspec

from crow.acp.client import AgentFailed, Client, Rejection, RemoteAgent, start_agent
from crow.acp.wire import AgentMessageChunk, ContentBlock, RequestPermissionRequest, Update
from crow.cli.answer_keys import Answerer, Nobody, choices_of, rejection
from crow.cli.interactive_client import (
    AGENT,
    Interrupts,
    Keyboard,
    RenderingClient,
    complain,
    exit_code_of,
    prepare_output,
    showing,
)
from crow.cli.opening import (
    Opening,
    WrongUsage,
    add_opening_arguments,
    attached,
    chosen_session,
    folder_of,
    named_session,
    piped,
    read_opening,
    standard_input,
)
from crow.cli.process import log_to_file
from crow.cli.render import Renderer, how_it_stopped
from crow.cli.render_calls import in_words
from crow.cli.render_prose import prose
from crow.cli.render_screen import DIM, Screen, clean_answer, clean_json
from crow.cli.terminal import is_interactive, keyboard_of
from crow.config.home import home
from crow.config.load import parse_allowed
from crow.errors import ConfigError, CrowError
from crow.rpc.jsonrpc import ErrorCode
from crow.store.base import SessionEntry
from crow.visible import one_line, plain_title

REJECTED = 3
"""The exit code where something was rejected because nobody could be asked."""
HOW_TO_ANSWER = 'Answer with: crow run --continue "…"'
HOW_TO_GO_ON = 'Continue with: crow run --continue "go on"'
EXAMPLES = """\
piped input is added to the prompt; unless standard output is a terminal, it gets only the answer:
  git diff | crow run "review this" > review.md
  crow run --quiet --allow 'terminal:npm test *' "fix the failing test"
  crow run --continue "and now the documentation"

exit codes: 0 done · 1 stopped, or an error · 2 wrong usage · 3 a request was rejected: nobody to ask ·
130 interrupted
"""


class RunRequest(msgspec.Struct, frozen=True):
    """What is to be done, and where."""

    prompt: str
    further: Sequence[ContentBlock]
    opening: Opening
    is_shared: bool = False
    """Whether the session lives in another process, where others may watch it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help='what to do; "-" or nothing: read standard input')
    add_opening_arguments(parser)
    parser.add_argument(
        "--allow",
        metavar="RULE",
        action="append",
        default=[],
        help="a rule for this run: 'terminal:npm test *'",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--quiet", action="store_true", help="print only the final text")
    output.add_argument("--json", action="store_true", help="print the params of ACP messages, one per line")


def main(arguments: argparse.Namespace) -> int:
    try:
        task = _task(arguments)
    except WrongUsage as error:
        print(f"crow run: {error}", file=sys.stderr)
        return 2
    except CrowError as error:
        if arguments.json:
            _print_line(_as_json(error))
        return complain(error)
    prepare_output()
    log_to_file(home(os.environ))
    conversation = _run_as_json if arguments.json else _run_quietly if arguments.quiet else _run_for_person
    return asyncio.run(conversation(task))


# --- what is asked for


def _task(arguments: argparse.Namespace) -> RunRequest:
    cwd = folder_of(arguments)
    _check_allowed(arguments.allow)
    session = named_session(arguments)  # before standard input is waited for
    further: list[ContentBlock] = [attached(path) for path in arguments.attach]
    prompt = " ".join(arguments.prompt) if arguments.prompt != ["-"] else ""
    if prompt.strip():
        further += piped()
    else:
        prompt = standard_input() if arguments.prompt or not is_interactive() else ""
    if not prompt.strip():
        raise WrongUsage('no prompt. Try: crow run "explain this repository"')
    session = session or chosen_session(arguments, cwd)
    is_shared = session is not None and _is_shared(session, arguments)
    return RunRequest(prompt, further, read_opening(arguments, cwd, session, arguments.allow), is_shared)


def _is_shared(session: SessionEntry, arguments: argparse.Namespace) -> bool:
    """Whether the session lives elsewhere, as far as it matters. CrowError if what is wanted cannot be had there."""
    if not (arguments.allow or arguments.mode or arguments.model):
        return False
    from crow.cli.sessions import with_states

    [there] = with_states([session])
    if there.state == "saved":
        return False
    where = f"This session is open in {' and '.join(there.clients) or 'another program'} (process {there.process})"
    if arguments.allow:
        raise CrowError(f"{where}, so --allow has no effect.", remedy="Close it there first.")
    if there.state != "idle":
        raise CrowError(f"{where}, where a turn is running.", remedy="Wait for it to end, or stop it.")
    return True


def _check_allowed(written: Sequence[str]) -> None:
    try:
        for rule in written:
            parse_allowed(rule)
    except ConfigError as error:
        raise WrongUsage(f"--allow: {error}") from None


# --- the conversation


@contextlib.asynccontextmanager
async def _opened(
    task: RunRequest,
    client: Client,
    *,
    attended: bool,
    record: Callable[[bytes], None] | None = None,
) -> AsyncGenerator[tuple[RemoteAgent, str]]:
    """The agent, and the session in which it answers. `attended`: there is a person who can be asked."""
    opening = task.opening
    starting = start_agent(
        AGENT, client, environment=opening.environment, choices=attended, unattended=not attended, record=record
    )
    async with starting as agent:
        if opening.session is None:
            yield agent, (await agent.new_session(opening.cwd)).session_id
            return
        session = opening.session.id
        resumed = await agent.resume_session(session, opening.cwd)
        before = {option.id: option.current_value for option in resumed.config_options or ()}
        for name, value in opening.options.items():
            await agent.set_option(session, name, value)
        try:
            yield agent, session
        finally:
            if task.is_shared:  # others did not choose what we wanted for one prompt
                with contextlib.suppress(CrowError):
                    for name in opening.options:
                        await agent.set_option(session, name, before[name])


async def _run_for_person(task: RunRequest) -> int:
    is_split = not sys.stdout.isatty()
    stream = sys.stderr if is_split else sys.stdout
    screen, answer = Screen.of(stream, os.environ), PlainAnswer(sys.stdout)
    if is_split and _lead_to_one_place():
        screen.beside = answer.screen
    renderer = Renderer(screen, folder=os.path.realpath(task.opening.cwd))
    terminal = keyboard_of(stream)
    nobody = Nobody()
    answerer = nobody if terminal is None else Keyboard(terminal)
    client = SplitClient(renderer, answerer, answer) if is_split else RenderingClient(renderer, answerer)

    async def show(interrupts: Interrupts) -> str:
        with showing(renderer):
            async with _opened(task, client, attended=client.can_choose) as (agent, session):
                if task.opening.session is not None:
                    renderer.mark("i", f"Continuing: {task.opening.session.shown_title}", DIM)
                renderer.begin_turn()
                with interrupts.cancel(agent, session):
                    try:
                        stop_reason = await agent.prompt(
                            session, task.prompt, task.further, columns=renderer.output_columns
                        )
                    except AgentFailed as error:
                        if error.code == ErrorCode.INVALID_REQUEST:  # another turn runs: what we saw of it is its own
                            renderer.forget_calls()
                        raise
                    finally:
                        answer.end()
                renderer.stop(stop_reason, agent.left_open)
                if agent.left_open:
                    renderer.mark("i", _next_step(agent.left_open), DIM)
        return stop_reason

    return _exit_code(await exit_code_of(show, Interrupts(renderer.interrupted)), nobody)


def _next_step(left_open: str) -> str:
    return HOW_TO_GO_ON if left_open == "budget" else HOW_TO_ANSWER


def _lead_to_one_place() -> bool:
    """Whether standard output and standard error are the same file or pipe."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


async def _run_quietly(task: RunRequest) -> int:
    terminal = keyboard_of(sys.stderr)
    nobody = Nobody()
    text = FinalText()
    client = QuietClient(sys.stderr, nobody if terminal is None else Keyboard(terminal), text)

    async def wait(interrupts: Interrupts) -> str:
        async with _opened(task, client, attended=client.can_choose) as (agent, session):
            with interrupts.cancel(agent, session):
                stop_reason = await agent.prompt(session, task.prompt, task.further)
        text.print_to(Screen.of(sys.stdout, os.environ))
        if stop_reason != "end_turn":
            print(f"crow: {how_it_stopped(stop_reason, agent.left_open)}", file=sys.stderr)
        if agent.left_open:
            print(f"crow: {_next_step(agent.left_open)}", file=sys.stderr)
        return stop_reason

    return _exit_code(await exit_code_of(wait, Interrupts()), nobody)


async def _run_as_json(task: RunRequest) -> int:
    client = _JsonClient()

    async def print_messages(interrupts: Interrupts) -> str:
        try:
            async with _opened(task, client, attended=False, record=_print_line) as (agent, session):
                with interrupts.cancel(agent, session):
                    return await agent.prompt(session, task.prompt, task.further)
        except CrowError as error:
            if not interrupts.code:
                _print_line(_as_json(error))
            raise
        except asyncio.CancelledError:
            if not interrupts.code:
                raise
            with contextlib.suppress(OSError):  # whoever reads may be gone
                _print_line(_as_json(CrowError(f"Ended by {signal.Signals(interrupts.code - 128).name}.")))
            raise

    code = await exit_code_of(print_messages, Interrupts())
    return REJECTED if code == 0 and client.rejected else code


def _exit_code(code: int, nobody: Nobody) -> int:
    """The exit code; where something could not be asked, with what to do about it."""
    if not nobody.rejected:
        return code
    what = "1 request was" if nobody.rejected == 1 else f"{nobody.rejected} requests were"
    print(
        f"crow: {what} rejected: no terminal to ask in. "
        "To allow it, use --allow, such as --allow 'terminal:npm test *', or another --mode.",
        file=sys.stderr,
    )
    return REJECTED if code == 0 else code


class _JsonClient(Client):
    """Shows nothing: what arrives is printed as it is. A program reads it, so nobody can be asked."""

    def __init__(self) -> None:
        self.rejected = 0

    def update(self, update: Update) -> None:
        pass

    async def permit(self, request: RequestPermissionRequest) -> str | None:
        self.rejected += 1
        title = one_line(plain_title(request.tool_call.title or "a tool call"))
        print(f"crow: rejected: nobody to ask: {title}", file=sys.stderr)
        option = rejection(choices_of(request.options))
        return option.option_id if option else None


def _as_json(error: CrowError) -> bytes:
    said: dict[str, object] = {"message": str(error)}
    if isinstance(error, AgentFailed):
        said["code"] = error.code
    return msgspec.json.encode({"error": said})


def _print_line(params: bytes) -> None:
    line = clean_json(bytes(params).decode()).encode()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


# --- the model's words alone: each message as it comes, or only the last one


class PlainAnswer:
    """Writes messages as they were written, an empty line between two of them."""

    def __init__(self, stream: TextIO) -> None:
        self.screen = Screen(stream)
        self._message: str | None = None

    def take(self, chunk: AgentMessageChunk) -> None:
        text = clean_answer(in_words(chunk.content))
        if self._message is not None and chunk.message_id != self._message:
            text = ("\n\n" if self.screen.column else "\n") + text.lstrip("\n")
        if text:
            self._message = chunk.message_id
            self.screen.write(text)
            self.screen.flush()

    def end(self) -> None:
        self.screen.end_line()
        self.screen.flush()


class SplitClient(RenderingClient):
    """The model's messages go to `answer`, everything else to the renderer."""

    def __init__(self, renderer: Renderer, answerer: Answerer, answer: PlainAnswer) -> None:
        super().__init__(renderer, answerer)
        self._answer = answer

    def show(self, update: Update) -> None:
        if isinstance(update, AgentMessageChunk):
            self.renderer.pause()  # both streams may lead to one place
            self._answer.take(update)
            self.renderer.wait("writing")
        else:
            super().show(update)


class FinalText:
    """Keeps the last message."""

    def __init__(self) -> None:
        self._message: str | None = None
        self._pieces: list[str] = []

    def take(self, chunk: AgentMessageChunk) -> None:
        if chunk.message_id != self._message:
            self._message = chunk.message_id
            self._pieces.clear()
        self._pieces.append(in_words(chunk.content))

    def print_to(self, screen: Screen) -> None:
        """In a terminal its Markdown is styled; elsewhere it is the text as it was written."""
        text = "".join(self._pieces)
        if screen.width is None:
            screen.write(clean_answer(text.strip("\n")))
        else:
            shown = prose(screen)
            shown.feed(text.strip("\n"))
            shown.end()
        screen.end_line()
        screen.flush()


class QuietClient(RenderingClient):
    """Shows questions, and nothing else."""

    def __init__(self, stream: TextIO, answerer: Answerer, text: FinalText) -> None:
        super().__init__(Renderer(Screen(stream)), answerer)
        self._stream = stream
        self._text = text

    def show(self, update: Update) -> None:
        if isinstance(update, AgentMessageChunk):
            self._text.take(update)

    async def permit(self, request: RequestPermissionRequest) -> str | Rejection | None:
        if isinstance(self._answerer, Nobody):
            option = (await self._answerer.choose(choices_of(request.options))).option
            return option.option_id if option else None
        self.renderer = Renderer(Screen(self._stream))  # each question for itself: what led to it is not shown
        return await super().permit(request)
