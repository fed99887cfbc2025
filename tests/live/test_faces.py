"""Several faces of one session, with a real store: whoever joins, and whenever, sees what those see who were there.

A turn is played event by event, with steps of the event loop between them that a seed decides on; faces join meanwhile.
"""

import asyncio
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from crow.acp import translate, wire
from crow.acp.sink import UpdateSink
from crow.actions import Answer, Filled, Form, PermissionAnswer, PermissionQuestion, Person, Question
from crow.commands.base import CommandRequest, Terminal, TerminalOutput
from crow.events import (
    CallDescribed,
    CallOpened,
    CallPreviewed,
    CallProgressed,
    CallRequested,
    CallSettled,
    CallStarted,
    CommandGiven,
    CrowSaid,
    Event,
    OutputGrew,
    PermissionAnswered,
    PermissionAsked,
    PlanChanged,
    PlanEntry,
    ReplyEnded,
    SentText,
    SteeringReceived,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
    TurnStarted,
    UserSaid,
)
from crow.files.local import LocalWorkspace
from crow.live import commands, feed
from crow.live.face import ClientKnowledge, Face
from crow.live.faces import Faces
from crow.live.feed import SessionStream
from crow.messages import StopReason
from crow.results import DiffBlock, HiddenOutput, Location, TerminalBlock, TextBlock, ToolKind, ToolResult
from crow.session.journal import MOST_KEPT, SessionJournal
from crow.session.persistence import Archive
from crow.session.running_turn import Turns
from crow.store.store import open_store
from tests.support.fold import ReadTracker

SEEDS = int(os.environ.get("CROW_FACES_SEEDS", "25"))
SESSION = "s"


class Pipe:
    """A client's end of a connection: keeps what it is sent, and reads only when it is told to."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.unsent = 0
        self._room = asyncio.Event()
        self._room.set()

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    async def room(self) -> None:
        await self._room.wait()

    def stop_reading(self) -> None:
        self._room.clear()

    def read_again(self) -> None:
        self.unsent = 0
        self._room.set()

    def notify(self, method: str, params: wire.SessionNotification) -> None:
        if not self.has_room:
            self.unsent += len(msgspec.json.encode(params))
        self.updates.append(msgspec.to_builtins(params.update))


class Answering(Person):
    """A person at one face, who answers when they are told to."""

    def __init__(self, *, dialogs: bool = True) -> None:
        self._dialogs = dialogs
        self.asked: list[PermissionQuestion | Question | Form] = []
        self.withdrawn = 0
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def has_dialogs(self) -> bool:
        return self._dialogs

    async def permit(self, question: PermissionQuestion) -> PermissionAnswer:
        return await self._asked(question)

    async def ask(self, question: Question) -> Answer | None:
        return await self._asked(question) if self._dialogs else None

    async def fill_in(self, form: Form) -> Filled | None:
        return await self._asked(form) if self._dialogs else None

    async def _asked(self, question: PermissionQuestion | Question | Form) -> Any:
        self.asked.append(question)
        try:
            return await asyncio.shield(self.answer)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise


def face(
    name: str, *, terminals: set[str] | None = None, dialogs: bool = True, raw: bool = False
) -> tuple[Face, Pipe, Answering]:
    pipe, person = Pipe(), Answering(dialogs=dialogs)
    known = ClientKnowledge(name, terminals=terminals or set())
    shown_in = "/p" if raw else None
    sink = UpdateSink(pipe, SESSION, known, takes_notices=False, shows_output_in=shown_in)  # pyright: ignore[reportArgumentType]
    return Face(known, sink, person), pipe, person


class Stage:
    """A session's journal with its faces, on a store of its own."""

    def __init__(self, home: Path) -> None:
        self._store = open_store(str(home))
        self._folder = str(home)
        self.faces = Faces(LocalWorkspace([self._folder]), None)  # pyright: ignore[reportArgumentType] -- no commands

    async def __aenter__(self) -> Self:
        log = await self._store.create(SESSION, self._folder, [])
        self.journal = SessionJournal(log)
        self.faces.begin(SessionStream(self.journal, Archive(self._store, SESSION, log)), Turns())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()

    async def join(self, newcomer: Face, *, replay: bool = True) -> None:
        self.faces.enter(newcomer)
        await self.faces.show(newcomer, replay=replay)
        self.faces.welcome(newcomer)

    async def play(self, happens: list[Event], chance: random.Random) -> None:
        for event in happens:
            if isinstance(event, PermissionAsked | CallStarted | CallSettled | UserSaid | TurnEnded):
                await self.journal.record(event)
            else:
                self.journal.append(event)
            for _ in range(chance.choice((0, 0, 0, 1, 2))):
                await asyncio.sleep(0)
            if chance.random() < 0.1:
                await asyncio.sleep(0.001)


