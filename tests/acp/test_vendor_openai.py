"""OpenAI and Azure with nothing but a key: two prompts with tool rounds and thoughts, and one more after a restart."""

import itertools
import json
from pathlib import Path
from typing import Any

from tests.support.editor import Editor
from tests.support.provider_responses import sealed
from tests.support.vendors import ARGUMENTS, DONE, PATH, Vendors, thought_of
from tests.support.vendors_openai import LOOKING, NO_TOOLS, XAI, Azure, Gateway, OpenAI

AZURE = {"OPENAI_BASE_URL": "https://house.openai.azure.com/openai/v1", "CROW_MODEL": "openai/our-deployment"}


def converse(folder: Path, vendor: OpenAI, environment: dict[str, str]) -> Editor:
    with Vendors(vendor) as vendors:
        environment = {"OPENAI_API_KEY": vendor.key, **vendors.environment, **environment}
        crow = Editor(folder, environment=environment)
        (crow.workspace / PATH).write_text("Some notes.\n")
        session = crow.new_session()
        for prompt in ("Read the notes.", "Once more."):
            assert crow.prompt(prompt)["stopReason"] == "end_turn", vendor.refusals
        assert crow.close() == 0
        again = Editor(folder, environment=environment)
        again.load_session(session)
        assert again.prompt("And again.")["stopReason"] == "end_turn", vendor.refusals
        assert again.close() == 0
    return crow


def reasoning(reply: int) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": thought_of(reply)}]
    return {"type": "reasoning", "summary": summary, "encrypted_content": sealed(thought_of(reply))}


def spoken(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content, "phase": "final_answer"}


def test_openai(tmp_path: Path) -> None:
    vendor = OpenAI()
    crow = converse(tmp_path, vendor, {})
    assert (vendor.refusals, vendor.replies) == ([], 6)
    assert crow.text() == f"{LOOKING}\n\n{DONE}" * 2
    assert crow.thoughts() == "".join(map(thought_of, range(1, 5)))
    assert [call["status"] for call in crow.tool_calls().values()] == ["completed"] * 2
    (usage,) = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"][-1:]
    assert usage["used"] == 120

    sent = [request.body for request in vendor.requests]
    assert len({body["prompt_cache_key"] for body in sent}) == 1
    assert all(body["reasoning"]["summary"] == "auto" for body in sent)
    items = [item for item in sent[-1]["input"] if item.get("role") != "user"]
    for turn in range(3):
        number = turn * 2 + 1
        thought, words, call, result = items[turn * 6 : turn * 6 + 4]
        assert (thought, words) == (reasoning(number), spoken(LOOKING))
        assert (call["type"], call["arguments"], call["call_id"]) == ("function_call", ARGUMENTS, result["call_id"])
        if turn < 2:
            assert items[turn * 6 + 4 : turn * 6 + 6] == [reasoning(number + 1), spoken(DONE)]
    # Each request begins with all of the one before: only so is it found in the cache.
    for before, after in itertools.pairwise(sent):
        assert json.dumps(after["input"]).startswith(json.dumps(before["input"])[:-1])


def test_xai_gets_back_what_its_models_have_thought(tmp_path: Path) -> None:
    vendor = XAI()
    crow = converse(tmp_path, vendor, {"OPENAI_API_KEY": "", "XAI_API_KEY": vendor.key})
    assert (vendor.refusals, vendor.replies) == ([], 6)
    assert reasoning(5) in vendor.requests[-1].body["input"]
    usage = [update for update in crow.updates if update["sessionUpdate"] == "usage_update"][-1]
    assert usage["cost"] == {"amount": 1.0, "currency": "USD"}


def test_azure(tmp_path: Path) -> None:
    vendor = Azure()
    crow = converse(tmp_path, vendor, AZURE)
    assert (vendor.refusals, vendor.replies) == ([], 6)
    assert crow.text() == f"{LOOKING}\n\n{DONE}" * 2
    assert "authorization" not in vendor.requests[0].headers


def test_a_gateway_that_sends_from_one_api_to_the_other(tmp_path: Path) -> None:
    """Nothing is lost by it, and it is learned once in each process."""
    vendor = Gateway()
    environment = {"OPENAI_BASE_URL": "https://gateway.example/v1", "CROW_MODEL": "openai/gpt-5.6"}
    crow = converse(tmp_path, vendor, environment)
    assert (vendor.refusals, vendor.replies) == ([NO_TOOLS.format("gpt-5.6")] * 2, 6)
    assert crow.text() == f"{LOOKING}\n\n{DONE}" * 2
    assert crow.thoughts() == "".join(map(thought_of, range(1, 5)))
