"""The relay of an editor's messages to sessions in other processes, against owners that do just what a test wants.

Both ends are real: a socket as `AttachSocket` opens it, and a pair of sockets to a client that speaks raw lines.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.acp import owner_link, relay, wire
from crow.acp.owner_link import facts_for
from crow.acp.relay import Relay
from crow.errors import SessionElsewhere, SessionUnknown, StorageFailed
from crow.live.attach_socket import AttachSocket
from crow.rpc.connection import Connection, PendingRequest, Route
from crow.rpc.jsonrpc import RELEASED, RpcError, being_released
from crow.rpc.lines import LONGEST_LINE
from crow.timeouts import timeout
from tests.support.patience import DEADLINE

Json = dict[str, Any]
HELLO = {
    "protocolVersion": 1,
    "clientInfo": {"name": "editor"},
    "clientCapabilities": {"session": {"notices": {}}},
    "_meta": {"theirs": 1, "crow": {"choices": True}},
}


def played(talk: Callable[["Stage"], Coroutine[Any, Any, None]], folder: Path) -> None:
    async def run() -> None:
        async with timeout(DEADLINE):
            stage = Stage(folder)
            try:
                await talk(stage)
            finally:
                await stage.close()

    asyncio.run(run())


class Lines:
    """The raw end of a connection: messages as JSON, each line kept."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.lines: list[bytes] = []

    async def open(self) -> "Lines":
        self.reader, self._writer = await asyncio.open_connection(sock=self._end, limit=2 * LONGEST_LINE)
        return self

    def send(self, **message: Any) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, id: Any, method: str, **params: Any) -> None:
        self.send(id=id, method=method, params=params)

    async def next(self) -> Json:
        self.lines.append(await self.reader.readline())
        return json.loads(self.lines[-1])

    async def answer_to(self, id: Any) -> Json:
        """The answer to a request; what comes before it must be updates."""
        while "id" not in (message := await self.next()) or "method" in message:
            pass
        assert message["id"] == id
        return message


async def trusts_all() -> bool:
    return True


class Owner:
    """A process with sessions, as far as the relay can see: each method does what the test says."""

    def __init__(self, stage: "Stage", name: str) -> None:
        self.token = f"1-{name}-{os.urandom(4).hex()}"
        self.received: list[tuple[str, Json]] = []
        self.connections: list[Connection] = []
        self.answers: dict[str, Callable[[Json, PendingRequest], Any]] = {}
        self.notified = asyncio.Event()
        self._socket = AttachSocket(str(stage.runtime / name), self._serve, trusts_all)
        self.there = SessionElsewhere(self.token, "1", str(stage.runtime / name))

    def _serve(self, on_initialize: Callable[[], None], is_trusted: bool) -> "Owner._Agent":
        return Owner._Agent(self, on_initialize)

    async def close(self) -> None:
        await self._socket.close()

    async def die(self) -> None:
        """Ends as if it were killed: nothing more is said."""
        for connection in self.connections:
            with socket.socket(fileno=os.dup(connection._input._fd)) as end:
                end.shutdown(socket.SHUT_RDWR)
        await self._socket.close()

    def update(self, text: str, session: str = "s") -> None:
        self.connections[-1].notify("session/update", {"sessionId": session, "text": text})

    async def heard(self, method: str) -> Json:
        while method not in (found := dict(self.received)):
            self.notified.clear()
            await self.notified.wait()
        return found[method]

    class _Agent:
        def __init__(self, owner: "Owner", on_initialize: Callable[[], None]) -> None:
            self._owner = owner
            self._on_initialize = on_initialize

        def connect(self, reader: int, writer: int) -> Connection:
            requests = {name: Route(dict, self._handler(name)) for name in METHODS}
            requests["initialize"] = Route(wire.InitializeRequest, self._initialize)
            told = {"session/cancel": Route(dict, lambda params: self._keep("session/cancel", params))}
            connection = Connection(reader, writer, requests, told)
            self._owner.connections.append(connection)
            return connection

        async def close(self) -> None:
            pass

        def _keep(self, method: str, params: Json) -> None:
            self._owner.received.append((method, params))
            self._owner.notified.set()

        def _initialize(self, request: wire.InitializeRequest, pending: PendingRequest) -> Any:
            facts = facts_for(request.meta)
            self._on_initialize()
            self._keep("initialize", {"params": msgspec.to_builtins(request)})
            return {"protocolVersion": 1, "_meta": {"crow": facts}}

        def _handler(self, method: str) -> Callable[[Json, PendingRequest], Any]:
            def handle(params: Json, pending: PendingRequest) -> Any:
                self._keep(method, params)
                return self._owner.answers.get(method, lambda *_: {"from": self._owner.token})(params, pending)

            return handle


