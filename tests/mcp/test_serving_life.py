"""How `crow mcp` begins and ends: nothing but the protocol on standard output, nothing left behind."""

import asyncio
import json
import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.mcp.hosts import (
    ERAS,
    Era,
    HttpServer,
    RawServer,
    alive,
    crow_with,
    on_pipes,
    pid_in,
    serving_http,
    surroundings,
)
from tests.support.new_files import watched
from tests.support.patience import DEADLINE, eventually
from tests.support.warm import CROW, warm

SLEEPER = "(setsid sleep 1000 & echo $! > inner); echo $$ > outer; sleep 1000"
"""A command that leaves a process in a session of its own, and does not end."""


def both_pids(folder: Path) -> list[int]:
    eventually(lambda: pid_in(folder / "inner") and pid_in(folder / "outer"))
    return [pid_in(folder / "inner"), pid_in(folder / "outer")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("way", ["end of input", "SIGTERM", "SIGKILL"])
def test_it_ends_with_everything_that_its_commands_started(way: str, folder: Path):
    server = RawServer(folder, "--terminal")
    server.begin()
    server.call(2, "terminal", command=SLEEPER)
    pids = both_pids(folder)
    assert alive(pids) == pids
    if way == "end of input":
        assert server.process.stdin is not None
        server.process.stdin.close()
        server.process.stdin = None
    else:
        server.process.send_signal(getattr(signal, way))
    _, complained = server.process.communicate(timeout=DEADLINE)
    assert complained == b""
    assert server.process.returncode == {"end of input": 0, "SIGTERM": 128 + 15, "SIGKILL": -9}[way]
    eventually(lambda: not alive(pids))


def test_calls_that_are_piped_in_are_done_and_answered(folder: Path):
    """The input has ended long before the last of them is."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
    ]
    for id in range(2, 8):
        arguments = {"command": "create", "path": f"{id}.txt", "file_text": "made\n"}
        messages.append({"id": id, "method": "tools/call", "params": {"name": "file_editor", "arguments": arguments}})
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = subprocess.run(
        [*warm(CROW), "mcp"],
        cwd=folder,
        env=surroundings(folder),
        input=lines,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    answers = {message["id"]: message for message in map(json.loads, done.stdout.splitlines()) if "id" in message}
    assert sorted(answers) == [1, *range(2, 8)]
    assert all(answers[id]["result"]["isError"] is False for id in range(2, 8))
    assert sorted(os.listdir(folder)) == [f"{id}.txt" for id in range(2, 8)]
    assert (done.returncode, done.stderr) == (0, "")


def test_what_a_host_asked_for_before_it_died_is_finished(folder: Path):
    """It reads no answer any more either."""
    server = RawServer(folder)
    server.begin()
    for id in range(2, 5):
        server.call(id, "file_editor", command="create", path=f"{id}.txt", file_text="made\n")
    assert server.process.stdout is not None
    assert server.process.stdin is not None
    assert server.process.stderr is not None
    server.process.stdout.close()
    server.process.stdin.close()
    assert server.process.wait(DEADLINE) == 0
    assert server.process.stderr.read() == b""
    server.process.stderr.close()
    assert sorted(os.listdir(folder)) == ["2.txt", "3.txt", "4.txt"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_the_middle_of_a_write_leaves_nothing_half_done(number: signal.Signals, folder: Path):
    text = "x" * 3_000_000
    server = RawServer(folder)
    server.begin()
    with watched(folder) as files:
        for id in range(2, 8):
            server.call(id, "file_editor", command="create", path=f"{id}.txt", file_text=text)
        files.wait_for(".tmp")
    server.process.send_signal(number)
    _, complained = server.process.communicate(timeout=DEADLINE)
    assert (server.process.returncode, complained) == (128 + number, b"")
    for path in folder.iterdir():
        assert not path.name.endswith(".tmp")
        assert path.read_text() == text


def test_over_http_commands_end_with_their_client(folder: Path):
    async def come_and_go(server: HttpServer) -> list[int]:
        async with server.connect() as client:
            await client.call_tool("terminal", {"command": SLEEPER, "background": True})
            pids = both_pids(folder)
            assert alive(pids) == pids
        return pids

    with serving_http(folder, "--terminal") as server:
        pids = asyncio.run(come_and_go(server))
        eventually(lambda: not alive(pids))


def test_over_http_commands_end_with_a_client_that_asks_for_nothing_any_more(folder: Path):
    """One that was killed, for example: it never says that it leaves. What another client runs stays."""
    (folder / "other").mkdir()

    async def go_silent_beside_another(server: HttpServer) -> None:
        async with server.connect() as other:
            await other.call_tool("terminal", {"command": SLEEPER, "background": True, "cwd": "other"})
            kept = both_pids(folder / "other")
            gone = await _leave_without_a_word(server, folder)
            await asyncio.to_thread(lambda: eventually(lambda: not alive(gone)))
            assert alive(kept) == kept

    program = crow_with("crow.mcp.server.http", IDLE_TIMEOUT=0.5)
    with serving_http(folder, "--terminal", program=program) as server:
        asyncio.run(go_silent_beside_another(server))


async def _leave_without_a_word(server: HttpServer, folder: Path) -> list[int]:
    """Starts a command in the background, and sends nothing after that; the pids."""
    headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    call = {"name": "terminal", "arguments": {"command": SLEEPER, "background": True}}
    async with httpx2.AsyncClient(headers=headers, timeout=DEADLINE) as http:

        async def post(**message: Any) -> httpx2.Response:
            answer = await http.post(server.url, json={"jsonrpc": "2.0", **message})
            answer.raise_for_status()
            return answer

        opened = await post(id=1, method="initialize", params=hello)
        http.headers["mcp-session-id"] = opened.headers["mcp-session-id"]
        await post(method="notifications/initialized")
        await post(id=2, method="tools/call", params=call)
        pids = await asyncio.to_thread(both_pids, folder)
        assert alive(pids) == pids
        return pids


def test_over_http_commands_of_clients_without_a_session_end_with_the_server(folder: Path):
    async def come_and_go(server: HttpServer) -> None:
        async with server.connect("auto") as client:
            await client.call_tool("terminal", {"command": SLEEPER, "background": True})

    with serving_http(folder, "--terminal") as server:
        asyncio.run(come_and_go(server))
        pids = both_pids(folder)
        assert alive(pids) == pids
    eventually(lambda: not alive(pids))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("way", ["pipes", "http"])
def test_a_cancelled_call_ends_its_command_and_all_that_it_started(way: str, era: Era, folder: Path):
    async def call_and_cancel(client: Any) -> list[int]:
        call = asyncio.ensure_future(client.call_tool("terminal", {"command": SLEEPER}))
        pids = await asyncio.to_thread(both_pids, folder)
        assert alive(pids) == pids
        call.cancel()
        await asyncio.wait([call])
        await asyncio.to_thread(lambda: eventually(lambda: not alive(pids)))
        after = await client.call_tool("terminal", {"command": "echo still here"})
        assert after.content[0].text == "still here\n[exit code 0]"
        return pids

    async def on_a_pipe() -> None:
        async with on_pipes(folder, "--terminal", era=era) as client:
            await call_and_cancel(client)

    async def over_a_socket(server: Any) -> None:
        async with server.connect(era) as client:
            await call_and_cancel(client)

    if way == "pipes":
        asyncio.run(on_a_pipe())
        return
    with serving_http(folder, "--terminal") as server:
        asyncio.run(over_a_socket(server))


def test_garbage_on_its_input_costs_nothing_but_itself(folder: Path):
    server = RawServer(folder)
    server.begin()
    for line in ("", "garbage", "{", "[]", "null", '{"jsonrpc":"2.0"}', '"\\ud800"', "\x00\x01", "{" * 5000):
        server.send(line)
    server.call(3, "file_editor", command="create", path="a.txt", file_text="\ud800")
    server.call(2, "file_editor", command="view", path=".")
    assert server.answer(2)["result"]["isError"] is False
    said, complained = server.process.communicate(timeout=DEADLINE)
    assert complained == b""
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in said.splitlines())
    assert server.process.returncode == 0


def test_a_command_sees_neither_keys_nor_the_protocol(folder: Path):
    server = RawServer(folder, "--terminal", OPENAI_API_KEY="sk-of-the-test", CROW_MCP_TOKEN="t" * 20)
    server.begin()
    server.call(2, "terminal", command="env; cat; echo noise >&2")
    text = server.answer(2)["result"]["content"][0]["text"]
    assert "noise" in text
    assert "sk-of-the-test" not in text
    assert "t" * 20 not in text
    assert server.process.communicate(timeout=DEADLINE)[1] == b""


def test_in_a_terminal_it_says_what_it_is_for(folder: Path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*warm(CROW), "mcp"],
        cwd=folder,
        env=surroundings(folder),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"crow mcp speaks the Model Context Protocol")
    os.write(ours, b"\x04")
    said, complained = process.communicate(timeout=DEADLINE)
    os.close(ours)
    assert (process.returncode, said, complained) == (0, b"", b"")


WRONG_USAGE = [
    ["--nonsense"],
    ["--http", "nonsense"],
    ["--http", "0"],
    ["--http", "65536"],
    ["--http", "-1"],
    ["--root"],
    ["--root", "/nonexistent/folder"],
    ["--token-file", "x"],
]


@pytest.mark.parametrize("arguments", WRONG_USAGE, ids=" ".join)
def test_wrong_usage(arguments: list[str], folder: Path):
    done = subprocess.run(
        [CROW, "mcp", *arguments], env=surroundings(folder), capture_output=True, text=True, timeout=DEADLINE
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: crow" in done.stderr


def test_help(folder: Path):
    done = subprocess.run(
        [CROW, "mcp", "--help"], env=surroundings(folder), capture_output=True, text=True, timeout=DEADLINE
    )
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("--root", "--terminal", "--http", "--token-file", "--allow-protected", "examples:"):
        assert word in done.stdout
