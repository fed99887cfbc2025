"""`find`, apart from any conversation."""

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.actions import Deed
from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.messages import ToolCall
from crow.results import Location, TextBlock, ToolKind, ToolResult
from crow.search.search import Limits, Searcher
from crow.tools.base import BadArguments
from crow.tools.search import Find, FindAction, split_folder
from tests.support.recording import RecordingJournal


def prepare(folder: Path, limits: Limits | None = None, **arguments: Any) -> FindAction:
    call = ToolCall("c1", "find", msgspec.json.encode(arguments).decode())
    return asyncio.run(Find(Searcher(None, limits)).prepare(call, LocalWorkspace([str(folder)])))


def find(folder: Path, limits: Limits | None = None, **arguments: Any) -> ToolResult:
    return asyncio.run(prepare(folder, limits, **arguments).perform(RecordingJournal()))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name in ("src/app.py", "src/lib/app.py", "src/lib/util.ts", "build/app.py", ".env", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / ".gitignore").write_text("build\n")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"pattern": "**/*.py"}, "src/app.py\nsrc/lib/app.py"),
        ({"pattern": "app.py"}, "src/app.py\nsrc/lib/app.py"),
        ({"pattern": "*.py", "path": "src/lib"}, "src/lib/app.py"),
        ({"pattern": "lib"}, "src/lib/"),
        ({"pattern": ".env*"}, ".env"),
        ({"pattern": "*.{md,ts}"}, "README.md\nsrc/lib/util.ts"),
        ({"pattern": "nope"}, "(nothing matches nope; files ignored by git were not searched. Try *nope*)"),
        ({"pattern": "*.nope"}, "(nothing matches *.nope; files ignored by git were not searched.)"),
        ({"pattern": "*.md", "depth": 3}, "README.md\n(ignored unknown arguments: depth)"),
        ({"pattern": "app.py", "path": "build"}, "build/app.py"),
    ],
)
def test_what_the_model_is_told(project, arguments, text):
    result = find(project, **arguments)
    assert result.ok
    assert result.text == text


def test_absolute_patterns_look_where_they_say(project):
    assert find(project, pattern=f"{project}/src/**/*.ts").text == "src/lib/util.ts"
    assert find(project, pattern=f"{project}/README.md").text == "README.md"
    outside = prepare(project, pattern="../*.txt")
    assert outside.deed == Deed("find", ToolKind.SEARCH, reads=(str(project.parent),))
    (project.parent / "other.txt").touch()
    assert asyncio.run(outside.perform(RecordingJournal())).text == str(project.parent / "other.txt")


@pytest.mark.parametrize(
    ("pattern", "split"),
    [
        ("src/*.py", ("", "src/*.py")),
        ("/*.py", ("/", "*.py")),
        ("/a/b/*.py", ("/a/b", "*.py")),
        ("/a/b", ("/a", "b")),
        ("/a/**/b", ("/a", "**/b")),
        ("~/x/*.md", ("~/x", "*.md")),
        ("~/*.md", ("~", "*.md")),
        ("~backup.py", ("", "~backup.py")),
        ("../../a", ("../..", "a")),
        ("/a/", ("/a", "**")),
    ],
)
def test_the_folder_in_a_pattern(pattern, split):
    assert split_folder(pattern) == split


def test_how_it_shows_itself(project):
    tool = Find()
    assert tool.title({}) == "Find"
    assert tool.title({"pattern": "**/*.p"}) == "Find **/*.p"
    assert tool.title({"pattern": "**/*.py", "path": "src"}) == "Find **/*.py in src"
    action = prepare(project, pattern="*.py", path="src")
    assert action.title == "Find *.py in src"
    assert action.deed == Deed("find", ToolKind.SEARCH, reads=(str(project / "src"),))
    assert action.locations == ()
    result = asyncio.run(action.perform(RecordingJournal()))
    assert result.message == "2 found"
    assert result.display == (TextBlock("src/app.py\nsrc/lib/app.py"),)
    assert result.locations == (Location(str(project / "src/app.py")), Location(str(project / "src/lib/app.py")))


def test_names_left_out_are_counted(project):
    result = find(project, Limits(files=2), pattern="*")
    assert result.text == ".env\n.gitignore\n(4 more names left out: narrow the pattern or give a `path`)"
    assert result.message == "6 found"


def test_a_name_cannot_look_like_two(project):
    (project / "one\ntwo").touch()
    assert find(project, pattern="one*").text == "one⏎two"


@pytest.mark.parametrize(
    ("path", "said"),
    [("README.md", "is not a folder"), ("missing", "does not exist"), ("/dev/null", "is not a folder")],
)
def test_places_that_cannot_be_looked_in(project, path, said):
    with pytest.raises(WorkspaceError, match=said):
        find(project, pattern="*", path=path)


def test_arguments_that_do_not_fit(project):
    for arguments in ({}, {"pattern": ""}, {"pattern": 5.5}, {"pattern": "x" * 2000}):
        with pytest.raises(BadArguments):
            prepare(project, None, **arguments)
