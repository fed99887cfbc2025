"""Counts what the code's structure costs a reader: files, lines, files on the way of one step, who knows a turn.

python scripts/structure.py [--json] [--list STEP]

A file counts for a step if a function in it is entered between the client's request and the agent's answer; the agent
is a real `crow acp` that plays a script. Of a step that can be repeated the shortest walk counts, when all is loaded;
the first one, which loads what is needed and has work of the background in it, is told beside it. An edit is walked
once, after the others. `--list hello` names the files of one step, with how many functions each had entered;
`--list "first hello"` those of its first walk.
"""

import argparse
import ast
import collections
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src" / "crow"
CONTEXT = ("crow.turn.conversation", "crow.turn.context")
"""The modules that hold what a turn may know."""

SCRIPT = """
[[reply]]
when = "hello"
repeat = true
events = [{ thought = "A greeting." }, { text = "Hello to you." }]

[[reply]]
when = "change it"
events = [{ call = "read", arguments = { path = "nest.txt" } }]

[[reply]]
events = [{ call = "edit", arguments = { path = "nest.txt", edits = [{ old = "twig", new = "branch" }] } }]

[[reply]]
events = [{ text = "Changed." }]
"""

TRACED = """
import collections, os, signal, sys, threading
from crow.__main__ import main

entered = None

def watch(frame, event, argument):
    if event == "call" and entered is not None:
        entered[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

def begin(number, frame):
    global entered
    entered = collections.Counter()
    os.write(int(os.environ["STEPS"]), b"begun\\n")

def end(number, frame):
    global entered
    names, entered = entered, None
    files = collections.Counter(file for file, name in list(names) if not name.startswith("<"))
    os.write(int(os.environ["STEPS"]), (repr(dict(files)) + "\\n").encode())

signal.signal(signal.SIGRTMIN + 1, begin)
signal.signal(signal.SIGRTMIN + 2, end)
threading.setprofile(watch)
sys.setprofile(watch)
sys.argv = ["crow", "acp"]
sys.exit(main())
"""


class Agent:
    """A `crow acp` that says which files it has entered between `begin` and `end`."""

    def __init__(self, home: Path) -> None:
        self._reads, writes = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", TRACED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=[writes],
            env={**os.environ, "CROW_HOME": str(home), "STEPS": str(writes)},
        )
        os.close(writes)
        self._news = os.fdopen(self._reads)
        self._number = 0

    def request(self, method: str, **parameters: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                choice = next(o["optionId"] for o in message["params"]["options"] if o["kind"] == "allow_once")
                outcome = {"outcome": {"outcome": "selected", "optionId": choice}}
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": outcome})
            elif message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
        raise SystemExit("the agent ended")

    def step(self, method: str, **parameters: Any) -> dict[str, int]:
        """The files of ours that answering this request enters, with the number of functions in each."""
        self._process.send_signal(signal.SIGRTMIN + 1)
        self._news.readline()
        self.request(method, **parameters)
        self._process.send_signal(signal.SIGRTMIN + 2)
        files = ast.literal_eval(self._news.readline())
        return {
            str(Path(file).relative_to(SOURCE)): count
            for file, count in sorted(files.items())
            if Path(file).is_relative_to(SOURCE)
        }

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()


def steps() -> dict[str, dict[str, int]]:
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        home.mkdir(mode=0o700)
        project.mkdir()
        (project / "nest.txt").write_text("one twig\n")
        (home / "script.toml").write_text(SCRIPT)
        (home / "config.toml").write_text(
            'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "script.toml"\n'
        )
        agent = Agent(home)
        agent.request("initialize", protocolVersion=1, clientCapabilities={})
        session = agent.request("session/new", cwd=str(project), mcpServers=[])["sessionId"]
        found = _walks("hello", agent, "session/prompt", sessionId=session, prompt=_text("hello"))
        found["edit"] = agent.step("session/prompt", sessionId=session, prompt=_text("change it"))
        assert (project / "nest.txt").read_text() == "one branch\n"
        agent.close()
        agent = Agent(home)
        agent.request("initialize", protocolVersion=1, clientCapabilities={})
        found |= _walks("load", agent, "session/load", sessionId=session, cwd=str(project), mcpServers=[])
        agent.close()
        return found


def _text(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


def _walks(step: str, agent: Agent, method: str, **parameters: Any) -> dict[str, dict[str, int]]:
    """The shortest of several walks, with all loaded and the background at rest; and the first."""
    walks: list[dict[str, int]] = []
    for _ in range(4):
        walks.append(agent.step(method, **parameters))
        if method == "session/load":
            agent.request("session/close", sessionId=parameters["sessionId"])
    return {step: min(walks, key=len), f"first {step}": walks[0]}


def importers_of_context() -> list[str]:
    return sorted(
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if any(name in CONTEXT for name in _imported(path))
    )


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module)):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case _:
                pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--list", choices=("hello", "first hello", "edit", "load", "first load", "context"), metavar="STEP"
    )
    arguments = parser.parse_args()
    paths = list(SOURCE.rglob("*.py"))
    lines = {path: len(path.read_text().splitlines()) for path in paths}
    walked = steps()
    context = importers_of_context()
    if arguments.list:
        listed = dict.fromkeys(context, 1) if arguments.list == "context" else walked[arguments.list]
        print("\n".join(f"{count:5} {file}" for file, count in listed.items()))
        return
    counts = {
        "files": len(paths),
        "lines": sum(lines.values()),
        "files under 60 lines": sum(count < 60 for count in lines.values()),
        **{f"files entered by {step}": len(files) for step, files in walked.items()},
        "modules that import the turn's context": len(context),
    }
    if arguments.json:
        print(json.dumps(counts))
        return
    for what, count in counts.items():
        print(f"{count:7,}  {what}")
    rooms = collections.Counter(path.relative_to(SOURCE).parts[0] for path in paths)
    print("\n".join(f"{count:7,}    {room}" for room, count in sorted(rooms.items()) if not room.endswith(".py")))


if __name__ == "__main__":
    main()
