"""`search` where an editor holds text that is not on disk: the person's text counts, and the editor is asked little."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.acp import wire
from crow.acp.workspace import LARGEST_SENT, ClientWorkspace
from crow.files.resolved_path import ResolvedPath
from crow.messages import ToolCall
from crow.results import ToolResult
from crow.rpc.connection import PendingRequest
from crow.rpc.jsonrpc import RpcError
from crow.search import search_matches
from crow.search.search import Limits, Searcher
from crow.tools.search import Search
from tests.search.test_search import BOTH
from tests.support.buffers import RawEditor, Zed, connected
from tests.support.recording import RecordingJournal


@pytest.fixture(params=BOTH)
def ripgrep(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.py").write_text("one\nneedle\n")
    (folder / "b.py").write_text("one\ntwo\n")
    (folder / "c.py").write_text("needle\n")
    return folder


def is_secret(path: str) -> bool:
    return path.endswith(".pem")


async def search(workspace: ClientWorkspace, ripgrep: str | None, limits: Limits | None = None, **more: Any) -> str:
    return (await result_of_search(workspace, ripgrep, limits, **more)).text


async def result_of_search(
    workspace: ClientWorkspace, ripgrep: str | None, limits: Limits | None = None, **more: Any
) -> ToolResult:
    call = ToolCall("c1", "search", msgspec.json.encode({"pattern": "needle", **more}).decode())
    action = await Search(is_secret, Searcher(ripgrep, limits)).prepare(call, workspace)
    return await action.perform(RecordingJournal())


def searched(editor: RawEditor, ripgrep: str | None, *known: str, limits: Limits | None = None, **more: Any) -> str:
    """What a search finds after these files have been read through the editor."""

    async def run() -> str:
        async with connected(editor.root, editor) as workspace:
            for name in known:
                await workspace.read_document(ResolvedPath(str(editor.root / name)))
            editor.asked.clear()
            return await search(workspace, ripgrep, limits, **more)

    return asyncio.run(run())


@pytest.mark.parametrize("kind", [RawEditor, Zed])
def test_a_known_buffer_is_searched_instead_of_the_file(project, ripgrep, kind):
    editor = kind(project)
    editor.typed(str(project / "b.py"), lambda text: text + "a needle, unsaved\n")
    assert searched(editor, ripgrep, "b.py") == "a.py\n2: needle\nb.py\n3: a needle, unsaved\nc.py\n1: needle"


def test_what_the_person_took_out_is_not_found(project, ripgrep):
    editor = RawEditor(project)
    editor.typed(str(project / "a.py"), lambda text: "nothing\n")
    for known in ([], ["a.py"]):
        assert searched(editor, ripgrep, *known) == "c.py\n1: needle"


def test_a_match_moves_with_the_unsaved_text_above_it(project, ripgrep):
    editor = RawEditor(project)
    editor.typed(str(project / "a.py"), lambda text: "above\nneedles\n" + text)
    text = "a.py\n1- above\n2: needles\n3- one\n4: needle\nc.py\n1: needle"
    assert searched(editor, ripgrep, context=1) == text


@pytest.mark.parametrize(("mode", "text"), [("count", "b.py: 2\nc.py: 1"), ("files", "b.py\nc.py")])
def test_unsaved_text_is_counted(project, ripgrep, mode, text):
    editor = RawEditor(project)
    editor.typed(str(project / "a.py"), lambda text: "nothing\n")
    editor.typed(str(project / "b.py"), lambda text: "needle\nneedle\n")
    assert searched(editor, ripgrep, "b.py", mode=mode) == text


def test_a_buffer_is_found_by_the_rules_of_its_file(project, ripgrep):
    editor = RawEditor(project)
    (project / ".gitignore").write_text("ignored\n")
    (project / ".git").mkdir()
    for name in ("ignored", "key.pem", "notes.txt"):
        (project / name).write_text("one\n")
        editor.typed(str(project / name), lambda text: "needle\n")
    found = searched(editor, ripgrep, "ignored", "key.pem", "notes.txt", glob="*.txt")
    assert found == "notes.txt\n1: needle"
    assert searched(editor, ripgrep, "b.py", path="c.py") == "c.py\n1: needle"


def test_the_limits_hold_for_unsaved_text(project, ripgrep):
    editor = RawEditor(project)
    editor.typed(str(project / "a.py"), lambda text: "needle\n" * 30)
    found = searched(editor, ripgrep, limits=Limits(matches=10))
    assert found.startswith("a.py\n1: needle")
    assert found.count("needle") == 10
    assert "there are more matches" in found


def test_the_editor_is_asked_about_few_files_and_for_one_line_of_a_large_one(project, ripgrep):
    limits: list[int | None] = []

    class Counting(RawEditor):
        def read(self, request: wire.ReadTextFileRequest, pending: PendingRequest) -> Any:
            limits.append(request.limit)
            return super().read(request, pending)

    editor = Counting(project)
    for number in range(300):
        (project / f"d{number:03}").write_text("needle\n")
    (project / "0").write_text("needle" + "x" * LARGEST_SENT + "\n")
    assert searched(editor, ripgrep, mode="count").count(": 1") == 303
    assert sorted(limits, key=str) == [1, *[None] * (search_matches.MOST_MATCHED - 1)]


def test_an_editor_that_does_not_answer_holds_up_one_search_for_a_moment(project, ripgrep, monkeypatch):
    monkeypatch.setattr(search_matches, "EDITOR_TIMEOUT", 0.2)

    class Mute(RawEditor):
        def read(self, request: wire.ReadTextFileRequest, pending: PendingRequest) -> Any:
            self.asked.append("read")
            return asyncio.sleep(3600)

    editor = Mute(project)
    assert searched(editor, ripgrep) == "a.py\n2: needle\nc.py\n1: needle"
    assert editor.asked == ["read"] * 2


def test_what_the_editor_refuses_to_show_is_not_found_on_disk(project, ripgrep, monkeypatch):
    class Strict(RawEditor):
        def text(self, path: str) -> str:
            if path.endswith("a.py"):
                raise RpcError(-32603, "permission denied")
            return super().text(path)

    refused = "c.py\n1: needle\n(1 file not shown: the editor refused it)"
    assert searched(Strict(project), ripgrep) == refused
    monkeypatch.setattr(search_matches, "MOST_MATCHED", 1)
    assert searched(Strict(project), ripgrep) == "(no matches)\n(2 files not shown: the editor refused it)"

    async def message() -> str:
        async with connected(project, Strict(project)) as workspace:
            return (await result_of_search(workspace, ripgrep)).message

    assert asyncio.run(message()) == "No matches shown, 2 files refused by the editor"
