"""Races for a path: whatever is swapped on it, and whenever, no byte is written or shown that was not judged.

`sub` in the project is a folder at one moment. At the next it is a symbolic link, which leads out of the project or to
where git runs what it finds; or it is another folder that was moved there. The swaps happen at every moment at which
a path is looked at, in an order drawn from a seed: that makes each order certain to be played, however fast the
machine is. A second kind of race swaps in another process, as fast as it can, and relies on luck; `make soak` plays
many of both.
"""

import asyncio
import ctypes
import os
import random
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from crow.acp import wire
from crow.files import local, resolved_path
from crow.files.base import Workspace
from crow.files.local import LocalWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.mcp.server.clients import OpenFolders, ServedWorkspace
from crow.mcp.server.file_editor import FileEditor, PastEdits
from crow.mcp.server.server import serve_call
from crow.messages import ToolCall
from crow.policy.base import Allow
from crow.policy.rule_policy import RulePolicy, judge_in
from crow.results import ToolResult
from crow.rpc.connection import PendingRequest
from crow.search import listing, search
from crow.search.search import Searcher
from crow.tools.base import Tool
from crow.tools.edit import Edit
from crow.tools.read import Read, ReadTracker
from crow.tools.search import Find, Search
from crow.tools.write import Write
from tests.search.test_search import RIPGREP
from tests.session.test_undo import Talk
from tests.support.buffers import RawEditor, connected

ROUNDS = int(os.environ.get("CROW_RACES", "6"))
SEED = os.environ.get("CROW_RACES_SEED", "1")

FOREIGN = "not for the model"
"""Stands in every file that the link leads to."""
FILE = "sub/file"


class Field:
    """A project with a folder that can be swapped, and what must stay as it is."""

    def __init__(self, base: Path, target: str) -> None:
        self.base = base
        self.root = base / "project"
        self.sub, self.away = self.root / "sub", base / "away"
        self.sub.mkdir(parents=True)
        (self.root / ".git/hooks").mkdir(parents=True)
        (base / "outside").mkdir()
        self.target = self.root / ".git/hooks" if target == "hooks" else base / "outside"
        self.is_moved_in = target == "moved in"
        self.is_swapped = False
        (self.sub / "file").write_text("one\ntwo\n")
        (self.target / "file").write_text(f"one\ntwo\n{FOREIGN}\n")
        (self.target / "theirs").write_text(f"{FOREIGN}\n")
        self.foreign = self._content()

    def pretend(self, name: str, text: str) -> None:
        """A foreign file that looks like the one that we left in the project: only its place tells the two apart."""
        (self.target / name).write_text(text)
        self.foreign = self._content()

    def _content(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.target.iterdir()}

    def swap(self, swapped: bool) -> None:
        if swapped and not self.is_swapped:
            self.sub.rename(self.away)
            if self.is_moved_in:
                self.target.rename(self.sub)
            else:
                self.sub.symlink_to(self.target)
        elif not swapped and self.is_swapped:
            if self.is_moved_in:
                self.sub.rename(self.target)
            else:
                self.sub.unlink()
            self.away.rename(self.sub)
        self.is_swapped = swapped

    def check(self, told: str) -> None:
        assert self._content() == self.foreign
        if self.target.name == "outside":  # what lies in the project may be read
            assert FOREIGN not in told
            assert "theirs" not in told


class Swaps:
    """Swaps or not, as the seed says, at each look at a path, once it is told to begin."""

    def __init__(self, field: Field, seed: str) -> None:
        self._field = field
        self._dice = random.Random(seed)
        self._has_begun = self._waits = False

    def begin(self) -> None:
        """What is moved in before a path is resolved lies in the project when it is judged. Then it is no race."""
        self._waits = self._field.is_moved_in
        self._has_begun = True

    def resolved(self) -> None:
        self._waits = False

    def look(self) -> None:
        if self._has_begun and not self._waits:
            self._field.swap(self._dice.random() < 0.5)


class Race(NamedTuple):
    """One race: what is played on the field, and what makes the swapping begin."""

    field: Field
    begin: Callable[[], None]
    look: Callable[[], None]
    """What the editor does before it looks at a file."""


Play = Callable[[Race], Coroutine[Any, Any, str]]
"""Gives all that the model and the person were told."""


# --- the calls


def rules_of(workspace: Workspace) -> OpenFolders:
    policy = RulePolicy(list(workspace.roots), mode="edit")
    return OpenFolders(workspace, lambda deed: "" if isinstance(policy.judge(deed), Allow) else "asks")


async def run_call(tool: Tool, arguments: dict[str, Any], folders: OpenFolders) -> str:
    async def report(number: float, message: str) -> None:
        pass

    call = ToolCall("c1", tool.spec.name, msgspec.json.encode(arguments).decode())
    result = await serve_call(tool, call, folders, report)
    if arguments.get("pattern") == FOREIGN:
        return f"{FOREIGN}: {result.text}" if result.ok and result.message != "No matches" else ""
    return told_by(result)


