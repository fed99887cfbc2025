"""Three faces on one running turn, each in a process of its own: the SDK's client on standard input and output,
`crow chat` in a window, and a client at the owner's socket. They see the same, and any of them may be killed.

A face that has a `crow acp` behind it is two processes, and each of them is killed; so is the one in which the session
lives. `make soak` kills at many more moments: CROW_FACES_KILLS says how often, CROW_FACES_SEED which.
"""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest

from crow.store.owners import socket_of
from tests.acp.test_attach import GATE, children_of, lives
from tests.support.databases import database
from tests.support.editor import CONFIG, Editor, Json, chose
from tests.support.faces import ChatFace, RawFace, SdkFace, answerers_in, seen_in, told_in
from tests.support.fold import ReadTracker
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, edit, reply, run, say

KILLS = int(os.environ.get("CROW_FACES_KILLS", "20"))
SEED = int(os.environ.get("CROW_FACES_SEED", "1"))

TEXT = "Krähen, 鴉, are **clever**:\n\n- they use `tools`\n- they remember _faces_\n\n    indented = True\nand so on."
"""Text whose every byte counts: whoever lays it out anew, or loses a piece of it, is found out."""
NOTE = "a note to the turn"
BEGUN = f"{{ text = {json.dumps(TEXT, ensure_ascii=False)}, pace = 5 }}"
SLOWLY = BEGUN.replace("pace = 5", "pace = 40")


