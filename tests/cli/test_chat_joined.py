"""The protocol's own SDK joins a turn of `crow chat` that is running, and answers its question."""

import asyncio
import json
from pathlib import Path

import acp
from acp import schema
from tests.acp.test_judge import SdkClient
from tests.cli.test_chat import DONE, INPUT, STATUS, chat, wait_for_question
from tests.cli.test_run import play, wait_until_nothing_runs
from tests.config.support import CROW, crow, environment
from tests.support.scripts import edit
from tests.support.warm import warm


def test_the_official_client_answers_the_question_of_a_chat(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    client = SdkClient()

    async def join(session: str) -> None:
        spawned = acp.spawn_agent_process(client, *warm(CROW), "acp", env=environment(tmp_path))  # pyright: ignore[reportArgumentType]
        async with spawned as (connection, _):
            name = schema.Implementation(name="judge", version="1")
            await connection.initialize(protocol_version=1, client_info=name)
            await connection.load_session(session_id=session, cwd=str(project), mcp_servers=[])
            await client.until(lambda: "All right." in client.text())

    with chat(tmp_path, "soften it") as window:
        wait_for_question(window)
        (session,) = json.loads(crow(tmp_path, "sessions", "list", "--json").stdout)
        assert session["state"] == "asks"
        asyncio.run(join(session["id"]))
        window.wait_until("  → answered elsewhere\n\ni Allowed in judge: Edit nest.py\n")
        window.wait_until("All right.\n\n✓ done")
        window.wait_for_rows("", INPUT, STATUS)
        window.press("ctrl-d")
        assert window.ended() == 0
    [(call, _)] = client.asked
    assert call.content[0].new_text == "feathers\n"
    assert (project / "nest.py").read_text() == "feathers\n"
    wait_until_nothing_runs(tmp_path)