METHODS = [f"session/{name}" for name in ("load", "resume", "prompt", "close", "delete", "fork", "set_mode", "status")]


class Stage:
    """An editor, the agent that it has started, and the processes in which sessions live."""

    def __init__(self, folder: Path) -> None:
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self._owners: list[Owner] = []
        self.where: list[Owner | Exception | str] = []
        """What each look for the session finds, the last one again and again."""
        self.opened_here: list[Json] = []

    async def begin(self, *where: "Owner | Exception | str") -> None:
        ours, theirs = socket.socketpair()
        self._ends = ours, theirs
        ours.setblocking(False)
        self.where = list(where)
        self.agent = Connection(
            ours.fileno(),
            ours.fileno(),
            {"session/load": Route(msgspec.Raw, self._load), "session/list": Route(dict, lambda *_: {"here": True})},
            {},
        )
        self.relay = Relay(self.agent, json.dumps(HELLO).encode(), self._open_here, {})
        self._serving = asyncio.ensure_future(self.agent.run())
        self.editor = await Lines(theirs).open()

    def owner(self, name: str) -> Owner:
        owner = Owner(self, name)
        self._owners.append(owner)
        return owner

    async def close(self) -> None:
        if hasattr(self, "relay"):
            await self.relay.close()
            self._serving.cancel()
            await self.agent.close()
            self._ends[0].close()
            self.editor._writer.close()
        for owner in self._owners:
            await owner.close()

    def _load(self, params: msgspec.Raw, pending: PendingRequest) -> Any:
        return self._claim_or_attach(bytes(params), pending)

    async def _claim_or_attach(self, params: bytes, pending: PendingRequest) -> Any:
        try:
            return await self._claim()
        except SessionElsewhere as there:
            return await self.relay.attach(there, "session/load", params, pending, self._claim)

    async def _claim(self) -> Any:
        found = self.where.pop(0) if len(self.where) > 1 else self.where[0]
        if isinstance(found, Owner):
            raise SessionElsewhere(found.token, "1", found.there.socket)
        if isinstance(found, Exception):
            raise found
        return {"claimed": found}

    async def _open_here(self, params: bytes) -> None:
        self.opened_here.append(json.loads(params))
        await self._claim()

    async def attached(self, owner: Owner) -> None:
        """The editor has the session "s" of that owner."""
        await self.begin(owner)
        self.editor.call(1, "session/load", sessionId="s", cwd="/p")
        assert (await self.editor.answer_to(1))["result"]["from"] == owner.token


