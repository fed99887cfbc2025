"""An editor that behaves as Zed does, and complains of whatever Zed would log, refuse or show wrongly.

Zed is forgiving towards the agent and unforgiving towards the person: an update that it cannot use is logged, and
the person sees nothing, or a failed "Tool call not found". So here each such update is a complaint, which fails the
test when the editor is closed.

What is Zed's: a call must be known before it is updated or asked about; `content` replaces all that was there, by
position; a terminal can be shown only while it exists; files are buffers with line feeds inside, formatted and saved
when they are written, and only those of the project; commands run with nothing on their standard input.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crow.rpc.jsonrpc import RpcError
from tests.support import buffers
from tests.support.editor import Editor, ErrorAnswer, Json, ProtocolBroken
from tests.support.terminals import Terminals

CAPABILITIES: Json = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "session": {"configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {}},
    "_meta": {"terminal_output": True, "terminal-auth": True},
}
OPEN = ("pending", "in_progress")
STATUSES = (*OPEN, "completed", "failed")


class Thread:
    """What Zed shows of one session. `take` gives what it would complain of."""

    def __init__(self, terminals: Terminals) -> None:
        self._terminals = terminals
        self.calls: dict[str, Json] = {}
        self.plan: list[Json] = []
        self._waiting: dict[str, str] = {}
        """Calls whose permission is asked, and the status that they will go on with."""

    def take(self, update: Json) -> Iterator[str]:
        match update["sessionUpdate"]:
            case "tool_call":
                self.calls.setdefault(update["toolCallId"], {"status": "pending", "content": []})
                yield from self._change(update)
            case "tool_call_update" if update["toolCallId"] not in self.calls:
                yield f"Tool call not found: {update['toolCallId']}"
            case "tool_call_update":
                yield from self._change(update)
            case "plan":
                self.plan = update["entries"]
            case _:
                pass

    def ask(self, call: Json) -> Iterator[str]:
        """A permission request comes."""
        id = call["toolCallId"]
        if id not in self.calls:
            yield f"permission asked for an unknown call {id}"
            return
        if not call.get("title"):
            yield f"permission asked without a title for {id}"
        yield from self._change(call)
        self._waiting[id] = self.calls[id]["status"]

    def answered(self, id: str, kind: str) -> None:
        """The person has chosen an option of that kind."""
        status = self._waiting.pop(id, "pending")
        self.calls[id]["status"] = status if kind.startswith("allow") else "rejected"

    def turn_ended(self, reason: str) -> Iterator[str]:
        for id, call in self.calls.items():
            if call["status"] in OPEN:
                yield f"{id} is still {call['status']} at the end of the turn ({reason})"

    def shown_title(self, id: str) -> str:
        """Of a command as it is; of an edit escaped; else as Markdown, and no more than its first line."""
        call = self.calls[id]
        return call["title"] if call.get("kind") in ("execute", "edit") else call["title"].partition("\n")[0]

    def shown(self, id: str) -> list[Any]:
        """What the person sees of a call: its content, and the raw output only if there is none."""
        call = self.calls[id]
        return call["content"] or [call.get("rawOutput")]

    def _change(self, update: Json) -> Iterator[str]:
        call = self.calls[update["toolCallId"]]
        for field in ("title", "kind", "rawInput", "rawOutput", "locations"):
            if field in update:
                call[field] = update[field]
        if "\n" in call.get("title", ""):
            yield f"a title of several lines is cut: {call['title']!r}"
        if "status" in update:
            yield from self._set_status(update["toolCallId"], update["status"])
        for item in update.get("content") or []:
            if item["type"] == "terminal" and not self._terminals.is_open(item["terminalId"]):
                yield f"{item['terminalId']} is shown, and is not there: the whole update fails"
                return
        if update.get("content") is not None:
            call["content"] = update["content"]

    def _set_status(self, id: str, status: str) -> Iterator[str]:
        before = self.calls[id]["status"]
        if status not in STATUSES:
            yield f"{status} is no status of a tool call"
        if before in ("completed", "failed") and status != before:
            yield f"{id} went from {before} to {status}"
        if id in self._waiting and status in OPEN:
            self._waiting[id] = status  # remembered; the question stays
            return
        if id in self._waiting:
            del self._waiting[id]
        if before != "rejected":
            self.calls[id]["status"] = status


class Zed(Editor):
    """`buffers.format` is what format-on-save does to a text; by default it is off."""

    def __init__(self, folder: Path, *, capabilities: Json = CAPABILITIES, **options: Any) -> None:
        self.threads: dict[str, Thread] = {}
        super().__init__(folder, capabilities=capabilities, **options)
        self.buffers = buffers.Zed(self.workspace)

    @property
    def thread(self) -> Thread:
        """What is shown of the session that was opened last."""
        return self._thread(self.session_id)

    def _thread(self, session: str) -> Thread:
        return self.threads.setdefault(session, Thread(self.terminals))

    # --- what comes from Crow, in its order

    def _serve(self, message: Json) -> None:
        if message["method"] == "session/request_permission":
            params = message["params"]
            self._complain(self._thread(params["sessionId"]).ask(params["toolCall"]))
        super()._serve(message)

    def _take(self, line: bytes) -> None:
        with self._changed:
            before = len(self.conversation)
        super()._take(line)
        with self._changed:
            came = [entry.message for entry in self.conversation[before:] if entry.sender == "crow"]
        for message in came:
            self._follow(message)

    def _follow(self, message: Json) -> None:
        if message.get("method") == "session/update":
            params = message["params"]
            self._complain(self._thread(params["sessionId"]).take(params["update"]))
        elif message.get("method of the request") == "session/prompt" and "result" in message:
            for thread in self.threads.values():
                self._complain(thread.turn_ended(message["result"]["stopReason"]))

    def _complain(self, complaints: Iterator[str]) -> None:
        self._problems += [f"Zed: {complaint}" for complaint in complaints]

    def _reply(self, message: Json) -> None:
        self._note_choice(message)
        super()._reply(message)

    def _note_choice(self, message: Json) -> None:
        outcome = (message.get("result") or {}).get("outcome")
        if not isinstance(outcome, dict) or outcome["outcome"] != "selected":
            return
        request = next(m for m in self.received if m.get("id") == message["id"] and "method" in m)["params"]
        kinds = {option["optionId"]: option["kind"] for option in request["options"]}
        self._thread(request["sessionId"]).answered(request["toolCall"]["toolCallId"], kinds[outcome["optionId"]])

    # --- files

    def read_text(self, params: Json) -> Any:
        try:
            text = self.buffers.text(params["path"])
        except RpcError as error:
            raise ErrorAnswer(error.code, error.message) from None
        lines = text.splitlines(keepends=True)
        first = params.get("line") or 1
        if first > max(1, len(lines)):
            raise ErrorAnswer(-32602, f"Attempting to read beyond the end of the file, line {len(lines)}")
        last = first - 1 + params["limit"] if params.get("limit") else len(lines)
        return {"content": "".join(lines[first - 1 : last])}

    def write_text(self, params: Json) -> Any:
        try:
            self.buffers.save(params["path"], params["content"])
        except RpcError as error:
            raise ErrorAnswer(error.code, error.message) from None
        except OSError as error:
            raise ErrorAnswer(-32603, f"could not be saved: {error.strerror}") from None
        return {}

    # --- the end

    def _judge(self) -> None:
        """Zed has nothing to complain of if every terminal was released once and nothing runs any more."""
        ids = self.terminals.released
        self._problems += [f"Zed: {id} was released {ids.count(id)} times" for id in set(ids) if ids.count(id) > 1]
        self._problems += [f"Zed: {leftover}" for leftover in self.terminals.leftovers()]
        super()._judge()


__all__ = ["CAPABILITIES", "ProtocolBroken", "Thread", "Zed"]
