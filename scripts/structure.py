"""Counts what the code's structure costs a reader: files, lines, classes, names, and the files on the way of one step.

python scripts/structure.py [--json] [--list WALK]

A file counts for a walk if a function in it is entered between the client's request and the agent's answer; the agent
is a real `crow acp` that plays walks.toml. Of a step that can be repeated the shortest walk counts, when all is loaded;
the first one, which loads what is needed and has work of the background in it, is told beside it. `--list hello` names
the files of one walk, with how many functions each had entered; `--list "first hello"` those of its first walk.
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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src" / "crow"
SCRIPT = Path(__file__).with_name("walks.toml")
Walk = dict[str, int]
"""The files of ours that a step entered, with the number of functions in each."""

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
    """A `crow acp` that reports which files it has entered between `begin` and `end`."""

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
        self._reports = os.fdopen(self._reads)
        self._number = 0
        self.on_update: Callable[[Mapping[str, Any]], None] = lambda update: None
        """Called with each `session/update` while a request waits for its answer."""
        self.request("initialize", protocolVersion=1, clientCapabilities={})

    def request(self, method: str, **parameters: Any) -> Any:
        assert self._process.stdout
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters})
        for line in self._process.stdout:
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                choice = next(o["optionId"] for o in message["params"]["options"] if o["kind"] == "allow_once")
                outcome = {"outcome": {"outcome": "selected", "optionId": choice}}
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": outcome})
            elif message.get("method") == "session/update":
                self.on_update(message["params"]["update"])
            elif message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
        raise SystemExit("the agent ended")

    def prompt(self, session: str, text: str) -> None:
        self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def begin(self) -> None:
        self._process.send_signal(signal.SIGRTMIN + 1)
        self._reports.readline()

    def end(self) -> Walk:
        self._process.send_signal(signal.SIGRTMIN + 2)
        entered = ast.literal_eval(self._reports.readline())
        return {
            str(Path(file).relative_to(SOURCE)): count
            for file, count in sorted(entered.items())
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


def walks() -> dict[str, Walk]:
    with tempfile.TemporaryDirectory() as folder:
        home, project = Path(folder, "home"), Path(folder, "project")
        home.mkdir(mode=0o700)
        project.mkdir()
        (project / "nest.txt").write_text("one twig\n")
        (home / "config.toml").write_text(
            f'model = "play/it"\n[providers.play]\ntype = "scripted"\nscript = "{SCRIPT}"\n'
        )
        opening = {"cwd": str(project), "mcpServers": []}
        owner = Agent(home)
        session: str = owner.request("session/new", **opening)["sessionId"]
        found = _repeated("hello", owner, lambda: owner.prompt(session, "hello"))
        found["a token"] = _token(owner, session)
        found["edit"] = _step(lambda: owner.prompt(session, "change it"), owner)
        assert (project / "nest.txt").read_text() == "one branch\n"
        found["command"] = _step(lambda: owner.prompt(session, "run it"), owner)
        other = Agent(home)
        of_its_own: str = other.request("session/new", **opening)["sessionId"]
        other.prompt(of_its_own, "hello")  # all that is not about joining is loaded
        found["join"] = _step(lambda: other.request("session/load", sessionId=session, **opening), other, owner)
        other.close()
        owner.close()
        later = Agent(home)

        def load() -> None:
            later.request("session/load", sessionId=session, **opening)

        found |= _repeated("load", later, load, lambda: later.request("session/close", sessionId=session))
        later.close()
        return found


def _step(step: Callable[[], object], *agents: Agent) -> Walk:
    """The files that a step enters in all of the agents."""
    for agent in agents:
        agent.begin()
    step()
    entered: collections.Counter[str] = collections.Counter()
    for agent in agents:
        entered.update(agent.end())
    return dict(sorted(entered.items()))


def _repeated(
    name: str, agent: Agent, step: Callable[[], object], undo: Callable[[], object] = lambda: None
) -> dict[str, Walk]:
    """The shortest of several walks, with all loaded and the background at rest; and the first."""
    taken: list[Walk] = []
    for _ in range(4):
        taken.append(_step(step, agent))
        undo()
    return {name: min(taken, key=len), f"first {name}": taken[0]}


def _token(agent: Agent, session: str) -> Walk:
    """What lies between two updates in the middle of a reply: the shortest walk of one token through the house."""
    taken: list[Walk] = []
    shown = 0

    def update(told: Mapping[str, Any]) -> None:
        nonlocal shown
        if told["sessionUpdate"] != "agent_message_chunk":
            return
        shown += 1
        if shown > 4:
            taken.append(agent.end())
        if shown > 3:
            agent.begin()

    agent.on_update = update
    agent.prompt(session, "stream")
    agent.end()
    agent.on_update = lambda update: None
    return min(taken, key=len)


def counts() -> dict[str, int]:
    """What the code costs before any of it runs."""
    trees = {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    classes = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        "lines": sum(len(path.read_text().splitlines()) for path in trees),
        "files": len(trees),
        "classes": len(classes),
        "names of classes and functions": len({*classes, *functions}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--list", metavar="WALK", help="hello, first hello, a token, edit, command, join, load, first load"
    )
    arguments = parser.parse_args()
    walked = walks()
    if arguments.list:
        if arguments.list not in walked:
            parser.error(f"Unknown walk {arguments.list!r}. Available: {', '.join(walked)}.")
        print("\n".join(f"{count:5} {file}" for file, count in walked[arguments.list].items()))
        return
    numbers = {**counts(), **{f"files entered by {name}": len(files) for name, files in walked.items()}}
    if arguments.json:
        print(json.dumps(numbers))
        return
    for what, number in numbers.items():
        print(f"{number:7,}  {what}")
    rooms = collections.Counter(path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.py"))
    print("\n".join(f"{number:7,}    {room}" for room, number in sorted(rooms.items()) if not room.endswith(".py")))


if __name__ == "__main__":
    main()
