"""Commands in a client's terminals, over a real connection: in the right order, and every terminal released once.

The client here is as strict as Zed: a terminal that it does not know, or no longer, is an error. It can be told to
answer any method with anything, or never.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.acp import terminal as client_terminal
from crow.acp import terminal_check, translate, wire
from crow.acp.terminal import ClientCommands, TerminalNotOpened
from crow.acp.terminal_check import CheckedCommands, TerminalCheck
from crow.commands.base import CommandRequest, TerminalExit
from crow.commands.processes import ForkServer
from crow.commands.terminal import LocalCommands
from crow.commands.terminals import Terminals
from crow.errors import WorkspaceError
from crow.events import CallProgressed, CallSettled, Event, Notice
from crow.files.local import LocalWorkspace
from crow.messages import ToolCall
from crow.results import HiddenOutput, TerminalBlock, TextBlock, ToolResult
from crow.rpc.connection import Connection, PendingRequest, Route
from crow.rpc.jsonrpc import RpcError
from crow.tools.background import ReadCommand, StopCommand
from crow.tools.terminal import RunCommand
from tests.support.patience import DEADLINE
from tests.support.recording import RecordingJournal


class Silence:
    """The answer of a client that does not answer."""


SILENCE = Silence()
Json = dict[str, Any]


class Client:
    """Terminals that run nothing: what their commands print and how they end is up to the test."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Json]] = []
        self.answers: dict[str, Any] = {}
        """By the last word of the method: what is answered instead; an RpcError, SILENCE, or a future to wait for."""
        self.reached: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.output = "some output\r\n"
        self.truncated = False
        self.exit: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.open: set[str] = set()
        self.created = 0
        self.complaints: list[str] = []

    @property
    def methods(self) -> list[str]:
        return [method for method, _ in self.calls]

    @property
    def released(self) -> int:
        return self.methods.count("release")

    def params(self, method: str) -> Json:
        return next(params for name, params in self.calls if name == method)

    def ends(self, **status: Any) -> None:
        if not self.exit.done():
            self.exit.set_result(status)

    # --- the methods

    def routes(self) -> dict[str, Route]:
        methods = {
            "create": self._create,
            "output": self._output,
            "wait_for_exit": self._wait,
            "kill": self._kill,
            "release": self._release,
        }
        return {f"terminal/{name}": Route(Json, self._route(name, method)) for name, method in methods.items()}

    def _route(self, name: str, method: Callable[[Json], Any]) -> Callable[[Json, PendingRequest], Awaitable[Any]]:
        def handle(params: Json, pending: PendingRequest) -> Awaitable[Any]:
            self.calls.append((name, params))
            self.reached[name].set()
            return self._answer(name, method, params)

        return handle

    async def _answer(self, name: str, method: Callable[[Json], Awaitable[Any]], params: Json) -> Any:
        answer = self.answers.get(name, ...)
        if isinstance(answer, Silence):
            await asyncio.Event().wait()
        if isinstance(answer, asyncio.Future):
            await asyncio.shield(answer)
            answer = ...
        if isinstance(answer, RpcError):
            raise answer
        if name != "create" and params["terminalId"] not in self.open:
            self.complaints.append(f"{name} of a terminal that is not there")
            raise RpcError(-32602, "unknown terminal")
        result = await method(params)
        return result if answer is ... else answer

    async def _create(self, params: Json) -> Json:
        self.created += 1
        self.open.add(f"term-{self.created}")
        return {"terminalId": f"term-{self.created}"}

    async def _output(self, params: Json) -> Json:
        status = {"exitStatus": self.exit.result()} if self.exit.done() else {}
        return {"output": self.output, "truncated": self.truncated} | status

    async def _wait(self, params: Json) -> Json:
        return await asyncio.shield(self.exit)

    async def _kill(self, params: Json) -> Json:
        self.ends(exitCode=None, signal="SIGTERM")
        return {}

    async def _release(self, params: Json) -> None:
        self.open.discard(params["terminalId"])

    def update(self, params: wire.SessionNotification) -> None:
        content = getattr(params.update, "content", None) or []
        shown = [item.terminal_id for item in content if isinstance(item, wire.TerminalToolContent)]
        self.calls.append(("update", {"shows": shown}))
        self.complaints += [f"{id} is shown and not there" for id in shown if id not in self.open]


