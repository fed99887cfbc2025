"""Nothing but a key in the environment: two prompts, each with a tool round, to vendors that refuse a lot."""

from pathlib import Path
from typing import Any

import pytest

from crow.config.vendors import VENDORS
from tests.support.editor import Editor
from tests.support.vendors import DONE, PATH, Vendor, Vendors
from tests.support.vendors_chat import CHAT_VENDORS


def converse(tmp_path: Path, vendor: Vendor, *prompts: str) -> Editor:
    """The editor afterwards; every prompt was answered to its end."""
    with Vendors(vendor) as vendors:
        environment = {VENDORS[vendor.name].key_variable: vendor.key, **vendors.environment}
        crow = Editor(tmp_path, environment=environment)
        (crow.workspace / PATH).write_text("Some notes.\n")
        crow.new_session()
        for prompt in prompts:
            assert crow.prompt(prompt)["stopReason"] == "end_turn", vendor.refusals
        assert crow.close() == 0
        return crow


EXPECTED_REFUSALS = {"mistral": ["stream_options"]}
"""What can only be learned."""
SILENT = ("gemini",)
"""Those who show no thoughts."""
TOKENS = {"gemini": 150, "xai": 150}
"""Of a request and its reply, where thoughts are counted in the total alone; 120 for the others."""
COSTS = {"openrouter": 0.25, "xai": 0.25}
"""Of a reply, where the vendor says it."""


@pytest.mark.parametrize("kind", CHAT_VENDORS, ids=lambda kind: kind.name)
def test_two_prompts_with_tool_rounds_and_thoughts(kind: type[Any], tmp_path: Path) -> None:
    vendor = kind()
    crow = converse(tmp_path, vendor, "Read the notes.", "Once more.")
    assert vendor.refusals == EXPECTED_REFUSALS.get(vendor.name, [])
    assert vendor.replies == 4
    assert crow.text() == DONE * 2
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 2
    thoughts = "" if vendor.name in SILENT else "".join(f"Thought {reply}." for reply in range(1, 5))
    assert crow.thoughts() == thoughts
    usage = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"]
    assert usage[-1]["used"] == TOKENS.get(vendor.name, 120)
    assert usage[-1].get("cost") == (
        {"amount": 4 * COSTS[vendor.name], "currency": "USD"} if vendor.name in COSTS else usage[-1].get("cost")
    )
