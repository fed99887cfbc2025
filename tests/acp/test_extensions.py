"""The methods that are Crow's own, one by one: `_crow/files`, and how long calls took."""

import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from crow.acp import wire, wire_extensions
from crow.acp.agent import EXTENSIONS
from tests.support.editor import RAW_OUTPUT, Editor, chose
from tests.support.scripts import DONE, call, reply, run

ASKS = {"changes": True}


def seconds_of(crow: Editor) -> list[float | None]:
    """How long each call took, as its last update says."""
    ends = [update for update in crow.updates if update.get("status") in ("completed", "failed")]
    last = {update["toolCallId"]: update.get("_meta", {}).get("crow", {}).get("seconds") for update in ends}
    return list(last.values())


# --- the page for authors of clients

PAGE = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text()
IN_META = (wire.ClientFacts, wire.CallFacts, wire.DiffFacts, wire.QuestionFacts, wire.AnswerFacts, wire.NoticeFacts)


def names() -> set[str]:
    """Every method and every field that a client may meet, apart from what two Crows say to each other."""
    structs = [*IN_META, wire.PromptFacts, wire.PromptRequestFacts, wire.StatusFacts, wire.StateNotification]
    own = (kind for kind in vars(wire_extensions).values() if isinstance(kind, type) and issubclass(kind, wire.Wire))
    structs += [kind for kind in own if kind.__module__ == wire_extensions.__name__]
    fields = {field.encode_name for kind in structs for field in msgspec.structs.fields(kind)}
    return {*EXTENSIONS, *fields} - {"mark", "environ"}


def test_every_method_and_field_is_documented():
    assert {name for name in names() if not re.search(rf"\b{re.escape(name)}\b", PAGE)} == set()


# --- how long calls took


@pytest.mark.parametrize("capabilities", [{}, RAW_OUTPUT], ids=["text", "raw output"])
def test_the_end_of_a_call_says_how_long_it_took(open_editor, capabilities):
    script = reply(run("sleep 0.2"), call("write", path="a.txt", content="x\n")) + DONE
    crow = open_editor(script=script, capabilities=capabilities, crow=ASKS, permit=lambda _: chose("once"))
    crow.new_session()
    crow.prompt("go")
    slept, wrote = seconds_of(crow)
    assert slept is not None
    assert slept >= 0.2
    assert wrote is not None
    crow.close()
    again = open_editor(folder=crow.folder, crow=ASKS)
    again.load_session(crow.session_id)
    assert seconds_of(again) == [slept, wrote]
    plain = open_editor(folder=crow.folder)
    plain.load_session(crow.session_id)
    assert seconds_of(plain) == [None, None]


def test_a_call_that_was_not_done_took_no_time_and_one_in_the_background_all_of_its_own(open_editor):
    script = reply(run("sleep 0.7", background=True), call("write", path="a.txt", content="x\n")) + DONE
    yes_to_commands = lambda request: chose("once" if request["toolCall"]["kind"] == "execute" else "reject")  # noqa: E731
    crow = open_editor(script=script, crow=ASKS, permit=yes_to_commands)
    crow.new_session()
    crow.prompt("go")
    crow.wait_until(lambda: (seconds_of(crow)[0] or 0) >= 0.7, "the end of the command")
    assert seconds_of(crow)[1] is None


# --- files


@pytest.fixture
def project(open_editor) -> Editor:
    crow = open_editor(script=DONE)
    for path in ("src/app.py", "src/deep/apple.txt", "README.md", "build/app.py", "a b#ü.txt"):
        (crow.workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (crow.workspace / path).write_text("x")
    (crow.workspace / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", crow.workspace], check=True)
    crow.new_session()
    return crow


def found(crow: Editor, query: str, **more: int) -> list[str]:
    answer = crow.request("_crow/files", {"sessionId": crow.session_id, "query": query, **more})
    return [file["path"] for file in answer["files"]]


def test_files_are_found_by_a_part_of_their_path_without_what_git_ignores(project):
    assert found(project, "app") == ["src/app.py", "src/deep/apple.txt"]
    assert found(project, "src/")[:2] == ["src/app.py", "src/deep/"]
    assert found(project, "DEEP") == ["src/deep/", "src/deep/apple.txt"]
    assert found(project, "")[:2] == [".gitignore", "README.md"]
    assert found(project, "", limit=1) == [".gitignore"]
    assert found(project, "no such file") == found(project, "../") == []


def test_an_address_leads_to_the_file_whatever_its_name(project):
    answer = project.request("_crow/files", {"sessionId": project.session_id, "query": "a b"})
    [file] = answer["files"]
    assert file["isFolder"] is False
    assert os.path.samefile(unquote(file["uri"].removeprefix("file://")), project.workspace / "a b#ü.txt")
    [folder, *_] = project.request("_crow/files", {"sessionId": project.session_id, "query": "deep"})["files"]
    assert (folder["isFolder"], Path(folder["uri"].removeprefix("file://")).name) == (True, "deep")


def test_wrong_parameters_and_unknown_sessions_are_told_apart(project):
    session = project.session_id
    assert project.start("_crow/files", {"sessionId": "nope", "query": ""}).error().code == -32002
    for params in ({"sessionId": session}, {"sessionId": session, "query": 1}, {"query": ""}, []):
        assert project.start("_crow/files", params).error().code == -32602
    assert project.start("_crow/files", {"sessionId": session, "query": "", "limit": 0}).error().code == -32602
    assert project.start("_crow/no such method", {}).error().code == -32601


def test_a_session_of_another_process_is_asked_there(project):
    other = Editor(project.folder, client_info={"name": "other"})
    try:
        other.load_session(project.session_id)
        assert found(other, "app") == ["src/app.py", "src/deep/apple.txt"]
        other.close()
    finally:
        other.kill()
