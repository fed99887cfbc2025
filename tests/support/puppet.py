"""An agent that the test plays itself: what a client sends comes to the test, and what the test sends goes there."""

import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.support.patience import DEADLINE

Json = dict[str, Any]

BRIDGE = """
import os, select, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
ways = {0: peer.fileno(), peer.fileno(): 1}
while True:
    for source in select.select(list(ways), [], [])[0]:
        data = os.read(source, 65536)
        if data:
            os.write(ways[source], data)
        elif source == 0 and sys.argv[2:] == ["stays"]:
            del ways[0]
        else:
            sys.exit(0)
"""
"""The process that the client takes for the agent."""

PROGRAM = """#!{python}
import sys
from crow.cli.chat import conversation
conversation.AGENT = ({python!r}, "-S", {bridge!r}, {place!r}{stays})
{fault}
from crow.__main__ import main
sys.exit(main())
"""


class Puppet:
    """`program` is `crow` with this agent. `initialize` and `session/new` are answered as soon as they come.

    `fault` is Python that the program runs first. With `stays`, the agent's process does not end with its
    input, but with the test.
    """

    def __init__(self, folder: Path, capabilities: Json | None = None, *, fault: str = "", stays: bool = False) -> None:
        place, bridge, program = folder / "agent.sock", folder / "bridge.py", folder / "crow-puppet"
        bridge.write_text(BRIDGE)
        places = {"python": sys.executable, "bridge": str(bridge), "place": str(place)}
        program.write_text(PROGRAM.format(**places, stays=', "stays"' if stays else "", fault=fault))
        program.chmod(0o755)
        self.program = str(program)
        self.answers: dict[str, Callable[[Json], Json]] = {
            "initialize": lambda _: {"protocolVersion": 1, "agentCapabilities": capabilities or {}},
            "session/new": lambda _: {"sessionId": "s1", "configOptions": OPTIONS},
        }
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(place))
        self._listener.listen(1)
        self._listener.settimeout(DEADLINE)
        self._peer: socket.socket | None = None
        self._read = b""
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._peer is not None:
            self._peer.close()
        self._listener.close()

    def expect(self, method: str) -> Json:
        """The next message of the client with this method; those before it are answered, or passed over."""
        while (message := self.next()).get("method") != method:
            pass
        return message

    def next(self) -> Json:
        """The next message of the client, after it was answered if there is an answer for its method."""
        message = json.loads(self._line())
        answer = self.answers.get(message.get("method", ""))
        if answer is not None:
            self.answer(message, answer(message["params"]))
        return message

    def answer(self, request: Json, result: Json) -> None:
        self._send({"id": request["id"], "result": result})

    def refuse(self, request: Json, code: int, message: str, data: Json | None = None) -> None:
        self._send({"id": request["id"], "error": {"code": code, "message": message, "data": data}})

    def notify(self, method: str, params: Json) -> None:
        self._send({"method": method, "params": params})

    def update(self, **update: Any) -> None:
        self.notify("session/update", {"sessionId": "s1", "update": update})

    def say(self, text: str, kind: str = "agent_message_chunk", message: str = "m1") -> None:
        self.update(sessionUpdate=kind, content={"type": "text", "text": text}, messageId=message)

    def request(self, method: str, params: Json) -> int:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": params})
        return self._last_id

    def _send(self, message: Json) -> None:
        assert self._peer is not None, "nobody is there yet"
        self._peer.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _line(self) -> bytes:
        if self._peer is None:
            self._peer, _ = self._listener.accept()
            self._peer.settimeout(DEADLINE)
        while b"\n" not in self._read:
            data = self._peer.recv(65536)
            assert data, "the client is gone"
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line


def option(id: str, value: str, *values: str) -> Json:
    choices = [{"name": one, "value": one} for one in values]
    return {"id": id, "name": id, "type": "select", "currentValue": value, "options": choices}


OPTIONS = [option("mode", "ask", "ask", "edit", "plan", "auto"), option("model", "their/model", "their/model")]