class Stage:
    """A session that lives in the agent of one face, and that the other faces join."""

    names: ClassVar = {"sdk": SdkFace.name, "raw": RawFace.name, "chat": ChatFace.name}

    def __init__(self, folder: Path, stack: ExitStack, script: str, owner: str) -> None:
        self.folder = folder
        self.home, self.workspace = folder / "home", folder / "work"
        self._stack = stack
        self.owner = owner
        self.agents: dict[str, int] = {}
        """The process of the `crow acp` behind each face that has one."""
        self.processes: set[int] = set()
        """All that were ever seen."""
        for place in (self.home, self.workspace):
            place.mkdir(exist_ok=True)
        (self.home / "script.toml").write_text(script)
        (self.home / "config.toml").write_text(CONFIG.format(images="false", more=""))
        (self.workspace / "nest.py").write_text("twigs\n")
        if owner == "sdk":
            self.sdk, self.session = self._new_agent("sdk", lambda: self._sdk(""))
            self.chat, _ = self._new_agent("chat", lambda: self._chat("--resume", self.session))
        else:
            self.chat, self.session = self._new_agent("chat", self._chat)
            self.sdk, _ = self._new_agent("sdk", lambda: self._sdk(self.session))

    def join(self) -> None:
        """The client at the socket comes too."""
        path = socket_of(str(self.home / "owners"), self.row()[0])
        eventually(lambda: os.path.exists(path), "the socket")
        self.raw = RawFace(self.folder, path)
        self._stack.callback(self.raw.kill)
        self.raw.load_session(self.session)

    def _sdk(self, session: str) -> tuple[SdkFace, str]:
        face = SdkFace(self.folder)
        self._stack.callback(face.kill)
        if session:
            face.call("load_session", cwd=str(self.workspace), session_id=session)
            return face, session
        return face, face.call("new_session", cwd=str(self.workspace))["sessionId"]

    def _chat(self, *arguments: str) -> tuple[ChatFace, str]:
        face = self._stack.enter_context(ChatFace(self.folder, *arguments))
        [(session,)] = self.stored("SELECT id FROM sessions")
        return face, session

    def _new_agent(self, name: str, start: Callable[[], Any]) -> Any:
        """Starts a face, and finds out which process is its agent: each one has a lock."""
        before = set(self._locks())
        face = start()
        [lock] = set(self._locks()) - before
        self.agents[name] = int(lock.partition("-")[0])
        return face

    def _locks(self) -> list[str]:
        return os.listdir(self.home / "owners") if (self.home / "owners").exists() else []

    # --- what is stored

    def stored(self, query: str, *values: Any) -> list[Any]:
        with database(self.home / "sessions.db") as connection:
            return connection.execute(query, values).fetchall()

    def row(self) -> tuple[str, int]:
        """Who owns the session, and how often it has been claimed."""
        [row] = self.stored("SELECT owner, epoch FROM sessions WHERE id = ?", self.session)
        return row

    def answers(self) -> list[str]:
        """The faces that answered a question, as it is stored."""
        records = self.stored(
            "SELECT body FROM records WHERE tag = 'permission_answered' AND session ="
            " (SELECT key FROM sessions WHERE id = ?) ORDER BY seq",
            self.session,
        )
        return [json.loads(body)["by"] for (body,) in records]

    # --- what each face holds

    def seen(self, name: str) -> ReadTracker:
        return seen_in(self.updates(name))

    def updates(self, name: str) -> list[Json]:
        return self.sdk.updates if name == "sdk" else self.raw.updates_of(self.session)

    def notices(self, name: str) -> list[str]:
        """What a face was told beside the conversation."""
        if name != "chat":
            return told_in(self.updates(name))
        marked = "\n".join(self.chat.scrollback).split("\n! ")[1:]
        return [text.partition("\n\n")[0] for text in marked]

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Waits, and lets the chat draw meanwhile: a window that nobody looks at fills up."""

        def look() -> object:
            self.chat.pump()
            return condition()

        try:
            eventually(look, what)
        except AssertionError as failed:
            raise AssertionError(f"{failed}; the chat shows:\n{self.chat.text}") from None

    def wait_for_text(self, text: str, *names: str) -> None:
        for name in names:
            if name == "chat":
                self.wait_for(lambda: self.chat.rows_of(text), f"{text!r} in the chat")
            else:
                self.wait_for(lambda n=name: text in texts(self.seen(n)), f"{text!r} in {name}")

    # --- what they do

    def prompt(self, name: str, text: str) -> Callable[[], str]:
        """Sends a prompt from a face: the function waits for how it ended, in words."""
        if name == "sdk":
            id = self.sdk.start_prompt(self.session, text)

            def outcome() -> str:
                self.wait_for(lambda: self.sdk.has_outcome(id), "the answer to the prompt")
                answer = self.sdk.outcome(id)
                return answer.get("error") or answer["result"]["stopReason"]

            return outcome
        before = len(self.chat.ends())
        self.chat.say(text)

        def end() -> str:
            self.wait_for(lambda: len(self.chat.ends()) > before, "the end of the turn in the chat")
            return self.chat.ends()[-1]

        return end

    def answer(self, name: str) -> None:
        """Allows what is asked, once."""
        match name:
            case "sdk":
                self.sdk.answer("once")
            case "raw":
                self.raw.allow_once()
            case _:
                self.wait_for(lambda: self.chat.is_asked, "the question")
                self.chat.press("y")

    def wait_for_question(self, number: int = 1) -> None:
        """Until all faces have been asked so often, and the chat takes a key."""
        self.wait_for(lambda: len(self.sdk.told("asked")) == number, "the question in the SDK's client")
        self.wait_for(lambda: len(self.raw.permissions) == number, "the question at the socket")
        self.wait_for(lambda: self.chat.is_asked, "the question in the chat")

    # --- processes

    def watch(self) -> None:
        """Remembers every process that is there now, to look for it when all is over."""
        parties = [face.process.pid for face in (self.sdk, self.chat, self.raw)] + list(self.agents.values())
        self.processes.update(parties, *map(children_of, parties))

    def kill(self, victim: str) -> None:
        self.watch()
        os.kill(self.process_of(victim), signal.SIGKILL)

    def process_of(self, party: str) -> int:
        name, _, is_agent = party.partition("'s ")
        return self.agents[name] if is_agent else getattr(self, name).process.pid

    def close(self, *names: str) -> None:
        """These faces leave one after the other; then nothing is left of anybody."""
        self.watch()
        for name in names:
            if name == "chat":
                self.chat.press("ctrl-d")
                assert self.chat.ended() == 0
            else:
                assert getattr(self, name).close() == 0
        self.sdk.kill()  # where its agent was killed, it is still there
        eventually(lambda: not any(map(lives, self.processes)), "the end of all processes")


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def texts(tracker: ReadTracker) -> list[str]:
    """What the model said, message by message."""
    return [message["text"] for message in tracker.messages.values()]


def statuses(tracker: ReadTracker) -> dict[str, str]:
    return {id: call["status"] for id, call in tracker.calls.items()}


def prompts_in(tracker: ReadTracker) -> list[str]:
    return [content["text"] for [content] in tracker.prompts]


def finished(how: str) -> bool:
    """Whether a turn came to its end, in the words of the SDK's client or of the chat."""
    return how in ("end_turn", "✓ done")


