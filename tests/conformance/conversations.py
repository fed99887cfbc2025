"""Well-behaved conversations with every level of client, recorded for the schema's judgement."""

import json
from pathlib import Path

from tests.conformance import recordings
from tests.support.editor import EVERYTHING, FILES, NOTHING, NOTICES, TERMINAL, Entry, chose
from tests.support.scripts import call, edit, reply, run
from tests.support.zed import Zed

GOLDEN = Path(__file__).parent.parent / "acp" / "golden"

TOOLS = (
    reply(edit("notes.txt", "one", "1"), edit("notes.txt", "two", "2"), when="change")
    + reply(call("write", path="new/notes.txt", content="new\n"), run("echo out; exit 3"), when="change")
    + reply(run("sleep 1000", background=True), call("terminal_read", id="b1"), when="change")
    + reply(call("terminal_stop", id="b1"), run("sleep 1000", timeout=0.2), when="change")
    + reply(call("plan", entries=[{"content": "look"}]), call("find", pattern="*.txt"), when="change")
    + reply(call("search", pattern="2"), call("ask", question="Which?", options=["a", "b"]), when="change")
    + reply(run("sleep 1000"), when="change")
)

SCRIPT = """
[[reply]]
when = "greet"
events = [{ thought = "A greeting." }, { text = "Hello there." }, { usage = { input_tokens = 9, output_tokens = 3 } }]
[[reply]]
when = "read"
events = [{ text = "Let me look." }, { call = "read", arguments = { path = "notes.txt" } },
          { call = "read", arguments = { path = "/etc/hostname" } }, { call = "unheard" }]
[[reply]]
when = "read"
events = [{ text = "That is all." }]
[[reply]]
when = "retry"
events = [{ fail = { status = 503, message = "overloaded" } }]
[[reply]]
when = "retry"
events = [{ text = "Here I am." }]
[[reply]]
when = "fail"
events = [{ text = "Half" }, { fail = { status = 400, message = "no" } }]
[[reply]]
when = "refuse"
events = [{ text = "No." }, { finish = "refusal" }]
[[reply]]
when = "wait"
events = [{ text = "Once" }, { wait = 60 }]
"""

LAST_CALL = 14
"""Calls of a whole conversation that are shown as such: three in "read", eleven in "change". The plan is not, nor is a
question where the client has no forms."""

CLIENTS = {
    "nothing": NOTHING,
    "files": FILES,
    "terminal": TERMINAL,
    "files-and-terminal": FILES | TERMINAL,
    "notices": NOTICES,
    "everything": EVERYTHING,
}


def record_all(folder: Path) -> list[Path]:
    return [record(folder, name) for name in CLIENTS]


def golden(folder: Path) -> list[Path]:
    """The transcripts that the tests compare with, as recordings."""
    return [_as_record(folder, path) for path in sorted(GOLDEN.glob("*.jsonl"))]


def _as_record(folder: Path, golden: Path) -> Path:
    lines = [json.loads(line) for line in golden.read_text().splitlines()]
    messages = [Entry(line["from"], {"jsonrpc": "2.0", **line["message"]}, 0) for line in lines if "from" in line]
    return recordings.write(folder / f"golden-{golden.name}", messages)


def record(folder: Path, client: str) -> Path:
    """One conversation that meets every kind of ending; the file that holds it."""
    options = iter(["once", "reject", "once", "reject"])
    editor = Zed(
        folder / client,
        script=TOOLS + SCRIPT,
        capabilities=CLIENTS[client],
        permit=lambda request: chose(_choice(request, next(options, "once"))),
        answers={"elicitation/create": lambda params: {"action": "decline"}},
    )
    try:
        (editor.workspace / "notes.txt").write_text("one\ntwo\n")
        editor.new_session(mcpServers=[{"name": "docs", "command": "/bin/docs", "args": [], "env": []}])
        for word in ("greet", "read", "retry", "refuse"):
            editor.prompt(word, {"type": "resource_link", "uri": "file:///nowhere", "name": "nowhere"})
        editor.start_prompt("fail").error()
        waiting = editor.start_prompt("wait")
        editor.wait_until(lambda: editor.text().endswith("Once"), "the text")
        editor.cancel()
        waiting.answer()
        changing = editor.start_prompt("change")
        if "elicitation" not in CLIENTS[client]:
            changing.answer()  # without forms, a question to the person is the end of the turn
            changing = editor.start_prompt("change")
        editor.wait_until(lambda: "sleep 1000" in _running(editor), "the last command")
        editor.cancel()
        changing.answer()
        editor.request("session/close", {"sessionId": editor.session_id})
        editor.close()
    finally:
        editor.kill()
    return recordings.write(folder / f"{client}.jsonl", editor.conversation)


def _choice(request: dict, option: str) -> str:
    offered = [offer["optionId"] for offer in request["options"]]
    return option if option in offered else offered[0]


def _running(editor: Zed) -> str:
    """The title of the command that runs as the last of all calls."""
    calls = list(editor.tool_calls().values())
    shown = calls[-1] if calls else {}
    return shown["title"] if shown.get("status") == "in_progress" and len(calls) >= LAST_CALL else ""
