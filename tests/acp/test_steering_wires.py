"""Messages into a running turn on every wire, in every phase, many times: each of them is once in what the provider
got, in order, or reported as left over; the provider takes every request; and a load shows the same.

A seed says how many messages there are, what they hold, when they are sent (so many updates after the phase began), and
whether a cancel is among them. CROW_STEERING_SEEDS says how many seeds each phase has; `make soak` plays 500.
"""

import json
import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from crow.model.scripted import Call, Think
from tests.support import scripts
from tests.support.editor import Editor, Json, Later, Pending, chose
from tests.support.patience import DEADLINE
from tests.support.provider import Pause, Provider
from tests.support.provider_dialect import Dialect, Spoken

SEEDS = int(os.environ.get("CROW_STEERING_SEEDS", "2"))
FIRST = int(os.environ.get("CROW_STEERING_FIRST", "0"))
WORDS = "One word after the other, until all that there is to say has been said at last."
PACE = 0.001
BLOCK = 20
"""Seeds for which there is one process: what an editor has received is looked through again and again."""
PICTURE = {"type": "image", "data": "iVBORw0KGgoAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "mimeType": "image/png"}
BUFFER = {"type": "resource", "resource": {"uri": "file:///buffer.txt", "text": "not saved yet"}}
ANSWER = "As you say."


@dataclass(frozen=True)
class Phase:
    """What the model says first, and what there is to be seen when the phase has begun."""

    replies: tuple[tuple[Spoken, ...], ...]
    begun: Callable[["Turn"], bool]
    fails: bool = False
    """The first request fails and is tried again."""


def shows(turn: "Turn", kind: str) -> bool:
    return any(update["sessionUpdate"] == kind for update in turn.crow.updates)


def in_call(turn: "Turn", tool: str) -> bool:
    return any(call["name"] == tool and call["status"] == "in_progress" for call in turn.crow.tool_calls().values())


LOOKS = (Call("read", {"path": "a.txt"}), Call("search", {"pattern": "one"}), Call("read", {"path": "b.txt"}))
PHASES = {
    "at once": Phase(((WORDS,),), lambda turn: True),
    "before the first token": Phase(((WORDS,),), lambda turn: turn.is_asked),
    "in a thought": Phase(((Think(WORDS), WORDS),), lambda turn: shows(turn, "agent_thought_chunk")),
    "in text": Phase(((WORDS, *LOOKS[:1]), (WORDS,)), lambda turn: bool(turn.crow.text())),
    "between calls": Phase(((*LOOKS,), (Think("Hm."), *LOOKS), (WORDS,)), lambda turn: bool(turn.crow.tool_calls())),
    "in a command": Phase(
        ((Think("Hm."), Call("terminal", {"command": "sleep 0.05; echo out"}), *LOOKS[:1]), (WORDS,)),
        lambda turn: in_call(turn, "terminal"),
    ),
    "at a question": Phase(
        ((*LOOKS[:1], Call("read", {"path": "/etc/hostname"})), (WORDS,)), lambda turn: bool(turn.crow.permissions)
    ),
    "before another try": Phase(((WORDS,),), lambda turn: turn.is_asked, fails=True),
    "in the last words": Phase(((WORDS,),), lambda turn: turn.crow.text().endswith("at last.")),
}


# --- the models


class Wire:
    """A provider's dialect that answers by a plan, then always the same."""

    def __init__(self, dialect: Dialect, folder: Path, lines: str) -> None:
        self._dialect = dialect
        self._plan: list[tuple[Spoken, ...]] = []
        self._respond = dialect.respond
        dialect.respond = self._answer  # type: ignore[method-assign]
        (folder / "home").mkdir(parents=True)
        models = '[providers.test.models."m"]\nimages = true\n'
        settings = (
            f'model = "test/m"\n[providers.test]\nbase_url = "{dialect.url}"\napi_key = "none"\n{lines}\n{models}'
        )
        (folder / "home" / "config.toml").write_text(f"{settings}[limits]\nretry_wait = 10\n")
        self.options: dict[str, Any] = {}

    def begin(self, phase: Phase, prompt: str) -> str:
        """Makes ready for a turn; the text of its prompt."""
        self._dialect.requests.clear()
        self._dialect._answers.clear()
        self._plan = [*phase.replies]
        if phase.fails:
            self._dialect.fail(503, "overloaded", retry_after=0.05)
        return prompt

    def requests(self) -> list[Any]:
        """What it got in this turn, refused or not."""
        return [request.body for request in self._dialect.requests]

    def _answer(self, request: Any) -> Any:
        if request.method != "GET" and not self._dialect._answers:
            parts = self._plan.pop(0) if self._plan else (ANSWER,)
            self._dialect.answer(*parts, pace=PACE)
            self._dialect._answers[-1].steps.insert(0, Pause(5 * PACE))
        return self._respond(request)


class ScriptedWire:
    """The scripted provider, whose script has a beginning for each phase."""

    def __init__(self, folder: Path) -> None:
        script = "".join(
            ("[[reply]]\nwhen = '" + name + "'\nevents = [{ fail = { status = 503, retry_after = 0.05 } }]\n")
            * phase.fails
            + "".join(scripts.reply(*map(self._event, parts), when=name) for parts in phase.replies)
            for name, phase in PHASES.items()
        )
        self.options = {
            "script": f"{script}[[reply]]\nrepeat = true\nevents = [{scripts.say(ANSWER)}]\n",
            "images": True,
        }
        self._record = folder / "home" / "record.jsonl"
        self._read = 0

    def begin(self, phase: Phase, prompt: str) -> str:
        self._read = self._record.stat().st_size if self._record.exists() else 0
        return f"{prompt} {next(name for name, known in PHASES.items() if known is phase)}"

    def requests(self) -> list[Any]:
        if not self._record.exists():
            return []
        with self._record.open() as record:
            record.seek(self._read)
            return [json.loads(line)["messages"] for line in record]

    @staticmethod
    def _event(part: Spoken) -> str:
        match part:
            case str():
                return f"{{ wait = 0.005 }}, {{ text = '{part}', pace = 1 }}"
            case Think():
                return f"{{ thought = '{part.text}', pace = 1 }}"
            case Call():
                return scripts.call(part.tool, **part.arguments)


@contextmanager
def wire_called(name: str, folder: Path) -> Iterator[Any]:
    if name == "scripted":
        yield ScriptedWire(folder)
        return
    with Provider() as provider:
        match name:
            case "chat":
                yield Wire(provider.openai, folder, 'type = "openai"\nwire = "chat"')
            case "responses":
                yield Wire(provider.responses, folder, 'type = "openai"\nwire = "responses"')
            case _:
                yield Wire(provider.anthropic, folder, 'type = "anthropic"')


# --- one turn


@dataclass
class Turn:
    crow: Editor
    wire: Any
    name: str
    phase: Phase
    chance: random.Random
    may_answer: threading.Event
    taken: list[str] = field(default_factory=list[str])

    @property
    def is_asked(self) -> bool:
        return bool(self.wire.requests())

    def play(self) -> None:
        crow, chance = self.crow, self.chance
        crow.new_session()
        self.may_answer.clear()
        crow.permissions.clear()
        prompt = crow.start_prompt(self.wire.begin(self.phase, self.name))
        crow.wait_until(lambda: prompt.done or self.phase.begun(self), f"the phase of {self.name}")
        # The moment is what is tested: so many messages of Crow's later, however fast this machine is.
        later = len(crow.received) + chance.choice([0, 0, 1, 2, 3, 5, 8])
        if not crow.permissions:
            crow.wait_until(lambda: prompt.done or len(crow.received) >= later, "a bit more")
        texts = [f"{self.name} note {number}." for number in range(chance.randrange(1, 4))]
        sent = self._send(texts, cancel=chance.random() < 0.3)
        self.may_answer.set()
        self._check(prompt, dict(zip(texts, sent, strict=True)))

    def _send(self, texts: list[str], *, cancel: bool) -> list[Pending]:
        """All in one write, or one after the other; a cancel among them, if there is to be one."""
        crow, chance = self.crow, self.chance
        messages: list[Json] = []
        pending: list[Pending] = []
        for text in texts:
            more = chance.choice([(), (), (PICTURE,), (BUFFER,), (PICTURE, "and so on")])
            pending.append(crow.expect("_session/steering"))
            params = crow.prompt_params(text, *more)
            messages.append({"jsonrpc": "2.0", "id": pending[-1].id, "method": "_session/steering", "params": params})
        if cancel:
            stop = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": crow.session_id}}
            messages.insert(chance.randrange(len(messages) + 1), stop)
        if chance.random() < 0.5:
            crow.send(*messages)
        else:
            for message in messages:
                crow.send(message)
        return pending

    def _check(self, prompt: Pending, sent: dict[str, Pending]) -> None:
        answer = prompt.answer()
        assert answer["stopReason"] in ("end_turn", "cancelled")
        order = [message["id"] for message in self.crow.received if "result" in message]
        answers = {text: pending.answer() for text, pending in sent.items()}
        accepted = [text for text, result in answers.items() if result["outcome"] == "injected"]
        before = order[: order.index(prompt.id)]
        assert {sent[text].id for text in accepted} <= set(before), "each is answered before the prompt"
        left = answer.get("_meta", {}).get("steering", {}).get("leftOver", [])
        ids = {result["_meta"]["steering"].get("messageId"): text for text, result in answers.items()}
        names = [ids[message["messageId"]] for message in left]
        assert [text for text in accepted if text in names] == names
        assert all(ids[message["messageId"]] in message["text"] for message in left)
        assert not left or answer["stopReason"] == "cancelled"
        self.taken = [text for text in accepted if text not in names]
        self._check_requests(answer["stopReason"] == "end_turn", list(sent))

    def _check_requests(self, ended: bool, texts: list[str]) -> None:
        known: list[str] = []
        requests = [json.dumps(request) for request in self.wire.requests()]
        for request in requests:
            assert all(request.count(text) <= 1 for text in texts), "no message is there twice"
            found = sorted((text for text in texts if text in request), key=request.index)
            assert found[: len(known)] == known, "what was sent once is sent again"
            assert found == self.taken[: len(found)], "in order, and nothing that was not accepted"
            known = found
        assert not ended or known == self.taken, "the model got all of them before the turn ended"


def shown_prompts(crow: Editor, session: str) -> list[str]:
    crow.load_session(session)
    prompts: dict[str, str] = {}
    for update in crow.updates:
        if update["sessionUpdate"] == "user_message_chunk":
            prompts.setdefault(update["messageId"], update["content"].get("text", ""))
    crow.request("session/close", {"sessionId": session})
    return list(prompts.values())


@pytest.mark.timeout(max(600, SEEDS * 60))
@pytest.mark.parametrize("name", ["scripted", "chat", "responses", "anthropic"])
@pytest.mark.parametrize("block", range(FIRST, FIRST + SEEDS, BLOCK))
def test_every_phase(tmp_path: Path, open_editor: Any, name: str, block: int):
    may_answer = threading.Event()

    def permit(request: Json) -> Any:
        return Later(lambda: chose("once") if may_answer.wait(DEADLINE) else None)

    turns: dict[str, Turn] = {}
    with wire_called(name, tmp_path) as wire:
        crow = open_editor(folder=tmp_path, environment={"CROW_MODE": "auto"}, permit=permit, **wire.options)
        (crow.workspace / "a.txt").write_text("one\n")
        (crow.workspace / "b.txt").write_text("two\n")
        for seed in range(block, min(block + BLOCK, FIRST + SEEDS)):
            for number, (title, phase) in enumerate(PHASES.items()):
                chance = random.Random(f"{name} {seed} {title}")
                turn = Turn(crow, wire, f"task {seed}-{number}", phase, chance, may_answer)
                try:
                    turn.play()
                except BaseException as error:
                    error.add_note(f"seed {seed}, {title}, on {name}")
                    raise
                turns[crow.session_id] = turn
                crow.request("session/close", {"sessionId": crow.session_id})
        crow.close()
    other = open_editor(folder=tmp_path)
    for session, turn in turns.items():
        prompt, *said = shown_prompts(other, session)
        assert (prompt.startswith(turn.name), said) == (True, turn.taken)
    assert sum(len(turn.taken) for turn in turns.values()) >= len(turns) / 3
