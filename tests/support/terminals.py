"""The terminals of the tests' editors: commands run for real, and every step of a terminal's life is watched.

As strict as an editor can be: a terminal that was never created, or was released, is an error and a complaint. What
was printed has the line ends of a real terminal (CR LF), and only the last `outputByteLimit` bytes of it are kept.
"""

import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.support.patience import eventually

Json = dict[str, Any]


class UnknownTerminal(Exception):
    """There is no terminal of this id, or not any more."""


class Terminal:
    def __init__(self, id: str, request: Json, environment: dict[str, str]) -> None:
        self.id = id
        self._limit: int | None = request.get("outputByteLimit")
        self._kept = b""
        self._truncated = False
        self._lock = threading.Lock()
        self.process = subprocess.Popen(
            self.arguments(request),
            cwd=request.get("cwd"),
            env=environment | {variable["name"]: variable["value"] for variable in request.get("env", [])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def arguments(self, request: Json) -> list[str]:
        """What is run for a request: a client that takes the protocol at its word runs what it was sent."""
        return [request["command"], *request.get("args", [])]

    @property
    def exit_status(self) -> Json | None:
        code = self.process.poll()
        if code is None:
            return None
        if code < 0:
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": code, "signal": None}

    def output(self) -> Json:
        status = self.exit_status
        if status is not None:
            self._reader.join(1)
        with self._lock:
            answer = {"output": self._kept.decode("utf-8", "ignore"), "truncated": self._truncated}
        return answer if status is None else answer | {"exitStatus": status}

    def wait(self) -> Json:
        self.process.wait()
        self._reader.join(1)  # a child that lives on may hold the output open
        status = self.exit_status
        assert status is not None
        return status

    def kill(self) -> None:
        """The whole session of the command, as closing a terminal does."""
        for process in processes_of(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            while data := os.read(stream.fileno(), 65536):
                with self._lock:
                    self._keep(data.replace(b"\n", b"\r\n"))

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if self._limit is not None and len(self._kept) > self._limit:
            self._truncated = True
            self._kept = self._kept[-self._limit :].decode("utf-8", "ignore").encode()  # cut between characters


class JoiningTerminal(Terminal):
    """As in VS Code's ACP Client: command and arguments are joined by blanks and given to a shell, unquoted, and a
    kill ends that shell alone.
    """

    def arguments(self, request: Json) -> list[str]:
        return ["/bin/sh", "-c", " ".join(super().arguments(request))]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class CarelessTerminal(Terminal):
    """As in Toad and the SDK's example client: a kill ends the shell alone, and what it has started goes on."""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Terminals:
    """What an editor knows of its terminals. `complaints` is what the agent did wrong with them."""

    def __init__(self, environment: dict[str, str], kind: type[Terminal] = Terminal) -> None:
        self.environment = environment
        self._kind = kind
        self.requests: list[Json] = []
        self._open: dict[str, Terminal] = {}
        self.created: list[Terminal] = []
        self.released: list[str] = []
        self.complaints: list[str] = []

    def create(self, request: Json) -> Json:
        if not request.get("args"):
            self.complaints.append("terminal/create without args: some clients run that by a shell, some do not")
        if not os.path.isabs(request.get("cwd") or ""):
            self.complaints.append("terminal/create without an absolute cwd")
        if not request.get("outputByteLimit"):
            self.complaints.append("terminal/create without an output limit")
        self.requests.append(request)
        terminal = self._kind(f"terminal-{len(self.created) + 1}", request, self.environment)
        self.created.append(terminal)
        self._open[terminal.id] = terminal
        return {"terminalId": terminal.id}

    def find(self, method: str, id: str) -> Terminal:
        if id not in self._open:
            what = "was released" if id in self.released else "never was"
            self.complaints.append(f"{method} of {id}, which {what}")
            raise UnknownTerminal(id)
        return self._open[id]

    def is_open(self, id: str) -> bool:
        return id in self._open

    def release(self, id: str) -> None:
        terminal = self.find("terminal/release", id)
        del self._open[id]
        self.released.append(id)
        terminal.kill()

    def leftovers(self) -> list[str]:
        """What should not be there when all is over."""
        unreleased = [f"{id} was never released" for id in self._open]
        alive = [terminal.id for terminal in self.created if processes_of(terminal.process.pid)]
        return unreleased + [f"processes of {id} are still there" for id in alive]

    def end(self) -> None:
        """Takes away whatever is left."""
        for terminal in self.created:
            Terminal.kill(terminal)


def processes_of(session: int) -> list[int]:
    """The processes that belong to a session (in the system's sense) and are not dead yet."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, _, _, member_of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(member_of) == session and state not in "ZX":
                    found.append(int(entry.name))
    return found


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def wait_until_gone(process: int) -> None:
    eventually(lambda: not is_alive(process), f"the end of process {process}")
