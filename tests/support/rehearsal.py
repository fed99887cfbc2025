"""A first conversation, held in the process that has everything imported (see `warm`) before it forks others.

What Crow finds out when it first needs it and then keeps, such as compiled patterns, tables that are read from a file
and what structs are made of, each process that is forked afterwards has already: a third of what a short conversation
costs. Nothing else of the rehearsal may stay: no thread, no descriptor, no file.
"""

import asyncio
import contextlib
import inspect
import json
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

CONFIG = """\
model = "scripted/test"
[providers.scripted]
type = "scripted"
script = "script.toml"
"""
SCRIPT = """\
[[reply]]
events = [
    { text = "Look." },
    { call = "write", raw = '{"path": "a.txt", "content": "a"}' },
    { call = "read", raw = '{"path": "a.txt"}' },
    { call = "edit", raw = '{"path": "a.txt", "edits": [{"old": "a", "new": "b"}]}' },
    { call = "terminal", raw = '{"command": "echo hello"}' },
]
[[reply]]
repeat = true
events = [{ text = "Done." }]
"""


def rehearse() -> None:
    _find_out()
    with tempfile.TemporaryDirectory(prefix="crow-rehearsal-") as folder:
        home, workspace = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        workspace.mkdir()
        (home / "config.toml").write_text(CONFIG)
        (home / "script.toml").write_text(SCRIPT)
        with patch("crow.project.watching._kernel", lambda: None):  # its thread would stay
            _converse(home, workspace)


def _find_out() -> None:
    from crow import visible
    from crow.tools.arguments import ArgumentReader

    for module in [module for name, module in sys.modules.items() if name.startswith("crow.")]:
        for value in list(vars(module).values()):
            if isinstance(value, ArgumentReader):
                value.schema()
            elif isinstance(value, type) and issubclass(value, msgspec.Struct) and value is not msgspec.Struct:
                with contextlib.suppress(TypeError):  # not meant to be read
                    msgspec.json.Decoder(value)
    for name in re.findall(r"\b_re\((_[A-Z_]+)\)", inspect.getsource(visible)):
        visible._re(getattr(visible, name))


def _converse(home: Path, workspace: Path) -> None:
    client = _Client(workspace)
    threads = set(threading.enumerate())
    talking = threading.Thread(target=client.talk)
    talking.start()
    asyncio.run(_serve(home, client))
    talking.join()
    client.close()
    assert client.stop_reasons == ["end_turn", "end_turn"]
    _end_idle_threads()
    for thread in set(threading.enumerate()) - threads:
        thread.join(timeout=60)
        assert not thread.is_alive(), f"the rehearsal has left {thread.name}"


async def _serve(home: Path, client: "_Client") -> None:
    from crow.acp.agent import Agent, LazyHost

    environ = {**os.environ, "HOME": str(home), "CROW_HOME": str(home), "CROW_LOCAL_SERVERS": ""}
    host = LazyHost(str(home), environ)
    agent = Agent(host)
    connection = agent.connect(client.to_read, client.to_write)
    await connection.run()
    await agent.close()
    await host.end()
    await connection.close()


def _end_idle_threads() -> None:
    from crow import disk

    while disk._idle:
        disk._idle.pop().put(sys.exit)


class _Client:
    """Says two prompts, and allows everything once."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.to_read, self._writer = os.pipe()
        reader, self.to_write = os.pipe()
        self._reader = open(reader, "rb")  # noqa: SIM115
        self._last_id = 0
        self.stop_reasons: list[str] = []

    def talk(self) -> None:
        info = {"name": "test-editor", "version": "1"}
        self._ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info})
        session = self._ask("session/new", {"cwd": str(self._workspace), "mcpServers": []})["sessionId"]
        for _ in range(2):
            prompt = [{"type": "text", "text": "hello"}]
            answer = self._ask("session/prompt", {"sessionId": session, "prompt": prompt})
            self.stop_reasons.append(answer["stopReason"])
        os.close(self._writer)

    def close(self) -> None:
        self._reader.close()
        os.close(self.to_read)
        os.close(self.to_write)

    def _ask(self, method: str, params: dict[str, Any]) -> Any:
        self._last_id += 1
        self._say({"id": self._last_id, "method": method, "params": params})
        for line in self._reader:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self._say({"id": message["id"], "result": {"outcome": {"outcome": "selected", "optionId": "once"}}})
            elif "method" not in message and message["id"] == self._last_id:
                return message["result"]
        raise AssertionError(f"no answer to {method}")

    def _say(self, message: dict[str, Any]) -> None:
        os.write(self._writer, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
