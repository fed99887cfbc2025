"""The installed program in a clean environment, a model server on this machine, and a terminal to type into."""

import contextlib
import json
import os
import pty
import select
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from tests.support import warm
from tests.support.patience import DEADLINE
from tests.support.warm import CROW


def environment(user: Path, **extra: str) -> dict[str, str]:
    """No key, no server, no home of the machine that runs the tests."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(user),
        "CROW_HOME": str(user / "crow"),
        "CROW_LOCAL_SERVERS": "",
        "CROW_PATIENCE": "3600",
        **warm.INTERPRETER,
    } | extra


def crow(user: Path, *arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*warm.warm(CROW), *arguments],
        env=environment(user, **extra),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


def write_config(user: Path, text: str, mode: int = 0o600) -> Path:
    path = user / "crow" / "config.toml"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    path.chmod(mode)
    return path


class ModelServer:
    """Answers GET /v1/models and chat completions like an OpenAI-compatible server; with a key it refuses any other.

    With `public`, it lists its models for anybody. `trouble` is the status of every completion. `asked` keeps the
    bodies of the requests for completions, `keys_seen` every key that came with a request for the list.
    """

    def __init__(
        self, *models: str, key: str = "", status: int = 200, public: bool = False, trouble: int = 0, words: str = ""
    ) -> None:
        self.keys_seen: list[str] = []
        self.asked: list[dict[str, Any]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
                outer.keys_seen.append(sent)
                if key and sent != key and not public:
                    self._answer(401, {"error": {"message": f"Incorrect API key provided: {sent}"}})
                elif not self.path.startswith("/v1/models") or status != 200:
                    self._answer(status if status != 200 else 404, {"error": {"message": words or "no such thing"}})
                else:
                    self._answer(
                        200, {"object": "list", "data": [{"id": model, "object": "model"} for model in models]}
                    )

            def do_POST(self) -> None:
                sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                if key and sent != key:
                    self._answer(401, {"error": {"message": f"Incorrect API key provided: {sent}"}})
                elif trouble:
                    self._answer(trouble, {"error": {"message": words or "trouble with it"}})
                elif models and body["model"] not in models:
                    self._answer(404, {"error": {"message": f"no model {body['model']} here"}})
                else:
                    chunk = {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "length"}]}
                    events = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
                    self._answer(200, events, "text/event-stream")

            def _answer(self, code: int, content: object, kind: str = "application/json") -> None:
                body = (content if isinstance(content, str) else json.dumps(content)).encode()
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Terminal:
    """The program in a real terminal: `expect` waits for text, `type` answers it, `ended` gives exit code."""

    def __init__(self, user: Path, *arguments: str, **extra: str) -> None:
        self._master, slave = pty.openpty()
        self._process = warm.in_terminal([CROW, *arguments], slave, env=environment(user, **extra))
        os.close(slave)
        self.output = ""
        self._read_to = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def expect(self, text: str) -> None:
        """Waits until the text appears behind everything that was expected before."""
        deadline = time.monotonic() + DEADLINE
        while (found := self.output.find(text, self._read_to)) < 0:
            assert self._read(deadline), f"{text!r} did not come; the terminal shows:\n{self.output}"
        self._read_to = found + len(text)

    def type(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())

    def press(self, control: bytes) -> None:
        os.write(self._master, control)

    def ended(self) -> int:
        deadline = time.monotonic() + DEADLINE
        while self._read(deadline):
            pass
        assert time.monotonic() < deadline, f"it did not end; the terminal shows:\n{self.output}"
        return self._process.wait(DEADLINE)

    def ended_by(self, control: bytes) -> int:
        """Presses a key until the program has ended: one that comes between a prompt and its read is lost."""
        for _ in range(int(DEADLINE)):
            self.press(control)
            deadline = time.monotonic() + 1
            while self._read(deadline):
                pass
            if time.monotonic() < deadline:
                break
        return self.ended()

    def ended_after(self, line: str) -> int:
        self.type(line)
        return self.ended()

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
        piece = b""
        if ready:
            with contextlib.suppress(OSError):  # how Linux says that the other side has closed
                piece = os.read(self._master, 65536)
        self.output += piece.decode(errors="replace")
        return bool(piece)
