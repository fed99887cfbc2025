"""A small editor for tests: the installed `crow acp` on real pipes, driven line by line.

It keeps every message and every raw line. When it is closed it fails the test if Crow broke the protocol in any
way: a line that is no JSON-RPC, an answer to nothing or a second one, a message that the official SDK refuses, a
word on standard error. It never sleeps: it waits for conditions, with a deadline.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import judge
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import quick_to_read
from tests.support.terminals import Terminal, Terminals, UnknownTerminal
from tests.support.warm import (
    CROW,  # noqa: F401 -- the program of these editors
    Process,
    start_crow,
)

POLL_INTERVAL = 0.1
"""Seconds between looks at what no message tells of, such as files."""

Json = dict[str, Any]

SURROUNDINGS = ("available_commands_update", "session_info_update")
"""Updates that tell of a session and not of what happens in it; they come whenever there is something to tell."""

NOTHING: Json = {}
FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
TERMINAL = {"terminal": True}
RAW_OUTPUT = {"_meta": {"terminal_output": True}}
NOTICES = {"session": {"notices": {}}}
EVERYTHING: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
}

KNOWN_CLIENT = {"name": "test-editor", "version": "1"}
TERMINAL_IS_KNOWN = '{"version": 1, "clients": {"test-editor 1": true}}'
"""Its terminal was found to run commands as they are sent. See test_terminal_check.py for those that are not known."""

CONFIG = """\
model = "scripted/test"
[providers.scripted]
type = "scripted"
script = "script.toml"
record = "record.jsonl"
[providers.scripted.models.test]
images = {images}
{more}
"""


REAL_MODEL = """\
model = "test/m"
[providers.test]
type = "openai"
base_url = "{base_url}"
api_key = "none"
{more}
"""


class _Silence:
    """The answer of an editor that does not answer."""


SILENCE = _Silence()


class Later:
    """An answer that is not known yet: `wait` is called in a thread of its own and gives it."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self.wait = wait


class ErrorAnswer(Exception):
    """An error: raised where Crow answered one, or to be sent to Crow as an answer."""

    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.data = data


class ProtocolBroken(AssertionError):
    """What Crow did wrong on the wire, seen when the editor was closed."""


class Entry(NamedTuple):
    """One message of the conversation, in the order in which the editor saw or sent it."""

    sender: str
    message: Json
    time: float


