"""The client's side of the protocol, against real processes: good agents, odd ones, and agents that will not leave."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crow.acp import agent_process
from crow.acp.agent_process import AgentGone
from crow.acp.client import AgentFailed, RemoteAgent, start_agent
from crow.acp.wire import AgentMessageChunk, RequestPermissionRequest, TextContent, Update
from tests.support.patience import DEADLINE, eventually

FAKE_AGENT = """
import json, os, signal, sys, time

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def receive():
    for line in iter(sys.stdin.readline, ""):
        message = json.loads(line)
        if message.get("id", "") is not None:  # null: a complaint about something we wrote that is no message
            return message
    sys.exit()

def keep(name, text):
    with open(os.path.join(os.path.dirname(__file__), name), "a") as file:
        file.write(text)

def answer(request, result):
    send(id=request["id"], result=result)

def update(**update):
    send(method="session/update", params={"sessionId": "s1", "update": update})

def say(text):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})

def ask(**changes):
    call = {"toolCallId": "c1", "title": "Read /etc/hosts"}
    options = [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}]
    params = {"sessionId": "s1", "toolCall": call, "options": options, **changes}
    send(id="q1", method="session/request_permission", params=params)

def until_prompt():
    answer(receive(), {"protocolVersion": 1})
    answer(receive(), {"sessionId": "s1"})
    return receive()