class Stage(RecordingJournal):
    """A client and what the agent has of it."""

    def __init__(self, folder: Path, client: Client, connection: Connection) -> None:
        super().__init__()
        self.client = client
        self.connection = connection
        self.commands = ClientCommands(connection, "s1", withheld=["OPENAI_API_KEY"])
        self.terminals = Terminals(self.commands)
        self.workspace = LocalWorkspace([str(folder)])
        self.folder = folder

    def append(self, event: Event) -> None:
        super().append(event)
        match event:  # as the sink does it for a call that the client knows
            case CallProgressed():
                update = wire.ToolCallUpdate(tool_call_id="c1", content=translate.tool_content(event.display))
            case CallSettled():
                update = translate.settled(event.call_id, event.result, "x")
            case _:
                return
        self.connection.notify("session/update", wire.SessionNotification(session_id="s1", update=update))

    async def call(self, tool: Any, **arguments: Any) -> ToolResult:
        """As `crow.turn.call_batch` does it: the result is in the journal before anything else can happen."""
        action = await tool.prepare(
            ToolCall("c1", tool.spec.name, msgspec.json.encode(arguments).decode()), self.workspace
        )
        result = await action.perform(self)
        self.append(CallSettled("c1", result))
        return result

    async def run(self, command: str = "make", timeout: float = DEADLINE, **arguments: Any) -> ToolResult:
        return await self.call(RunCommand(self.terminals, timeout), command=command, **arguments)

    async def all_released(self) -> None:
        client = self.client
        await eventually(lambda: client.released == client.created)
        await eventually(lambda: not self.terminals._releases)
        ids = [params["terminalId"] for method, params in client.calls if method == "release"]
        assert len(ids) == len(set(ids))
        assert client.complaints == []


async def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.002)


def on_stage(folder: Path, story: Callable[[Stage], Awaitable[None]]) -> None:
    async def tell() -> None:
        (to_agent, from_client), (to_client, from_agent) = os.pipe(), os.pipe()
        client = Client()
        agent_side = Connection(to_agent, from_agent, {}, {})
        client_side = Connection(
            to_client, from_client, client.routes(), {"session/update": Route(wire.SessionNotification, client.update)}
        )
        serving = [asyncio.create_task(side.run()) for side in (agent_side, client_side)]
        stage = Stage(folder, client, agent_side)
        try:
            async with asyncio.timeout(DEADLINE):
                await story(stage)
                await stage.terminals.close()
        finally:
            await agent_side.close()
            await client_side.close()
            await asyncio.gather(*serving)
            for descriptor in (to_agent, from_client, to_client, from_agent):
                os.close(descriptor)

    asyncio.run(tell())


@pytest.fixture(autouse=True)
def _impatience(monkeypatch):
    """A client that never answers is given up soon, so that the tests end soon."""
    for bound in ("CREATION", "ANSWER", "AFTER_KILL"):
        monkeypatch.setattr(client_terminal, bound, 0.2)
    monkeypatch.setattr(client_terminal, "FIRST_LOOK", DEADLINE)  # of these tests, only some are about the looks


# --- as it should be


@pytest.mark.rule("R110", "R111", "R112", "R113", "R114", "R116", "R117")
def test_a_command_runs_in_the_clients_terminal_in_the_order_that_clients_need(tmp_path):
    async def story(stage: Stage) -> None:
        stage.client.ends(exitCode=0)
        result = await stage.run("make && echo done")
        await stage.all_released()
        assert stage.client.methods == ["create", "update", "wait_for_exit", "output", "update", "release"]
        create = stage.client.params("create")
        assert (create["command"], create["args"], create["cwd"]) == (
            "bash",
            ["-c", "make && echo done"],
            str(tmp_path),
        )
        assert create["sessionId"] == "s1"
        assert create["outputByteLimit"] == 4 * 1024 * 1024
        environment = {entry["name"]: entry["value"] for entry in create["env"]}
        assert environment["PAGER"] == "cat"
        assert environment["OPENAI_API_KEY"] == ""
        assert "TERM" not in environment
        assert result.ok
        assert result.text == "some output\n[exit code 0]"
        assert result.message.startswith("exit 0 · ")
        assert result.display == (TerminalBlock("term-1"), HiddenOutput(f"some output\n{result.message}"))

    on_stage(tmp_path, story)