def conversation() -> list[Event]:
    """Two turns with everything in them that a client may be shown in pieces."""
    diff = DiffBlock("/p/a.py", "modify", "a\n", "b\n")
    return [
        TurnStarted("t1"),
        UserSaid("t1-m1", (SentText("Do it."),), ()),
        *(ThoughtDelta("t1-m2", text, "p") for text in ("I ", "think ", "of it")),
        *(TextDelta("t1-m3", text) for text in ("First ", "I ", "look:\n", "and ", "then")),
        CallOpened("t1-c1", "edit", ToolKind.EDIT, "Edit"),
        CallPreviewed("t1-c1", "Edit a.py", (Location("/p/a.py"),), (TextBlock("gro"),)),
        CallPreviewed("t1-c1", "", (), (TextBlock("growing"),)),
        CallOpened("t1-c2", "terminal", ToolKind.EXECUTE, "Run"),
        CallPreviewed("t1-c2", "`make`"),
        CallRequested("t1-c1", "edit", '{"path": "a.py"}'),
        CallRequested("t1-c2", "terminal", '{"command": "make"}'),
        CallDescribed("t1-c1", ToolKind.EDIT, "Edit a.py", (Location("/p/a.py", 1),)),
        PermissionAsked("t1-c1", "it writes", (diff,)),
        PermissionAnswered("t1-c1", True, "once", "zed"),
        CallStarted("t1-c1"),
        CallSettled("t1-c1", ToolResult(True, "done", "+1 -1", (diff,), brief="+1 -1")),
        CallDescribed("t1-c2", ToolKind.EXECUTE, "`make`"),
        CallStarted("t1-c2"),
        CallProgressed("t1-c2", (TextBlock("one"),)),
        SteeringReceived("t1-s1", (SentText("Mind the gap."),)),
        PlanChanged((PlanEntry("look", "completed"), PlanEntry("mend", "in_progress"))),
        CallProgressed("t1-c2", (TextBlock("one\ntwo"),)),
        CallSettled("t1-c2", ToolResult(True, "one\ntwo", "exit 0", (TextBlock("one\ntwo\nexit 0"),))),
        ReplyEnded(),
        UserSaid("t1-s1", (SentText("Mind the gap."),), ()),
        *(TextDelta("t1-m4", text) for text in ("It ", "is ", "done.")),
        ReplyEnded(),
        TurnEnded("t1", StopReason.END_TURN),
        TurnStarted("t2"),
        CommandGiven("t2-m1", (SentText("/help"),)),
        CrowSaid("t2-m2", "There is help."),
        TurnEnded("t2", StopReason.END_TURN),
    ]


def seen(pipe: Pipe) -> ReadTracker:
    tracker = ReadTracker()
    for update in pipe.updates:
        tracker.take(update)
    tracker._prompt_id = ""
    return tracker


