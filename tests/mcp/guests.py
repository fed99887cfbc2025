"""Servers for Crow to use: as a client hands them over, or as a configuration names them."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.editor import NOTICES, Editor, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, reply
from tests.support.warm import warm

PROGRAMS = Path(__file__).parent / "servers"
LARGE = ("good.py",)
PATIENT = "[limits]\nmcp_start = 50\n"
"""A server is a Python program that imports a large library: on a busy machine it takes its time."""


def good(name: str = "good", **environment: str) -> dict[str, Any]:
    return _stdio(name, "good.py", "stdio", **environment)


def bad(behaviour: str, path: Path | str = "", name: str = "") -> dict[str, Any]:
    return _stdio(name or behaviour, "bad.py", behaviour, *([str(path)] if path else []))


def odd(behaviour: str, path: Path | str = "", name: str = "") -> dict[str, Any]:
    """See `servers/odd.py`."""
    return _stdio(name or behaviour, "odd.py", behaviour, *([str(path)] if path else []))


def asking(what: str, path: Path | str = "") -> dict[str, Any]:
    """See `servers/asking.py`."""
    return _stdio("asking", "asking.py", what, *([str(path)] if path else []))


def restless(behaviour: str, path: Path | str = "") -> dict[str, Any]:
    """See `servers/restless.py`."""
    return _stdio(behaviour, "restless.py", behaviour, *([str(path)] if path else []))


def newer() -> dict[str, Any]:
    return _stdio("newer", "newer.py")


def over_http(url: str, name: str = "web", kind: str = "http") -> dict[str, Any]:
    return {"type": kind, "name": name, "url": url, "headers": []}


def configured(server: dict[str, Any]) -> str:
    """The same server in a `config.toml`."""
    lines = [f"[mcp_servers.{json.dumps(server['name'])}]"]
    lines += [f"{key} = {json.dumps(server[key])}" for key in ("command", "args", "url") if key in server]
    return "\n".join(lines) + "\n"


def _stdio(name: str, program: str, *arguments: str, **environment: str) -> dict[str, Any]:
    variables = [{"name": key, "value": value} for key, value in environment.items()]
    command, *words = _command(program)
    return {
        "name": name,
        "command": command,
        "args": [*words, *arguments],
        "env": variables,
    }


def _command(program: str) -> list[str]:
    """Those that are made with the protocol's library are started without its import, which takes a second."""
    path = PROGRAMS / program
    return warm(path) if program in LARGE else [sys.executable, "-W", "ignore", str(path)]


@contextmanager
def listening(kind: str, port: int = 0) -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The good server over HTTP (`http`, `sse`): its address, and its process."""
    with _serving("good.py", kind, str(port)) as (root, process):
        yield f"{root}/{'mcp' if kind == 'http' else 'sse'}", process


@contextmanager
def endless(kind: str) -> Generator[str]:
    """The address of a server that never ends its answer to a call."""
    with _serving("endless.py") as (root, _):
        yield f"{root}/{kind}"


@contextmanager
def hung() -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    """The root of a server that hangs where the path says so, see `servers/hung.py`; and its process."""
    with _serving("hung.py") as served:
        yield served


@contextmanager
def wrong() -> Generator[str]:
    """The root of a server that answers with something else than MCP, see `servers/wrong.py`."""
    with _serving("wrong.py") as (root, _):
        yield root


@contextmanager
def _serving(program: str, *arguments: str) -> Generator[tuple[str, "subprocess.Popen[bytes]"]]:
    process = subprocess.Popen([*_command(program), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def calling(*calls: tuple[str, dict[str, Any]]) -> str:
    """A script in which the model makes these calls one after the other."""
    return "".join(reply(call(tool, **arguments)) for tool, arguments in calls) + DONE


def one_call(folder: Path, server: dict[str, Any], tool: str, more: dict[str, Any] | None = None, **arguments: Any):
    """A conversation in which one tool of one server is called once, with everything allowed; the call as it ended."""
    editor = editing(folder, calling((f"mcp__{server['name']}__{tool}", arguments)), **(more or {}))
    try:
        editor.new_session(mcpServers=[server])
        editor.prompt("Go.")
        return editor.the_call(), editor
    finally:
        editor.close()


def editing(folder: Path, script: str, **more: Any) -> Editor:
    given = {"config": PATIENT, "capabilities": NOTICES, "permit": lambda request: chose("once"), **more}
    return Editor(folder, script=script, **given)


def shown(tool_call: dict[str, Any]) -> str:
    """The text in a call."""
    texts = [item["content"]["text"] for item in tool_call.get("content", []) if "content" in item]
    return "\n".join(texts)


def told_model(editor: Editor) -> str:
    """What the model was told of the last call."""
    return [message for message in editor.model_requests()[-1]["messages"] if message["role"] == "tool"][-1]["text"]


def notice_about(editor: Editor, *words: str) -> str:
    """The first notice with all these words in it, past or to come."""

    def is_it(message: dict[str, Any]) -> bool:
        update = message.get("params", {}).get("update", {})
        return update.get("sessionUpdate") == "notice" and all(word in update["title"] for word in words)

    return editor.wait_for(is_it, f"a notice about {words}")["params"]["update"]["title"]


def offered(request: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in request["tools"]]


def pids_in(path: Path) -> list[int]:
    """Of a server that wrote its own and its child's to a file."""
    eventually(lambda: path.exists() and len(path.read_text().split()) == 2, "the server has started")
    return [int(word) for word in path.read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def are_gone(pids: list[int]) -> None:
    eventually(lambda: not any(is_alive(pid) for pid in pids), f"the end of {pids}")


def children_of(pid: int) -> set[int]:
    """All living descendants of a process."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    state, parent, *_ = file.read().rpartition(") ")[2].split()
            except OSError:
                continue
            if state not in ("Z", "X"):
                parents.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    queue = [pid]
    while queue:
        fresh = parents.get(queue.pop(), [])
        found.update(fresh)
        queue += fresh
    return found