@pytest.mark.rule("R118")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"exitCode": 3}, "[exit code 3]"),
        ({"exitCode": None, "signal": "SIGKILL"}, "[killed by SIGKILL]"),
        ({"exitCode": 137, "signal": "SIGKILL"}, "[killed by SIGKILL]"),
        ({}, "[ended, exit status unknown]"),
    ],
)
def test_only_exit_code_zero_is_success(tmp_path, status, words):
    async def story(stage: Stage) -> None:
        stage.client.ends(**status)
        result = await stage.run()
        assert not result.ok
        assert result.text == f"some output\n{words}"
        await stage.all_released()

    on_stage(tmp_path, story)


@pytest.mark.rule("R115", "R117")
def test_a_time_out_kills_reads_shows_and_releases_in_this_order(tmp_path):
    async def story(stage: Stage) -> None:
        result = await stage.run(timeout=0.05)
        await stage.all_released()
        methods = ["create", "update", "wait_for_exit", "kill", "output", "update", "update", "release"]
        assert stage.client.methods == methods
        assert result.text == "some output\n[timed out after 0.05 s]"
        assert not result.ok
        assert result.display == (
            TerminalBlock("term-1"),
            TextBlock("timed out after 0.05 s"),
            HiddenOutput("some output\n"),
        )

    on_stage(tmp_path, story)


def test_what_the_terminal_dropped_and_what_we_dropped_is_told_apart(tmp_path):
    async def story(stage: Stage) -> None:
        client = stage.client
        terminal = await stage.commands.open_terminal(CommandRequest("x", cwd="/", output_limit=1000))
        client.output, client.truncated = "end\r\n", True
        output = await terminal.output()
        assert (output.text, output.truncated) == ("[… the beginning was left out by the terminal …]\nend\n", True)
        client.output, client.truncated = "\x1b[32mx\x1b[0m\r\n" * 1000, False
        output = await terminal.output()
        assert output.truncated
        assert output.text == "x\n" * 250 + "[… 1.0 kB left out here …]\n" + "x\n" * 250
        client.output = "a\r\nb\r\n"
        assert (await terminal.output(since=3)).text == "b\n"
        assert (await terminal.output()).end == 6
        await terminal.release()

    on_stage(tmp_path, story)


def test_the_beginning_is_kept_while_the_client_still_has_it(tmp_path, monkeypatch):
    monkeypatch.setattr(client_terminal, "FIRST_LOOK", 0.001)

    async def story(stage: Stage) -> None:
        client = stage.client
        client.output = "first\r\n"
        terminal = await stage.commands.open_terminal(CommandRequest("x", cwd="/", output_limit=1000))
        await eventually(lambda: client.methods.count("output") >= 2)
        client.output = "".join(f"{number:03}\r\n" for number in range(500))
        await eventually(terminal._looking.done)  # it has seen enough
        looks = client.methods.count("output")
        client.output, client.truncated = "the end\r\n", True
        output = await terminal.output()
        assert output.text.startswith("000\n001\n002\n")
        assert output.text.endswith("\n[… what came here was left out by the terminal …]\nthe end\n")
        assert len(output.text) < 1100
        assert client.methods.count("output") == looks + 1
        await terminal.release()

    on_stage(tmp_path, story)


def test_a_large_output_is_shown_by_its_two_ends(tmp_path):
    async def story(stage: Stage) -> None:
        terminal = await stage.commands.open_terminal(CommandRequest("x", cwd="/", output_limit=1000))
        stage.client.output = "a\r\n" * 100_000 + "b\r\n" * 100_000
        output = await terminal.output()
        assert output.truncated
        assert output.text == "a\n" * 250 + "[… about 599.0 kB left out here …]\n" + "b\n" * 250
        await terminal.release()

    on_stage(tmp_path, story)