def told_by(result: ToolResult) -> str:
    return f"{result.text}\n{result.message}\n{result.display}"


def calls(tool: Callable[[], Tool], **arguments: Any) -> Play:
    async def play(race: Race) -> str:
        folders = rules_of(LocalWorkspace([str(race.field.root)]))
        race.begin()
        return await run_call(tool(), arguments, folders)

    return play


def searches(ripgrep: str | None, pattern: str, mode: str) -> Play:
    return calls(lambda: Search(lambda path: False, Searcher(ripgrep)), pattern=pattern, mode=mode)


def serves(**arguments: Any) -> Play:
    """By `crow mcp`, in whose workspace everything outside is refused when it is resolved."""

    async def play(race: Race) -> str:
        edits = PastEdits()
        folders = _served(race.field, edits)
        race.begin()
        return await run_call(FileEditor(ReadTracker(), edits), arguments, folders)

    return play


def _served(field: Field, edits: PastEdits) -> OpenFolders:
    root = str(field.root)
    judge = judge_in([root], "", home=str(field.base / "home"), rules=(), allow_protected=False)
    return OpenFolders(ServedWorkspace([root], edits), judge)


def serves_undo(path: str, **arguments: Any) -> Play:
    """`undo_edit`, after a call that changed the file."""

    async def play(race: Race) -> str:
        edits = PastEdits()
        folders = _served(race.field, edits)
        editor = FileEditor(ReadTracker(), edits)
        await run_call(editor, {"path": path, **arguments}, folders)
        left = race.field.root / path
        race.field.pretend(left.name, left.read_text())
        race.begin()
        return await run_call(editor, {"command": "undo_edit", "path": path}, folders)

    return play


async def undo(race: Race, workspace: Workspace, tool: str, arguments: dict[str, Any]) -> str:
    """`/undo`, after a turn that changed the file."""
    talk = Talk(workspace)
    talk.begin()
    await talk.hand.call(tool, **arguments)
    left = race.field.root / arguments["path"]
    race.field.pretend(left.name, left.read_text())
    race.begin()
    told = await talk.undo()
    return "\n".join([told, *map(told_by, talk.own_calls().values())])


def undoes(tool: str, **arguments: Any) -> Play:
    return lambda race: undo(race, LocalWorkspace([str(race.field.root)]), tool, arguments)


# --- the same through an editor


class Follower(RawEditor):
    """Opens what a name leads to at that moment."""

    def __init__(self, root: Path, look: Callable[[], None]) -> None:
        super().__init__(root)
        self._look = look

    def read(self, request: wire.ReadTextFileRequest, pending: PendingRequest) -> Any:
        self._look()
        return super().read(request, pending)


@asynccontextmanager
async def edited(race: Race) -> AsyncIterator[Workspace]:
    async with connected(race.field.root, Follower(race.field.root, race.look)) as workspace:
        yield workspace


def calls_in_editor(tool: Callable[[], Tool], **arguments: Any) -> Play:
    async def play(race: Race) -> str:
        async with edited(race) as workspace:
            await workspace.read_document(ResolvedPath(str(race.field.root / FILE)))  # a search asks for it then
            race.begin()
            return await run_call(tool(), arguments, rules_of(workspace))

    return play


def undoes_in_editor(tool: str, **arguments: Any) -> Play:
    async def play(race: Race) -> str:
        async with edited(race) as workspace:
            return await undo(race, workspace, tool, arguments)

    return play


CREATE = {"path": "sub/new", "content": "ours\n"}
APPEND = {"path": FILE, "content": "ours\n", "append": True}
EDIT = {"path": FILE, "edits": [{"old": "two", "new": "ours"}]}
REPLACE = {"command": "str_replace", "path": FILE, "old_str": "two", "new_str": "ours"}
MAKE = {"command": "create", "path": "sub/new", "file_text": "x"}

RACES: dict[str, Play] = {
    "write": calls(lambda: Write(ReadTracker()), **CREATE),
    "append": calls(lambda: Write(ReadTracker()), **APPEND),
    "edit": calls(lambda: Edit(ReadTracker()), **EDIT),
    "read": calls(lambda: Read(ReadTracker()), path=FILE),
    "undo of an edit": undoes("edit", **EDIT),
    "undo of a new file": undoes("write", **CREATE),
    "view": serves(command="view", path=FILE),
    "create": serves(**MAKE),
    "str_replace": serves(**REPLACE),
    "insert": serves(command="insert", path=FILE, insert_line=1, new_str="ours"),
    "undo_edit": serves_undo(**REPLACE),
    "undo_edit of a new file": serves_undo(**MAKE),
    "read in the editor": calls_in_editor(lambda: Read(ReadTracker()), path=FILE),
}
"""What names one file: it must be the one in the folder that was there when the path was resolved."""

