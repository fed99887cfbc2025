"""Races for a path: whatever is swapped on it, and whenever, no byte is written or shown that was not judged.

`sub` in the project is a folder at one moment and a symbolic link at the next, which leads out of it or to where git
runs what it finds. The swaps happen at every moment at which a path is looked at, in an order drawn from a seed: that
makes each order certain to be played, however fast the machine is. A second kind of race swaps in another process, as
fast as it can, and relies on luck; `make soak` plays many of both.
"""

import asyncio
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from crow.mcp.serving.calling import OpenFolders, serve_call
from crow.mcp.serving.edits import PastEdits
from crow.mcp.serving.file_editor import FileEditor
from crow.mcp.serving.workspace import ServedWorkspace
from crow.messages import ToolCall
from crow.policy.base import Allow
from crow.policy.rules import RulePolicy
from crow.policy.unattended import judge_in
from crow.results import ToolResult
from crow.tools.base import Tool
from crow.tools.edit import Edit
from crow.tools.find import Find
from crow.tools.read import Read
from crow.tools.search import Search
from crow.tools.seen import Seen
from crow.tools.write import Write
from crow.workspace import listing, local, place, search
from crow.workspace.base import Workspace
from crow.workspace.local import LocalWorkspace
from crow.workspace.search import Searcher
from tests.workspace.test_search import RIPGREP

ROUNDS = int(os.environ.get("CROW_RACES", "40"))
SEED = os.environ.get("CROW_RACES_SEED", "1")

FOREIGN = "not for the model"
"""Stands in every file that the link leads to."""


class Field:
    """A project with a folder that can be swapped for a link, and what must stay as it is."""

    def __init__(self, base: Path, target: str) -> None:
        self.root = base / "project"
        self.sub, self.away = self.root / "sub", base / "away"
        self.sub.mkdir(parents=True)
        (self.root / ".git/hooks").mkdir(parents=True)
        (base / "outside").mkdir()
        self.target = {"outside": base / "outside", "hooks": self.root / ".git/hooks"}[target]
        self.is_swapped = False
        self._fill()
        self.foreign = self._content()

    def _fill(self) -> None:
        (self.sub / "file").write_text("one\ntwo\n")
        (self.target / "file").write_text(f"one\ntwo\n{FOREIGN}\n")
        (self.target / "theirs").write_text(f"{FOREIGN}\n")

    def _content(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.target.iterdir()}

    def swap(self, swapped: bool) -> None:
        if swapped and not self.is_swapped:
            self.sub.rename(self.away)
            self.sub.symlink_to(self.target)
        elif not swapped and self.is_swapped:
            self.sub.unlink()
            self.away.rename(self.sub)
        self.is_swapped = swapped

    def check(self, told: str) -> None:
        assert self._content() == self.foreign
        if self.target.name == "outside":  # what lies in the project may be read
            assert FOREIGN not in told
            assert "theirs" not in told

    def check_nothing_found(self, result: ToolResult) -> None:
        if self.target.name == "outside":
            assert result.message == "No matches" or not result.ok, result.text


class Race(NamedTuple):
    tool: Callable[[], Tool]
    arguments: dict[str, Any]
    served: bool = False
    """By `crow mcp`, in whose workspace everything outside is refused when it is resolved."""

    needs_ripgrep: bool = False


def _search(ripgrep: str | None = None) -> Search:
    return Search(lambda path: False, Searcher(ripgrep))


def _ripgrep_race(mode: str, pattern: str = FOREIGN) -> Race:
    return Race(lambda: _search(RIPGREP), {"pattern": pattern, "mode": mode}, needs_ripgrep=True)


