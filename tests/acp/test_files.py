"""Changing files, whole conversations: the diff before the permission, the editor's buffers, the bytes on disk."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.support import histories
from tests.support.editor import Editor, ErrorAnswer, Json, chose

DONE = '[[reply]]\nrepeat = true\nevents = [{ text = "Done." }]\n'


def calls(*events: str) -> str:
    return f"[[reply]]\nevents = [{', '.join(events)}]\n"


def edit(path: str, old: str, new: str) -> str:
    return f"{{ call = 'edit', arguments = {{ path = '{path}', edits = [{{ old = '{old}', new = '{new}' }}] }} }}"


def write(path: str, content: str) -> str:
    return f"{{ call = 'write', arguments = {{ path = '{path}', content = \"{content}\" }}, pieces = 5 }}"


def read(path: str) -> str:
    return f"{{ call = 'read', arguments = {{ path = '{path}' }} }}"


class Buffers:
    """The files of an editor that saves at once; what is typed stays in the buffer."""

    def __init__(self) -> None:
        self.unsaved: dict[str, str] = {}
        self.asked: list[tuple[str, str]] = []

    def read(self, request: Json) -> Any:
        path = request["path"]
        self.asked.append(("read", path))
        if path in self.unsaved:
            return {"content": self.unsaved[path]}
        return {"content": Path(path).read_text()} if Path(path).exists() else ErrorAnswer(-32002, "not found")

    def write(self, request: Json) -> Any:
        self.asked.append(("write", request["path"]))
        self.unsaved.pop(request["path"], None)
        Path(request["path"]).write_text(request["content"])


def open_with(open_editor: Any, buffers: Buffers, script: str, *, reads: bool = True, writes: bool = True) -> Editor:
    return open_editor(
        script=script,
        capabilities={"fs": {"readTextFile": reads, "writeTextFile": writes}},
        answers={"fs/read_text_file": buffers.read, "fs/write_text_file": buffers.write},
        permit=lambda request: chose("once"),
    )


def result_for_model(crow: Editor) -> Json:
    messages = crow.model_requests()[-1]["messages"]
    histories.assert_valid(messages)
    return [message for message in messages if message["role"] == "tool"][-1]


@pytest.mark.rule("R93", "R95", "R96", "R101", "R121", "R122")
def test_the_diff_is_in_the_permission_request_and_in_the_end(open_editor):
    crow = open_with(open_editor, Buffers(), calls(edit("a.py", "two", "2")) + DONE)
    path = crow.workspace / "a.py"
    path.write_text("one\ntwo\n")
    seen: list[str] = []

    def permit(request: Json) -> Json:
        seen.append(path.read_text())
        return chose("once")

    crow.permit = permit
    crow.new_session()
    assert crow.prompt("change it") == {"stopReason": "end_turn"}
    [asked] = crow.permissions
    diff = {"type": "diff", "path": str(path), "oldText": "one\ntwo\n", "newText": "one\n2\n"}
    assert asked["toolCall"]["title"] == "Edit a.py"
    assert asked["toolCall"]["kind"] == "edit"
    assert asked["toolCall"]["locations"] == [{"path": str(path), "line": 2}]
    assert diff in asked["toolCall"]["content"]
    assert seen == ["one\ntwo\n"]
    assert crow.the_call()["status"] == "completed"
    assert diff in crow.the_call()["content"]
    assert path.read_text() == "one\n2\n"
    assert result_for_model(crow)["text"] == "Edited a.py (+1 −1)."  # noqa: RUF001


@pytest.mark.rule("R99", "R105")
def test_a_rejected_edit_changes_nothing(open_editor):
    buffers = Buffers()
    crow = open_with(open_editor, buffers, calls(edit("a.py", "two", "2"), write("new.py", "x")) + DONE)
    crow.permit = lambda request: chose("reject")
    (crow.workspace / "a.py").write_text("one\ntwo\n")
    crow.new_session()
    assert crow.prompt("change it") == {"stopReason": "end_turn"}
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed", "failed"]
    assert (crow.workspace / "a.py").read_text() == "one\ntwo\n"
    assert not (crow.workspace / "new.py").exists()
    assert "write" not in [what for what, _ in buffers.asked]


@pytest.mark.rule("R120", "R121", "R122", "R123")
@pytest.mark.parametrize(("reads", "writes"), [*itertools.product((True, False), repeat=2)])
def test_each_combination_of_capabilities_gives_the_same_files(open_editor, reads, writes):
    script = calls(read("a.py")) + calls(edit("a.py", "two", "2"), write("sub/sub/new.py", "x = 1\\n"))
    buffers = Buffers()
    crow = open_with(
        open_editor, buffers, script + calls(write("a.py", "all\\nnew\\n")) + DONE, reads=reads, writes=writes
    )
    (crow.workspace / "a.py").write_text("one\ntwo\n")
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 4
    assert (crow.workspace / "a.py").read_text() == "all\nnew\n"
    assert (crow.workspace / "sub/sub/new.py").read_text() == "x = 1\n"
    new = str(crow.workspace / "sub/sub/new.py")
    assert [what for what, path in buffers.asked if path == new][:1] == ["write"] * writes
    asked = {what for what, _ in buffers.asked}
    assert asked == {what for what, offered in (("read", reads), ("write", writes)) if offered}


@pytest.mark.rule("R121", "R123")
@pytest.mark.parametrize("where", ["buffer", "disk"])
@pytest.mark.parametrize("touching", [False, True])
def test_what_the_person_changes_while_the_dialog_is_open_is_kept(open_editor, where, touching):
    buffers = Buffers()
    crow = open_with(open_editor, buffers, calls(read("a.py")) + calls(edit("a.py", "two", "2")) + DONE)
    path = crow.workspace / "a.py"
    path.write_text("one\ntwo\n")
    typed = "one\ntwenty\n" if touching else "one\ntwo\nthree\n"

    def permit(request: Json) -> Json:
        if where == "buffer":
            buffers.unsaved[str(path)] = typed
        else:
            path.write_text(typed)
        return chose("once")

    crow.permit = permit
    crow.new_session()
    assert crow.prompt("change it") == {"stopReason": "end_turn"}
    *_, call = crow.tool_calls().values()
    if touching:
        assert call["status"] == "failed"
        assert (buffers.unsaved.get(str(path)) or path.read_text()) == typed
        assert "Read it again." in result_for_model(crow)["text"]
    else:
        assert call["status"] == "completed"
        assert path.read_text() == "one\n2\nthree\n"
        assert buffers.unsaved == {}
        assert "+three" in result_for_model(crow)["text"]


@pytest.mark.rule("R99")
def test_a_file_that_was_not_read_is_not_replaced(open_editor):
    crow = open_with(open_editor, Buffers(), calls(write("a.py", "new")) + DONE)
    (crow.workspace / "a.py").write_text("old\n")
    crow.new_session()
    crow.prompt("replace it")
    assert crow.the_call()["status"] == "failed"
    assert crow.permissions == []
    assert "has not been read" in result_for_model(crow)["text"]
    assert (crow.workspace / "a.py").read_text() == "old\n"


@pytest.mark.rule("R89", "R93")
def test_a_new_file_is_a_diff_without_an_old_text(open_editor):
    crow = open_with(open_editor, Buffers(), calls(write("src/new.py", "x = 1\\n")) + DONE)
    crow.new_session()
    crow.prompt("make it")
    [asked] = crow.permissions
    [diff] = [item for item in asked["toolCall"]["content"] if item["type"] == "diff"]
    assert diff == {"type": "diff", "path": str(crow.workspace / "src/new.py"), "newText": "x = 1\n"}
    assert crow.the_call()["title"] == "Write src/new.py +1 −0"  # noqa: RUF001


# --- a link that appears while the person is asked


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize("name", ["new.txt", "sub/new.txt"])
def test_a_link_that_appears_during_the_question_leads_no_write_outside(open_editor, tmp_path, name, writes):
    buffers = Buffers()
    crow = open_with(open_editor, buffers, calls(write(name, "mine")) + DONE, writes=writes)
    outside = tmp_path / "outside"
    outside.mkdir()

    def permit(request: Json) -> Json:
        link = crow.workspace / name.split("/")[0]
        link.symlink_to(outside / "file" if link.suffix else outside)
        return chose("once")

    crow.permit = permit
    crow.new_session()
    crow.prompt("write it")
    assert crow.the_call()["status"] == "failed"
    assert list(outside.iterdir()) == []
    assert "write" not in [what for what, _ in buffers.asked]
    assert "symbolic link" in result_for_model(crow)["text"]


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("tool", ["read", "search", "terminal"])
def test_a_link_that_appears_during_the_question_leads_no_look_elsewhere(open_editor, tmp_path, tool, reads):
    public, private = tmp_path / "pub", tmp_path / ".ssh"
    for folder in (public, private):
        folder.mkdir()
    (public / "x").write_text("harmless")
    (private / "x").write_text("the-private-key")
    arguments = {
        "read": f"path = '{public}/x'",
        "search": f"path = '{public}', pattern = 'private'",
        "terminal": f"cwd = '{public}', command = 'cat x; true'",
    }[tool]
    crow = open_with(
        open_editor, Buffers(), calls(f"{{ call = '{tool}', arguments = {{ {arguments} }} }}") + DONE, reads=reads
    )

    def permit(request: Json) -> Json:
        public.rename(tmp_path / "moved")
        public.symlink_to(private)
        return chose("once")

    crow.permit = permit
    crow.new_session()
    crow.prompt("look")
    assert len(crow.permissions) == 1
    assert crow.the_call()["status"] == "failed"
    told = result_for_model(crow)["text"]
    assert "has changed since it was approved" in told
    assert "the-private-key" not in told


@pytest.mark.rule("R120", "R121")
def test_text_that_was_never_saved_counts_once_the_person_has_named_its_file(open_editor):
    """The editor is asked for no other file that the disk does not have: there are clients that print its error."""
    buffers = Buffers()
    script = calls(write("named.py", "x = 1\\n"), write("attached.py", "x = 1\\n"), write("other.py", "x = 1\\n"))
    crow = open_with(open_editor, buffers, script + DONE)
    crow.new_session()
    named, attached, other = (str(crow.workspace / f"{name}.py") for name in ("named", "attached", "other"))
    buffers.unsaved |= {named: "typed\n", attached: "typed\n"}
    resource = {"uri": f"file://{attached}", "text": "typed\n"}
    crow.prompt(
        "go",
        {"type": "resource_link", "uri": f"file://{named}", "name": "n"},
        {"type": "resource", "resource": resource},
    )
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed", "failed", "completed"]
    assert buffers.unsaved == {named: "typed\n", attached: "typed\n"}
    assert next(what for what, path in buffers.asked if path == other) == "write"