# --- clients that misbehave

BROKEN = {
    "an error": RpcError(-32603, "no terminals today"),
    "null": None,
    "garbage": ["what", 1],
    "a wrong object": {"terminalId": 5, "output": 5, "exitCode": "x"},
    "nothing": SILENCE,
}
METHODS = ["create", "wait_for_exit", "output", "kill", "release"]


@pytest.mark.rule("R116", "R119")
@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("method", METHODS)
def test_whatever_a_client_answers_the_call_ends_and_the_terminal_is_released(tmp_path, method, answer):
    async def story(stage: Stage) -> None:
        stage.client.answers[method] = answer
        if method in ("output", "release"):
            stage.client.ends(exitCode=0)
        if method == "create":
            with pytest.raises(WorkspaceError, match="The editor"):
                await stage.run()
            assert stage.client.released == 0  # nobody knows the id of what the client may have created
        else:
            result = await stage.run(timeout=0.1)
            assert result.ok == (method in ("output", "release"))
            await stage.all_released()

    on_stage(tmp_path, story)


def test_a_client_that_answers_nothing_but_create_costs_a_bounded_time(tmp_path):
    async def story(stage: Stage) -> None:
        stage.client.answers = dict.fromkeys(["wait_for_exit", "output", "kill", "release"], SILENCE)
        result = await stage.run(timeout=0.05)
        assert not result.ok
        assert result.text.startswith("[… the editor did not hand over the output …]\n[timed out")
        await eventually(lambda: stage.client.released == 1)

    on_stage(tmp_path, story)


def test_a_client_that_leaves_ends_the_call(tmp_path):
    async def story(stage: Stage) -> None:
        running = asyncio.create_task(stage.run())
        await stage.client.reached["wait_for_exit"].wait()
        await stage.connection.close()
        result = await running
        assert not result.ok
        with pytest.raises(WorkspaceError, match="gone"):
            await stage.run()

    on_stage(tmp_path, story)


def test_a_client_that_never_opens_its_first_terminal_is_given_up_soon(tmp_path, monkeypatch):
    """No command was sent to it by then, so that none can run twice."""
    monkeypatch.setattr(terminal_check, "TEST_TIMEOUT", 0.1)

    async def story(stage: Stage) -> None:
        stage.client.answers["create"] = SILENCE
        fork_server = ForkServer()
        local = LocalCommands(fork_server, str(tmp_path / "outputs"), {"PATH": os.defpath})
        check = TerminalCheck(str(tmp_path), "silent 1.0")
        terminals = Terminals(CheckedCommands(stage.commands, local, check))
        try:
            for number in range(2):
                result = await stage.call(RunCommand(terminals, DEADLINE), command=f"echo {number}")
                assert result.text == f"{number}\n[exit code 0]"
        finally:
            await terminals.close()
            await fork_server.close()
        [notice] = [event for event in stage.events if isinstance(event, Notice)]
        assert notice.title.startswith("The editor's terminal did not answer")
        assert stage.client.methods.count("create") == 1
        assert not (tmp_path / "terminals.json").exists()

    on_stage(tmp_path, story)


def test_a_command_that_may_yet_be_started_in_the_client_is_not_run_here(tmp_path):
    async def story(stage: Stage) -> None:
        stage.client.answers["create"] = SILENCE
        (tmp_path / "terminals.json").write_text('{"version": 1, "clients": {"silent 1.0": true}}')
        fork_server = ForkServer()
        local = LocalCommands(fork_server, str(tmp_path / "outputs"), {"PATH": os.defpath})
        terminals = Terminals(CheckedCommands(stage.commands, local, TerminalCheck(str(tmp_path), "silent 1.0")))
        try:
            with pytest.raises(TerminalNotOpened):
                await stage.call(RunCommand(terminals, DEADLINE), command="echo 1")
            result = await stage.call(RunCommand(terminals, DEADLINE), command="echo 2")
            assert result.text == "2\n[exit code 0]"
        finally:
            await terminals.close()
            await fork_server.close()

    on_stage(tmp_path, story)


# --- cancelled


