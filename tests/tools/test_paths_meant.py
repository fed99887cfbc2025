"""Paths that are not plain: what is judged is the file that will be used, and a name that is there stays usable."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from crow.files.local import LocalWorkspace
from crow.messages import ToolCall
from crow.tools.base import BadArguments
from crow.tools.edit import Edit
from crow.tools.paths_meant import path_meant, path_to_write
from crow.tools.read import Read, ReadTracker
from crow.tools.search import Find
from crow.tools.write import Write

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    return asyncio.run(work)


def call(tool: str, **arguments: object) -> ToolCall:
    return ToolCall("c1", tool, json.dumps(arguments))


def test_the_path_that_is_judged_is_the_one_that_is_meant(tmp_path: Path) -> None:
    workspace = LocalWorkspace([str(tmp_path)])
    (tmp_path / "secret.env").write_text("x = 1\n")
    real = str((tmp_path / "secret.env").resolve())
    for written in ('"secret.env"', " secret.env\n", "secret.env:3", "`./secret.env`"):
        look = run(Edit(ReadTracker()).look(call("edit", path=written, edits=[{"old": "x", "new": "y"}]), workspace))
        assert look.deed.reads == (real,), written
        edit = run(Edit(ReadTracker()).prepare(call("edit", path=written, edits=[{"old": "x", "new": "y"}]), workspace))
        assert set(edit.deed.writes) == {real}, written
        assert run(Read().prepare(call("read", path=written), workspace)).deed.reads == (real,), written
    new = run(Write(ReadTracker()).prepare(call("write", path="`.git`", content="x"), workspace))
    assert new.deed.writes == (str(tmp_path.resolve() / ".git"),)


def test_a_name_that_is_there_is_taken_as_it_is_written(tmp_path: Path) -> None:
    workspace = LocalWorkspace([str(tmp_path)])
    for name in ("app.py", "'app.py'", "app.py:3", "app.py ", "a\\b.py", "@x", "$HOME"):
        (tmp_path / name).write_text("x\n")
    for name in ("'app.py'", "app.py:3", "app.py ", "a\\b.py", "@x", "$HOME"):
        assert run(path_to_write(workspace, name)) == (run(workspace.resolve(name)), ""), name


def test_names_that_frameworks_give_are_written(tmp_path: Path) -> None:
    workspace = LocalWorkspace([str(tmp_path)])
    (tmp_path / "@types").mkdir()
    for name in ("@types/a.d.ts", "app/@modal/(.)photo/[id]/page.tsx", "routes/$postId.tsx", "$types.d.ts", "a/b.py"):
        meant = run(path_to_write(workspace, name))
        assert (meant.path.real, meant.note) == (str(tmp_path.resolve() / name), ""), name


def test_two_files_that_may_be_meant_are_not_chosen_from(tmp_path: Path) -> None:
    workspace = LocalWorkspace([str(tmp_path)])
    for name in ("my file", "my\u00a0file"):
        (tmp_path / name).write_text("x\n")
    meant = run(path_meant(workspace, "my\u3000file"))
    assert not meant.path.existed
    assert not meant.note


def test_a_folder_is_found_too_and_what_cannot_be_seen_is_shown(tmp_path: Path) -> None:
    workspace = LocalWorkspace([str(tmp_path)])
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x\n")
    action = run(Find().prepare(call("find", pattern="*.py", path='"src/"'), workspace))
    assert action.deed.reads == (str(tmp_path.resolve() / "src"),)
    with pytest.raises(BadArguments, match="⟨U\\+200B⟩"):
        run(path_to_write(workspace, "src/a\u200bb.py"))
