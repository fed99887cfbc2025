"""The test provider refuses what the real ones refuse; without that, the other tests would prove little."""

import copy
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.provider import Provider
from tests.support.provider_anthropic import seal

OPENAI: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "messages": [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call00001", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "call00001", "content": "x"},
    ],
}
ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "stream": True,
    "max_tokens": 9,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": seal("Hm.")},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x"}]}],
        },
    ],
}


def post(provider: Provider, path: str, body: Any) -> tuple[int, bytes]:
    headers = {"anthropic-version": "2023-06-01"} if "messages" in path else {}
    request = urllib.request.Request(provider.url + path, json.dumps(body).encode(), headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=5) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def spoiled(body: dict[str, Any], spoil: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    body = copy.deepcopy(body)
    spoil(body)
    return body


def test_good_requests_are_answered() -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        provider.anthropic.answer("Hi")
        assert post(provider, "/v1/chat/completions", OPENAI)[0] == 200
        assert post(provider, "/v1/messages", ANTHROPIC)[0] == 200


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body["messages"].pop(),
        lambda body: body["messages"].pop(1),
        lambda body: body["messages"].append({"role": "tool", "tool_call_id": "call00001", "content": "x"}),
        lambda body: body["messages"].insert(2, {"role": "user", "content": "wait"}),
        lambda body: body["messages"].insert(0, {"role": "user", "content": "twice"}),
        lambda body: body["messages"][0].update(content=""),
        lambda body: body["messages"][0].update(content=[{"type": "text", "text": " "}]),
        lambda body: body["messages"][1].update(content="", tool_calls=[]),
        lambda body: body["messages"][2].update(content=""),
        lambda body: body["messages"][1]["tool_calls"].append(body["messages"][1]["tool_calls"][0]),
        lambda body: (
            body["messages"][1]["tool_calls"][0].update(id="c-1"),
            body["messages"][2].update(tool_call_id="c-1"),
        ),
        lambda body: body["messages"][1]["tool_calls"][0]["function"].update(arguments="{"),
        lambda body: body["messages"][1]["tool_calls"][0]["function"].update(name="a.b"),
        lambda body: body.update(messages=[]),
        lambda body: body.update(stream=False),
    ],
)
def test_bad_chat_completions(spoil: Callable[[dict[str, Any]], object]) -> None:
    with Provider() as provider:
        provider.openai.answer("Hi")
        assert post(provider, "/v1/chat/completions", spoiled(OPENAI, spoil))[0] == 400


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body["messages"].pop(),
        lambda body: body["messages"].pop(1),
        lambda body: body["messages"].pop(0),
        lambda body: body["messages"][0].update(content=[]),
        lambda body: body["messages"][0]["content"][0].update(text=" "),
        lambda body: body["messages"][1]["content"][0].update(signature=""),
        lambda body: body["messages"][1]["content"][0].update(thinking="Hm!"),
        lambda body: body["messages"][1]["content"][1].update(input="{}"),
        lambda body: body["messages"][1]["content"].append(body["messages"][1]["content"][1]),
        lambda body: body["messages"][2]["content"].insert(0, {"type": "text", "text": "first"}),
        lambda body: body["messages"][2]["content"].append(body["messages"][2]["content"][0]),
        lambda body: body["messages"][2]["content"][0].update(content=[]),
        lambda body: body.update(tools=[{"name": f"t{n}", "cache_control": {}} for n in range(5)]),
        lambda body: body.pop("max_tokens"),
    ],
)
def test_bad_messages(spoil: Callable[[dict[str, Any]], object]) -> None:
    with Provider() as provider:
        provider.anthropic.answer("Hi")
        assert post(provider, "/v1/messages", spoiled(ANTHROPIC, spoil))[0] == 400
