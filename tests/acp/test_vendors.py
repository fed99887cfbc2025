"""Nothing but a key in the environment: two prompts, each with a tool round, to vendors that refuse a lot."""

from pathlib import Path
from typing import Any

import pytest

from crow.config.settings import VENDORS
from tests.support.editor import Editor
from tests.support.vendors import DONE, PATH, Vendor, Vendors
from tests.support.vendors_chat import CHAT_VENDORS, Groq


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
TOKENS = {"gemini": 150}
"""Of a request and its reply, where thoughts are counted in the total alone; 120 for the others."""
COSTS = {"openrouter": 0.25}
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


def test_a_call_that_its_own_vendor_would_not_pass_on_is_the_models_business(tmp_path: Path) -> None:
    """Groq's models write calls that do not fit: one is made as it is and fails, the other is no call at all."""
    vendor = Groq(failures=('{"name": "read", "arguments": {"nonsense": 1}}', "<read notes.txt"))
    crow = converse(tmp_path, vendor, "Read the notes.")
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed", "completed"]
    assert crow.text() == DONE
    assert len(vendor.refusals) == 2
    assert vendor.requests[1].body["messages"][-1]["role"] == "tool"
    shown_to_the_model = vendor.requests[2].body["messages"][-2:]
    assert shown_to_the_model[0] == {"role": "assistant", "content": "<read notes.txt"}
    assert "no tool call" in shown_to_the_model[1]["content"]


def test_a_model_that_cannot_write_a_call_is_stopped_after_two_attempts(tmp_path: Path) -> None:
    vendor = Groq(failures=("<read", "<read", "<read"))
    with Vendors(vendor) as vendors:
        crow = Editor(tmp_path, environment={"GROQ_API_KEY": vendor.key, **vendors.environment})
        crow.new_session()
        refused = crow.start_prompt("Read the notes.").error()
        assert "Tool call validation failed" in str(refused)
        assert len(vendor.requests) == 3
        assert crow.close() == 0
