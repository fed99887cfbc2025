"""What the last turn did to files is taken back, in every kind of workspace, and nobody else's work with it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from crow.errors import StorageFailed, WorkspaceError
from crow.events import (
    Before,
    CallDescribed,
    CallOpened,
    CallSettled,
    CallStarted,
    CommandGiven,
    Event,
    FileBackedUp,
    FileWritten,
    SentText,
    SubagentDid,
    TurnEnded,
    TurnStarted,
    TurnUndone,
    UserSaid,
)
from crow.files.base import Workspace
from crow.files.local import LocalWorkspace
from crow.messages import StopReason, Text
from crow.results import DiffBlock, ToolKind, ToolResult
from crow.session import persistence
from crow.session.journal import SessionJournal
from crow.session.undo import NOTHING, PastTurn, last_turn, undo_last_turn
from crow.store.base import EventLog
from crow.tools.file_changes import digest_of
from tests.support.buffers import FLAVOURS, RawEditor, Zed, connected, opened
from tests.support.file_cases import CASES
from tests.support.patience import DEADLINE
from tests.support.recording import RecordingSink
from tests.support.store import MemoryLog
from tests.tools.calling import Hand


class Talk:
    """A conversation in which the model changes files, without the model."""

    def __init__(self, workspace: Workspace, log: EventLog | None = None) -> None:
        self.workspace = workspace
        self.journal = SessionJournal(log or MemoryLog())
        self._sink = RecordingSink()
        self.journal.subscribe(self._sink)
        self.hand = Hand(workspace, self.journal)
        self._turns = 0

    @property
    def past(self) -> list[Event]:
        return list(self._sink.events)

    def begin(self, prompt: str = "go on") -> str:
        self._turns += 1
        turn = f"t{self._turns}"
        self.hand.call_id = f"{turn}-c1"
        self.journal.append(TurnStarted(turn))
        self.journal.append(UserSaid(f"{turn}-m1", (SentText(prompt),), (Text(prompt),)))
        return turn

    async def undo(self) -> str:
        self._turns += 1
        turn = f"t{self._turns}"
        self.journal.append(TurnStarted(turn))
        self.journal.append(CommandGiven(f"{turn}-m1", (SentText("/undo"),)))
        told = await undo_last_turn(self.past, self.journal, self.workspace)
        self.journal.append(TurnEnded(turn, StopReason.END_TURN))
        return told

    def undone(self) -> list[str]:
        return [event.turn_id for event in self.past if isinstance(event, TurnUndone)]

    def own_calls(self) -> dict[str, ToolResult]:
        """What was shown of each file, by the call's title."""
        titles = {event.call_id: event.title for event in self.past if isinstance(event, CallOpened) and event.own}
        ends = {event.call_id: event.result for event in self.past if isinstance(event, CallSettled)}
        return {title: ends[call_id] for call_id, title in titles.items()}


def left(told: str) -> list[str]:
    """The files that are said not to be as before."""
    return re.findall(r"(?m)^- `(.*?)`", told)


def talk(root: Path, story: Callable[[Talk], Awaitable[None]], flavour: str = "local") -> None:
    async def run() -> None:
        async with opened(root, flavour) as workspace, asyncio.timeout(DEADLINE):
            await story(Talk(workspace))

    asyncio.run(run())


# --- taking back