WRITES_IN_EDITOR: dict[str, Play] = {
    "write in the editor": calls_in_editor(lambda: Write(ReadTracker()), **CREATE),
    "append in the editor": calls_in_editor(lambda: Write(ReadTracker()), **APPEND),
    "edit in the editor": calls_in_editor(lambda: Edit(ReadTracker()), **EDIT),
    "undo in the editor": undoes_in_editor("edit", **EDIT),
}
"""An editor writes by name. Up to the moment at which it is told to, nothing must lead it astray; what is swapped
after that is beyond us, so that nobody is promised the outcome of a race with another process."""

LOOKS_BELOW: dict[str, Play] = {
    "list": calls(lambda: Read(ReadTracker()), path="sub"),
    "find": calls(lambda: Find(Searcher(None)), pattern="*"),
    "search": searches(None, "o", "content"),
    "count": searches(None, FOREIGN, "count"),
    "search in the editor": calls_in_editor(lambda: Search(lambda path: False, Searcher(None)), pattern=FOREIGN),
}
"""What looks at all that lies below a folder: a folder that was moved in lies there too."""
if RIPGREP is not None:
    LOOKS_BELOW |= {
        "search, ripgrep": searches(RIPGREP, "o", "content"),
        "files, ripgrep": searches(RIPGREP, FOREIGN, "files"),
        "count, ripgrep": searches(RIPGREP, FOREIGN, "count"),
    }


# --- swaps at every look at a path


@contextmanager
def swapping(swaps: Swaps, field: Field, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            swaps.look()
            return real(*arguments, **options)

        return called

    def resolve(real: Callable[..., Any] = local.resolve_path) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            resolved = real(*arguments, **options)
            swaps.resolved()
            return resolved

        return called

    with monkeypatch.context() as patches:
        patches.setattr(os.path, "realpath", before(os.path.realpath))
        patches.setattr(resolved_path.PinnedFile, "__init__", before(resolved_path.PinnedFile.__init__))
        patches.setattr(resolved_path.PinnedFile, "status", before(resolved_path.PinnedFile.status))
        patches.setattr(listing, "walk", before(listing.walk))
        patches.setattr(local, "document", before(local.document))
        patches.setattr(search, "output_of", before(search.output_of))
        if field.is_moved_in:
            patches.setattr(local, "resolve_path", resolve())
        yield
    field.swap(False)


LINKED = [(name, target) for name in RACES | WRITES_IN_EDITOR | LOOKS_BELOW for target in ("outside", "hooks")]
MOVED_IN = [(name, "moved in") for name in RACES | WRITES_IN_EDITOR]


@pytest.mark.parametrize(("name", "target"), LINKED + MOVED_IN)
def test_no_swap_at_any_look_leads_a_call_astray(tmp_path, monkeypatch, name, target):
    play = (RACES | WRITES_IN_EDITOR | LOOKS_BELOW)[name]
    for number in range(ROUNDS):
        field = Field(tmp_path / str(number), target)
        swaps = Swaps(field, f"{SEED}/{name}/{number}")
        with swapping(swaps, field, monkeypatch):
            told = asyncio.run(play(Race(field, swaps.begin, swaps.look)))
        field.check(told)
        shutil.rmtree(field.base)


# --- swaps by another process

SWAPPER = """
import ctypes, os, select, sys
exchange = ctypes.CDLL(None).renameat2

def swaps_until_told(one, other):
    count = 0
    while count % 2 or not select.select([0], [], [], 0)[0]:
        if exchange(-100, one, -100, other, 2):
            return
        count += 1

while order := os.read(0, 65536):
    if order != b"stop":
        os.write(1, b"begun")
        swaps_until_told(*order.split(b"\\0"))
    else:
        os.write(1, b"ended")
"""
"""Swaps two names in one step, so that there is something under both at every moment."""


class Swapper:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SWAPPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def begin(self, field: Field) -> None:
        field.away.symlink_to(field.target)
        self._order(b"\0".join(map(os.fsencode, (field.sub, field.away))), b"begun")

    def stop(self, field: Field) -> None:
        self._order(b"stop", b"ended")
        assert not field.sub.is_symlink()

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _order(self, order: bytes, answer: bytes) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(order)
        assert self._process.stdout.read(len(answer)) == answer


@pytest.fixture
def swapper() -> Iterator[Swapper]:
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("this system cannot swap two names in one step")
    swapper = Swapper()
    yield swapper
    swapper.end()


@pytest.mark.parametrize("target", ["outside", "hooks"])
@pytest.mark.parametrize("name", RACES | LOOKS_BELOW)
def test_nobody_who_swaps_as_fast_as_can_be_leads_a_call_astray(tmp_path, swapper, name, target):
    play = (RACES | LOOKS_BELOW)[name]
    for number in range(ROUNDS):
        field = Field(tmp_path / str(number), target)
        begun: list[bool] = []

        def begin(field: Field = field, begun: list[bool] = begun) -> None:
            swapper.begin(field)
            begun.append(True)

        told = asyncio.run(play(Race(field, begin, lambda: None)))
        assert begun
        swapper.stop(field)
        field.check(told)
        shutil.rmtree(field.base)
