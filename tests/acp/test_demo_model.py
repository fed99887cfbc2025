"""*Try without a key*: what a visitor sees of `scripted/demo`, prompt by prompt, whatever they answer."""

import os
import re
from collections.abc import Callable
from typing import Any

from crow.model import catalog
from tests.support.editor import NOTICES, RAW_OUTPUT, Editor, Json, chose

PROMPTS = 7
"""One for each thing that is shown, and one more: the last reply repeats."""


def tour() -> str:
    """The script as it is shipped, without its tempo."""
    with open(os.path.join(os.path.dirname(catalog.__file__), "demo.toml"), encoding="utf-8") as file:
        return re.sub(r"retry_after = \d+", "retry_after = 0", re.sub(r"pace = \d+", "pace = 0", file.read()))


def visit(open_editor: Callable[..., Editor], answer: str) -> Editor:
    crow = open_editor(
        script=tour(),
        images=True,
        capabilities={**RAW_OUTPUT, **NOTICES, "elicitation": {"form": {}}},
        permit=lambda request: chose(answer),
        answers={"elicitation/create": lambda form: {"action": "accept", "content": {"answer": "Coins"}}},
    )
    crow.new_session()
    for _ in range(PROMPTS):
        assert crow.prompt("go on")["stopReason"] == "end_turn"
    return crow


def contents(crow: Editor) -> list[Json]:
    return [item for update in crow.updates for item in update.get("content") or () if isinstance(item, dict)]


def titles(crow: Editor) -> list[str]:
    return [call["title"] for call in crow.tool_calls().values()]


def test_a_visitor_who_allows_everything_sees_every_kind_of_display(open_editor):
    crow = visit(open_editor, "once")
    kinds = {update["sessionUpdate"] for update in crow.updates}
    assert kinds >= {"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"}
    assert kinds >= {"usage_update", "notice"}
    shown = contents(crow)
    diffs = [item for item in shown if item["type"] == "diff"]
    assert {item["path"] for item in diffs} == {str(crow.workspace / "crow-tour.md")}
    assert any(item.get("oldText") is None for item in diffs)
    assert any("a coin" in item["newText"] and item.get("oldText") for item in diffs)
    assert any(item["type"] == "content" and item["content"]["type"] == "image" for item in shown)
    raw = "".join(_output(update) for update in crow.updates)
    assert "\x1b[32mbuilt\x1b[0m a nest of 5 twigs" in raw
    assert any("too many crows" in notice for notice in crow.notices)
    assert any("Look around" in title for title in titles(crow))
    assert [m for m in crow.received if m.get("method") == "elicitation/create"]
    assert [update["entries"] for update in crow.updates if update["sessionUpdate"] == "plan"][-1] == []
    assert {call["status"] for call in crow.tool_calls().values()} == {"completed"}
    assert os.listdir(crow.workspace) == []  # it has tidied up
    assert "crow login" in crow.text().rpartition("That was everything.")[2]


def test_a_visitor_who_rejects_everything_keeps_the_folder_as_it_is(open_editor):
    crow = visit(open_editor, "reject")
    assert os.listdir(crow.workspace) == []
    assert len(crow.permissions) == 4  # two commands, a new file (there is none to change then), and tidying up
    assert "That was everything." in crow.text()


def test_in_plan_mode_nothing_is_asked_and_nothing_changed(open_editor):
    crow = open_editor(script=tour(), images=True)
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
    for _ in range(PROMPTS):
        assert crow.prompt("go on")["stopReason"] == "end_turn"
    assert crow.permissions == []
    assert os.listdir(crow.workspace) == []


def _output(update: Json) -> str:
    meta: Any = update.get("_meta") or {}
    return meta.get("terminal_output", {}).get("data", "")
