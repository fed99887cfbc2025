"""Clients of three kinds that can share one session, each a process of its own that can be killed.

`SdkFace` is made with the protocol's own SDK and has a `crow acp` behind it, `ChatFace` is `crow chat` in a window, and
`RawFace` speaks through the socket of the session's owner.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support import sdk_client, warm
from tests.support.editor import NOTICES, Editor, Json, Later, chose, clean_environment
from tests.support.fold import ReadTracker
from tests.support.patience import DEADLINE
from tests.support.puppet import BRIDGE
from tests.support.warm import CROW
from tests.support.window import Window


def seen_in(updates: Sequence[Json]) -> ReadTracker:
    """What a client that was sent these updates holds of the session."""
    tracker = ReadTracker()
    for update in updates:
        if update["sessionUpdate"] not in ("config_option_update", "current_mode_update"):
            tracker.take(update)
    return tracker


def told_in(updates: Sequence[Json]) -> list[str]:
    """The notices among the updates, also those that were sent as text to a client that knows no notices."""
    texts = [update["title"] for update in updates if update["sessionUpdate"] == "notice"]
    chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
    return texts + [chunk["content"]["text"].strip() for chunk in chunks if chunk["messageId"].startswith("notice-")]


def answerers_in(updates: Sequence[Json]) -> dict[str, str]:
    """Who allowed or rejected each call, as far as the updates say so."""
    facts = [(update.get("toolCallId", ""), (update.get("_meta") or {}).get("crow", {})) for update in updates]
    return {call: fact["answeredBy"] for call, fact in facts if "answeredBy" in fact}


class SdkFace:
    """The SDK's client on the standard input and output of a `crow acp` of its own."""

    name = "sdk"

    def __init__(self, folder: Path) -> None:
        self._changed = threading.Condition()
        self._told: list[Json] = []
        self._is_over = False
        self._last_id = 0
        (stdin, self._to), (self._from, stdout) = os.pipe(), os.pipe()
        self._stderr = (folder / f"sdk-stderr-{self._from}.txt").open("w+b")
        variables = clean_environment(folder / "home", folder)
        program = [sdk_client.__file__, self.name, *warm.warm(CROW), "acp"]
        descriptors = (stdin, stdout, self._stderr.fileno())
        if warm.COLD:
            self.process = subprocess.Popen(
                [sys.executable, *program], cwd=folder, env=variables,
                stdin=stdin, stdout=stdout, stderr=self._stderr,
            )  # fmt: skip
        else:
            self.process = warm.Process(program, cwd=folder, env=variables, descriptors=descriptors)
        os.close(stdin)
        os.close(stdout)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    # --- what it is told

    def start(self, method: str, **arguments: Any) -> int:
        """Calls a method of the SDK's connection: the number of the call."""
        self._last_id += 1
        self._order(id=self._last_id, call=method, **{"with": arguments})
        return self._last_id

    def outcome(self, id: int) -> Json:
        """Waits for what came of a call: its `result` or an `error` in words."""
        found: list[Json] = []

        def look() -> bool:
            found[:] = [message for message in self._told if message.get("id") == id]
            return bool(found)

        self.wait_until(look, f"the outcome of call {id}")
        return found[0]

    def has_outcome(self, id: int) -> bool:
        return id in self.told("id")

    def call(self, method: str, **arguments: Any) -> Json:
        outcome = self.outcome(self.start(method, **arguments))
        assert "result" in outcome, outcome["error"]
        return outcome["result"]

    def start_prompt(self, session: str, text: str) -> int:
        return self.start("prompt", session_id=session, prompt=[{"type": "text", "text": text}])

    def answer(self, option: str, *, always: bool = False) -> None:
        """Chooses an option in the questions that are open; `always`: also in those that come."""
        self._order(answer=option, always=always)

    # --- what it tells

    def told(self, kind: str) -> list[Any]:
        with self._changed:
            return [message[kind] for message in self._told if kind in message]

    @property
    def updates(self) -> list[Json]:
        return self.told("update")

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._is_over, DEADLINE)
            self._stderr.seek(0)
            assert condition(), f"{what} did not come; the last that did: {self._told[-5:]}\n{self._stderr.read()!r}"

    # --- its end

    def close(self) -> int:
        """It is told to end, as an editor that is closed: its exit status."""
        os.close(self._to)
        self._to = -1
        return self.process.wait(DEADLINE)

    def kill(self) -> None:
        """Whatever is left is taken away."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(DEADLINE)
        for descriptor in (self._to, self._from):
            if descriptor >= 0:
                os.close(descriptor)
        self._to = self._from = -1
        self._stderr.close()

    def _order(self, **order: Any) -> None:
        os.write(self._to, json.dumps(order).encode() + b"\n")

    def _read(self) -> None:
        with open(self._from, "rb", closefd=False) as lines:
            for line in lines:
                with self._changed:
                    self._told.append(json.loads(line))
                    self._changed.notify_all()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()


class RawFace(Editor):
    """A client at an owner's socket: all that it sends and gets goes through a process that connects there."""

    name = "raw"

    def __init__(self, folder: Path, socket: str) -> None:
        self._socket = socket
        self._open: list[threading.Event] = []
        client_info = {"name": self.name, "version": "1"}
        super().__init__(folder, capabilities=NOTICES, client_info=client_info, permit=self._when_answered)

    def start_process(
        self, stdin: int, stdout: int, stderr: int, folder: Path, variables: dict[str, str], *, cold: bool
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-S", "-W", "ignore", "-c", BRIDGE, self._socket],
            stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder, env=variables,
        )  # fmt: skip

    def allow_once(self) -> None:
        """Answers the questions that are open."""
        for question in self._open:
            question.set()
        self._open.clear()

    def withdrawn(self) -> int:
        """How many questions it was told to forget."""
        return len([message for message in self.received if message.get("method") == "$/cancel_request"])

    def _when_answered(self, request: Json) -> Later:
        question = threading.Event()
        self._open.append(question)
        return Later(lambda: question.wait(DEADLINE) and chose("once"))


class ChatFace(Window):
    """`crow chat` in a window that is wide enough for every line of the tests."""

    name = "crow-chat"
    status = "ask · scripted/test"

    def __init__(self, folder: Path, *arguments: str) -> None:
        home, workspace = str(folder / "home"), str(folder / "work")
        super().__init__(
            folder, "chat", "--cwd", workspace, *arguments, columns=160, lines=40, CROW_HOME=home, NO_COLOR="1"
        )
        self.wait_until(self.status)

    def say(self, text: str) -> None:
        self.type(text)
        self.wait_until(f"▸ {text}")
        self.press("enter")

    @property
    def is_asked(self) -> bool:
        return "  n  Reject" in self.text and "a moment" not in self.text

    def pump(self) -> None:
        """Draws what has been written."""
        while self._is_open and self._read(time.monotonic()):
            pass

    def ends(self) -> list[str]:
        """How the turns that were begun here have ended, in order, without what they took."""
        return [row.partition(" · ")[0] for row in self.scrollback if row.startswith(("✓ done", "■ ", "✗ The turn"))]

    def starting_with(self, words: str) -> list[str]:
        return [row for row in self.scrollback if row.startswith(words)]

    def rows_of(self, text: str) -> int:
        """How often the rows of a text stand in the conversation, one below the other."""
        wanted, rows = [line.rstrip() for line in text.split("\n")], self.scrollback
        return sum(rows[at : at + len(wanted)] == wanted for at in range(len(rows)))
