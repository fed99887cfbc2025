"""`/undo` in a conversation with a real `crow acp`: bytes on disk, diffs in the editor, what the model knows after."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import FILES, Editor, Json, chose
from tests.support.scripts import DONE, call, edit, reply, run, say

ORIGINALS = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "mark.txt": b"\xef\xbb\xbfone\n",
    "latin.txt": "größe one\n".encode("latin-1"),
    "run.sh": b"#!/bin/sh\necho one\n",
    "torn.txt": b"one, and no line end",
}
CHANGES = [edit(name, "one", "two words") for name in ORIGINALS]
SCRIPT = reply(say("I change them."), *CHANGES, call("write", path="sub/new.txt", content="new\n")) + DONE


@contextmanager
def at_work(folder: Path, **more: Any) -> Iterator[Editor]:
    """An editor and its Crow in a folder that others may have worked in before."""
    editor = Editor(folder, permit=lambda request: chose("once"), **more)
    try:
        for name, content in ORIGINALS.items():
            if not (editor.workspace / name).exists():
                (editor.workspace / name).write_bytes(content)
        (editor.workspace / "run.sh").chmod(0o755)
        yield editor
        if editor.process.poll() is None:
            editor.close()
    finally:
        editor.kill()


def load(editor: Editor, session: str) -> None:
    editor.session_id = session
    editor.request("session/load", {"sessionId": session, "cwd": str(editor.workspace), "mcpServers": []})


def changed(editor: Editor) -> dict[str, bytes]:
    """The files that are not what they were."""
    return {
        name: (editor.workspace / name).read_bytes()
        for name, content in ORIGINALS.items()
        if (editor.workspace / name).read_bytes() != content
    }


def own_calls(editor: Editor) -> dict[str, Json]:
    return {call["title"]: call for call in editor.tool_calls().values() if call.get("name") == "undo"}


def test_every_file_is_what_it_was_and_the_editor_is_shown_how(tmp_path):
    with at_work(tmp_path, script=SCRIPT) as editor:
        editor.new_session()
        editor.prompt("change them")
        assert changed(editor).keys() == ORIGINALS.keys()
        assert editor.prompt("/undo") == {"stopReason": "end_turn"}
        assert changed(editor) == {}
        assert not (editor.workspace / "sub" / "new.txt").exists()
        assert (editor.workspace / "run.sh").stat().st_mode & 0o777 == 0o755
        calls = own_calls(editor)
        assert len(calls) == len(ORIGINALS) + 1
        assert all(call["status"] == "completed" for call in calls.values())
        [removed] = calls["Remove sub/new.txt"]["content"]
        assert (removed["oldText"], removed["newText"]) == ("new\n", "")
        assert calls["Remove sub/new.txt"]["kind"] == "delete"
        [restored] = calls["Restore crlf.txt"]["content"]
        assert (restored["oldText"], restored["newText"]) == ("two words\r\ntwo\r\n", "one\r\ntwo\r\n")
        assert calls["Restore crlf.txt"]["kind"] == "edit"
        assert "“change them”" in editor.text()


def test_the_model_no_longer_knows_the_turn_and_knows_that_it_was_taken_back(tmp_path):
    with at_work(tmp_path, script=SCRIPT) as editor:
        editor.new_session()
        editor.prompt("change them")
        editor.prompt("/undo")
        editor.prompt("and now?")
        sent = editor.model_requests()[-1]["messages"]
        assert [message["role"] for message in sent] == ["user"]
        assert "change them" not in str(sent)
        assert "two words" not in str(sent)
        assert sent[0]["parts"][-1]["text"] == "and now?"
        assert "took back" in str(sent)


def test_an_undo_that_names_its_turn_takes_back_no_other(tmp_path):
    with at_work(tmp_path, script=reply(say("Hello.")) + SCRIPT) as editor:
        editor.new_session()
        editor.prompt("hello")
        editor.prompt("change them")
        editor.prompt("/undo t1")
        assert "A newer turn has run since, so nothing was undone. Check what it did, then try again." in editor.text()
        assert changed(editor).keys() == ORIGINALS.keys()
        editor.prompt("/undo t2")
        assert changed(editor) == {}
        assert "“change them”" in editor.text()


def test_undo_after_a_load_in_another_process(tmp_path):
    with at_work(tmp_path, script=SCRIPT) as editor:
        session = editor.new_session()
        editor.prompt("change them")
    with at_work(tmp_path) as editor:
        load(editor, session)
        assert changed(editor).keys() == ORIGINALS.keys()
        editor.prompt("/undo")
        assert changed(editor) == {}
        assert not (editor.workspace / "sub" / "new.txt").exists()
        editor.prompt("/undo")
        assert "There is no turn to undo." in editor.text()
    with at_work(tmp_path) as editor:
        load(editor, session)
        assert own_calls(editor).keys() >= {"Remove sub/new.txt", "Restore crlf.txt"}
        [removed] = own_calls(editor)["Remove sub/new.txt"]["content"]
        assert (removed["oldText"], removed["newText"]) == ("new\n", "")


def test_after_a_kill_the_cut_off_turn_can_be_taken_back(tmp_path):
    script = reply(*CHANGES, run("sleep 600")) + DONE
    with at_work(tmp_path, script=script) as editor:
        session = editor.new_session()
        editor.start_prompt("change them")
        editor.wait_until(
            lambda: any(
                call.get("kind") == "execute" and call.get("status") == "in_progress"
                for call in editor.tool_calls().values()
            ),
            "the command",
        )
        editor.process.kill()
        editor.process.wait()
    with at_work(tmp_path) as editor:
        load(editor, session)
        editor.prompt("/undo")
        assert changed(editor) == {}
        assert "Their effects are not undone." in editor.text()


def test_a_session_that_cannot_be_kept_can_take_back_as_well(tmp_path):
    (tmp_path / "home" / "sessions.db").mkdir(parents=True)  # nobody can keep anything there
    with at_work(tmp_path, script=SCRIPT) as editor:
        editor.new_session()
        editor.prompt("change them")
        assert changed(editor).keys() == ORIGINALS.keys()
        assert "This session is not stored yet." in editor.text()
        editor.prompt("/undo")
        assert changed(editor) == {}
        assert not (editor.workspace / "sub" / "new.txt").exists()


def test_a_file_that_the_person_changed_since_is_left_and_named(tmp_path):
    with at_work(tmp_path, script=SCRIPT) as editor:
        editor.new_session()
        editor.prompt("change them")
        (editor.workspace / "crlf.txt").write_bytes(b"mine\r\n")
        editor.prompt("/undo")
        assert changed(editor) == {"crlf.txt": b"mine\r\n"}
        assert "- `crlf.txt` " in editor.text()


def test_a_command_that_changed_the_file_after_the_edit_counts_as_somebody_else(tmp_path):
    script = reply(edit("crlf.txt", "one", "two words")) + reply(run("echo more >> crlf.txt")) + DONE
    with at_work(tmp_path, script=script) as editor:
        editor.new_session()
        editor.prompt("change it")
        editor.prompt("/undo")
        assert changed(editor) == {"crlf.txt": b"two words\r\ntwo\r\nmore\n"}
        assert "“change it”" in editor.text()
        editor.prompt("and now?")
        assert "change it" in str(editor.model_requests()[-1]["messages"])


@pytest.mark.parametrize("turns", [1, 3])
def test_each_undo_takes_back_one_turn(tmp_path, turns):
    numbers = [f"n{number}" for number in range(turns + 1)]
    script = "".join(
        reply(edit("n.txt", old, new), when=new) + reply(say("ok"), when=new) for old, new in pairwise(numbers)
    )
    with at_work(tmp_path, script=script + DONE) as editor:
        path = editor.workspace / "n.txt"
        path.write_text("n0")
        editor.new_session()
        for number in numbers[1:]:
            editor.prompt(f"make it {number}")
            assert path.read_text() == number
        for number in reversed(numbers[:-1]):
            editor.prompt("/undo")
            assert path.read_text() == number
        editor.prompt("/undo")
        assert editor.text().endswith("There is no turn to undo.")


class Buffers:
    """An editor's open files: read from disk when they are opened, written to disk when they are changed."""

    def __init__(self, editor: Editor) -> None:
        self.texts: dict[str, str] = {}
        editor.answers["fs/read_text_file"] = lambda params: {"content": self.text(params["path"])}
        editor.answers["fs/write_text_file"] = self._write

    def text(self, path: str) -> str:
        if path not in self.texts and Path(path).exists():
            self.texts[path] = Path(path).read_bytes().decode()
        return self.texts.get(path, "")

    def _write(self, params: Json) -> Json:
        self.texts[params["path"]] = params["content"]
        Path(params["path"]).write_bytes(params["content"].encode())
        return {}


def test_the_editors_buffers_go_back_too(tmp_path):
    script = reply(edit("crlf.txt", "one", "two words"), edit("run.sh", "one", "two words")) + DONE
    with at_work(tmp_path, script=script, capabilities=FILES) as editor:
        buffers = Buffers(editor)
        editor.new_session()
        editor.prompt("change them")
        path = str(editor.workspace / "run.sh")
        assert "two words" in buffers.texts[path]
        editor.prompt("/undo")
        assert changed(editor) == {}
        assert buffers.texts[path].encode() == ORIGINALS["run.sh"]
        writes = [message for message in editor.received if message.get("method") == "fs/write_text_file"]
        assert [message["params"]["path"] for message in writes].count(path) == 2


def test_unsaved_text_in_the_editor_is_not_taken_back(tmp_path):
    script = reply(edit("run.sh", "one", "two words")) + DONE
    with at_work(tmp_path, script=script, capabilities=FILES) as editor:
        buffers = Buffers(editor)
        editor.new_session()
        editor.prompt("change it")
        path = str(editor.workspace / "run.sh")
        buffers.texts[path] += "# typed\n"
        editor.prompt("/undo")
        assert buffers.texts[path].endswith("two words\n# typed\n")
        assert "- `run.sh` " in editor.text()
