"""Runs an ACP agent and records both directions of its traffic as JSON lines.

    python -m tests.conformance.tee_agent [--without-resume] RECORD.jsonl AGENT-COMMAND [ARG...]

Give a client this command instead of the agent's own. Every line goes through unchanged; a copy of each is appended
to the record as `{"run": id, "from": "client" | "agent", "raw": text, "msg": object or null}`. `msg` is null where a
line is no JSON, which is itself a fault that the check reports.

With `--without-resume` one line is changed on its way to the client: the agent's offer of `session/resume` is taken
out, since a client that prefers it would never show how it loads.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO


class Tee:
    def __init__(self, record: str, command: list[str], *, without_resume: bool = False) -> None:
        self._without_resume = without_resume
        self._record = open(record, "a", encoding="utf-8", buffering=1)  # noqa: SIM115 -- open as long as we are
        self._lock = threading.Lock()
        self._run = f"{os.getpid()}-{time.time_ns()}"
        self._agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self) -> int:
        assert self._agent.stdin is not None
        assert self._agent.stdout is not None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda received, _: self._agent.send_signal(received))
        to_agent = (sys.stdin.buffer, self._agent.stdin, "client")
        to_client = threading.Thread(
            target=self._pump, args=(self._agent.stdout, sys.stdout.buffer, "agent"), daemon=True
        )
        threading.Thread(target=self._pump, args=to_agent, daemon=True).start()
        to_client.start()
        status = self._agent.wait()
        to_client.join(5)
        return status if status >= 0 else 128 - status

    def _pump(self, source: IO[bytes], sink: IO[bytes], side: str) -> None:
        for line in iter(source.readline, b""):  # as soon as a line is whole: streaming stays streaming
            self._keep(side, line)
            hides_resume = side == "agent" and self._without_resume
            try:
                sink.write(_without_resume(line) if hides_resume else line)
                sink.flush()
            except (OSError, ValueError):
                break
        if side == "client":
            with contextlib.suppress(OSError):
                sink.close()

    def _keep(self, side: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        with self._lock:
            self._record.write(json.dumps({"run": self._run, "from": side, "raw": text, "msg": message}) + "\n")


def _without_resume(line: bytes) -> bytes:
    message = json.loads(line)
    offers = (message.get("result") or {}).get("agentCapabilities")
    if offers is None:
        return line
    offers["sessionCapabilities"].pop("resume", None)
    return json.dumps(message).encode() + b"\n"


def _main(arguments: list[str]) -> int:
    without_resume = arguments[0] == "--without-resume"
    record, *command = arguments[1:] if without_resume else arguments
    return Tee(record, command, without_resume=without_resume).run()


if __name__ == "__main__":
    # Not by returning: the thread that reads our input may be in a read that never ends.
    os._exit(_main(sys.argv[1:]))
