"""Whole conversations, kept in files and read like code: every message, ids and paths made the same.

`CROW_WRITE_GOLDEN=1` writes them anew; the difference is then reviewed like any other change.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.editor import NOTICES, Editor, chose

GOLDEN = Path(__file__).parent / "golden"
HELLO = '[[reply]]\nrepeat = true\nevents = [{ thought = "A greeting." }, { text = "Hello there." }]'
READ = '[[reply]]\nevents = [{{ text = "Let me look." }}, {{ call = "read", arguments = {{ path = "{}" }} }}]\n'
DONE = '[[reply]]\nevents = [{ text = "Done." }, { usage = { input_tokens = 12, output_tokens = 3 } }]\n'


def transcript(crow: Editor, *folders: Path) -> list[str]:
    """One line a message; deltas that belong together are joined, since how they were merged is a matter of time."""
    lines: list[dict[str, Any]] = []
    for entry in crow.conversation:
        message = {
            key: value for key, value in entry.message.items() if key not in ("jsonrpc", "method of the request")
        }
        if not (lines and _joined(lines[-1]["message"], message)):
            lines.append({"from": entry.sender, "message": json.loads(json.dumps(message))})
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    for folder in (crow.workspace, *folders):
        text = text.replace(str(folder), f"/{folder.name}")
    version = crow.initialized["agentInfo"]["version"]
    return (
        text.replace(crow.session_id, "SESSION").replace(f'"version": "{version}"', '"version": "VERSION"').split("\n")
    )


def _joined(last: dict[str, Any], message: dict[str, Any]) -> bool:
    one, two = (
        m.get("params", {}).get("update", {}) if m.get("method") == "session/update" else {} for m in (last, message)
    )
    if not one.get("messageId") or one.get("messageId") != two.get("messageId"):
        return False
    one["content"]["text"] += two["content"]["text"]
    return True


def assert_golden(name: str, lines: list[str]) -> None:
    path = GOLDEN / f"{name}.jsonl"
    if os.environ.get("CROW_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    assert lines == path.read_text().splitlines()


@pytest.mark.rule("R16", "R17", "R32", "R58", "R80")
def test_prompt(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.prompt("hi")
    assert_golden("prompt", transcript(crow))


@pytest.mark.rule("R67", "R88", "R144")
def test_read(open_editor):
    crow = open_editor(script=READ.format("notes.txt") + DONE)
    (crow.workspace / "notes.txt").write_text("one\ntwo\n")
    crow.new_session()
    crow.prompt("read my notes")
    assert_golden("read", transcript(crow))


@pytest.mark.rule("R101", "R103", "R105")
@pytest.mark.parametrize("option", ["once", "reject"])
def test_permission(open_editor, tmp_path, option):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("far away\n")
    crow = open_editor(script=READ.format(outside / "notes.txt") + DONE, permit=lambda request: chose(option))
    crow.new_session()
    crow.prompt("read those notes")
    assert_golden(f"permission-{option}", transcript(crow, outside))


@pytest.mark.rule("R68", "R69", "R70", "R72")
def test_cancel(open_editor):
    from tests.support.editor import FILES, SILENCE

    crow = open_editor(script=READ.format("notes.txt"), capabilities=FILES)
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.files[str(crow.workspace / "notes.txt")] = SILENCE
    crow.new_session()
    prompt = crow.start_prompt("read my notes")
    crow.wait_for_call("fs/read_text_file")
    crow.cancel()
    prompt.answer()
    assert_golden("cancel", transcript(crow))


@pytest.mark.rule("R62", "R24")
def test_error(open_editor):
    crow = open_editor(
        script='[[reply]]\nevents = [{ text = "I thi" }, { fail = { status = 401, message = "bad key" } }]'
    )
    crow.new_session()
    crow.start_prompt("hi").error()
    assert_golden("error", transcript(crow))


@pytest.mark.rule("R62", "R160")
@pytest.mark.parametrize("capabilities", [{}, NOTICES], ids=["message", "notice"])
def test_retry(open_editor, capabilities, request):
    failing = "[[reply]]\nevents = [{ fail = { status = 503, message = 'overloaded', retry_after = 0.6 } }]\n"
    crow = open_editor(script=failing + DONE, capabilities=capabilities)
    crow.new_session()
    crow.prompt("hi")
    assert_golden("retry-" + request.node.callspec.id, transcript(crow))