SEEN = "sub/file"
RACES: dict[str, Race] = {
    "write": Race(lambda: Write(Seen()), {"path": "sub/new", "content": "ours\n"}),
    "append": Race(lambda: Write(Seen()), {"path": SEEN, "content": "ours\n", "append": True}),
    "edit": Race(lambda: Edit(Seen()), {"path": SEEN, "edits": [{"old": "two", "new": "ours"}]}),
    "read": Race(lambda: Read(Seen()), {"path": SEEN}),
    "list": Race(lambda: Read(Seen()), {"path": "sub"}),
    "find": Race(lambda: Find(Searcher(None)), {"pattern": "*"}),
    "search": Race(_search, {"pattern": "o"}),
    "count": Race(_search, {"pattern": FOREIGN, "mode": "count"}),
    "search, ripgrep": _ripgrep_race("content", "o"),
    "files, ripgrep": _ripgrep_race("files"),
    "count, ripgrep": _ripgrep_race("count"),
    "view": Race(lambda: FileEditor(Seen(), PastEdits()), {"command": "view", "path": SEEN}, served=True),
    "create": Race(
        lambda: FileEditor(Seen(), PastEdits()), {"command": "create", "path": "sub/new", "file_text": "x"}, served=True
    ),
    "str_replace": Race(
        lambda: FileEditor(Seen(), PastEdits()),
        {"command": "str_replace", "path": SEEN, "old_str": "two", "new_str": "ours"},
        served=True,
    ),
    "insert": Race(
        lambda: FileEditor(Seen(), PastEdits()),
        {"command": "insert", "path": SEEN, "insert_line": 1, "new_str": "ours"},
        served=True,
    ),
}


def opened(field: Field, race: Race, workspace: Workspace | None = None) -> OpenFolders:
    root = str(field.root)
    if race.served:
        judge = judge_in([root], "", home=str(field.root.parent / "home"), rules=(), allow_protected=False)
        return OpenFolders(ServedWorkspace([root], PastEdits()), judge)
    policy = RulePolicy([root], mode="edit")
    workspace = workspace or LocalWorkspace([root])
    return OpenFolders(workspace, lambda deed: "" if isinstance(policy.judge(deed), Allow) else "asks")


async def run_call(tool: Tool, arguments: dict[str, Any], folders: OpenFolders) -> ToolResult:
    async def report(number: float, message: str) -> None:
        pass

    call = ToolCall("c1", tool.spec.name, msgspec.json.encode(arguments).decode())
    return await serve_call(tool, call, folders, report)


def told_by(result: ToolResult) -> str:
    return f"{result.text}\n{result.message}\n{result.display}"


# --- swaps at every look at a path


@contextmanager
def swapping(field: Field, seed: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Swaps or not, as the seed says, before each look at a path and before each folder on the way is opened."""
    dice = random.Random(seed)

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            field.swap(dice.random() < 0.5)
            return real(*arguments, **options)

        return called

    with monkeypatch.context() as patches:
        patches.setattr(os.path, "realpath", before(os.path.realpath))
        patches.setattr(place.Place, "__init__", before(place.Place.__init__))
        patches.setattr(place.Place, "status", before(place.Place.status))
        patches.setattr(listing, "walk", before(listing.walk))
        patches.setattr(local, "document", before(local.document))
        patches.setattr(search, "output_of", before(search.output_of))
        yield
    field.swap(False)


@pytest.mark.parametrize("target", ["outside", "hooks"])
@pytest.mark.parametrize("name", RACES)
def test_no_swap_at_any_look_leads_a_call_astray(tmp_path, monkeypatch, name, target):
    race = RACES[name]
    if race.needs_ripgrep and RIPGREP is None:
        pytest.skip("ripgrep is not installed; CROW_TEST_RG may name one")
    for number in range(ROUNDS):
        base = tmp_path / str(number)
        field = Field(base, target)
        folders = opened(field, race)
        with swapping(field, f"{SEED}/{name}/{number}", monkeypatch):
            result = asyncio.run(run_call(race.tool(), race.arguments, folders))
        field.check(told_by(result))
        if race.arguments.get("pattern") == FOREIGN:
            field.check_nothing_found(result)
