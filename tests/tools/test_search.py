"""`search`, apart from any conversation."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.messages import ToolCall
from crow.results import HiddenOutput, Location, TextBlock, ToolKind, ToolResult
from crow.search.search import Limits, Searcher
from crow.search.search_matches import Line
from crow.tools.base import BadArguments
from crow.tools.search import LONGEST_LINE, MOST_BYTES, Search, SearchAction, around_match
from tests.support.folders import open_to_others
from tests.support.recording import RecordingJournal


def is_secret(path: str) -> bool:
    return os.path.basename(path).startswith(".env") or path.endswith(".pem")


def prepare(folder: Path, limits: Limits | None = None, **arguments: Any) -> SearchAction:
    call = ToolCall("c1", "search", msgspec.json.encode(arguments).decode())
    tool = Search(is_secret, Searcher(None, limits))
    return asyncio.run(tool.prepare(call, LocalWorkspace([str(folder)])))


def search(folder: Path, limits: Limits | None = None, **arguments: Any) -> ToolResult:
    return asyncio.run(prepare(folder, limits, **arguments).perform(RecordingJournal()))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text("import os\n\ndef main():\n    run()\n    run(2)\n\n\nrun()\n")
    (folder / "src/run.ts").write_text("run()\n")
    (folder / "README.md").write_text("How to run it\n")
    return folder


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (
            {"pattern": r"run\("},
            "src/app.py\n4:     run()\n5:     run(2)\n8: run()\nsrc/run.ts\n1: run()",
            "4 matches in 2 files",
        ),
        (
            {"pattern": r"run\(", "glob": "*.py", "context": 1},
            "src/app.py\n3- def main():\n4:     run()\n5:     run(2)\n6- \n7- \n8: run()",
            "3 matches in 1 file",
        ),
        ({"pattern": r"def", "context": "0"}, "src/app.py\n3: def main():", "1 match in 1 file"),
        (
            {"pattern": r"import|^run", "path": "src/app.py", "context": 1},
            "src/app.py\n1: import os\n2- \n--\n7- \n8: run()",
            "2 matches in 1 file",
        ),
        ({"pattern": "run", "mode": "files"}, "README.md\nsrc/app.py\nsrc/run.ts", "3 files"),
        ({"pattern": "run", "mode": "count"}, "README.md: 1\nsrc/app.py: 3\nsrc/run.ts: 1", "5 matches in 3 files"),
        ({"pattern": "nope"}, "(no matches)", "No matches"),
        (
            {"pattern": "How", "case": True},
            "README.md\n1: How to run it\n(ignored unknown arguments: case)",
            "1 match in 1 file",
        ),
    ],
)
def test_what_is_found(project, arguments, text, message):
    result = search(project, **arguments)
    assert (result.ok, result.text, result.message) == (True, text, message)


def test_how_it_shows_itself(project):
    tool = Search(is_secret)
    assert tool.title({}) == "Search"
    assert tool.title({"pattern": "fo"}) == 'Search "fo"'
    assert tool.title({"pattern": "foo", "path": "src"}) == 'Search "foo" in src'
    action = prepare(project, pattern="run", path="src")
    assert action.title == 'Search "run" in src'
    assert action.deed == Deed("search", ToolKind.SEARCH, reads=(str(project / "src"),))
    assert action.locations == ()
    result = asyncio.run(action.perform(RecordingJournal()))
    assert result.display == (TextBlock(result.text),)
    assert result.brief == result.message
    assert result.locations == (Location(str(project / "src/app.py"), 4), Location(str(project / "src/run.ts"), 1))


def test_that_there_is_nothing_is_said_once(project):
    """In the title: below it stands only what the title does not say."""
    result = search(project, pattern="nope")
    assert (result.brief, result.display) == ("no matches", (HiddenOutput(),))
    (project / ".env").write_text("nope\n")
    result = search(project, pattern="nope")
    assert result.text.startswith("(no matches)\n(1 file not searched")
    assert result.display == (TextBlock(result.text.removeprefix("(no matches)\n")),)


def test_a_search_outside_can_be_judged(project):
    (project / "link").symlink_to("/etc")
    assert prepare(project, pattern="x", path="/etc").deed.reads == ("/etc",)
    assert prepare(project, pattern="x", path="link").deed.reads == ("/etc",)
    assert prepare(project, pattern="x", path="../other").title == f'Search "x" in {project.parent / "other"}'


def test_secrets_are_not_printed_but_counted(project):
    (project / ".env").write_text("KEY=hunter2\n")
    (project / "src/server.pem").write_text("hunter2\n")
    (project / "notes").write_text("hunter2\n")
    for mode in ("content", "files", "count"):
        text = search(project, pattern="hunter2", mode=mode).text
        assert ".env" not in text
        assert "KEY" not in text
        assert "2 files not searched" in text.splitlines()[-1]
    result = search(project, pattern="KEY", path="src")
    assert result.text == "(no matches)\n(1 file not searched: may contain secrets, or a rule covers them)"
    # Named outright it is another question, and the policy has asked it.
    assert prepare(project, pattern="KEY", path=".env").deed.reads == (str(project / ".env"),)
    assert search(project, pattern="KEY", path=".env").text == ".env\n1: KEY=hunter2"


def test_binary_and_huge_files_are_said(project):
    (project / "image").write_bytes(b"\0run\n")
    (project / "big").write_text("run\n" * 1000)
    result = search(project, Limits(largest_file=1000), pattern="How")
    assert result.text == "README.md\n1: How to run it\n(1 file not searched: larger than 1,000 bytes)"
    result = search(project, Limits(largest_file=1000), pattern="run", path="image")
    assert result.text == "(no matches)\n(1 file with matches not shown: binary)"


def test_many_matches_are_cut_and_say_so(project):
    (project / "many").write_text("needle\n" * 500)
    result = search(project, pattern="needle")
    assert result.text.count("needle") == 200
    assert "`path`, `glob`" in result.text.splitlines()[-1], "how to narrow it"
    assert result.message.startswith("200 matches in 1 file, ")


def test_many_bytes_are_cut_and_say_so(project):
    (project / "many").write_text("".join(f"needle {'é' * 390}\n" for _ in range(190)))
    result = search(project, pattern="needle")
    assert len(result.text.encode()) < MOST_BYTES + 200
    assert "more lines left out: narrow it" in result.text


def test_long_lines_are_cut_around_the_match():
    assert around_match(Line(1, "x" * LONGEST_LINE, 0)) == "x" * LONGEST_LINE
    middle = around_match(Line(1, "a" * 5000 + "needle" + "b" * 5000, 5000))
    assert middle.startswith("…aaa")
    assert "needle" in middle
    assert middle.endswith("b… (line of 10006 characters, cut)")
    assert len(middle) < LONGEST_LINE + 60
    assert around_match(Line(1, "a" * 5000 + "end", 5000)).endswith("aend (line of 5003 characters, cut)")
    assert around_match(Line(1, "start" + "a" * 5000, None)).startswith("starta")


def test_a_search_that_took_too_long_says_so(project):
    (project / "bad").write_text("a" * 60 + "!\n")
    result = search(project, Limits(seconds=1), pattern="(a+)+$", path="bad")
    assert result.text.startswith("(no matches so far)\n(timed out before everything")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pattern": "x", "path": "missing"}, "does not exist"),
        ({"pattern": "x", "path": "/dev/null"}, "neither a file nor a folder"),
        ({"pattern": "run("}, r"not a valid regular expression.* write run\\\("),
        ({"pattern": r"a\nb"}, "line by line"),
        ({"pattern": "x", "glob": "{a,b}" * 20}, "alternatives"),
    ],
)
def test_what_cannot_be_searched_is_said_in_words(project, arguments, said):
    with pytest.raises(WorkspaceError, match=said):
        search(project, **arguments)


AS_SOMEONE_ELSE = """
import asyncio, os, sys
from crow.search.search import Query, Searcher
os.setgid(65534); os.setuid(65534)
for path in sys.argv[1:]:
    try:
        print(asyncio.run(Searcher(None).search(Query(path, "x"), bool)))
    except Exception as error:
        print(type(error).__name__, error)
"""


def test_what_may_not_be_read_is_said(project):
    if os.getuid() != 0:
        pytest.skip("needs to become someone else")
    file, closed = project / "README.md", project / "src"
    file.chmod(0o600)
    closed.chmod(0o700)
    open_to_others(project)
    done = subprocess.run(
        [sys.executable, "-c", AS_SOMEONE_ELSE, str(file), str(closed)], capture_output=True, text=True
    )
    denied = "cannot be read: permission denied."
    assert done.stdout.splitlines() == [f"WorkspaceError {path} {denied}" for path in (file, closed)], done.stderr


def test_arguments_that_do_not_fit(project):
    for arguments in ({}, {"pattern": ""}, {"pattern": "x", "mode": "colours"}, {"pattern": "x", "context": -1}):
        with pytest.raises(BadArguments):
            prepare(project, None, **arguments)
