"""Checks the agent's side of recorded conversations against the protocol's JSON schema and its written rules.

    python -m tests.conformance.schema_check SCHEMA.json RECORD.jsonl...

A record is what `tee_agent.py` writes. Reported are messages that the schema refuses, broken JSON-RPC (no JSON, a
response to nothing, a second one, a request left unanswered), methods that the schema does not know, and the
protocol's prose: a method used without its capability, an unknown session or tool call, a relative path, an update
outside a turn and outside a replay, a call left open, a terminal that is used or shown after its release, or never
released.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.schema import Schema
from tests.support import judge

OTHER = {"client": "agent", "agent": "client"}
FILE_CAPABILITIES = {"fs/read_text_file": "readTextFile", "fs/write_text_file": "writeTextFile"}
OF_A_TURN = {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
OPEN = ("pending", "in_progress")
OFFERED = {"notice": "notices", "compaction_update": "compaction", "compaction_summary_chunk": "compaction"}
"""Updates that only some clients take, with the capability that says so."""
EXTENSIONS = {"_session/steering": "PromptRequest"}
"""Methods that are not the protocol's and that Crow has, with the protocol's type for their parameters."""
OPENING = ("session/new", "session/fork")
"""Requests whose answer names a session."""


def findings(schema: Path, *records: Path, shared: bool = False) -> list[str]:
    """What is wrong with the recordings; empty if nothing is. `shared`: the client's session has other clients too."""
    found: list[str] = []
    for record in records:
        runs: dict[str, Run] = {}
        for number, line in enumerate(record.read_text().splitlines(), 1):
            entry = json.loads(line)
            run = runs.setdefault(entry["run"], Run(Schema(schema), shared=shared))
            found += [f"{record.name}:{number}: {text}" for text in run.take(entry["from"], entry["msg"])]
        found += [f"{record.name}: {text}" for run in runs.values() for text in run.end()]
        if not runs:
            found.append(f"{record.name}: no messages")
    return found


