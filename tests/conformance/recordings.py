"""Recorded conversations: how they are written down, and whether they show everything that an agent can be asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.editor import Entry

METHODS = {
    *("initialize", "authenticate", "logout", "$/cancel_request", "_session/steering", "_extension"),
    *(
        "session/new",
        "session/load",
        "session/resume",
        "session/list",
        "session/fork",
        "session/status",
        "session/close",
        "session/delete",
    ),
    *("session/prompt", "session/cancel", "session/set_mode", "session/set_config_option"),
}
"""What a client may ask of Crow. Whatever else begins with `_` is an extension that it does not know."""

UPDATES = {
    *("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"),
    *("available_commands_update", "current_mode_update", "config_option_update", "session_info_update"),
    *("usage_update", "notice", "compaction_update"),
}
"""What Crow tells of a session."""


def write(path: Path, *conversations: list[Entry]) -> Path:
    """Each conversation is one process's."""
    with path.open("w") as file:
        for number, conversation in enumerate(conversations, 1):
            for entry in conversation:
                sender = "client" if entry.sender == "editor" else "agent"
                line = {"run": f"{path.stem}-{number}", "from": sender, "msg": entry.message}
                file.write(json.dumps(line) + "\n")
    return path


def missing(*records: Path) -> list[str]:
    """The methods and updates that no conversation shows."""
    asked: set[str] = set()
    told: set[str] = set()
    for message in _messages(*records):
        method = message.get("method", "")
        if method == "session/update":
            told.add(message["params"]["update"]["sessionUpdate"])
        else:
            asked.add("_extension" if method.startswith("_") and method not in METHODS else method)
    return [f"no conversation shows {name}" for name in sorted(METHODS - asked) + sorted(UPDATES - told)]


def _messages(*records: Path) -> Iterator[dict[str, Any]]:
    for record in records:
        for line in record.read_text().splitlines():
            yield json.loads(line)["msg"]
