"""The protocol's own Python SDK as the client, on real stdio, while Crow changes files and runs commands.

The SDK's client here keeps files and runs commands itself, as an editor written with it would; it also lists, loads,
resumes, copies and closes sessions, and chooses modes and models. Other clients
(acpx, the Jupyter kernel) need a network to be installed; `make conformance` runs them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import acp
from acp import schema
from tests.acp.test_judge import SdkClient
from tests.support.editor import CONFIG, clean_environment
from tests.support.scripts import DONE, edit, reply, run
from tests.support.terminals import Terminals
from tests.support.warm import CROW, warm


class SdkEditor(SdkClient):
    """A client of the SDK with files and terminals."""

    def __init__(self, option: str = "once") -> None:
        super().__init__(option)
        self.terminals = Terminals({"PATH": "/usr/bin:/bin"})
        self.waiting = asyncio.Event()

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> Any:
        if not Path(path).exists():
            raise acp.RequestError(-32002, "no such file")
        return schema.ReadTextFileResponse(content=Path(path).read_text())

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> Any:
        Path(path).write_text(content)
        return schema.WriteTextFileResponse()

    async def create_terminal(self, session_id: str, command: str, **request: Any) -> Any:
        variables = [{"name": variable.name, "value": variable.value} for variable in request.get("env") or []]
        created = self.terminals.create(
            {
                "command": command,
                "args": request.get("args"),
                "env": variables,
                "cwd": request.get("cwd"),
                "outputByteLimit": request.get("output_byte_limit"),
            }
        )
        return schema.CreateTerminalResponse(terminal_id=created["terminalId"])

    async def terminal_output(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        output = self.terminals.find("terminal/output", terminal_id).output()
        return schema.TerminalOutputResponse.model_validate(output)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.waiting.set()
        status = await asyncio.to_thread(self.terminals.find("terminal/wait_for_exit", terminal_id).wait)
        return schema.WaitForTerminalExitResponse.model_validate(status)

    async def kill_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.terminals.find("terminal/kill", terminal_id).kill()
        return schema.KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **more: Any) -> Any:
        self.terminals.release(terminal_id)
        return schema.ReleaseTerminalResponse()

    def statuses(self) -> list[str]:
        kinds = (schema.ToolCallStart, schema.ToolCallProgress)
        return [update.status for update in self.updates if isinstance(update, kinds) and update.status]


OFFERS = {
    "nothing": schema.ClientCapabilities(),
    "files and terminals": schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
    ),
}


def converse(folder: Path, script: str, client: SdkEditor, offer: str, cancel: bool = False) -> Any:
    """One prompt in a fresh session; its answer. With `cancel`, as soon as a command runs."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir()
    (home / "script.toml").write_text(script + DONE)
    (home / "config.toml").write_text(CONFIG.format(images="false", more=""))

    async def talk() -> Any:
        spawned = acp.spawn_agent_process(client, *warm(CROW), "acp", env=clean_environment(home, folder))  # pyright: ignore[reportArgumentType]
        async with spawned as (connection, _):
            await connection.initialize(protocol_version=1, client_capabilities=OFFERS[offer])
            session = await connection.new_session(cwd=str(folder), mcp_servers=[])
            prompt = asyncio.create_task(
                connection.prompt(session_id=session.session_id, prompt=[acp.text_block("go")])
            )
            if cancel:
                await client.until(lambda: "in_progress" in client.statuses())
                if offer != "nothing":
                    await client.waiting.wait()
                await connection.cancel(session_id=session.session_id)
            answer = await prompt
            await client.until(lambda: len(client.terminals.released) == len(client.terminals.created))
            return answer

    try:
        return asyncio.run(talk())
    finally:
        client.terminals.end()
        assert client.terminals.complaints == []


@pytest.fixture(params=list(OFFERS))
def offer(request: Any) -> str:
    return request.param


@pytest.mark.rule("R95", "R101")
def test_an_edit_with_permission(tmp_path, offer):
    (tmp_path / "a.py").write_text("one\n")
    client = SdkEditor("once")
    answer = converse(tmp_path, reply(edit("a.py", "one", "1")), client, offer)
    assert answer.stop_reason == "end_turn"
    assert (tmp_path / "a.py").read_text() == "1\n"
    [(asked, _)] = client.asked
    assert (asked.content[0].old_text, asked.content[0].new_text) == ("one\n", "1\n")
    assert client.statuses() == ["pending", "in_progress", "completed"]


@pytest.mark.rule("R105")
def test_a_rejected_edit(tmp_path, offer):
    (tmp_path / "a.py").write_text("one\n")
    client = SdkEditor("reject")
    answer = converse(tmp_path, reply(edit("a.py", "one", "1")), client, offer)
    assert answer.stop_reason == "end_turn"
    assert (tmp_path / "a.py").read_text() == "one\n"
    assert client.statuses() == ["pending", "failed"]


