"""An "always" holds for a server's tool as it was when the person was asked, and for its resources alike."""

from pathlib import Path
from typing import Any

import pytest

from tests.mcp.guests import bad, calling, editing, odd, offered, shown
from tests.support.editor import Later, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, reply, say

GO = ("mcp__docs__go", {})
CHANGED = "`mcp__docs__go` has changed since you allowed it: its server, its description or its arguments."
NOT_CALLED = "it has changed its tool `mcp__docs__go` since, so nothing was called"


class Person:
    """Agrees always with the same choice. While it is asked for the first time, the server's tool becomes another."""

    def __init__(self, choice: str, path: Path | None = None, becomes: str = "") -> None:
        self.asked: list[str] = []
        self._choice = choice
        self._path = path
        self._becomes = becomes

    def permit(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(shown(request["toolCall"]))
        if self._path is not None and len(self.asked) == 1:
            become(self._path, self._becomes)
        return chose(self._choice)


def become(path: Path, version: str) -> None:
    taken = path.with_suffix(".taken")
    path.write_text(version)
    eventually(lambda: taken.exists() and taken.read_text() == version, "the change has been taken in")


@pytest.mark.parametrize("choice", ["once", "session", "project"])
def test_a_tool_that_changes_while_its_question_is_open_is_neither_called_nor_allowed(tmp_path, choice):
    path = tmp_path / "version"
    person = Person(choice, path, "second")
    editor = editing(tmp_path, calling(GO, GO, GO), permit=person.permit)
    editor.new_session(mcpServers=[odd("watching", path, "docs")])
    editor.prompt("Go.")
    first, second, third = editor.tool_calls().values()
    assert NOT_CALLED in shown(first)
    assert [second["status"], third["status"]] == ["completed", "completed"]
    assert len(person.asked) == (3 if choice == "once" else 2)
    assert (CHANGED in person.asked[1]) == (choice != "once")
    assert editor.notices == []
    editor.close()


@pytest.mark.parametrize("becomes", ["unfit", "none"])
def test_so_is_one_that_cannot_be_used_any_more_or_is_gone(tmp_path, becomes):
    path = tmp_path / "version"
    person = Person("session", path, becomes)
    editor = editing(tmp_path, calling(GO, GO), permit=person.permit)
    editor.new_session(mcpServers=[odd("watching", path, "docs")])
    editor.prompt("Go.")
    first, second = editor.tool_calls().values()
    assert NOT_CALLED in shown(first)
    assert second["status"] == "failed"
    assert len(person.asked) == 1
    editor.close()


def test_so_is_one_that_is_another_after_its_server_was_started_again_for_the_call(tmp_path):
    path = tmp_path / "version"

    def answer() -> dict[str, Any]:
        path.write_text("dying")
        eventually(lambda: any("has stopped" in notice for notice in editor.notices), "the server is gone")
        path.write_text("second")
        return chose("session")

    editor = editing(tmp_path, calling(GO), permit=lambda request: Later(answer))
    editor.new_session(mcpServers=[odd("watching", path, "docs")])
    editor.prompt("Go.")
    assert NOT_CALLED in shown(editor.the_call())
    editor.close()


def test_a_tool_that_changed_since_it_was_allowed_is_asked_about_again_and_the_question_says_why(tmp_path):
    path, person = tmp_path / "version", Person("session")
    go = reply(call("mcp__docs__go"))
    editor = editing(tmp_path, go + go + reply(say("So far.")) + go + DONE, permit=person.permit)
    editor.new_session(mcpServers=[odd("watching", path, "docs")])
    editor.prompt("Go.")
    assert len(person.asked) == 1
    become(path, "second")
    editor.prompt("Once more.")
    assert len(person.asked) == 2
    assert CHANGED in person.asked[1]
    assert editor.notices == []
    assert [one["status"] for one in editor.tool_calls().values()] == ["completed"] * 3
    editor.close()


def test_what_was_allowed_for_the_project_counts_in_the_next_session_only_if_the_tool_is_the_same(tmp_path):
    version = tmp_path / "version"
    version.write_text("second")
    asked = []

    def permit(request: dict) -> dict:
        asked.append(request)
        return chose("project")

    def session() -> None:
        editor = editing(tmp_path, calling(("mcp__changing__shift", {})), permit=permit)
        editor.new_session(mcpServers=[bad("changing", version)])
        editor.prompt("Go.")
        *_, done = editor.tool_calls().values()
        assert shown(done) == "```text\nshifted\n```"
        editor.close()

    session()
    session()
    assert len(asked) == 1, "allowed in this project"
    version.write_text("third")
    session()
    assert len(asked) == 2, "it is no longer the tool that was allowed"


def test_a_tool_keeps_its_name_when_another_comes_that_would_be_called_the_same(tmp_path):
    path, person = tmp_path / "version", Person("session")
    path.write_text("twin")
    go = reply(call("mcp__docs__g_o"))
    editor = editing(tmp_path, go + reply(say("So far.")) + go + DONE, permit=person.permit)
    editor.new_session(mcpServers=[odd("watching", path, "docs")])
    editor.prompt("Go.")
    become(path, "twins")
    editor.prompt("Once more.")
    assert [shown(one) for one in editor.tool_calls().values()] == ["```text\ncalled g_o with {}\n```"] * 2
    assert len(person.asked) == 1
    names = [name for name in offered(editor.model_requests()[-1]) if name.startswith("mcp__")]
    assert len(names) == 2
    assert names[1] == "mcp__docs__g_o"
    editor.close()


def test_an_allowed_tool_is_asked_about_again_if_another_program_has_its_name(tmp_path):
    person = Person("project")
    asked = []
    for server in (bad("plain", name="docs"), bad("plain", name="docs"), bad("greets", name="docs")):
        editor = editing(tmp_path, calling(GO), permit=person.permit)
        editor.new_session(mcpServers=[server])
        editor.prompt("Go.")
        assert editor.the_call()["status"] == "completed"
        editor.close()
        asked.append(len(person.asked))
    assert asked == [1, 1, 2]
    assert CHANGED in person.asked[1]


def test_leave_to_read_resources_holds_for_that_server_and_not_for_a_tool_of_that_name(tmp_path):
    person = Person("project")
    read, tool = ("mcp_resources", {"uri": "note://1"}), ("mcp__docs__read_resource", {})
    asked = []
    for server in (odd("library", name="docs"), odd("library", name="docs"), odd("library", "other", name="docs")):
        editor = editing(tmp_path, calling(read, read), permit=person.permit)
        editor.new_session(mcpServers=[server])
        editor.prompt("Go.")
        assert [one["status"] for one in editor.tool_calls().values()] == ["completed", "completed"]
        editor.close()
        asked.append(len(person.asked))
    assert asked == [1, 1, 2]
    editor = editing(tmp_path, calling(tool, read), permit=person.permit)
    editor.new_session(mcpServers=[odd("library", "other", name="docs")])
    editor.prompt("Go.")
    editor.close()
    assert "tool: read_resource" in person.asked[2]
    assert "resource: note://1" in person.asked[3], "the last answer takes the place of the one before"