@pytest.mark.parametrize("part", range(4))
def test_who_joins_at_any_moment_sees_what_those_see_who_were_there(tmp_path, part):
    async def run(folder: Path, seed: int) -> None:
        chance = random.Random(seed)
        async with Stage(folder) as stage:
            first, pipe, _ = face("zed")
            stage.faces.add(first)
            happens = conversation()
            joins = sorted(chance.randrange(len(happens) + 1) for _ in range(3))
            joining: list[asyncio.Task[None]] = []
            pipes = [pipe]
            for number, moment in enumerate([*joins, len(happens)]):
                await stage.play(happens[joins[number - 1] if number else 0 : moment], chance)
                if number < len(joins):
                    newcomer, its_pipe, _ = face("toad")
                    pipes.append(its_pipe)
                    joining.append(asyncio.ensure_future(stage.join(newcomer)))
                    for _ in range(chance.randrange(3)):
                        await asyncio.sleep(0)
            await asyncio.gather(*joining)
            await asyncio.sleep(0.2)  # nothing is held back any longer than a frame, or a call's moment
            expected = seen(pipe)
            for other in pipes[1:]:
                assert seen(other) == expected, f"seed {seed}"

    for number in range(SEEDS):
        seed = part * 1000 + number
        asyncio.run(run(tmp_path / str(seed), seed))


# --- the raw output of a command


def command(size: int, *, background: bool = False) -> list[Event]:
    """A call that runs a command, which writes a line after the other; it has not ended yet."""
    line = [
        TurnStarted("t1"),
        UserSaid("t1-m1", (SentText("Run it."),), ()),
        CallOpened("t1-c1", "terminal", ToolKind.EXECUTE, "Run"),
        CallRequested("t1-c1", "terminal", "{}"),
        CallStarted("t1-c1"),
        OutputGrew("t1-c1", "", "/p"),
    ]
    for number in range(size):
        if background and number == size // 2:
            line.append(CallSettled("t1-c1", ToolResult(True, "", display=(TextBlock("runs"),), background="b1")))
            line.append(TurnEnded("t1", StopReason.END_TURN))
        line += [OutputGrew("t1-c1", f"line {number}\n"), CallProgressed("t1-c1", (TextBlock(f"line {number}"),))]
    return line


def terminal_text(pipe: Pipe) -> str:
    """What the call's terminal shows: it must have been announced, and be the content of the call."""
    text, announced = "", False
    for update in pipe.updates:
        meta = update.get("_meta") or {}
        announced = announced or "terminal_info" in meta
        if "terminal_output" in meta:
            assert announced
            text = (text + meta["terminal_output"]["data"]).rpartition(translate.CLEAR)[2]
    contents = [update["content"] for update in pipe.updates if update.get("content") and "toolCallId" in update]
    assert contents[-1] == [{"type": "terminal", "terminalId": "t1-c1"}]
    return text


@pytest.mark.parametrize("background", [False, True])
def test_who_joins_while_a_command_runs_sees_all_that_it_has_written(tmp_path, background):
    async def run(folder: Path, seed: int) -> None:
        chance = random.Random(seed)
        async with Stage(folder) as stage:
            first, pipe, _ = face("zed", raw=True)
            plain, its_pipe, _ = face("toad")
            stage.faces.add(first)
            stage.faces.add(plain)
            happens = command(20, background=background)
            moment = chance.randrange(6, len(happens))
            await stage.play(happens[:moment], chance)
            newcomer, newcomers_pipe, _ = face("page", raw=True)
            joining = asyncio.ensure_future(stage.join(newcomer))
            await stage.play(happens[moment:], chance)
            await joining
            expected = "".join(f"line {number}\n" for number in range(20))
            assert terminal_text(pipe) == expected
            assert terminal_text(newcomers_pipe) == expected, f"seed {seed}"
            assert "_meta" not in str(its_pipe.updates)

    for seed in range(SEEDS):
        asyncio.run(run(tmp_path / str(seed), seed))