def loaded(stage: Stage) -> ReadTracker:
    """What a new process shows of the session; the conversation goes on there."""
    crow = Editor(stage.folder, environment={"CROW_MODE": "auto"})
    try:
        crow.load_session(stage.session)
        tracker = seen_in(crow.updates)
        assert crow.prompt("go on") == {"stopReason": "end_turn"}
        assert crow.close() == 0
    finally:
        crow.kill()
    return tracker


# --- the same for all


@pytest.mark.parametrize(
    ("owner", "first", "second"), [("sdk", "raw", "chat"), ("chat", "sdk", "raw")], ids=["the SDK's", "the chat's"]
)
def test_three_faces_see_the_same_turn_to_the_byte_and_each_question_is_answered_once(
    tmp_path: Path, stack: ExitStack, owner: str, first: str, second: str
):
    """`first` and `second` answer the two questions. The client at the socket joins in the middle of the text."""
    script = (
        reply(SLOWLY, edit("nest.py", "twigs", "feathers"), when="begin")
        + reply(say("Now a command."), run(GATE), when="begin")
        + reply(say("Ended."), when=NOTE)
        + DONE
    )
    stage = Stage(tmp_path, stack, script, owner)
    outcome = stage.prompt(owner, "begin")
    stage.wait_for(lambda: stage.sdk.updates and texts(stage.seen("sdk")), "some text")
    stage.join()

    stage.wait_for_question()
    assert (stage.workspace / "nest.py").read_text() == "twigs\n"
    stage.answer(first)
    stage.wait_for_text("Now a command.", "sdk", "raw", "chat")
    assert (stage.workspace / "nest.py").read_text() == "feathers\n"
    stage.wait_for_question(2)
    stage.answer(second)
    stage.wait_for((stage.workspace / "began").exists, "the command")
    assert stage.raw.steer(NOTE).answer()["outcome"] == "injected"
    (stage.workspace / "go").touch()
    assert finished(outcome())
    stage.wait_for_text("Ended.", "sdk", "raw", "chat")

    said = {"t1-m2": TEXT, "t1-m3": "Now a command.", "t1-m4": "Ended."}
    ended = {"t1-c1": "completed", "t1-c2": "completed"}
    for name in ("sdk", "raw"):
        seen = stage.seen(name)
        assert {id: message["text"] for id, message in seen.messages.items()} == said
        assert statuses(seen) == ended
    assert [stage.chat.rows_of(text) for text in said.values()] == [1, 1, 1]
    assert [stage.chat.rows_of(f"▸ {text}") for text in ("begin", NOTE)] == [1, 1]
    assert len(stage.chat.starting_with("✓ Edit nest.py +1")) == 1
    assert len(stage.chat.starting_with("✓ touch began")) == 1

    names = stage.names
    assert stage.answers() == [names[first], names[second]]
    for name in ("sdk", "raw"):
        others = {call: names[who] for call, who in (("t1-c1", first), ("t1-c2", second)) if who != name}
        assert answerers_in(stage.updates(name)) == others
        notices = told_in(stage.updates(name))
        assert [notice.lstrip("> ").partition(":")[0] for notice in notices] == [
            f"Allowed in {who}" for who in others.values()
        ]
    assert len(stage.sdk.told("withdrawn")) == 2 - [first, second].count("sdk")
    assert stage.raw.withdrawn() == 2 - [first, second].count("raw")
    assert stage.chat.rows_of("  → no longer needed") == 2 - [first, second].count("chat")
    assert [row.partition(":")[0] for row in stage.chat.starting_with("i Allowed in")] == [
        f"i Allowed in {names[who]}" for who in (first, second) if who != "chat"
    ]
    stage.close("raw", *({"sdk", "chat"} - {owner}), owner)
    after = loaded(stage)
    assert texts(after) == list(said.values())
    assert prompts_in(after) == ["begin", NOTE]


# --- any of them is killed