@pytest.mark.parametrize(
    "flavour",
    [pytest.param(flavour, marks=[] if flavour in ("local", "zed") else pytest.mark.slow) for flavour in FLAVOURS],
)
def test_every_kind_of_file_is_byte_for_byte_what_it_was(tmp_path, flavour):
    wrong: dict[str, object] = {}

    async def story(talk: Talk) -> None:
        for number, (name, case) in enumerate(CASES.items()):
            path = tmp_path / f"{number}.txt"
            path.write_bytes(case.content)
            path.chmod(0o750)
            talk.begin(name)
            await talk.hand.edit(path.name, case.old, case.new)
            assert path.read_bytes() == case.expected
            told = await talk.undo()
            if path.read_bytes() != case.content:
                wrong[name] = (told, path.read_bytes()[:200])
            assert path.stat().st_mode & 0o777 == 0o750

    talk(tmp_path, story, flavour)
    assert not wrong


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_file_that_changed_its_encoding_gets_it_back(tmp_path, flavour):
    """Without its only umlaut a file in Latin-1 looks like UTF-8, and another umlaut may make it look so."""
    path = tmp_path / "a.txt"

    async def story(talk: Talk) -> None:
        for content, old, new in (
            ("größe\n".encode("latin-1"), "größe", "size"),
            ("é und mehr\n".encode("latin-1"), "é und", "Ã© und"),
        ):
            path.write_bytes(content)
            talk.begin()
            await talk.hand.edit("a.txt", old, new)
            assert path.read_bytes() != content
            told = await talk.undo()
            assert "Restored: `a.txt`." in told
            assert path.read_bytes() == content

    talk(tmp_path, story, flavour)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_new_file_is_removed_and_shown_as_a_deletion(tmp_path, flavour):
    async def story(talk: Talk) -> None:
        talk.begin("make a file")
        await talk.hand.call("write", path="sub/new.py", content="x = 1\n")
        assert (tmp_path / "sub" / "new.py").exists()
        told = await talk.undo()
        assert not (tmp_path / "sub" / "new.py").exists()
        assert "make a file" in told, "the turn is named"
        assert "`sub/new.py`" in told
        [(title, result)] = talk.own_calls().items()
        assert title == "Remove sub/new.py"
        assert result.display == (DiffBlock(str(tmp_path / "sub" / "new.py"), "delete", "x = 1\n", ""),)
        assert [event.kind for event in talk.past if isinstance(event, CallDescribed)] == [ToolKind.DELETE]

    talk(tmp_path, story, flavour)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_folders_that_a_new_file_made_go_with_it_unless_something_lies_in_them(tmp_path, flavour):
    (tmp_path / "empty").mkdir()

    async def story(talk: Talk) -> None:
        talk.begin("make files")
        await talk.hand.call("write", path="new/deep/a.py", content="a\n")
        await talk.hand.call("write", path="new/deep/b.py", content="b\n")
        await talk.hand.call("write", path="empty/c.py", content="c\n")
        await talk.hand.call("write", path="used/deep/d.py", content="d\n")
        (tmp_path / "used" / "mine.txt").write_text("mine\n")
        await talk.undo()
        left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
        assert [path for path in left if path.partition("/")[0] in ("new", "empty", "used")] == [
            "empty",
            "used",
            "used/mine.txt",
        ]

    talk(tmp_path, story, flavour)