class Run:
    """One agent process, followed from message to message.

    Where the session is shared, turns run that this client did not begin: it is told of them, and asked in them. Nor
    does it see the end of what runs when it leaves.
    """

    def __init__(self, schema: Schema, *, shared: bool = False) -> None:
        self._schema = schema
        self._shared = shared
        self._pending: dict[tuple[str, Any], tuple[str, dict[str, Any]]] = {}
        self._answered: set[tuple[str, Any]] = set()
        self._capabilities: dict[str, Any] = {}
        self._initialized = False
        self._sessions: set[Any] = set()
        self._turns: dict[Any, int] = {}
        self._replays: dict[Any, int] = {}
        """Loads that are not answered yet."""
        self._cancelled: set[Any] = set()
        self._calls: dict[tuple[Any, Any], str] = {}
        self._terminals: dict[Any, bool] = {}
        self._announced: set[Any] = set()
        """Terminals that show what commands of the agent's own write: an extension, which the client has to offer."""
        """Those that the client created, and whether they are still there."""

    def take(self, side: str, message: Any) -> Iterator[str]:
        """What is wrong with a message, if it is the agent's; the client's are only followed."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            complaints = iter([f"no JSON-RPC 2.0 object: {json.dumps(message)[:120]}"])
        elif "method" in message:
            complaints = self._call(side, message)
        else:
            complaints = self._answer(side, message)
        for complaint in list(complaints):
            if side == "agent":
                yield complaint

    def end(self) -> Iterator[str]:
        for (side, id), (method, _) in self._pending.items():
            if side == "client":
                yield f"request {id!r} {method} was never answered"
        for (_, call), status in self._calls.items():
            if status in OPEN and not self._shared:
                yield f"tool call {call} ended the recording as {status}"
        for terminal, is_open in self._terminals.items():
            if is_open:
                yield f"terminal {terminal} was never released"

    def _call(self, side: str, message: dict[str, Any]) -> Iterator[str]:
        method, params = message["method"], message.get("params") or {}
        if "id" in message:
            key = (side, message["id"])
            if key in self._pending or key in self._answered:
                yield f"id {message['id']!r} used twice"
            self._pending[key] = (method, params)
        if method.startswith("_"):
            yield from self._schema.complaints(EXTENSIONS[method], params) if method in EXTENSIONS else ()
            return
        table = self._schema.requests if "id" in message else self._schema.notifications
        if method not in table:
            yield f"{method} is not in the schema"
            return
        if self._schema.receiver[method] not in (OTHER[side], "protocol"):
            yield f"{method} is not for the {side} to send"
        yield from self._schema.complaints(table[method], params)
        if side == "client":
            self._follow(method, params)
        else:
            yield from self._rules(method, params)

    def _answer(self, side: str, message: dict[str, Any]) -> Iterator[str]:
        key = (OTHER[side], message.get("id"))
        if key not in self._pending:
            yield f"{'a second' if key in self._answered else 'a'} response to no open request: {message.get('id')!r}"
            return
        method, params = self._pending.pop(key)
        self._answered.add(key)
        if method == "session/prompt":
            self._turns[params.get("sessionId")] -= 1
        if method == "session/load":
            self._replays[params.get("sessionId")] -= 1
        if ("result" in message) == ("error" in message):
            yield f"the response to {method} needs exactly one of result and error"
        elif "error" in message:
            yield from self._schema.complaints("Error", message["error"])
        else:
            yield from self._result(method, params, message["result"])

    def _result(self, method: str, params: dict[str, Any], result: Any) -> Iterator[str]:
        if method in OPENING and isinstance(result, dict):
            self._sessions.add(result.get("sessionId"))
        if method in EXTENSIONS and (complaint := judge.complaint_about_result(method, result)):
            yield complaint
        name = self._schema.results.get(method)
        if name is None:
            return
        if result is None and self._schema.requires_nothing(name):
            return  # the reference implementations read null as an empty result where nothing is required
        yield from self._schema.complaints(name, result)
        if not isinstance(result, dict):
            return
        if method == "terminal/create":
            self._terminals[result.get("terminalId")] = True
        if method == "session/prompt":
            session = params.get("sessionId")
            if session in self._cancelled and result.get("stopReason") != "cancelled":
                yield f"the turn was cancelled but ended with {result.get('stopReason')}"
            self._cancelled.discard(session)

    def _follow(self, method: str, params: dict[str, Any]) -> None:
        session = params.get("sessionId")
        match method:
            case "initialize":
                self._initialized, self._capabilities = True, params.get("clientCapabilities") or {}
            case "session/prompt":
                self._turns[session] = self._turns.get(session, 0) + 1
            case "session/load":
                self._replays[session] = self._replays.get(session, 0) + 1
                self._open(session)
            case "session/resume":
                self._open(session)
            case "session/cancel" if self._turns.get(session):
                self._cancelled.add(session)

    def _open(self, session: Any) -> None:
        """A stored session is opened, perhaps once more: a replay begins from nothing."""
        self._sessions.add(session)
        self._calls = {key: status for key, status in self._calls.items() if key[0] != session or status in OPEN}

    def _rules(self, method: str, params: dict[str, Any]) -> Iterator[str]:
        session = params.get("sessionId")
        if not self._initialized:
            yield f"{method} before initialize"
        if session is not None and session not in self._sessions:
            yield f"{method} for an unknown session {session}"
        if method in FILE_CAPABILITIES:
            yield from self._file_rules(method, params)
        elif method == "session/request_permission":
            yield from self._permission_rules(session, params)
        elif method == "session/update":
            yield from self._update_rules(session, params["update"])
        elif method.startswith("terminal/"):
            yield from self._terminal_rules(method, params)
        elif method.startswith("elicitation/"):
            yield from self._question_rules(method, params)

    def _file_rules(self, method: str, params: dict[str, Any]) -> Iterator[str]:
        if not (self._capabilities.get("fs") or {}).get(FILE_CAPABILITIES[method]):
            yield f"{method} but the client has no fs.{FILE_CAPABILITIES[method]}"
        if not os.path.isabs(params["path"]):
            yield f"{method}: the path is not absolute: {params['path']}"

    def _terminal_rules(self, method: str, params: dict[str, Any]) -> Iterator[str]:
        if not self._capabilities.get("terminal"):
            yield f"{method} but the client has no terminals"
        if method == "terminal/create":
            if not os.path.isabs(params.get("cwd") or ""):
                yield f"terminal/create: no absolute cwd: {params.get('cwd')}"
            return
        terminal = params["terminalId"]
        if not self._terminals.get(terminal):
            yield f"{method} of {terminal}, which is unknown or released"
        if method == "terminal/release":
            self._terminals[terminal] = False

    def _question_rules(self, method: str, params: dict[str, Any]) -> Iterator[str]:
        if (self._capabilities.get("elicitation") or {}).get(params.get("mode")) is None:
            yield f"{method} but the client does not offer {params.get('mode')}"

    def _permission_rules(self, session: Any, params: dict[str, Any]) -> Iterator[str]:
        ids = [option["optionId"] for option in params["options"]]
        if not ids or len(set(ids)) != len(ids):
            yield "permission options are missing or share an id"
        if not self._turns.get(session) and not self._shared:
            yield "a permission was asked outside a turn"
        if (session, params["toolCall"]["toolCallId"]) not in self._calls:
            yield "a permission was asked for a call that was not reported"
        yield from self._content_rules(params["toolCall"])

    def _update_rules(self, session: Any, update: dict[str, Any]) -> Iterator[str]:
        kind = update["sessionUpdate"]
        is_told_of = self._shared or self._replays.get(session)
        if kind in OF_A_TURN and not self._turns.get(session) and not is_told_of:
            yield f"{kind} outside a turn"
        if kind == "user_message_chunk" and not is_told_of:
            yield "the person's own message outside a replay"
        if kind in OFFERED and OFFERED[kind] not in (self._capabilities.get("session") or {}):
            yield f"{kind} to a client that takes none"
        if kind not in ("tool_call", "tool_call_update"):
            return
        key = (session, update["toolCallId"])
        before, status = self._calls.get(key), update.get("status")
        if (before is None) != (kind == "tool_call"):
            yield f"{kind} for {key[1]}, which {'is unknown' if before is None else 'was reported before'}"
        if before in ("completed", "failed") and status in OPEN:
            yield f"tool call {key[1]} went from {before} back to {status}"
        self._calls[key] = status or before or "pending"
        yield from self._announcement_rules(kind, update.get("_meta") or {})
        yield from self._content_rules(update)

    def _announcement_rules(self, kind: str, meta: dict[str, Any]) -> Iterator[str]:
        takes = (self._capabilities.get("_meta") or {}).get("terminal_output") is True
        for name in ("terminal_info", "terminal_output", "terminal_exit"):
            if name not in meta:
                continue
            terminal = meta[name]["terminal_id"]
            if not takes:
                yield f"{name} to a client that takes none"
            if name == "terminal_info" and kind == "tool_call":
                self._announced.add(terminal)
            if terminal not in self._announced:
                yield f"{name} of {terminal}, which no call has announced"

    def _content_rules(self, call: dict[str, Any]) -> Iterator[str]:
        yield from _path_rules(call)
        for item in call.get("content") or []:
            if item["type"] != "terminal" or item["terminalId"] in self._announced:
                continue
            if not self._terminals.get(item["terminalId"]):
                yield f"terminal {item['terminalId']} is shown, and is unknown or released"


def _path_rules(call: dict[str, Any]) -> Iterator[str]:
    places = [*(call.get("locations") or []), *(item for item in call.get("content") or [] if item["type"] == "diff")]
    for place in places:
        if not os.path.isabs(place["path"]):
            yield f"a path is not absolute: {place['path']}"


if __name__ == "__main__":
    said = findings(*(Path(argument) for argument in sys.argv[1:]))
    print("\n".join(said) or "nothing found")
    sys.exit(bool(said))
