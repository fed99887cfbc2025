"""Well-behaved conversations with every level of client, recorded for the schema's judgement."""

import json
from pathlib import Path

from tests.support.editor import EVERYTHING, FILES, NOTHING, NOTICES, Editor, chose

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

CLIENTS = {"nothing": NOTHING, "files": FILES, "notices": NOTICES, "everything": EVERYTHING}


def record_all(folder: Path) -> list[Path]:
    return [record(folder, name) for name in CLIENTS]


def record(folder: Path, client: str) -> Path:
    """One conversation that meets every kind of ending; the file that holds it."""
    options = iter(["once", "reject"])
    editor = Editor(
        folder / client,
        script=SCRIPT,
        capabilities=CLIENTS[client],
        permit=lambda request: chose(next(options, "reject")),
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
        editor.request("session/close", {"sessionId": editor.session_id})
        editor.close()
    finally:
        editor.kill()
    path = folder / f"{client}.jsonl"
    with path.open("w") as file:
        for entry in editor.conversation:
            sender = "client" if entry.sender == "editor" else "agent"
            file.write(json.dumps({"run": client, "from": sender, "msg": entry.message}) + "\n")
    return path