def test_several_changes_of_one_file_are_taken_back_at_once(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")

    async def story(talk: Talk) -> None:
        talk.begin()
        await talk.hand.edit("a.txt", "one", "1")
        await talk.hand.edit("a.txt", "two", "2")
        await talk.hand.call("write", path="a.txt", content="three\n", append=True)
        assert path.read_text() == "1\n2\nthree\n"
        await talk.undo()
        assert path.read_text() == "one\ntwo\n"
        [result] = talk.own_calls().values()
        assert result.display == (DiffBlock(str(path), "modify", "1\n2\nthree\n", "one\ntwo\n"),)

    talk(tmp_path, story)


def test_undo_twice_goes_one_turn_further_back(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("0")

    async def story(talk: Talk) -> None:
        for number in (1, 2, 3):
            talk.begin(f"make it {number}")
            await talk.hand.edit("a.txt", str(number - 1), str(number))
        assert "make it 3" in await talk.undo()
        assert path.read_text() == "2"
        assert "make it 2" in await talk.undo()
        assert path.read_text() == "1"
        talk.begin("make it 5")
        await talk.hand.edit("a.txt", "1", "5")
        assert "make it 5" in await talk.undo()
        assert "make it 1" in await talk.undo()
        assert path.read_text() == "0"
        assert await talk.undo() == NOTHING
        assert talk.undone() == ["t3", "t2", "t6", "t1"]

    talk(tmp_path, story)


def test_a_turn_that_changed_nothing_is_taken_from_the_conversation(tmp_path):
    async def story(talk: Talk) -> None:
        assert await talk.undo() == NOTHING
        turn = talk.begin("what is this?")
        told = await talk.undo()
        assert "what is this?" in told
        assert "changed no file" in told
        assert talk.undone() == [turn]

    talk(tmp_path, story)


def test_a_command_that_stands_for_a_prompt_is_a_turn_of_the_models(tmp_path):
    async def story(talk: Talk) -> None:
        for past in (lambda: talk.past, recent.past):
            talk.journal.append(TurnStarted("t1"))
            talk.journal.append(CommandGiven("t1-m1", (SentText("/review it"),)))
            talk.journal.append(UserSaid("t1-m2", (), (Text("Review it thoroughly."),)))
            turn = last_turn(past())
            assert turn is not None
            assert turn.name == "/review it"

    recent = MemoryLog()
    asyncio.run(story(Talk(LocalWorkspace([str(tmp_path)]), recent)))


def test_commands_that_ran_are_said_to_stay(tmp_path):
    async def story(talk: Talk) -> None:
        talk.begin()
        talk.journal.append(CallOpened("t1-c9", "terminal", ToolKind.EXECUTE, "`make`"))
        assert "commands" not in await talk.undo()  # it was never started
        talk.begin()
        talk.journal.append(CallOpened("t3-c9", "terminal", ToolKind.EXECUTE, "`make`"))
        talk.journal.append(CallStarted("t3-c9"))
        assert "ran commands" in await talk.undo()

    talk(tmp_path, story)


def test_what_tools_of_servers_did_is_said_to_stay(tmp_path):
    async def story(talk: Talk) -> None:
        talk.begin()
        talk.journal.append(CallOpened("t1-c9", "mcp__docs__write", ToolKind.OTHER, "docs: write"))
        told = await talk.undo()
        assert "MCP" not in told, "it was never started"
        assert talk.own_calls() == {}
        talk.begin()
        talk.journal.append(CallOpened("t3-c9", "mcp__docs__write", ToolKind.OTHER, "docs: write"))
        talk.journal.append(CallStarted("t3-c9"))
        told = await talk.undo()
        assert "MCP" in told

    talk(tmp_path, story)


def test_the_model_gets_none_of_the_calls_that_took_back(tmp_path):
    (tmp_path / "a.txt").write_text("one")

    async def story(talk: Talk) -> None:
        talk.begin("make it two")
        await talk.hand.edit("a.txt", "one", "two")
        await talk.undo()
        talk.begin("and now?")
        assert "undo" not in repr(talk.journal.history.messages())
        assert not [message for message in talk.journal.history.messages() if type(message).__name__ == "ToolMessage"]

    talk(tmp_path, story)


# --- what is not ours stays


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_file_that_the_person_changed_since_is_left_and_named(tmp_path, flavour):
    mine, ours = tmp_path / "mine.txt", tmp_path / "ours.txt"
    mine.write_text("one\n")
    ours.write_text("one\n")

    async def story(talk: Talk) -> None:
        turn = talk.begin()
        await talk.hand.edit("mine.txt", "one", "two")
        await talk.hand.edit("ours.txt", "one", "two")
        mine.write_text("two and mine\n")
        told = await talk.undo()
        assert mine.read_text() == "two and mine\n"
        assert ours.read_text() == "one\n"
        assert left(told) == ["mine.txt"]
        assert "`ours.txt`" in told
        assert talk.undone() == [turn]

    talk(tmp_path, story, flavour)


def test_if_nothing_can_be_taken_back_the_turn_stays_until_it_can(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    async def story(talk: Talk) -> None:
        turn = talk.begin()
        await talk.hand.edit("a.txt", "one", "two")
        path.write_text("mine\n")
        told = await talk.undo()
        assert left(told) == ["a.txt"]
        assert talk.undone() == []
        path.write_text("two\n")
        assert left(await talk.undo()) == []
        assert talk.undone() == [turn]
        assert path.read_text() == "one\n"

    talk(tmp_path, story)


def test_what_the_person_wrote_between_two_changes_of_a_turn_is_not_lost(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")

    async def story(talk: Talk) -> None:
        talk.begin()
        await talk.hand.edit("a.txt", "one", "1")
        path.write_text(path.read_text() + "mine\n")
        await talk.hand.edit("a.txt", "two", "2")
        told = await talk.undo()
        assert path.read_text() == "1\n2\nmine\n"
        assert left(told) == ["a.txt"]

    talk(tmp_path, story)


def test_what_the_person_wrote_while_they_were_asked_is_kept(tmp_path):
    """The change was carried over to the newer text: that is what an undo goes back to."""
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n")

    async def story(talk: Talk) -> None:
        talk.begin()
        action = await talk.hand.prepare("edit", path="a.txt", edits=[{"old": "one", "new": "1"}])
        path.write_text("one\ntwo\nmine\n")
        await action.perform(talk.journal)
        assert path.read_text() == "1\ntwo\nmine\n"
        assert len([event for event in talk.past if isinstance(event, FileBackedUp)]) == 2
        await talk.undo()
        assert path.read_text() == "one\ntwo\nmine\n"

    talk(tmp_path, story)


def test_a_file_that_is_gone_or_no_longer_a_file_is_left(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("keep me")

    async def story(talk: Talk) -> None:
        for name in ("gone", "link", "folder", "made"):
            if name != "made":
                (tmp_path / name).write_text("one")
        talk.begin()
        for name in ("gone", "link", "folder"):
            await talk.hand.edit(name, "one", "keep me")
        await talk.hand.call("write", path="made", content="new")
        for name in ("gone", "link", "folder", "made"):
            (tmp_path / name).unlink()
        (tmp_path / "link").symlink_to(secret)
        (tmp_path / "folder").mkdir()
        told = await talk.undo()
        assert sorted(left(told)) == ["folder", "gone", "link"]
        assert "`made`" in told
        assert secret.read_text() == "keep me"
        assert (tmp_path / "folder").is_dir()
        assert (tmp_path / "link").is_symlink()

    talk(tmp_path, story)


def test_a_change_that_was_cut_off_is_taken_back_only_if_nothing_came_of_it(tmp_path):
    class Torn(LocalWorkspace):
        """Stops in the middle, as a machine does that loses its power: before or after the file was replaced."""

        replaces = False

        async def write_document(self, path, text, before, *, like=None):
            if self.replaces:
                await super().write_document(path, text, before, like=like)
            raise WorkspaceError("The power went.")

    for replaces in (False, True):
        path = tmp_path / "a.txt"
        path.write_text("one")

        async def story(replaces: bool = replaces, path: Path = path) -> None:
            workspace = Torn([str(tmp_path)])
            workspace.replaces = replaces
            talk = Talk(workspace)
            talk.begin()
            with pytest.raises(WorkspaceError, match="The power went"):
                await talk.hand.edit("a.txt", "one", "two")
            talk.workspace = LocalWorkspace([str(tmp_path)])
            told = await talk.undo()
            if replaces:
                assert path.read_text() == "two"
                assert left(told) == ["a.txt"]
            else:
                assert left(told) == []
                assert "`a.txt`" in told

        asyncio.run(story())


def test_a_file_that_cannot_be_written_is_named_and_its_call_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")

    class Full(LocalWorkspace):
        async def write_document(self, path, text, before, *, like=None):
            raise WorkspaceError("The disk is full.")

    async def story(talk: Talk) -> None:
        talk.begin()
        await talk.hand.edit("a.txt", "one", "two")
        talk.workspace = Full([str(tmp_path)])
        told = await talk.undo()
        assert left(told) == ["a.txt"]
        assert "The disk is full." in told
        [result] = talk.own_calls().values()
        assert not result.ok
        talk.workspace = LocalWorkspace([str(tmp_path)])
        await talk.undo()
        assert path.read_text() == "one"
        opened = [event.call_id for event in talk.past if isinstance(event, CallOpened) and event.own]
        assert opened == ["t1-u1", "t1-u2"]  # two calls, two ids

    talk(tmp_path, story)


def test_an_undo_that_was_interrupted_can_be_finished(tmp_path):
    names = ("a.txt", "b.txt", "c.txt")
    for name in names:
        (tmp_path / name).write_text("one")

    class Slow(LocalWorkspace):
        """Gets stuck at the second file."""

        async def write_document(self, path, text, before, *, like=None):
            if path.real.endswith("b.txt"):
                stuck.set()
                await asyncio.Event().wait()
            return await super().write_document(path, text, before, like=like)

    async def story(talk: Talk) -> None:
        turn = talk.begin()
        for name in names:
            await talk.hand.edit(name, "one", "two")
        talk.workspace = Slow([str(tmp_path)])
        undoing = asyncio.create_task(talk.undo())
        await stuck.wait()
        undoing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await undoing
        assert talk.undone() == []
        assert [result.ok for result in talk.own_calls().values()] == [True, False]
        talk.workspace = LocalWorkspace([str(tmp_path)])
        told = await talk.undo()
        assert left(told) == []
        assert [name for name in names if f"`{name}`" not in told] == []
        assert talk.undone() == [turn]
        assert {(tmp_path / name).read_text() for name in names} == {"one"}

    stuck = asyncio.Event()
    talk(tmp_path, story)


# --- editors


def test_the_editors_buffer_goes_back_with_the_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    async def story() -> None:
        editor = Zed(tmp_path)
        editor.reloads = False  # its buffer changes only through us
        async with connected(tmp_path, editor) as workspace:
            talk = Talk(workspace)
            talk.begin()
            await talk.hand.edit("a.txt", "one", "two")
            assert editor.text(str(path)) == "two\n"
            await talk.undo()
            assert editor.text(str(path)) == "one\n"
            assert path.read_text() == "one\n"
            assert editor.asked.count("write") == 2

    asyncio.run(story())


def test_unsaved_text_of_the_person_is_a_change_since(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    async def story() -> None:
        editor = RawEditor(tmp_path)
        async with connected(tmp_path, editor) as workspace:
            talk = Talk(workspace)
            talk.begin()
            await talk.hand.edit("a.txt", "one", "two")
            editor.typed(str(path), lambda text: text + "typed\n")
            told = await talk.undo()
            assert left(told) == ["a.txt"]
            assert editor.text(str(path)) == "two\ntyped\n"
            assert path.read_text() == "two\n"

    asyncio.run(story())


def test_an_editor_that_formats_is_no_change_of_the_persons(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\n")

    async def story() -> None:
        editor = Zed(tmp_path)
        editor.format = lambda text: text.replace("two", "TWO")
        async with connected(tmp_path, editor) as workspace:
            talk = Talk(workspace)
            talk.begin()
            await talk.hand.edit("a.txt", "one", "two")
            assert path.read_text() == "TWO\n"
            editor.format = lambda text: text.upper()
            told = await talk.undo()
            assert left(told) == []
            assert "`a.txt` (" in told, "with a remark"
            assert path.read_text() == "ONE\n"

    asyncio.run(story())


# --- what is stored, and when


class Broken(MemoryLog):
    """A store that fails when a change of a file is to be stored."""

    _fails = False

    def add(self, event: Event) -> None:
        super().add(event)
        self._fails = isinstance(event, FileBackedUp)

    def store_all(self, *, full: bool = False, within: float | None = None) -> "asyncio.Future[None]":
        future = super().store_all()
        if self._fails:
            future = asyncio.get_running_loop().create_future()
            future.set_exception(StorageFailed("The disk is full."))
        return future


def test_nothing_is_written_if_what_it_replaces_cannot_be_stored(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")

    async def story() -> None:
        talk = Talk(LocalWorkspace([str(tmp_path)]), Broken())
        talk.begin()
        with pytest.raises(StorageFailed):
            await talk.hand.edit("a.txt", "one", "two")
        with pytest.raises(StorageFailed):
            await talk.hand.call("write", path="b.txt", content="new")
        assert path.read_text() == "one"
        assert not (tmp_path / "b.txt").exists()

    asyncio.run(story())


def test_a_change_is_told_before_the_write_and_what_became_of_it_after(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("größe\r\n".encode("latin-1"))
    seen: list[tuple[str, bytes]] = []

    class Watching(RecordingSink):
        def take(self, event: Event) -> None:
            super().take(event)
            if isinstance(event, FileBackedUp | FileWritten):
                seen.append((type(event).__name__, path.read_bytes()))

    async def story(talk: Talk) -> None:
        watching = Watching()
        talk.journal.subscribe(watching)
        talk.begin()
        await talk.hand.edit("a.txt", "größe", "maß")
        changing, written = watching.events[-2:]
        assert isinstance(changing, FileBackedUp)
        assert changing.call_id == "t1-c1"
        assert changing.before is not None
        assert (changing.before.text, changing.before.encoding) == ("größe\r\n", "latin-1")
        assert written == FileWritten("t1-c1", str(path), digest_of("maß\r\n"))

    talk(tmp_path, story)
    assert seen == [("FileBackedUp", "größe\r\n".encode("latin-1")), ("FileWritten", "maß\r\n".encode("latin-1"))]


# --- a session that is not stored


def test_a_session_that_is_not_stored_can_take_back_too(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")

    async def story() -> None:
        recent = MemoryLog()
        talk = Talk(LocalWorkspace([str(tmp_path)]), recent)
        talk.begin()
        await talk.hand.edit("a.txt", "one", "two")
        told = await undo_last_turn(recent.past(), talk.journal, talk.workspace)
        assert left(told) == []
        assert path.read_text() == "one"
        assert last_turn(recent.past()) is None

    asyncio.run(story())


def test_what_is_kept_in_memory_has_a_limit_and_no_turn_is_kept_by_halves(monkeypatch):
    monkeypatch.setattr(persistence, "LARGEST_IN_MEMORY", 10_000)
    recent = MemoryLog()
    for number in range(1, 6):
        recent.add(TurnStarted(f"t{number}"))
        recent.add(FileBackedUp("c", f"/{number}/a", Before("x" * 1500)))
        recent.add(FileBackedUp("c", f"/{number}/b", Before("x" * 1500)))
        recent.add(UserSaid("m", (), ()))
    past = recent.past()
    assert sum(len(event.before.text) for event in past if isinstance(event, FileBackedUp) and event.before) <= 10_000
    turns = [event.turn_id for event in past if isinstance(event, TurnStarted)]
    assert turns[-1] == "t5"
    turn = last_turn(past)
    assert turn is not None
    assert [change.path for change in turn.changes()] == ["/5/b", "/5/a"]
    recent.add(TurnStarted("t6"))
    recent.add(FileBackedUp("c", "/6/a", Before("x" * 9_900)))
    assert last_turn(recent.past()) is None


OLD, ONE, TWO = (Before(text) for text in ("old", "one", "two"))
ONE_WRITTEN = FileWritten("c1", "/a", digest_of("one"))
TWO_WRITTEN = FileWritten("c2", "/a", digest_of("two"))


@pytest.mark.parametrize(
    "events",
    [
        [FileBackedUp("c1", "/a", OLD), FileBackedUp("c2", "/a", OLD), ONE_WRITTEN],
        [FileBackedUp("c1", "/a", OLD), ONE_WRITTEN, FileBackedUp("c2", "/a", OLD)],
        [FileBackedUp("c1", "/a", OLD), FileBackedUp("c2", "/a", ONE), ONE_WRITTEN, TWO_WRITTEN],
    ],
    ids=["the second wrote nothing", "the second began too late", "the second saw the first before it was told of"],
)
def test_calls_that_change_a_file_side_by_side_are_taken_back_to_what_was_before_both(events):
    turn = PastTurn("t1")
    turn.events += events
    [change] = turn.changes()
    last = TWO_WRITTEN if TWO_WRITTEN in events else ONE_WRITTEN
    assert (change.before, change.mixed, change.digest) == (OLD, False, last.digest)


def test_also_in_memory_a_turn_knows_of_the_commands_of_its_subagents():
    recent = MemoryLog()
    recent.add(TurnStarted("t1"))
    recent.add(UserSaid("t1-m1", (), ()))
    for event in (
        TurnStarted("t1-c1_t1"),
        UserSaid("t1-c1_t1-m1", (), ()),
        CallOpened("t1-c1_t1-c1", "terminal", ToolKind.EXECUTE, "`true`"),
        CallStarted("t1-c1_t1-c1"),
        TurnEnded("t1-c1_t1", StopReason.END_TURN),
    ):
        recent.add(SubagentDid("t1-c1", event))
    turn = last_turn(recent.past())
    assert turn is not None
    assert (turn.id, bool(turn.remarks)) == ("t1", True)