@pytest.mark.rule("R112", "R114")
def test_a_command_with_an_exit_code(tmp_path, offer):
    client = SdkEditor("once")
    answer = converse(tmp_path, reply(run("echo out; exit 3")), client, offer)
    assert answer.stop_reason == "end_turn"
    assert client.statuses() == ["pending", "in_progress", "failed"]
    assert client.updates[-2].raw_output["message"].startswith("exit 3")


@pytest.mark.rule("R68", "R69", "R116")
def test_a_cancel_in_a_running_command(tmp_path, offer):
    client = SdkEditor("once")
    answer = converse(tmp_path, reply(run("sleep 1000")), client, offer, cancel=True)
    assert answer.stop_reason == "cancelled"
    assert client.statuses()[-1] == "failed"
    assert client.terminals.leftovers() == []


# --- sessions, modes and options

TWO_MODELS = "[providers.scripted.models.second]\n"


@asynccontextmanager
async def connected(folder: Path, client: SdkEditor) -> AsyncIterator[Any]:
    """A new process with the same home: the SDK's connection to it."""
    home = folder.parent / f"{folder.name}-home"
    home.mkdir(exist_ok=True)
    (home / "script.toml").write_text(reply(edit("a.py", "one", "1"), when="change") + DONE)
    (home / "config.toml").write_text(CONFIG.format(images="false", more=TWO_MODELS))
    spawned = acp.spawn_agent_process(client, *warm(CROW), "acp", env=clean_environment(home, folder))  # pyright: ignore[reportArgumentType]
    async with spawned as (connection, _):
        await connection.initialize(protocol_version=1)
        yield connection


def chosen(options: list[Any]) -> dict[str, str]:
    return {option.id: option.current_value for option in options}


def said_by_the_person(client: SdkEditor) -> list[str]:
    return [update.content.text for update in client.updates if isinstance(update, schema.UserMessageChunk)]


@pytest.mark.rule("R37", "R39", "R40", "R41", "R50", "R136", "R139")
def test_a_session_is_listed_and_loaded_by_another_process(tmp_path):
    (tmp_path / "a.py").write_text("one\n")
    live, loaded = SdkEditor(), SdkEditor()

    async def talk() -> None:
        async with connected(tmp_path, live) as connection:
            session = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
            assert session.modes.current_mode_id == "ask"
            await connection.prompt(session_id=session.session_id, prompt=[acp.text_block("change it")])
            await connection.set_session_mode(session_id=session.session_id, mode_id="plan")
            answer = await connection.set_config_option("model", session.session_id, "scripted/second")
            assert chosen(answer.config_options) == {"mode": "plan", "model": "scripted/second"}
        async with connected(tmp_path, loaded) as connection:
            [entry] = (await connection.list_sessions(cwd=str(tmp_path))).sessions
            assert (entry.session_id, entry.title) == (session.session_id, "change it")
            answer = await connection.load_session(cwd=str(tmp_path), session_id=session.session_id, mcp_servers=[])
            assert answer.modes.current_mode_id == "plan"
            assert chosen(answer.config_options) == {"mode": "plan", "model": "scripted/second"}

    asyncio.run(talk())
    assert said_by_the_person(loaded) == ["change it"]
    assert loaded.text() == live.text() == "Done."
    assert loaded.statuses() == ["completed", "completed"], (
        "once as a call, once as an update: some show only the latter"
    )


@pytest.mark.rule("R48", "R49", "R57")
def test_a_session_is_resumed_copied_and_closed(tmp_path):
    client = SdkEditor()

    async def talk() -> None:
        async with connected(tmp_path, SdkEditor()) as connection:
            source = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            await connection.prompt(session_id=source, prompt=[acp.text_block("hello")])
        async with connected(tmp_path, client) as connection:
            await connection.resume_session(session_id=source, cwd=str(tmp_path), mcp_servers=[])
            assert said_by_the_person(client) == []
            copy = (await connection.fork_session(session_id=source, cwd=str(tmp_path), mcp_servers=[])).session_id
            assert copy != source
            answer = await connection.prompt(session_id=copy, prompt=[acp.text_block("and in the copy")])
            assert answer.stop_reason == "end_turn"
            await connection.close_session(session_id=source)
            with pytest.raises(acp.RequestError) as refused:
                await connection.prompt(session_id=source, prompt=[acp.text_block("gone")])
            assert refused.value.code == -32002
            listed = (await connection.list_sessions()).sessions
            assert [entry.session_id for entry in listed] == [copy, source]

    asyncio.run(talk())


@pytest.mark.rule("R45", "R51", "R141")
def test_what_is_refused_reaches_the_client_as_an_error(tmp_path):
    async def talk() -> None:
        async with connected(tmp_path, SdkEditor()) as connection:
            session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
            for attempt, code in (
                (connection.load_session(cwd=str(tmp_path), session_id="none", mcp_servers=[]), -32002),
                (connection.list_sessions(cursor="nonsense"), -32602),
                (connection.set_session_mode(session_id=session, mode_id="careless"), -32602),
                (connection.set_config_option("model", session, "no/such"), -32602),
            ):
                with pytest.raises(acp.RequestError) as refused:
                    await attempt
                assert refused.value.code == code

    asyncio.run(talk())
