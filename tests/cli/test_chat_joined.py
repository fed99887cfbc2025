"""What others do to a session of `crow chat`: the protocol's own SDK answers its question; `crow run` speaks in it."""

import asyncio
import json
import subprocess
from pathlib import Path

import acp
from acp import schema
from tests.acp.test_judge import SdkClient
from tests.cli.chat_support import DONE, INPUT, STATUS, chat, wait_for_question
from tests.cli.test_run import HELLO, play, wait_until_nothing_runs
from tests.config.support import CROW, crow, environment
from tests.support.patience import DEADLINE
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
        window.wait_until("  → no longer needed\n\ni Allowed in judge: Edit nest.py\n")
        window.wait_until("All right.\n\n✓ done")
        window.wait_for_rows("", INPUT, STATUS)
        window.press("ctrl-d")
        assert window.ended() == 0
    [(call, _)] = client.asked
    assert call.content[0].new_text == "feathers\n"
    assert (project / "nest.py").read_text() == "feathers\n"
    wait_until_nothing_runs(tmp_path)


def test_a_run_that_nobody_sits_at_leaves_questions_to_those_who_watch(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE, edit("nest.py", "feathers", "moss"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as window:
        wait_for_question(window)
        passer_by = crow(tmp_path, "run", "--cwd", str(project), "--continue", "hi")
        assert passer_by.returncode == 1
        assert "A turn is already running in this session, begun in crow-chat." in passer_by.stderr
        assert "Edit nest.py" not in passer_by.stderr, "it goes on, and is not ours"
        assert "no longer needed" not in window.text
        window.type("y")
        window.wait_until("All right.\n\n✓ done")

        command = [CROW, "run", "--cwd", str(project), "--continue", "and moss"]
        with subprocess.Popen(command, env=environment(tmp_path), stdin=subprocess.DEVNULL) as script:
            window.wait_until("▸ and moss")
            wait_for_question(window)
            window.type("y")
            assert script.wait(DEADLINE) == 0
        assert (project / "nest.py").read_text() == "moss\n"
        window.press("ctrl-d")
        assert window.ended() == 0
    wait_until_nothing_runs(tmp_path)


def test_what_a_run_wants_for_one_prompt_does_not_stay_with_those_who_watch(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "hello") as window:
        window.wait_until("✓ done")
        refused = crow(tmp_path, "run", "--cwd", str(project), "--continue", "--allow", "edit", "soften it")
        assert refused.returncode == 1
        assert "This session is open in crow-chat (process " in refused.stderr
        assert "--allow has no effect" in refused.stderr
        done = crow(tmp_path, "run", "--cwd", str(project), "--continue", "--mode", "auto", "soften it")
        assert done.returncode == 0, done.stderr
        assert (project / "nest.py").read_text() == "feathers\n"
        window.wait_until("i Mode: ask, chosen in crow-run.")
        assert "i Mode: auto, chosen in crow-run." in window.text
        window.wait_until(f"{INPUT}\n{STATUS}")
        window.press("ctrl-d")
        assert window.ended() == 0
    wait_until_nothing_runs(tmp_path)


def test_a_run_changes_nothing_for_a_turn_that_is_running(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as window:
        wait_for_question(window)
        refused = crow(tmp_path, "run", "--cwd", str(project), "--continue", "--mode", "auto", "hi")
        assert (refused.returncode, "where a turn is running" in refused.stderr) == (1, True)
        assert STATUS.split()[0] in window.text.splitlines()[-1]
        window.type("n")
        window.wait_until("✓ done")
        assert "chosen in" not in window.text
        window.press("ctrl-d")
        assert window.ended() == 0
    assert (project / "nest.py").read_text() == "twigs\n"