FACES = ("sdk", "chat", "raw")
VICTIMS = ("sdk", "sdk's agent", "chat", "chat's agent", "raw")
QUICK = [
    ("sdk", "sdk's agent", "command"),
    ("sdk", "sdk", "question"),
    ("sdk", "raw", "question"),
    ("chat", "chat's agent", "question"),
    ("chat", "chat", "command"),
    ("chat", "sdk's agent", "command"),
]
"""Each of the processes at least once: the owner in both moments, its client, and those of the others."""
ALL = [
    pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
    for case in product(("sdk", "chat"), VICTIMS, ("question", "command"))
]


class Aftermath:
    """What is to be expected when a party is killed: who is left, and who of them begins and answers."""

    def __init__(self, owner: str, victim: str) -> None:
        self.cuts_off = victim == f"{owner}'s agent"
        """The turn is lost, as its process is."""
        lost = {victim.partition("'")[0]} | ({"raw"} if self.cuts_off else set())  # the socket is the owner's
        self.left = [name for name in FACES if name not in lost]
        self.prompter = "chat" if victim.startswith("sdk") else "sdk"
        """The face whose prompt it is: one that lives to see its end."""
        self.answerer = self.left[-1]


def check_take_over(stage: Stage, aftermath: Aftermath, epoch: int) -> None:
    """One of those that were left owns the session, and it goes on there."""
    [left] = aftermath.left
    if left == "chat":
        stage.wait_for(lambda: stage.row()[1] == epoch + 1, "the load")
    how = stage.prompt(left, "once more")()
    if "cut off" in how:  # it was sent before anybody could know of the end
        how = stage.prompt(left, "once more")()
    assert finished(how)
    stage.wait_for_text("Done.", left)
    token, after = stage.row()
    assert (token.partition("-")[0], after) == (str(stage.agents[left]), epoch + 1)


def check_killed(stage: Stage, victim: str) -> None:
    """Whoever lost its agent says so; nothing of the victim is left, and all that the others need is."""
    if victim == "chat's agent":
        assert stage.chat.ended() == 1
        assert "Traceback" not in stage.chat.text
        assert stage.chat.is_restored
    eventually(lambda: not lives(stage.process_of(victim)), "the end of the victim")


@pytest.mark.parametrize(("owner", "victim", "moment"), ALL)
def test_whoever_is_killed_nothing_that_was_acknowledged_is_lost(
    tmp_path: Path, stack: ExitStack, owner: str, victim: str, moment: str
):
    aftermath, asks = Aftermath(owner, victim), moment == "question"
    work = edit("nest.py", "twigs", "feathers") if asks else run(GATE)
    script = (
        reply(BEGUN, call("read", path="nest.py"), work, when="begin")
        + reply(say("Ended."), when="begin" if asks else NOTE)
        + DONE
    )
    stage = Stage(tmp_path, stack, script, owner)
    stage.join()
    end = stage.prompt(aftermath.prompter, "begin")
    stage.wait_for_question()
    if not asks:
        stage.answer("raw")
        stage.wait_for((stage.workspace / "began").exists, "the command")
        assert stage.raw.steer(NOTE).answer()["outcome"] == "injected"
    stage.wait_for_text(TEXT, *FACES)
    epoch = stage.row()[1]
    stage.kill(victim)

    answers = [] if asks else ["raw"]
    if aftermath.cuts_off:
        assert "cut off" in end()
        check_take_over(stage, aftermath, epoch)
        prompts, said, status = ["begin", "once more"], [TEXT, "Done."], "failed"
    else:
        if asks:
            stage.answer(aftermath.answerer)
            answers = [stage.names[aftermath.answerer]]
        (stage.workspace / "go").touch()
        assert finished(end())
        stage.wait_for_text("Ended.", *aftermath.left)
        prompts, said, status = ["begin"] if asks else ["begin", NOTE], [TEXT, "Ended."], "completed"
    check_killed(stage, victim)
    assert stage.answers() == answers
    assert (stage.workspace / "nest.py").read_text() == ("feathers\n" if asks and answers else "twigs\n")
    for name in aftermath.left:
        shown = stage.notices(name)
        # Whoever sent the prompt has the error that answers it; everyone is told once.
        is_told = aftermath.cuts_off and name != aftermath.prompter
        assert sum("cut off" in notice for notice in shown) == is_told
        if name == "chat" and aftermath.cuts_off and not asks:
            assert NOTE in stage.chat.text, "what was accepted and never reached the model is told as left over"
        if name == "chat":
            assert [stage.chat.rows_of(text) for text in said] == [1, 1]
            assert len(stage.chat.starting_with("✓ Read nest.py")) == 1
            mark = "✓" if status == "completed" else "✗"
            assert len(stage.chat.starting_with(f"{mark} {'Edit' if asks else 'touch'}")) == 1
        else:
            assert texts(stage.seen(name)) == said
            assert statuses(stage.seen(name)) == {"t1-c1": "completed", "t1-c2": status}
    stage.close(*aftermath.left)
    after = loaded(stage)
    assert prompts_in(after) == prompts
    assert texts(after) == said
    assert statuses(after) == {"t1-c1": "completed", "t1-c2": status}