def test_output_that_waits_for_the_store_is_not_missed_by_who_joins_meanwhile(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, pipe, _ = face("zed", raw=True)
            stage.faces.add(first)
            await stage.play(command(3), random.Random(1))
            recording = asyncio.ensure_future(stage.journal.record(PermissionAsked("t1-c2", "why")))
            await asyncio.sleep(0)
            stage.journal.append(OutputGrew("t1-c1", "held back\n"))
            assert "held back" not in str(pipe.updates), "it comes after what is being stored"
            newcomer, newcomers_pipe, _ = face("page", raw=True)
            stage.faces.enter(newcomer)
            await recording
            await stage.faces.show(newcomer, replay=True)
            stage.journal.append(OutputGrew("t1-c1", "last\n"))
            assert terminal_text(newcomers_pipe) == terminal_text(pipe) == "line 0\nline 1\nline 2\nheld back\nlast\n"

    asyncio.run(asyncio.wait_for(run(), 60))


def test_who_fell_behind_is_shown_the_output_anew_and_not_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MOST_UNSENT", 500)

    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, pipe, _ = face("zed", raw=True)
            slow, its_pipe, _ = face("page", raw=True)
            stage.faces.add(first)
            await stage.join(slow)
            happens, chance = command(100), random.Random(1)
            await stage.play(happens[:20], chance)
            its_pipe.stop_reading()
            await stage.play(happens[20:120], chance)
            assert terminal_text(its_pipe) != terminal_text(pipe)
            its_pipe.read_again()
            await stage.play(happens[120:], chance)
            await until(lambda: terminal_text(its_pipe) == terminal_text(pipe))

    asyncio.run(asyncio.wait_for(run(), 60))


def test_of_much_output_whoever_joins_is_shown_the_last(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, _, _ = face("zed", raw=True)
            stage.faces.add(first)
            await stage.play(command(1), random.Random(1))
            for number in range(50):
                stage.journal.append(OutputGrew("t1-c1", f"{number:02}\n" * 3000))
            newcomer, pipe, _ = face("page", raw=True)
            await stage.join(newcomer)
            text = terminal_text(pipe)
            assert MOST_KEPT <= len(text) < 2 * MOST_KEPT
            assert text.splitlines()[0].startswith("[… what came before")
            assert text.endswith("49\n")
            await stage.journal.record(CallSettled("t1-c1", ToolResult(True, "")))
            assert stage.journal.passing.events() == []

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_face_that_does_not_read_holds_up_nobody_and_misses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MOST_UNSENT", 10_000)

    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, pipe, _ = face("zed")
            phone, its_pipe, _ = face("phone")
            stage.faces.add(first)
            await stage.join(phone)
            its_pipe.stop_reading()
            happens: list[Event] = [TurnStarted("t1"), UserSaid("t1-m1", (SentText("Go."),), ())]
            happens += [TextDelta("t1-m2", f"word {number} ") for number in range(3000)]
            chance = random.Random(1)
            for begin in range(0, len(happens), 50):
                await stage.play(happens[begin : begin + 50], chance)
                await asyncio.sleep(0.02)  # so that the text is sent in pieces
            assert stage.journal.has_room
            assert its_pipe.unsent < 30_000
            its_pipe.read_again()
            await stage.play([TurnEnded("t1", StopReason.END_TURN)], chance)
            await until(lambda: seen(its_pipe) == seen(pipe))

    asyncio.run(asyncio.wait_for(run(), 60))


def test_what_comes_while_a_face_is_shown_the_past_is_not_kept_without_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(feed, "MOST_HELD", 10)

    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, pipe, _ = face("zed")
            stage.faces.add(first)
            chance = random.Random(3)
            happens = conversation()
            await stage.play(happens[:5], chance)
            newcomer, its_pipe, _ = face("toad")
            its_pipe.stop_reading()
            joining = asyncio.ensure_future(stage.join(newcomer))
            for event in happens[5:]:
                await stage.play([event], chance)
                assert len(stage.faces._feeds[newcomer]._subscription._held or ()) <= feed.MOST_HELD
            its_pipe.read_again()
            await joining
            await asyncio.sleep(0.2)
            assert seen(its_pipe) == seen(pipe)

    asyncio.run(asyncio.wait_for(run(), 60))


QUESTION = PermissionQuestion("t1-c1", ToolKind.EDIT, "Edit a.py", "it writes", takes_reason=True)


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 -- no event tells of what a client has been sent
        await asyncio.sleep(0)


def test_the_first_clear_answer_counts_and_the_question_vanishes_elsewhere(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, _, at_zed), (second, _, at_toad) = face("zed"), face("toad")
            stage.faces.add(first)
            await stage.join(second)
            asking = asyncio.ensure_future(stage.faces.person.permit(QUESTION))
            await until(lambda: at_zed.asked and at_toad.asked)
            assert stage.faces.state == "asks"
            at_toad.answer.set_result(PermissionAnswer("once"))
            answer = await asking
            assert (answer.allowed, answer.by) == (True, "toad")
            await until(lambda: at_zed.withdrawn)
            assert stage.faces.state == "idle"

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize(
    "no_answer",
    [
        PermissionAnswer("cancelled", is_clear=False),
        PermissionAnswer("reject", "the editor is gone, so that nobody could be asked.", is_clear=False),
    ],
    ids=["dismissed", "gone"],
)
def test_what_is_no_answer_leaves_the_question_to_the_others(tmp_path, no_answer):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, _, at_zed), (second, _, at_toad) = face("zed"), face("toad")
            stage.faces.add(first)
            await stage.join(second)
            asking = asyncio.ensure_future(stage.faces.person.permit(QUESTION))
            await until(lambda: at_zed.asked and at_toad.asked)
            at_zed.answer.set_result(no_answer)
            await asyncio.sleep(0.01)
            assert not asking.done()
            at_toad.answer.set_result(PermissionAnswer("reject"))
            assert (await asking) == PermissionAnswer("reject", by="toad")

    asyncio.run(asyncio.wait_for(run(), 60))


def test_who_joins_is_asked_what_is_still_open(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, _, at_zed), (second, _, at_toad) = face("zed"), face("toad")
            stage.faces.add(first)
            asking = asyncio.ensure_future(stage.faces.person.permit(QUESTION))
            await until(lambda: at_zed.asked)
            await stage.join(second)
            await until(lambda: at_toad.asked)
            at_zed.answer.set_result(PermissionAnswer("reject", "the editor is gone.", is_clear=False))
            stage.faces.leave(first)
            at_toad.answer.set_result(PermissionAnswer("session"))
            assert (await asking) == PermissionAnswer("session", by="toad")

    asyncio.run(asyncio.wait_for(run(), 60))


def test_two_answers_in_the_same_moment_are_one(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            for number in range(50):
                (first, _, at_zed), (second, _, at_toad) = face("zed"), face("toad")
                stage.faces.add(first)
                await stage.join(second)
                asking = asyncio.ensure_future(stage.faces.person.permit(QUESTION))
                await until(lambda: at_zed.asked and at_toad.asked)  # noqa: B023 -- awaited here
                answers = [(at_zed, PermissionAnswer("once")), (at_toad, PermissionAnswer("reject"))]
                for person, answer in answers if number % 2 else reversed(answers):
                    person.answer.set_result(answer)
                answer = await asking
                assert (answer.choice, answer.by) in {("once", "zed"), ("reject", "toad")}
                stage.faces.leave(first)
                stage.faces.leave(second)

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_form_goes_to_the_faces_that_have_dialogs(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, _, at_zed), (second, _, _) = face("zed"), face("kernel", dialogs=False)
            stage.faces.add(first)
            await stage.join(second)
            asking = asyncio.ensure_future(stage.faces.person.ask(Question("t1-c1", "Which?")))
            await until(lambda: at_zed.asked)
            at_zed.answer.set_result(Answer("that"))
            assert await asking == Answer("that")
            stage.faces.leave(first)
            assert await stage.faces.person.ask(Question("t1-c1", "Which?")) is None

    asyncio.run(asyncio.wait_for(run(), 60))


def test_who_answered_is_told_to_the_others_and_a_prompt_is_shown_where_it_was_not_typed(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, pipe, _), (second, its_pipe, _) = face("zed"), face("zed")
            stage.faces.add(first)
            await stage.join(second)
            assert [each.name for each in stage.faces.present] == ["zed", "zed (2)"]
            stage.faces.prompted(second, "t1-m1")
            happens: list[Event] = [
                TurnStarted("t1"),
                UserSaid("t1-m1", (SentText("Do it."),), ()),
                CallOpened("t1-c1", "edit", ToolKind.EDIT, "Edit a.py"),
                CallRequested("t1-c1", "edit", "{}"),
                PermissionAsked("t1-c1", "", ()),
                PermissionAnswered("t1-c1", True, "once", "zed (2)"),
                TurnEnded("t1", StopReason.END_TURN),
            ]
            await stage.play(happens, random.Random(1))
            texts = [update["content"]["text"] for update in pipe.updates if "messageId" in update]
            assert texts == ["Do it.", "> Allowed in zed (2): Edit a.py\n\n"]
            [marked] = [update for update in pipe.updates if "_meta" in update]
            assert marked["_meta"] == {"crow": {"answeredBy": "zed (2)", "allowed": True}}
            assert not [update for update in its_pipe.updates if "messageId" in update or "_meta" in update]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_a_terminal_of_one_client_is_text_to_another(tmp_path):
    async def run() -> None:
        async with Stage(tmp_path) as stage:
            (first, pipe, _), (second, its_pipe, _) = face("zed", terminals={"term-1"}), face("toad")
            stage.faces.add(first)
            await stage.join(second)
            ended = ToolResult(True, "one", "exit 0", (TerminalBlock("term-1"), HiddenOutput("one\nexit 0")))
            happens: list[Event] = [
                TurnStarted("t1"),
                CallOpened("t1-c1", "terminal", ToolKind.EXECUTE, "make"),
                CallRequested("t1-c1", "terminal", "{}"),
                CallStarted("t1-c1"),
                CallProgressed("t1-c1", (TerminalBlock("term-1"),)),
                CallSettled("t1-c1", ended),
            ]
            await stage.play(happens, random.Random(1))
            assert "term-1" in str(pipe.updates)
            assert "term-1" not in str(its_pipe.updates)
            assert its_pipe.updates[-1]["content"][0]["content"]["text"] == "```text\none\nexit 0\n```"

    asyncio.run(asyncio.wait_for(run(), 60))


class OneTerminal(Terminal):
    """The commands of a client, or of this machine, that open one terminal, which never ends by itself."""

    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.remark = ""
        self.opened = 0
        self.released = 0
        self.text = ""

    async def open_terminal(self, request: CommandRequest) -> "OneTerminal":
        self.opened += 1
        return self

    async def output(self, since: int = 0) -> TerminalOutput:
        return TerminalOutput(self.text)

    async def release(self) -> None:
        self.released += 1


def test_a_command_in_one_clients_terminal_is_shown_to_the_others_as_text_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "POLL_INTERVAL", 0.005)

    async def run() -> None:
        async with Stage(tmp_path) as stage:
            first, pipe, _ = face("zed", terminals={"term-1"})
            at_zed, here = OneTerminal("term-1"), OneTerminal("")
            first.commands = at_zed  # pyright: ignore[reportAttributeAccessIssue] -- as much of it as is needed
            stage.faces.commands._local = here  # pyright: ignore[reportAttributeAccessIssue]
            stage.faces.add(first)
            terminal = await stage.faces.commands.open_terminal(CommandRequest("make", cwd="/", output_limit=100))
            assert (terminal.client_id, at_zed.opened, here.opened) == ("term-1", 1, 0)
            happens: list[Event] = [
                TurnStarted("t1"),
                CallOpened("t1-c1", "terminal", ToolKind.EXECUTE, "make"),
                CallRequested("t1-c1", "terminal", "{}"),
                CallStarted("t1-c1"),
                CallProgressed("t1-c1", (TerminalBlock("term-1"),)),
            ]
            await stage.play(happens, random.Random(1))
            second, its_pipe, _ = face("toad")
            await stage.join(second)
            at_zed.text = "half way"
            await until_soon(lambda: "half way" in str(its_pipe.updates))
            assert "half way" not in str(pipe.updates)
            assert "term-1" not in str(its_pipe.updates)
            await terminal.release()
            assert at_zed.released == 1
            # With two of them, the next command runs here, where both can see it.
            other = await stage.faces.commands.open_terminal(CommandRequest("make", cwd="/", output_limit=100))
            assert (other.client_id, at_zed.opened, here.opened) == ("", 1, 1)
            stage.faces.leave(second)
            await (
                await stage.faces.commands.open_terminal(CommandRequest("make", cwd="/", output_limit=100))
            ).release()
            assert (at_zed.opened, here.opened) == (2, 1)

    asyncio.run(asyncio.wait_for(run(), 60))


async def until_soon(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 -- no event tells of what a client has been sent
        await asyncio.sleep(0.002)