"""


class Listener:
    """A client that keeps what it is told and answers questions with `answer`."""

    def __init__(self, answer: Callable[[], Awaitable[str | None]] | None = None) -> None:
        self.updates: list[Update] = []
        self.questions: list[RequestPermissionRequest] = []
        self._answer = answer

    def update(self, update: Update) -> None:
        self.updates.append(update)

    async def permit(self, request: RequestPermissionRequest) -> str | None:
        self.questions.append(request)
        return await self._answer() if self._answer else "yes"

    @property
    def text(self) -> str:
        chunks = [update.content for update in self.updates if isinstance(update, AgentMessageChunk)]
        return "".join(content.text for content in chunks if isinstance(content, TextContent))


def fake_agent(folder: Path, behaviour: str) -> list[str]:
    script = folder / "agent.py"
    script.write_text(FAKE_AGENT + textwrap.dedent(behaviour))
    return [sys.executable, str(script)]


def converse(command: list[str], listener: Listener, **options: Any) -> str:
    """One prompt from beginning to end; gives its stop reason."""

    async def one_prompt() -> str:
        async with start_agent(command, listener, **options) as agent:
            session = (await agent.new_session("/somewhere")).session_id
            return await agent.prompt(session, "Hello")

    return asyncio.run(asyncio.wait_for(one_prompt(), DEADLINE))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    eventually(lambda: not is_running(pid), f"the end of process {pid}")


# --- a conversation


def test_a_whole_conversation(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        """
        requests = [receive()]
        answer(requests[0], {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
        requests.append(receive())
        answer(requests[1], {"sessionId": "s1"})
        requests.append(receive())
        say("Hello ")
        say("there")
        answer(requests[2], {"stopReason": "end_turn", "usage": {"new": True}})
        keep("requests.json", json.dumps(requests))
        """,
    )
    recorded: list[bytes] = []
    listener = Listener()

    assert converse(command, listener, record=recorded.append) == "end_turn"

    assert listener.text == "Hello there"
    initialize, new_session, prompt = json.loads((tmp_path / "requests.json").read_text())
    assert initialize["method"] == "initialize"
    assert initialize["params"]["clientInfo"]["name"] == "crow-run"
    assert initialize["params"]["clientCapabilities"] == {"session": {"notices": {}}}
    assert new_session["params"] == {"cwd": "/somewhere", "mcpServers": []}
    assert prompt["params"] == {"sessionId": "s1", "prompt": [{"type": "text", "text": "Hello"}]}
    first, second, last = (json.loads(line) for line in recorded)
    assert [line["update"]["content"]["text"] for line in (first, second)] == ["Hello ", "there"]
    assert last == {"stopReason": "end_turn", "usage": {"new": True}}


@pytest.mark.parametrize(
    ("chosen", "outcome"),
    [("yes", {"outcome": "selected", "optionId": "yes"}), (None, {"outcome": "cancelled"})],
)
def test_a_permission_request_is_answered(tmp_path: Path, chosen: str | None, outcome: object) -> None:
    async def choose() -> str | None:
        return chosen

    command = fake_agent(
        tmp_path,
        """
        prompt = until_prompt()
        ask()
        say(json.dumps(receive()["result"]["outcome"]))
        answer(prompt, {"stopReason": "end_turn"})
        """,
    )
    listener = Listener(choose)
    converse(command, listener)
    assert json.loads(listener.text) == outcome
    assert [question.tool_call.title for question in listener.questions] == ["Read /etc/hosts"]


def test_a_question_that_is_withdrawn_at_once_is_never_put(tmp_path: Path) -> None:
    """Another client was quicker: what would be shown of it would come after the news of its answer."""
    behaviour = """
        prompt = until_prompt()
        written, send_now = [], send
        def send(**message):
            written.append(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
        ask()
        send(method="$/cancel_request", params={"requestId": "q1"})
        say("Somebody else has answered.")
        os.write(1, "".join(written).encode())
        send = send_now
        keep("answer", json.dumps(receive()["error"]["code"]))
        answer(prompt, {"stopReason": "end_turn"})
    """
    listener = Listener()
    assert converse(fake_agent(tmp_path, behaviour), listener) == "end_turn"
    assert listener.questions == []
    assert listener.text == "Somebody else has answered."
    assert (tmp_path / "answer").read_text() == "-32800"


def test_cancelling_a_turn_cancels_its_questions(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        """
        prompt = until_prompt()
        ask()
        say(json.dumps([receive(), receive()]))
        answer(prompt, {"stopReason": "cancelled"})
        """,
    )

    async def one_prompt() -> tuple[str, str]:
        asked = asyncio.Event()

        async def never() -> str | None:
            asked.set()
            await asyncio.Event().wait()
            return "yes"

        listener = Listener(never)
        async with start_agent(command, listener) as agent:
            session = (await agent.new_session("/somewhere")).session_id
            prompt = asyncio.create_task(agent.prompt(session, "Hello"))
            await asked.wait()
            agent.cancel(session)
            return await prompt, listener.text

    stop_reason, text = asyncio.run(asyncio.wait_for(one_prompt(), DEADLINE))
    assert stop_reason == "cancelled"
    cancel, outcome = json.loads(text)
    assert (cancel["method"], cancel["params"]) == ("session/cancel", {"sessionId": "s1"})
    assert outcome["result"] == {"outcome": {"outcome": "cancelled"}}


def test_an_error_is_told_in_the_agents_words(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        """
        prompt = until_prompt()
        error = {"code": -32603, "message": "Internal error", "data": {"details": "The model is on fire."}}
        send(id=prompt["id"], error=error)
        receive()
        """,
    )
    with pytest.raises(AgentFailed, match=r"^The model is on fire\.$") as failure:
        converse(command, Listener())
    assert failure.value.code == -32603


def test_a_session_is_closed_only_if_the_agent_can(tmp_path: Path) -> None:
    closing = {"agentCapabilities": {"sessionCapabilities": {"close": {}}}}
    for capabilities, expected in ({}, []), (closing, ["session/close"]):
        command = fake_agent(
            tmp_path,
            f"""
            answer(receive(), {{"protocolVersion": 1, **{capabilities!r}}})
            while True:
                request = receive()
                keep("closed", request["method"] + "\\n")
                answer(request, {{}})
            """,
        )
        (tmp_path / "closed").write_text("")

        async def close_session(command: list[str]) -> None:
            async with start_agent(command, Listener()) as agent:
                await agent.close_session("s1")

        asyncio.run(asyncio.wait_for(close_session(command), DEADLINE))
        assert (tmp_path / "closed").read_text().split() == expected


# --- odd agents


def test_noise_and_unknown_things_are_skipped(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        r"""
        print("Welcome to the agent!", flush=True)
        sys.stdout.buffer.write(b"\xff\xfe not text\n[]\nnull\n")
        answer({"id": 999}, {"to": "nothing"})
        prompt = until_prompt()
        update(sessionUpdate="hologram", frames=[1, 2])
        update(sessionUpdate="agent_message_chunk", content={"type": "smell", "of": "toast"})
        send(method="session/dance", params={})
        send(id=7, method="fs/read_text_file", params={})
        receive()  # the refusal: who leaves with an answer on its way has hung up
        say("still here")
        answer(prompt, {"stopReason": "end_turn"})
        """,
    )
    listener, recorded = Listener(), list[bytes]()
    assert converse(command, listener, record=recorded.append) == "end_turn"
    assert listener.text == "still here"
    assert len(listener.updates) == 1
    assert len(recorded) == 4  # what we do not know is passed on all the same


def test_a_request_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        """
        prompt = until_prompt()
        ask(options="whatever")
        say(str(receive()["error"]["code"]))
        answer(prompt, {"stopReason": "end_turn"})
        """,
    )
    listener = Listener()
    converse(command, listener)
    assert (listener.text, listener.questions) == ("-32602", [])


def test_an_agent_that_dies_at_once(tmp_path: Path) -> None:
    command = fake_agent(tmp_path, "print('no such option: acp', file=sys.stderr); sys.exit(3)")
    with pytest.raises(AgentGone) as gone:
        converse(command, Listener())
    assert str(gone.value) == (
        "The agent ended with exit code 3 in the middle of the conversation. It said: no such option: acp"
    )


def test_an_agent_that_dies_in_the_middle(tmp_path: Path) -> None:
    command = fake_agent(
        tmp_path,
        """
        until_prompt()
        say("Let me ")
        print("x" * 1_000_000, "the end", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
    )
    listener = Listener()
    with pytest.raises(AgentGone, match=r"was ended by SIGKILL .* It said: x+ the end$") as gone:
        converse(command, listener)
    assert listener.text == "Let me "
    assert len(str(gone.value)) < 9000


def test_an_agent_that_closes_its_output_and_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_process, "GRACE", 0.05)
    command = fake_agent(tmp_path, "until_prompt(); os.close(1); receive()")
    with pytest.raises(AgentGone, match="closed its output"):
        converse(command, Listener())


def test_an_agent_that_never_answers(tmp_path: Path) -> None:
    command = fake_agent(tmp_path, "while True: receive()")
    with pytest.raises(AgentGone, match=r"initialize .*0\.1 s"):
        converse(command, Listener(), request_timeout=0.1)


def test_an_agent_of_another_protocol_version(tmp_path: Path) -> None:
    command = fake_agent(tmp_path, 'answer(receive(), {"protocolVersion": 7}); receive()')
    with pytest.raises(AgentGone, match="version 7"):
        converse(command, Listener())


def test_a_turn_that_ends_in_an_unknown_way(tmp_path: Path) -> None:
    command = fake_agent(tmp_path, 'answer(until_prompt(), {"stopReason": "bored"}); receive()')
    with pytest.raises(AgentGone, match="bored"):
        converse(command, Listener())


def test_a_command_that_does_not_exist() -> None:
    with pytest.raises(AgentGone, match="No such file"):
        converse(["/no/such/agent"], Listener())


# --- the end of the process, on every path


def pid_of(agent: RemoteAgent) -> int:
    return agent._process.pid


def test_the_agent_has_its_own_session_so_that_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    async def look() -> tuple[int, int]:
        async with start_agent(fake_agent(tmp_path, "until_prompt()"), Listener()) as agent:
            return os.getsid(pid_of(agent)), pid_of(agent)

    session, pid = asyncio.run(look())
    assert session == pid


@pytest.mark.parametrize(
    ("stubbornness", "grace", "code"),
    [
        ("", DEADLINE, 0),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))", 1.0, 5),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)", 0.05, -9),
    ],
    ids=["asked", "told", "made to"],
)
def test_the_agent_is_asked_to_end_then_told_then_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stubbornness: str, grace: float, code: int
) -> None:
    monkeypatch.setattr(agent_process, "GRACE", grace)
    stay = "for _ in sys.stdin: pass\nwhile True: time.sleep(60)" if stubbornness else "receive()"
    command = fake_agent(tmp_path, f"{stubbornness}\nanswer(receive(), {{'protocolVersion': 1}})\n{stay}")

    async def come_and_go() -> int | None:
        async with start_agent(command, Listener()) as agent:
            process = agent._process._process
        return process.returncode

    assert asyncio.run(asyncio.wait_for(come_and_go(), DEADLINE)) == code