def chose(option: str) -> Json:
    """The person's answer to a permission request."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


DISMISSED = {"outcome": {"outcome": "cancelled"}}


class Pending:
    """A request that was sent and may not be answered yet."""

    def __init__(self, editor: "Editor", id: Any, method: str) -> None:
        self._editor = editor
        self.id = id
        self.method = method
        self.sent = time.monotonic()
        self.answered: float | None = None
        self.message: Json | None = None

    @property
    def done(self) -> bool:
        return self.message is not None

    @property
    def took(self) -> float:
        """Seconds from the request to its answer."""
        self.wait()
        assert self.answered is not None
        return self.answered - self.sent

    def settle(self, message: Json) -> None:
        self.message, self.answered = message, time.monotonic()

    def wait(self, deadline: float = DEADLINE) -> Json:
        self._editor.wait_until(lambda: self.done, f"the answer to {self.method}", deadline)
        assert self.message is not None
        return self.message

    def answer(self, deadline: float = DEADLINE) -> Any:
        """The result; an error is raised as ErrorAnswer."""
        message = self.wait(deadline)
        if "error" in message:
            error = message["error"]
            raise ErrorAnswer(error["code"], error["message"], error.get("data"))
        return message["result"]

    def error(self) -> ErrorAnswer:
        """The error that is expected instead of a result."""
        try:
            result = self.answer()
        except ErrorAnswer as error:
            return error
        raise AssertionError(f"{self.method} should have failed, and gave {result}")


class Editor:
    def __init__(
        self,
        folder: Path,
        *,
        script: str | None = None,
        base_url: str = "",
        config: str = "",
        images: bool = False,
        capabilities: Json | None = NOTHING,
        client_info: Json | None = KNOWN_CLIENT,
        crow: Json | None = None,
        terminal: type[Terminal] = Terminal,
        initialize: bool = True,
        permit: Callable[[Json], Any] = lambda request: chose("reject"),
        answers: Mapping[str, Callable[[Json], Any]] | None = None,
        environment: Mapping[str, str] | None = None,
        stdio: tuple[int, int] | None = None,
        may_write_to_stderr: bool = False,
        cold: bool = False,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.home.mkdir(parents=True, exist_ok=True)
        self.workspace.mkdir(exist_ok=True)
        if script is not None:
            (self.home / "script.toml").write_text(quick_to_read(script))
            (self.home / "config.toml").write_text(CONFIG.format(images=str(images).lower(), more=config))
        elif base_url:  # a provider of `tests.support.provider`
            (self.home / "config.toml").write_text(REAL_MODEL.format(base_url=base_url, more=config))
        self.files: dict[str, Any] = {}
        """What the editor has open: text by path, SILENCE, or an ErrorAnswer. Anything else is not found."""
        self.permit = permit
        self.answers = dict(answers or {})
        """What the editor says to other requests, by method: a result, SILENCE, Later, or an ErrorAnswer."""
        self.terminals = Terminals(clean_environment(self.home, folder), terminal)
        self._client_info = client_info
        self._crow = crow
        """What it says of itself that only Crow's extensions know: see docs/extensions.md."""
        if client_info is KNOWN_CLIENT and (capabilities or {}).get("terminal"):
            (self.home / "terminals.json").write_text(TERMINAL_IS_KNOWN)
        self.permissions: list[Json] = []
        """The permission requests that came."""
        self.conversation: list[Entry] = []
        self.lines: list[bytes] = []
        self.session_id = ""
        self._may_write_to_stderr = may_write_to_stderr
        self._problems: list[str] = []
        self._pending: dict[str, Pending] = {}
        self._answered: set[str] = set()
        self._unanswered: set[str] = set()
        """Requests of Crow's whose answer comes later."""
        self._unreadable = 0
        self._last_id = 0
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._reading = threading.Event()
        self._reading.set()
        self._status: int | None = None
        self._looked_at = ""
        again = (folder / "stderr.txt").exists()  # another editor with the same home
        self._stderr = (folder / (f"stderr-{id(self):x}.txt" if again else "stderr.txt")).open("w+b")
        self._start(folder, environment or {}, stdio, cold=cold)
        if initialize:
            self.initialized = self.initialize(capabilities)

    # --- the conversation

    def initialize(self, capabilities: Json | None = NOTHING, version: Any = 1) -> Any:
        params = {"protocolVersion": version, "clientCapabilities": capabilities}
        params |= {"clientInfo": self._client_info} if self._client_info else {}
        return self.request("initialize", params | ({"_meta": {"crow": self._crow}} if self._crow else {}))

    def new_session(self, cwd: Path | str | None = None, **more: Any) -> str:
        """Opens a session, which the methods below then use by default."""
        params = {"cwd": str(cwd or self.workspace), "mcpServers": [], **more}
        self.session_id = self.request("session/new", params)["sessionId"]
        return self.session_id

    def load_session(self, session: str, *, method: str = "session/load", **more: Any) -> Any:
        """Opens a stored session, which the methods below then use by default; what it was answered."""
        self.session_id = session
        return self.request(method, {"sessionId": session, "cwd": str(self.workspace), "mcpServers": [], **more})

    def take_part(self, *trusted: "Editor") -> None:
        """Types the code that clients are shown who are trusted already. Whoever joins after a command needs it."""
        name = self._client_info["name"] if self._client_info else "another client"
        numbered = rf"{re.escape(name)}(?: \(\d+\))?"  # where several have the name
        asks = re.compile(rf"`{numbered}` watches this session\. If that is you, type this code there: (.{{9}})")

        def codes() -> list[str]:
            told = [str(update.get("title") or update.get("content")) for one in trusted for update in one.updates]
            return asks.findall("\n".join(told))

        eventually(lambda: bool(codes()), "the code")
        assert self.prompt(codes()[-1]) == {"stopReason": "end_turn"}

    def prompt(self, *content: str | Json, session: str = "") -> Any:
        return self.start_prompt(*content, session=session).answer()

    def start_prompt(self, *content: str | Json, session: str = "") -> Pending:
        return self.start("session/prompt", self.prompt_params(*content, session=session))

    def prompt_params(self, *content: str | Json, session: str = "") -> Json:
        blocks = [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]
        return {"sessionId": session or self.session_id, "prompt": blocks}

    def steer(self, *content: str | Json, session: str = "") -> Pending:
        """Says something into the turn that runs."""
        return self.start("_session/steering", self.prompt_params(*content, session=session))

    def cancel(self, session: str = "") -> None:
        self.notify("session/cancel", {"sessionId": session or self.session_id})

    def request(self, method: str, params: Any = NOTHING) -> Any:
        return self.start(method, params).answer()

    def start(self, method: str, params: Any = NOTHING, id: Any = None) -> Pending:
        """Sends a request and comes back at once."""
        pending = self.expect(method, id)
        self.send({"jsonrpc": "2.0", "id": pending.id, "method": method, "params": params})
        return pending

    def expect(self, method: str, id: Any = None) -> Pending:
        """Makes ready for the answer to a request that the test sends by itself."""
        if id is None:
            self._last_id += 1
            id = self._last_id
        pending = Pending(self, id, method)
        with self._changed:
            self._pending[_key(id)] = pending
        return pending

    def notify(self, method: str, params: Any = NOTHING) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send(self, *messages: Json) -> None:
        """Several messages go out in one write, so that Crow finds them together."""
        with self._changed:
            self.conversation += [Entry("editor", message, time.monotonic()) for message in messages]
        self.send_bytes(b"".join(json.dumps(message, ensure_ascii=False).encode() + b"\n" for message in messages))

    def send_line(self, line: bytes) -> None:
        """A line that is perhaps no message: it may earn an error whose id is null."""
        self._unreadable += 1
        self.send_bytes(line + b"\n")

    def send_bytes(self, data: bytes) -> None:
        with self._writing:
            view = memoryview(data)
            while view:
                view = view[os.write(self._to_crow, view) :]

    # --- what came

    @property
    def received(self) -> list[Json]:
        with self._changed:
            return [entry.message for entry in self.conversation if entry.sender == "crow"]

    @property
    def updates(self) -> list[Json]:
        """What happened in the session that was opened last."""
        return self.updates_of(self.session_id)

    def updates_of(self, session: str) -> list[Json]:
        """What happened in a session: what surrounds it, such as its title, is left out."""
        return [update for update in self.all_updates_of(session) if update["sessionUpdate"] not in SURROUNDINGS]

    def all_updates_of(self, session: str) -> list[Json]:
        calls = [message["params"] for message in self.received if message.get("method") == "session/update"]
        return [params["update"] for params in calls if params["sessionId"] == session]

    def text(self, session: str = "") -> str:
        """What the model has said so far."""
        return self._spoken("agent_message_chunk", session)

    def thoughts(self, session: str = "") -> str:
        return self._spoken("agent_thought_chunk", session)

    def _spoken(self, kind: str, session: str) -> str:
        updates = self.updates_of(session or self.session_id)
        return "".join(update["content"]["text"] for update in updates if update["sessionUpdate"] == kind)

    @property
    def notices(self) -> list[str]:
        return [update["title"] for update in self.updates if update["sessionUpdate"] == "notice"]

    def tool_calls(self, session: str = "") -> dict[str, Json]:
        """Each call as the person sees it now: its updates laid over each other."""
        calls: dict[str, Json] = {}
        for update in self.updates_of(session or self.session_id):
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                calls.setdefault(update["toolCallId"], {}).update(update)
        return calls

    def the_call(self) -> Json:
        """The one tool call there is."""
        [call] = self.tool_calls().values()
        return call

    def model_requests(self) -> list[Json]:
        """What the scripted model was sent."""
        record = self.home / "record.jsonl"
        return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []

    def last_prompt(self) -> list[Json]:
        """The parts of the last user message that the model was sent."""
        return [message for message in self.model_requests()[-1]["messages"] if message["role"] == "user"][-1]["parts"]

    # --- waiting

    def wait_for(self, wanted: Callable[[Json], bool], what: str = "a message", deadline: float = DEADLINE) -> Json:
        """The first message that Crow sent and that is wanted, past or to come."""
        found: list[Json] = []

        def look() -> bool:
            found[:] = [message for message in self.received if wanted(message)][:1]
            return bool(found)

        self.wait_until(look, what, deadline)
        return found[0]

    def wait_for_call(self, method: str) -> Json:
        """Waits until Crow has called a method of ours; its message."""
        return self.wait_for(lambda message: message.get("method") == method, method)

    def wait_for_text(self, text: str, session: str = "") -> None:
        self.wait_until(lambda: text in self.text(session), f"the text {text!r}")

    def wait_until(self, condition: Callable[[], bool], what: str, deadline: float = DEADLINE) -> None:
        end = time.monotonic() + deadline
        with self._changed:
            while not condition() and not self._ended and (left := end - time.monotonic()) > 0:
                self._changed.wait(min(left, POLL_INTERVAL))
            if not condition():
                tail = "\n".join(str(entry)[:300] for entry in self.conversation[-8:])
                raise AssertionError(f"{what} did not come. The last messages:\n{tail}\n{self.stderr()}")

    # --- the process

    def stop_reading(self) -> None:
        self._reading.clear()

    def read_on(self) -> None:
        self._reading.set()

    def memory(self) -> int:
        """Bytes of memory that Crow holds."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("Crow is gone")

    def wait_until_it_rests(self) -> None:
        """Waits until Crow neither reads nor writes nor takes memory: everything that it would do now is done."""
        eventually(self._is_the_same_as_before, "Crow rests", every=0.1)

    def _is_the_same_as_before(self) -> bool:
        # Its /proc/PID/io is root's alone, as the process lets nobody look into it: `status` is for everyone.
        before, self._looked_at = self._looked_at, Path(f"/proc/{self.process.pid}/status").read_text()
        return before == self._looked_at and "State:\tS" in before

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def hang_up(self) -> None:
        """Closes Crow's standard input, as an editor does that is done with it."""
        with contextlib.suppress(OSError):
            os.close(self._to_crow)
        self._to_crow = -1

    def exit_status(self, deadline: float = DEADLINE) -> int:
        """Waits for the end of the process."""
        status = self.process.wait(deadline)
        self._reading.set()
        self._reader.join(DEADLINE)
        return status

    def stderr(self) -> str:
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", "replace")

    def close(self) -> int:
        """Ends Crow, fails if it broke the protocol, and gives its exit status. Twice is as good as once."""
        if self._status is None:
            if self._to_crow >= 0:
                self.hang_up()
            try:
                self._status = self.exit_status()
                self._judge()
            finally:
                self.kill()
        return self._status

    def kill(self) -> None:
        """Whatever is left is taken away."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reading.set()
        self._reader.join(DEADLINE)
        if self._from_crow >= 0:
            os.close(self._from_crow)
            self._from_crow = -1
        if self._to_crow >= 0:
            self.hang_up()
        self.terminals.end()
        self._stderr.close()

    def _judge(self) -> None:
        for entry in self.conversation:
            if entry.sender == "crow":
                self._problems += _complaints(entry.message)
        self._problems += self.terminals.complaints
        unasked = sum(message.get("id", ...) is None for message in self.received if "method" not in message)
        if unasked > self._unreadable:
            self._problems.append(f"{unasked} errors for {self._unreadable} unreadable lines")
        if not self._may_write_to_stderr and (said := self.stderr()):
            self._problems.append(f"standard error: {said}")
        if self._problems:
            raise ProtocolBroken("\n".join(self._problems[:20]))

    def _start(
        self, folder: Path, environment: Mapping[str, str], stdio: tuple[int, int] | None, *, cold: bool
    ) -> None:
        if stdio is None:
            (stdin, self._to_crow), (self._from_crow, stdout) = os.pipe(), os.pipe()
        else:
            stdin, stdout = stdio
            self._to_crow, self._from_crow = os.dup(stdin), os.dup(stdout)
        variables = clean_environment(self.home, folder) | dict(environment)
        self.process = self.start_process(stdin, stdout, self._stderr.fileno(), folder, variables, cold=cold)
        os.close(stdin)
        if stdout != stdin:
            os.close(stdout)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._ended = False
        self._reader.start()

    def start_process(
        self, stdin: int, stdout: int, stderr: int, folder: Path, variables: dict[str, str], *, cold: bool
    ) -> Process | subprocess.Popen[bytes]:
        """Starts what the editor talks to: a `crow acp` of its own."""
        return start_crow(["acp"], stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder, env=variables, cold=cold)

    def _read(self) -> None:
        rest = b""
        while self._reading.wait():
            try:
                data = os.read(self._from_crow, 65536)
            except OSError:
                data = b""
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line)
        with self._changed:
            if rest:
                self._problems.append(f"output ends in the middle of a line: {rest[:200]!r}")
            self._ended = True
            self._changed.notify_all()

    def _take(self, line: bytes) -> None:
        message = read_message(line)
        with self._changed:
            self.lines.append(line)
            if isinstance(message, str):
                self._problems.append(f"{message}: {line[:200]!r}")
            else:
                self.conversation.append(Entry("crow", message, time.monotonic()))
                if "method" not in message and message["id"] is not None:
                    self._settle(message)
            self._changed.notify_all()
        if isinstance(message, dict) and "method" in message:
            if "id" in message:
                self._serve(message)
            elif message["method"] == "$/cancel_request":
                self._withdraw(message["params"]["requestId"])

    def _settle(self, message: Json) -> None:
        key = _key(message["id"])
        pending = self._pending.pop(key, None)
        if pending is None:
            what = "a second answer" if key in self._answered else "an answer to nothing"
            self._problems.append(f"{what}: {message}")
            return
        self._answered.add(key)
        message["method of the request"] = pending.method
        pending.settle(message)

    def _serve(self, message: Json) -> None:
        id = message["id"]
        try:
            result = self._answer(message["method"], message["params"])
        except ErrorAnswer as error:
            self._reply_error(id, error)
            return
        if isinstance(result, Later):
            self._unanswered.add(_key(id))
            threading.Thread(target=self._answer_later, args=(id, result), daemon=True).start()
        elif not isinstance(result, _Silence):
            self._reply({"jsonrpc": "2.0", "id": id, "result": result})

    def _answer_later(self, id: Any, later: Later) -> None:
        result = later.wait()
        if self._take_back(id):
            self._reply({"jsonrpc": "2.0", "id": id, "result": result})

    def _withdraw(self, id: Any) -> None:
        """Crow waits no longer: an answer that has not come yet is an error, as the protocol has it."""
        if self._take_back(id):
            self._reply_error(id, ErrorAnswer(-32800, "Request cancelled"))

    def _take_back(self, id: Any) -> bool:
        with self._changed:
            waiting = _key(id) in self._unanswered
            self._unanswered.discard(_key(id))
            return waiting

    def _reply_error(self, id: Any, error: ErrorAnswer) -> None:
        told = {"code": error.code, "message": error.message}
        if error.data is not None:
            told["data"] = error.data
        self._reply({"jsonrpc": "2.0", "id": id, "error": told})

    def _reply(self, message: Json) -> None:
        with contextlib.suppress(OSError):  # Crow may be gone by now
            self.send(message)
        with self._changed:
            self._changed.notify_all()

    def _answer(self, method: str, params: Json) -> Any:
        if method in self.answers:
            answer = self.answers[method](params)
            if isinstance(answer, ErrorAnswer):
                raise answer
            return answer
        match method:
            case "session/request_permission":
                self.permissions.append(params)
                return self.permit(params)
            case "fs/read_text_file":
                return self.read_text(params)
            case "fs/write_text_file":
                return self.write_text(params)
            case "terminal/create":
                return self.terminals.create(params)
            case "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release":
                return self._terminal(method, params["terminalId"])
            case _:
                raise ErrorAnswer(-32601, f"Method not found: {method}")

    def read_text(self, params: Json) -> Any:
        content = self.files.get(params["path"], ErrorAnswer(-32002, "no such file"))
        if isinstance(content, ErrorAnswer):
            raise content
        return {"content": content} if isinstance(content, str) else content

    def write_text(self, params: Json) -> Any:
        """Saved at once, as it is."""
        Path(params["path"]).write_text(params["content"], newline="")
        self.files[params["path"]] = params["content"]
        return {}

    def _terminal(self, method: str, id: str) -> Any:
        try:
            if method == "terminal/release":
                self.terminals.release(id)
                return {}
            terminal = self.terminals.find(method, id)
        except UnknownTerminal:
            raise ErrorAnswer(-32602, f"Unknown terminal: {id}") from None
        if method == "terminal/output":
            return terminal.output()
        if method == "terminal/wait_for_exit":
            return terminal.wait() if terminal.exit_status else Later(terminal.wait)
        terminal.kill()
        return {}


def clean_environment(home: Path, folder: Path) -> dict[str, str]:
    """No keys, no servers on this machine, a home of its own, no word of waits; and every warning is shown."""
    return {
        "PATH": os.defpath,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "CROW_HOME": str(home),
        "CROW_LOCAL_SERVERS": "",
        "CROW_PATIENCE": "3600",
        "PYTHONWARNINGS": "default",
    }


def read_message(line: bytes) -> Json | str:
    """The JSON-RPC message in a line, or what is wrong with it."""
    try:
        message = json.loads(line.decode(), parse_constant=_refuse)
        json.dumps(message, ensure_ascii=False).encode()  # half characters show here
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error})"
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return "no JSON-RPC"
    parts = set(message) - {"jsonrpc"}
    shapes = ({"method", "params"}, {"id", "method", "params"}, {"id", "result"}, {"id", "error"})
    return message if parts in shapes else f"not the shape of a message: {sorted(parts)}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _complaints(message: Json) -> Iterator[str]:
    method = message.pop("method of the request", None)
    if "method" in message:
        complaint = judge.complaint_about_call(message["method"], message["params"])
    elif "error" in message:
        complaint = judge.complaint_about_error(message["error"])
    else:
        complaint = judge.complaint_about_result(method, message["result"])
    if complaint:
        yield complaint


def _key(id: Any) -> str:
    return json.dumps(id)
