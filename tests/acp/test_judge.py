"""The official judge: whole conversations with the protocol's own Python SDK as the client, on real stdio."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import acp
from acp import schema
from tests.support.editor import CONFIG, clean_environment
from tests.support.patience import DEADLINE
from tests.support.warm import CROW, warm


class SdkClient:
    """As small as a client of the SDK can be."""

    def __init__(self, option: str = "once") -> None:
        self.option = option
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    def on_connect(self, connection: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **meta: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **meta: Any) -> Any:
        self.asked.append((tool_call, options))
        outcome = schema.AllowedOutcome(outcome="selected", option_id=self.option)
        return schema.RequestPermissionResponse(outcome=outcome)

    def text(self) -> str:
        chunks = [update for update in self.updates if isinstance(update, schema.AgentMessageChunk)]
        return "".join(chunk.content.text for chunk in chunks)  # pyright: ignore[reportAttributeAccessIssue]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():  # noqa: ASYNC110 -- the SDK tells us of nothing that could be waited for
                await asyncio.sleep(0.01)


def converse(folder: Path, script: str, client: SdkClient, talk: Callable[[Any, str], Awaitable[None]]) -> int | None:
    """Runs a conversation in a fresh session; the exit status of the agent."""
    (folder / "script.toml").write_text(script)
    (folder / "config.toml").write_text(CONFIG.format(images="false", more=""))

    async def run() -> int | None:
        spawned = acp.spawn_agent_process(client, *warm(CROW), "acp", env=clean_environment(folder, folder))  # pyright: ignore[reportArgumentType]
        async with spawned as (connection, process):
            answer = await connection.initialize(protocol_version=1)
            assert answer.protocol_version == 1
            session = await connection.new_session(cwd=str(folder), mcp_servers=[])
            await talk(connection, session.session_id)
        return process.returncode

    return asyncio.run(run())


@pytest.mark.rule("R16", "R32", "R58", "R59", "R76")
def test_a_prompt(tmp_path):
    client = SdkClient()

    async def talk(connection: Any, session: str) -> None:
        answer = await connection.prompt(session_id=session, prompt=[acp.text_block("hi")])
        assert answer.stop_reason == "end_turn"

    assert converse(tmp_path, '[[reply]]\nevents = [{ thought = "Hm." }, { text = "Hello there." }]', client, talk) == 0
    assert client.text() == "Hello there."
    spoken = {schema.AgentThoughtChunk, schema.AgentMessageChunk}
    surroundings = {schema.AvailableCommandsUpdate, schema.SessionInfoUpdate}
    assert {type(update) for update in client.updates} == spoken | surroundings


@pytest.mark.rule("R68", "R69")
def test_a_cancel(tmp_path):
    client = SdkClient()

    async def talk(connection: Any, session: str) -> None:
        prompt = asyncio.create_task(connection.prompt(session_id=session, prompt=[acp.text_block("hi")]))
        await client.until(lambda: client.text() == "Once")
        await connection.cancel(session_id=session)
        assert (await prompt).stop_reason == "cancelled"

    converse(tmp_path, '[[reply]]\nevents = [{ text = "Once" }, { wait = 60 }]', client, talk)


@pytest.mark.rule("R62", "R24")
@pytest.mark.parametrize(("status", "code"), [(400, -32603), (401, -32000)])
def test_an_error(tmp_path, status, code):
    async def talk(connection: Any, session: str) -> None:
        with pytest.raises(acp.RequestError) as failed:
            await connection.prompt(session_id=session, prompt=[acp.text_block("hi")])
        assert failed.value.code == code
        assert str(status) in str(failed.value)

    converse(tmp_path, f"[[reply]]\nevents = [{{ fail = {{ status = {status} }} }}]", SdkClient(), talk)


@pytest.mark.rule("R101", "R102", "R88")
@pytest.mark.parametrize(("option", "status"), [("once", "completed"), ("reject", "failed")])
def test_a_permission(tmp_path, option, status):
    client = SdkClient(option)
    script = """
    [[reply]]
    events = [{ call = "read", arguments = { path = "/etc/hostname" } }]
    [[reply]]
    events = [{ text = "Done." }]
    """

    async def talk(connection: Any, session: str) -> None:
        answer = await connection.prompt(session_id=session, prompt=[acp.text_block("read it")])
        assert answer.stop_reason == "end_turn"

    converse(tmp_path, script, client, talk)
    [(tool_call, options)] = client.asked
    assert tool_call.title == "Read /etc/hostname"
    assert [offered.kind for offered in options] == ["allow_once", "allow_always", "reject_once"]
    updates = [update for update in client.updates if isinstance(update, schema.ToolCallProgress)]
    assert updates[-1].status == status