def test_an_editor_is_introduced_to_the_owner_as_it_introduced_itself(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        hello = (await owner.heard("initialize"))["params"]
        assert hello["clientInfo"] == {"name": "editor"}
        assert hello["_meta"]["theirs"] == 1
        crow = hello["_meta"]["crow"]
        assert crow["choices"] is True
        assert (crow["attach"], crow["process"]) == (wire.ATTACH_VERSION, os.getpid())
        assert await owner.heard("session/load") == {"sessionId": "s", "cwd": "/p"}

    played(talk, tmp_path)


def test_messages_go_both_ways_under_ids_of_their_own(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        owner.answers["session/set_mode"] = lambda params, _: {"mode": params["modeId"]}
        stage.editor.call("a b", "session/set_mode", sessionId="s", modeId="plan", _meta={"kept": [1, None]})
        assert (await stage.editor.next()) == {"jsonrpc": "2.0", "id": "a b", "result": {"mode": "plan"}}
        assert (await owner.heard("session/set_mode"))["_meta"] == {"kept": [1, None]}

        asking = asyncio.ensure_future(owner.connections[0].request("session/request_permission", {"q": 1}, dict))
        question = await stage.editor.next()
        assert (question["method"], question["params"]) == ("session/request_permission", {"q": 1})
        stage.editor.send(id=question["id"], result={"chosen": "yes"})
        assert await asking == {"chosen": "yes"}

        failing = asyncio.ensure_future(owner.connections[0].request("fs/read_text_file", {}, dict))
        question = await stage.editor.next()
        stage.editor.send(id=question["id"], error={"code": -32002, "message": "no such file", "data": {"x": 1}})
        with pytest.raises(RpcError, match="no such file") as error:
            await failing
        assert (error.value.code, error.value.data) == (-32002, {"x": 1})

    played(talk, tmp_path)


def test_updates_arrive_as_the_bytes_that_were_sent(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        line = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s", "x":"ä\\u00e4 😀" , "n":1.50}}\n'
        owner.connections[0].send(line.encode())
        await stage.editor.next()
        assert stage.editor.lines[-1] == line.encode()
        owner.connections[0].notify("_crow/other", {"sessionId": "s"})
        assert (await stage.editor.next())["method"] == "_crow/other"

    played(talk, tmp_path)


def test_the_answer_to_a_load_comes_between_what_was_sent_before_and_after_it(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")

        def load(params: Json, pending: PendingRequest) -> Json:
            for number in range(50):
                owner.update(f"before {number}")
            for number in range(50):
                pending.afterwards(lambda number=number: owner.update(f"after {number}"))
            return {}

        owner.answers["session/load"] = load
        await stage.begin(owner)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
        seen = [await stage.editor.next() for _ in range(101)]
        said = [message["params"]["text"] if "params" in message else "answer" for message in seen]
        assert said == [*(f"before {n}" for n in range(50)), "answer", *(f"after {n}" for n in range(50))]

    played(talk, tmp_path)


def test_an_answer_and_a_cancel_reach_the_owner_in_their_order(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        order: list[str] = []
        asking = asyncio.ensure_future(owner.connections[0].request("session/request_permission", {}, dict))
        asking.add_done_callback(lambda _: order.append("answer"))
        question = await stage.editor.next()
        stage.editor.send(id=question["id"], result={})
        stage.editor.send(method="session/cancel", params={"sessionId": "s"})
        await owner.heard("session/cancel")
        assert asking.done() or order == ["answer"]
        await asking

    played(talk, tmp_path)


def test_cancelling_reaches_whoever_is_at_work(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        cancelled = asyncio.Event()

        async def work(params: Json, pending: PendingRequest) -> Json:
            pending.on_cancel = cancelled.set
            await cancelled.wait()
            return {"stopReason": "cancelled"}

        owner.answers["session/prompt"] = work
        await stage.attached(owner)
        stage.editor.call("p", "session/prompt", sessionId="s", prompt=[])
        await owner.heard("session/prompt")
        stage.editor.send(method="$/cancel_request", params={"requestId": "p"})
        assert (await stage.editor.answer_to("p"))["result"] == {"stopReason": "cancelled"}

        asking = asyncio.ensure_future(owner.connections[0].request("session/request_permission", {}, dict))
        question = await stage.editor.next()
        asking.cancel()
        assert await stage.editor.next() == {
            "jsonrpc": "2.0",
            "method": "$/cancel_request",
            "params": {"requestId": question["id"]},
        }
        stage.editor.send(id=question["id"], error={"code": -32800, "message": "Request cancelled"})

    played(talk, tmp_path)


def test_closing_leaves_and_the_link_is_closed_with_its_last_session(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        stage.editor.call(2, "session/load", sessionId="s2", cwd="/p")
        await stage.editor.answer_to(2)
        assert len(owner.connections) == 1, "one connection serves all sessions of a process"
        link = owner.connections[0]
        stage.editor.call(3, "session/close", sessionId="s")
        await stage.editor.answer_to(3)
        stage.editor.call(4, "session/set_mode", sessionId="s2", modeId="ask")
        await stage.editor.answer_to(4)
        assert not link._ended.is_set()
        stage.editor.call(5, "session/delete", sessionId="s2")
        await stage.editor.answer_to(5)
        await link._ended.wait()
        stage.editor.call(6, "session/set_mode", sessionId="s2", modeId="ask")
        assert (await stage.editor.answer_to(6))["error"]["code"] == -32601, "it is served here again"

    played(talk, tmp_path)


def test_a_fork_lives_where_its_source_lives(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        owner.answers["session/fork"] = lambda *_: {"sessionId": "copy"}
        await stage.attached(owner)
        stage.editor.call(2, "session/fork", sessionId="s", cwd="/p")
        assert (await stage.editor.answer_to(2))["result"] == {"sessionId": "copy"}
        stage.editor.call(3, "session/set_mode", sessionId="copy", modeId="ask")
        assert (await stage.editor.answer_to(3))["result"] == {"from": owner.token}

    played(talk, tmp_path)


def test_a_session_that_is_released_meanwhile_is_claimed(tmp_path):
    async def talk(stage: Stage) -> None:
        owner, other = stage.owner("a"), stage.owner("b")

        def released(params: Json, pending: PendingRequest) -> Any:
            raise RpcError(-32002, "The session 's' was released", RELEASED)

        owner.answers["session/load"] = released
        await stage.begin(owner, owner, other, other)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
        assert (await stage.editor.answer_to(1))["result"] == {"from": other.token}
        stage.where = [owner, "here"]
        stage.editor.call(2, "session/load", sessionId="s2", cwd="/p")
        assert (await stage.editor.answer_to(2))["result"] == {"claimed": "here"}

    played(talk, tmp_path)


@pytest.mark.parametrize("then", ["here", "elsewhere", "nowhere"])
def test_an_opening_that_its_owner_does_not_live_to_answer_is_answered(tmp_path, then):
    async def talk(stage: Stage) -> None:
        owner, other = stage.owner("a"), stage.owner("b")
        forever = asyncio.Event()
        owner.answers["session/load"] = lambda *_: forever.wait()
        found = {"here": "here", "elsewhere": other, "nowhere": SessionUnknown("It is gone.")}[then]
        await stage.begin(owner, found)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
        await owner.heard("session/load")
        stage.editor.call(2, "session/prompt", sessionId="s", prompt=[])
        assert (await stage.editor.answer_to(2))["error"]["code"] == -32601, "it is not attached yet"
        await owner.die()
        answer = await stage.editor.answer_to(1)
        assert ("error" in answer) == (then == "nowhere")

    played(talk, tmp_path)


def test_an_error_of_the_owners_is_the_answer_and_nothing_is_attached(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")

        def refuse(params: Json, pending: PendingRequest) -> Any:
            raise RpcError(-32602, "Invalid params: another folder", {"details": "another folder"})

        owner.answers["session/load"] = refuse
        await stage.begin(owner)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/other")
        error = {"code": -32602, "message": "Invalid params: another folder", "data": {"details": "another folder"}}
        assert (await stage.editor.answer_to(1))["error"] == error
        await owner.connections[0]._ended.wait()
        stage.editor.call(2, "session/prompt", sessionId="s", prompt=[])
        assert (await stage.editor.answer_to(2))["error"]["code"] == -32601

    played(talk, tmp_path)


@pytest.mark.parametrize("way", ["nobody listens", "no socket", "no answer"])
def test_a_process_that_does_not_answer_is_named_and_nothing_is_changed(tmp_path, monkeypatch, way):
    monkeypatch.setattr(relay, "ANSWER_TIMEOUT", 0.3)

    async def talk(stage: Stage) -> None:
        path = stage.runtime / "dead"
        with contextlib.ExitStack() as stack:
            if way != "no socket":
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(str(path))
                if way == "no answer":
                    listener.listen(1)
            await stage.begin(SessionElsewhere("7-x", "7", str(path)))
            stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
            error = (await stage.editor.answer_to(1))["error"]
            assert "process 7" in error["message"]
            assert error["data"] == {"details": error["message"]}
            stage.editor.call(2, "session/list")
            assert (await stage.editor.answer_to(2))["result"] == {"here": True}

    played(talk, tmp_path)


def test_a_full_queue_is_waited_for(tmp_path):
    """A connection that the system will not queue yet fails at once, and nothing tells when it would not."""

    async def talk(stage: Stage) -> None:
        path = str(stage.runtime / "busy")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(0)
            first = socket.socket(socket.AF_UNIX)
            first.connect(path)
            connecting = asyncio.ensure_future(owner_link._connected(path))
            await asyncio.sleep(owner_link.TRY_AGAIN * 2)
            assert not connecting.done()
            listener.accept()[0].close()
            (await connecting).close()
            first.close()

    played(talk, tmp_path)


# --- versions


def test_an_older_owner_says_so(tmp_path, monkeypatch):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        newer = wire.ClientFacts(attach=wire.ATTACH_VERSION + 1, version="9.9")
        monkeypatch.setattr(owner_link, "_own_facts", lambda: newer)
        await stage.begin(owner)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
        said = (await stage.editor.answer_to(1))["error"]["message"]
        assert "older Crow" in said
        assert f"process {os.getpid()}" in said
        assert "9.9" in said
        assert [method for method, _ in owner.received] == [], "nothing was asked of it"

    played(talk, tmp_path)


def test_an_older_relay_says_so(tmp_path, monkeypatch):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        newer = wire.RelayFacts(attach=wire.ATTACH_VERSION + 1, version="9.9")
        monkeypatch.setattr("tests.acp.test_relay.facts_for", lambda meta: newer)
        await stage.begin(owner)
        stage.editor.call(1, "session/load", sessionId="s", cwd="/p")
        said = (await stage.editor.answer_to(1))["error"]["message"]
        assert "newer Crow" in said
        assert "9.9" in said
        assert [method for method, _ in owner.received] == ["initialize"]

    played(talk, tmp_path)


# --- the end of an owner


async def ended(owner: Owner, stage: Stage, *, prompt: Any) -> Json:
    """What the editor's running prompt was answered, when the owner had ended."""
    await owner.heard("session/prompt")
    await owner.die()
    return (await stage.editor.answer_to(prompt))["error"]


ENDED = "The Crow that ran this session (process 1) has ended."


@pytest.fixture(params=[True, False], ids=["notices", "no notices"])
def shows_notices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        monkeypatch.setitem(HELLO, "clientCapabilities", {})
    return request.param


def told(message: Json) -> str:
    """The sentences of a notice, or of the message that stands for one."""
    update = message["params"]["update"]
    return update["title"] if update["sessionUpdate"] == "notice" else update["content"]["text"].strip("> \n")


def test_a_session_is_opened_here_with_the_message_that_comes_after_its_owner_has_ended(tmp_path, shows_notices):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        owner.answers["session/prompt"] = lambda *_: asyncio.get_running_loop().create_future()
        await stage.attached(owner)
        stage.editor.call("p", "session/prompt", sessionId="s", prompt=[])
        stage.where = [owner, owner, "here"]  # its lock is free a moment later than its socket
        error = await ended(owner, stage, prompt="p")
        assert "cut off" in error["message"]
        assert "process 1" in error["message"]
        assert stage.opened_here == [], "nobody has asked for it"
        stage.editor.call(2, "session/prompt", sessionId="s", prompt=[])
        stage.editor.call(3, "session/list")
        said = told(await stage.editor.next())
        assert said.startswith(ENDED)
        assert "Load it" in said
        assert stage.opened_here == [{"sessionId": "s", "cwd": "/p"}] * 3
        assert (await stage.editor.answer_to(2))["error"]["code"] == -32601, "it is served here now"
        assert (await stage.editor.answer_to(3))["result"] == {"here": True}, "what came meanwhile keeps its order"

    played(talk, tmp_path)


def test_whoever_waits_for_nothing_is_told_of_the_end_in_a_notice(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        await owner.die()
        assert told(await stage.editor.next()) == ENDED
        stage.editor.call(2, "session/close", sessionId="s")
        assert (await stage.editor.answer_to(2))["result"] == {}
        assert stage.opened_here == []

    played(talk, tmp_path)


def test_a_client_that_loads_by_itself_is_told_to(tmp_path, monkeypatch):
    monkeypatch.setitem(HELLO, "_meta", {"crow": {"state": True}})

    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        await owner.die()
        released = await stage.editor.next()
        assert (released["method"], released["params"]) == ("_crow/released", {"sessionId": "s", "reason": ENDED})
        stage.where = ["here"]
        stage.editor.call(2, "session/load", sessionId="s", cwd="/p")
        assert (await stage.editor.answer_to(2))["result"] == {"claimed": "here"}

    played(talk, tmp_path)


@pytest.mark.parametrize("awaited", ["session/prompt", "session/cancel"])
def test_an_owner_that_gives_no_sign_is_named_once(tmp_path, monkeypatch, awaited):
    monkeypatch.setattr(owner_link, "QUIET", 0.01)
    monkeypatch.setattr(owner_link, "SIGN_TIMEOUT", 0.01)

    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        for method in ("session/prompt", "session/status"):
            owner.answers[method] = lambda *_: asyncio.get_running_loop().create_future()
        await stage.attached(owner)
        params = {"sessionId": "s", "prompt": []} if awaited == "session/prompt" else {"sessionId": "s"}
        stage.editor.send(method=awaited, params=params, **({"id": "p"} if awaited == "session/prompt" else {}))
        told = (await stage.editor.next())["params"]["update"]
        assert told["title"] == "The Crow that runs this session (process 1) does not answer."
        await asyncio.sleep(0.1)
        owner.update("the next line is no other notice")
        assert "text" in (await stage.editor.next())["params"]

    played(talk, tmp_path)


def test_an_owner_that_gives_a_sign_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(owner_link, "QUIET", 0.01)

    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        turn = asyncio.get_running_loop().create_future()
        owner.answers["session/prompt"] = lambda *_: turn
        await stage.attached(owner)
        stage.editor.call("p", "session/prompt", sessionId="s", prompt=[])
        await owner.heard("session/status")
        turn.set_result({"stopReason": "end_turn"})
        assert (await stage.editor.next())["id"] == "p"

    played(talk, tmp_path)


def test_a_session_is_opened_at_whoever_has_gone_on_with_it(tmp_path):
    async def talk(stage: Stage) -> None:
        owner, next_owner = stage.owner("a"), stage.owner("b")
        await stage.attached(owner)
        question = asyncio.ensure_future(owner.connections[0].request("session/request_permission", {}, dict))
        asked = await stage.editor.next()
        stage.where = [next_owner]
        await owner.die()
        withdrawn = await stage.editor.next()
        assert (withdrawn["method"], withdrawn["params"]) == ("$/cancel_request", {"requestId": asked["id"]})
        assert told(await stage.editor.next()) == ENDED
        stage.editor.call("q", "session/set_mode", sessionId="s", modeId="plan")
        assert told(await stage.editor.next()).startswith(ENDED)
        assert (await stage.editor.answer_to("q"))["result"] == {"from": next_owner.token}
        assert await next_owner.heard("session/resume") == {"sessionId": "s", "cwd": "/p"}
        next_owner.update("it goes on")
        assert (await stage.editor.next())["params"]["text"] == "it goes on"
        question.cancel()

    played(talk, tmp_path)


def test_a_session_that_its_owner_lets_go_of_goes_on_elsewhere_while_others_stay(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        stage.editor.call(2, "session/load", sessionId="s2", cwd="/p")
        await stage.editor.answer_to(2)
        stage.where = ["here"]
        owner.connections[0].notify("_crow/released", {"sessionId": "s"})
        assert told(await stage.editor.next()) == ENDED
        stage.editor.call(3, "session/set_mode", sessionId="s2", modeId="ask")
        answer = await stage.editor.next()
        assert (answer["id"], answer["result"]) == (3, {"from": owner.token})
        stage.editor.call(4, "session/set_mode", sessionId="s", modeId="ask")
        assert (await stage.editor.answer_to(4))["error"]["code"] == -32601, "it is served here now"

    played(talk, tmp_path)


def test_a_prompt_that_an_ending_owner_does_not_begin_is_refused_and_the_next_one_is_served(tmp_path):
    async def talk(stage: Stage) -> None:
        owner, next_owner = stage.owner("a"), stage.owner("b")
        await stage.attached(owner)
        stage.where = [next_owner]

        def refuse(params: Json, pending: PendingRequest) -> Any:
            raise being_released()

        owner.answers["session/prompt"] = refuse
        stage.editor.call("p", "session/prompt", sessionId="s", prompt=["hello"])
        assert "again" in (await stage.editor.answer_to("p"))["error"]["message"]
        owner.connections[0].notify("_crow/released", {"sessionId": "s"})
        assert told(await stage.editor.next()) == ENDED
        stage.editor.call("q", "session/prompt", sessionId="s", prompt=["hello"])
        assert (await stage.editor.answer_to("q"))["result"] == {"from": next_owner.token}

    played(talk, tmp_path)


def test_a_client_that_wants_to_know_states_is_told_them(tmp_path, monkeypatch):
    monkeypatch.setitem(HELLO, "_meta", {"crow": {"state": True}})

    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        owner.connections[0].notify("_crow/state", {"sessionId": "s", "state": "idle"})
        assert (await stage.editor.next())["params"] == {"sessionId": "s", "state": "idle"}

    played(talk, tmp_path)


def test_a_call_that_an_owner_left_open_has_ended(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        for kind, id, status in (
            ("tool_call", "t1-c1", "pending"),
            ("tool_call", "t1-c2", "pending"),
            ("tool_call_update", "t1-c1", "completed"),
            ("tool_call_update", "t1-c2", None),
        ):
            update = {"sessionUpdate": kind, "toolCallId": id, "status": status}
            owner.connections[0].notify("session/update", {"sessionId": "s", "update": update})
            assert (await stage.editor.next())["params"]["update"] == update
        stage.where = ["here"]
        await owner.die()
        ended = {"sessionUpdate": "tool_call_update", "toolCallId": "t1-c2", "status": "failed"}
        assert (await stage.editor.next())["params"] == {"sessionId": "s", "update": ended}

    played(talk, tmp_path)


def test_a_session_that_cannot_be_opened_again_is_said_to_be_so_each_time(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        await owner.die()
        assert told(await stage.editor.next()) == ENDED
        stage.where = [SessionUnknown("There is no session s."), StorageFailed("The disk is full."), "here"]
        for number, why in enumerate(["There is no session s.", "The disk is full."]):
            stage.editor.call(number, "session/prompt", sessionId="s", prompt=[])
            assert why in (await stage.editor.answer_to(number))["error"]["message"]
        stage.editor.call("p", "session/prompt", sessionId="s", prompt=[])
        assert (await stage.editor.answer_to("p"))["error"]["code"] == -32601, "it is served here now"

    played(talk, tmp_path)


# --- amounts


def test_a_long_line_passes_and_one_without_an_end_leaves_no_trace(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        owner.answers["session/prompt"] = lambda params, _: {"length": len(params["text"])}
        await stage.attached(owner)
        text = "x" * (LONGEST_LINE - 200)
        stage.editor.call("a rather long id " * 5, "session/prompt", sessionId="s", text=text)
        assert (await stage.editor.answer_to("a rather long id " * 5))["result"] == {"length": len(text)}
        owner.connections[0].send(b'{"jsonrpc":"2.0","method":"session/update","params":{"half')
        stage.where = ["here"]
        await owner.close()
        stage.editor.call(2, "session/list")
        assert (await stage.editor.answer_to(2))["result"] == {"here": True}

    played(talk, tmp_path)


def test_an_editor_that_does_not_read_holds_up_its_owner_and_fills_no_memory(tmp_path):
    async def talk(stage: Stage) -> None:
        owner = stage.owner("a")
        await stage.attached(owner)
        stage.editor.reader._transport.pause_reading()  # type: ignore[attr-defined]
        sent = 0
        while owner.connections[0].has_room or sent < 400:
            owner.update("x" * 100_000)
            sent += 1
            await asyncio.sleep(0)
        assert owner.connections[0].unsent > stage.agent.unsent
        assert stage.agent.unsent < 2_000_000
        stage.editor.reader._transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(sent):
            assert len((await stage.editor.next())["params"]["text"]) == 100_000

    played(talk, tmp_path)