@pytest.mark.rule("R116", "R117", "R119", "R149")
@pytest.mark.parametrize("then", ["answers late", "never answers"])
@pytest.mark.parametrize("phase", METHODS)
def test_a_cancel_in_any_phase_releases_the_terminal_once(tmp_path, phase, then):
    async def story(stage: Stage) -> None:
        client = stage.client
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        client.answers[phase] = held
        if phase in ("output", "release"):
            client.ends(exitCode=0)
        running = asyncio.create_task(stage.run(timeout=0.05 if phase == "kill" else DEADLINE))
        await client.reached[phase].wait()
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled() or phase == "release"  # by then the result was there
        if then == "answers late":
            held.set_result(None)
        if phase == "create" and then == "never answers":
            assert client.created == 0
        else:
            await eventually(lambda: client.created == 1 and client.released == 1)
        if then == "answers late":
            await stage.all_released()
            await eventually(lambda: not client.open)

    on_stage(tmp_path, story)


def test_a_cancelled_wait_is_withdrawn(tmp_path):
    async def story(stage: Stage) -> None:
        running = asyncio.create_task(stage.run())
        await stage.client.reached["wait_for_exit"].wait()
        running.cancel()
        await asyncio.wait([running])
        await stage.all_released()
        assert stage.client.methods == ["create", "update", "wait_for_exit", "output", "kill", "release"]

    on_stage(tmp_path, story)


def test_a_terminal_that_comes_after_the_time_out_is_released(tmp_path):
    async def story(stage: Stage) -> None:
        held: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        stage.client.answers["create"] = held
        with pytest.raises(TerminalNotOpened):
            await stage.run()
        held.set_result(None)
        await eventually(lambda: stage.client.created == 1)
        await stage.all_released()

    on_stage(tmp_path, story)


def test_release_is_sent_once_however_often_it_is_asked_for(tmp_path):
    async def story(stage: Stage) -> None:
        terminal = await stage.commands.open_terminal(CommandRequest("x", cwd="/", output_limit=1000))
        await asyncio.gather(*(terminal.release() for _ in range(3)))
        await terminal.release()
        await stage.all_released()
        assert await terminal.wait() == TerminalExit()

    on_stage(tmp_path, story)


# --- in the background


def test_a_background_command_keeps_its_terminal_until_it_is_stopped(tmp_path):
    async def story(stage: Stage) -> None:
        result = await stage.run("serve", background=True)
        assert result.ok
        assert result.message == "running in the background as b1"
        assert result.display[0] == TerminalBlock("term-1")
        assert stage.client.released == 0

        read = await stage.call(ReadCommand(stage.terminals), id="b1")
        assert read.text == "some output\n[still running; offset 13]"
        assert read.display == ()
        stage.client.output += "more\r\n"
        read = await stage.call(ReadCommand(stage.terminals), id="b1", offset=13)
        assert read.text == "more\n[still running; offset 19]"

        stopped = await stage.call(StopCommand(stage.terminals), id="b1")
        assert stopped.text == "some output\nmore\n[b1 has ended: killed by SIGTERM]"
        await stage.all_released()
        assert stage.client.methods[-4:] == ["kill", "output", "update", "release"]
        with pytest.raises(WorkspaceError, match="'b1'"):
            await stage.call(ReadCommand(stage.terminals), id="b1")

    on_stage(tmp_path, story)


def test_closing_the_session_releases_what_is_in_the_background(tmp_path):
    async def story(stage: Stage) -> None:
        await stage.run("serve", background=True)
        await stage.run("watch", background=True)
        await stage.terminals.close()
        assert stage.client.created == stage.client.released == 2
        assert not stage.client.open

    on_stage(tmp_path, story)


def test_closing_does_not_wait_for_a_client_that_does_not_answer(tmp_path):
    async def story(stage: Stage) -> None:
        stage.client.answers = dict.fromkeys(["wait_for_exit", "output", "kill", "release"], SILENCE)
        await stage.run("serve", background=True)
        await stage.terminals.close()
        assert stage.client.methods[-1] == "release"
        assert not stage.terminals._releases

    on_stage(tmp_path, story)