# --- at any moment

WORDS = (TEXT, "Now a command.", "Ended.")
WORK = (
    # The model is given both prompts at once, where nothing of its reply to the first one was stored.
    reply(say("Done."), when="once more")
    + reply(BEGUN, call("read", path="nest.py"), edit("nest.py", "twigs", "feathers"), when="begin")
    + reply(say(WORDS[1]), run("echo out; sleep 0.05; echo more"), when="begin")
    + reply(say(WORDS[2]), when="begin")
    + DONE
)


@pytest.mark.slow
@pytest.mark.timeout(max(600, KILLS * 60))
def test_whoever_is_killed_at_any_moment_nothing_is_lost_or_said_twice(tmp_path: Path):
    dice = random.Random(SEED)
    for number in range(KILLS):
        owner, victim = dice.choice(("sdk", "chat")), dice.choice(VICTIMS)
        with ExitStack() as stack:
            folder = tmp_path / str(number)
            folder.mkdir()
            stage = Stage(folder, stack, WORK, owner)
            stage.join()
            kill_in_the_middle(stage, victim, dice)


def kill_in_the_middle(stage: Stage, victim: str, dice: random.Random) -> None:
    aftermath = Aftermath(stage.owner, victim)
    stage.raw.permit = lambda _: chose("once")
    end = stage.prompt(aftermath.prompter, "begin")
    last = len(stage.raw.lines) + dice.randrange(60)
    stage.wait_for(lambda: len(stage.raw.lines) >= last or texts(stage.seen("raw"))[-1:] == [WORDS[-1]], "progress")
    time.sleep(dice.uniform(0, 0.02))
    before, epoch = stage.seen("raw"), stage.row()[1]
    stage.kill(victim)
    if victim == "raw":
        stage.sdk.answer("once", always=True)
    how = end()
    assert finished(how) or (aftermath.cuts_off and "cut off" in how), how
    if aftermath.cuts_off:
        check_take_over(stage, aftermath, epoch)
    else:
        stage.wait_for_text(WORDS[-1], *aftermath.left)
    check_killed(stage, victim)
    stage.close(*aftermath.left)
    check_stored(stage, aftermath, before, is_whole=finished(how))


def check_stored(stage: Stage, aftermath: Aftermath, before: ReadTracker, *, is_whole: bool) -> None:
    """What is loaded holds what was shown, each thing once."""
    after = loaded(stage)
    assert prompts_in(after) in (["begin", "once more"][: 1 + aftermath.cuts_off], ["once more"][: not before.order])
    assert len(stage.answers()) <= 2
    assert (after.calls.get("t1-c2", {}).get("status") == "completed") is (
        (stage.workspace / "nest.py").read_text() == "feathers\n"
    ) or not is_whole
    for id, message in before.messages.items():
        text = after.messages.get(id, {"text": ""})["text"]
        assert text.startswith(message["text"]) or (not is_whole and message["text"].startswith(text))
    for name in aftermath.left:
        if name == "chat":
            shown = [stage.chat.rows_of(text) for text in WORDS if text in texts(after)]
            assert shown == [1] * len(shown)
        else:
            seen = stage.seen(name)
            assert texts(seen) == texts(after) or not is_whole
            # Of a call that had hardly begun nothing may be stored; it has ended all the same.
            assert statuses(seen) == statuses(seen) | statuses(after)
            assert set(statuses(seen).values()) <= {"completed", "failed"}
