"""Golden transcripts: a conversation line by line, ids and paths made the same, compared with a file that is reviewed.

`CROW_WRITE_GOLDEN=1` writes the files anew.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support.editor import Editor, Entry, Json
from tests.support.fold import assert_looks_as_it_did

GOLDEN = Path(__file__).parent.parent / "acp" / "golden"
LONGEST = 1500
"""Characters of a whole file that are worth reading here."""


def loaded_again(open_editor: Callable[..., Editor]) -> Iterator[Callable[..., Editor]]:
    """For a fixture: each editor's session is loaded by another one when it is over, and must look as it did."""
    lived: list[tuple[Editor, Json]] = []

    def start(kind: type[Editor] = Editor, **options: Any) -> Editor:
        editor = open_editor(kind, **options)
        if "folder" not in options:  # else it is itself another one
            lived.append((editor, options.get("capabilities", {})))
        return editor

    yield start
    for editor, capabilities in lived:
        editor.close()
        assert_looks_as_it_did(editor, open_editor(folder=editor.folder, capabilities=capabilities))


def transcript(crow: Editor, *folders: Path) -> list[str]:
    """One line a message; deltas that belong together are joined, since how they were merged is a matter of time.

    What can be chosen in a session and which commands it has is the same in all of them, so that is left out.
    """
    return whole_transcript(crow, *folders, is_left_out=is_aside)


def whole_transcript(
    crow: Editor, *folders: Path, is_left_out: Callable[[Json], bool], names: dict[str, str] | None = None
) -> list[str]:
    lines: list[Json] = []
    for entry in _in_order(_without_looks(crow.conversation)):
        message = {
            key: value for key, value in entry.message.items() if key not in ("jsonrpc", "method of the request")
        }
        if is_left_out(message) or (lines and _joined(lines[-1]["message"], message)):
            continue
        lines.append({"from": entry.sender, "message": _without_choices(json.loads(json.dumps(message)))})
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    text = text.replace(str(crow.workspace), "/project")
    for folder in folders:
        text = text.replace(str(folder), f"/{folder.name}")
    text = re.sub(r'"updatedAt": "[^"]*"', '"updatedAt": "TIME"', text)
    text = re.sub(r'"CROW_TERMINAL", "value": "[0-9a-f]*"', '"CROW_TERMINAL", "value": "MARK"', text)
    for id, name in (names or {}).items():
        text = text.replace(id, name)
    version = crow.initialized["agentInfo"]["version"]
    return (
        text.replace(crow.session_id, "SESSION").replace(f'"version": "{version}"', '"version": "VERSION"').split("\n")
    )


def is_aside(message: Json) -> bool:
    return message.get("params", {}).get("update", {}).get("sessionUpdate") == "available_commands_update"


def _without_choices(message: Json) -> Json:
    message.get("params", {}).pop("clientInfo", None)
    result = message.get("result")
    if isinstance(result, dict) and "agentCapabilities" in result:  # extensions: test_handshake.py has them
        result.pop("_meta", None)
        result["agentCapabilities"].pop("_meta", None)
    if isinstance(result, dict) and "configOptions" in result:
        message["result"] = {key: value for key, value in result.items() if key not in ("modes", "configOptions")}
    return message


def _without_looks(conversation: list[Entry]) -> list[Entry]:
    """How often a running command's output is looked at is a matter of time: only the last look at each is kept.

    Crow's requests are numbered anew, as if there had been no others.
    """
    asked = [
        entry.message for entry in conversation if entry.sender == "crow" and {"id", "method"} <= set(entry.message)
    ]
    looks = [message for message in asked if message["method"] == "terminal/output"]
    last = {message["params"]["terminalId"]: message["id"] for message in looks}
    dropped = {message["id"] for message in looks} - set(last.values())
    kept = [message["id"] for message in asked if message["id"] not in dropped]
    numbers = {id: number for number, id in enumerate(kept, start=1)}
    return [_numbered(entry, numbers) for entry in conversation if not _is_of(entry, dropped)]


def _is_of(entry: Entry, requests: set[int]) -> bool:
    """Whether a message is one of these requests of Crow's, or the answer to one."""
    asks, message = "method" in entry.message, entry.message
    return message.get("id") in requests and (entry.sender == "crow") == asks


def _numbered(entry: Entry, numbers: dict[int, int]) -> Entry:
    message = entry.message
    if message.get("method") == "$/cancel_request" and entry.sender == "crow":
        params = message["params"]
        return entry._replace(message=message | {"params": params | {"requestId": numbers[params["requestId"]]}})
    return entry._replace(message=message | {"id": numbers[message["id"]]}) if _is_of(entry, set(numbers)) else entry


def _in_order(conversation: list[Entry]) -> list[Entry]:
    """What the editor answers between two messages of Crow's, by id: which command ends first is a matter of time.

    Releases of terminals come last: they are under way while the call's result is being stored.
    """
    released = {entry.message["id"] for entry in conversation if entry.message.get("method") == "terminal/release"}
    entries: list[Entry] = []
    answers: list[Entry] = []
    releases: list[Entry] = []
    for entry in conversation:
        if _is_about_a_release(entry, released):
            releases.append(entry)
        elif entry.sender == "editor" and "method" not in entry.message:
            answers.append(entry)
        else:
            entries += [*sorted(answers, key=lambda answer: answer.message["id"]), entry]
            answers = []
    return entries + answers + sorted(releases, key=lambda entry: entry.message["id"])


def _is_about_a_release(entry: Entry, released: set[int]) -> bool:
    asked = entry.message.get("method") == "terminal/release"
    return asked or (entry.sender == "editor" and "method" not in entry.message and entry.message["id"] in released)


def _joined(last: Json, message: Json) -> bool:
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


def without_live_output(lines: list[Json]) -> list[Json]:
    return [line for line in lines if not is_live_output(line["message"])]


def tools_transcript(
    zed: Editor,
    offered: Json | None = None,
    kept: Callable[[list[Json]], list[Json]] = without_live_output,
    folders: Iterable[Path] = (),
) -> list[str]:
    """The transcript of a conversation in which only this much of what was offered mattered (None: all of it)."""
    lines = kept([json.loads(line) for line in transcript(zed, *folders)])
    if offered is not None:
        lines[0]["message"]["params"]["clientCapabilities"] = offered
    for line in lines:
        _cut_files(line["message"])
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in [*lines, *_told(zed)])
    return re.sub(r" · \d+\.\d s", " · 0.0 s", text.replace(str(zed.workspace), "/project")).split("\n")


def is_live_output(message: Json) -> bool:
    """A command's text as it grows: how often that is shown is a matter of time. See test_tool_life.py for that."""
    update = message.get("params", {}).get("update", {})
    content = update.get("content") or [{}]
    return set(update) == {"sessionUpdate", "toolCallId", "content"} and content[0].get("type") == "content"


def is_preview(message: Json) -> bool:
    """A call whose arguments are arriving: how often it is shown is a matter of time."""
    update = message.get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "tool_call_update" and not {"kind", "status", "rawInput"} & set(update)


def _cut_files(message: Json) -> None:
    """A large file that goes to and fro is not worth reading; what Crow shows of it is."""
    for part in (message.get("params"), message.get("result")):
        if isinstance(part, dict) and len(part.get("content") or "") > LONGEST:
            part["content"] = f"{part['content'][:60]}… ({len(part['content'])} characters)"


def _told(crow: Editor) -> Iterable[Json]:
    requests = crow.model_requests()
    results = [message for message in requests[-1]["messages"] if message["role"] == "tool"] if requests else []
    return [{"to": "model", "ok": result["ok"], "result": result["text"]} for result in results]