def test_an_exception_in_the_conversation_ends_the_agent(tmp_path: Path) -> None:
    pids: list[int] = []

    async def stumble() -> None:
        async with start_agent(fake_agent(tmp_path, "until_prompt()"), Listener()) as agent:
            pids.append(pid_of(agent))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(stumble())
    assert not is_running(pids[0])


def test_a_cancelled_conversation_ends_the_agent(tmp_path: Path) -> None:
    async def cancel() -> int:
        started = asyncio.Event()
        pids: list[int] = []

        async def wait_forever() -> None:
            async with start_agent(fake_agent(tmp_path, "until_prompt()\nreceive()"), Listener()) as agent:
                pids.append(pid_of(agent))
                started.set()
                session = (await agent.new_session("/")).session_id
                await agent.prompt(session, "Hello")

        task = asyncio.create_task(wait_forever())
        await started.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return pids[0]

    assert not is_running(asyncio.run(asyncio.wait_for(cancel(), DEADLINE)))


def test_what_the_client_raises_comes_out_of_the_prompt(tmp_path: Path) -> None:
    class Clumsy(Listener):
        def update(self, update: Update) -> None:
            raise BrokenPipeError

    command = fake_agent(tmp_path, "until_prompt(); say('Hello'); receive()")
    with pytest.raises(BrokenPipeError):
        converse(command, Clumsy())

    async def refuse() -> str | None:
        raise KeyError

    command = fake_agent(tmp_path, "until_prompt(); ask(); receive(); receive()")
    with pytest.raises(KeyError):
        converse(command, Listener(refuse))


def test_a_dead_event_loop_leaves_no_agent_behind(tmp_path: Path) -> None:
    """The worst case: the loop is gone, nothing is cleaned up, and the agent ignores all that can be ignored."""
    stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nanswer(receive(), {'protocolVersion': 1})\n"
    agent = fake_agent(tmp_path, stubborn + "while True: time.sleep(60)")
    program = f"""
        import asyncio
        from crow.acp.client import start_agent

        async def main():
            async with start_agent({agent!r}, None) as agent:
                print(agent._process.pid, flush=True)
                loop.stop()
                await asyncio.sleep(3600)

        loop = asyncio.new_event_loop()
        task = loop.create_task(main())
        loop.run_forever()
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=DEADLINE
    )
    wait_until_gone(int(ended.stdout))
