"""What a refusal says about the window, and what helps against complaints that only a server's owner can end."""

import json
from typing import Any

import pytest

from crow.errors import ContextOverflow, ModelRejected, ModelUnavailable
from crow.model.provider_errors import from_status, in_stream, read, window_named_in

NAMED = (
    (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (7000 in messages).",
        8192,
    ),
    ("Requested token count exceeds the model's maximum context length of 131072 tokens.", 131072),
    ("request (9021 tokens) exceeds the available context size (8192 tokens), try increasing it", 8192),
    ("The decoder prompt (length 9000) is longer than the maximum model length of 4096.", 4096),
    ("However, the model is loaded with context length of only 4096 tokens, which is not enough.", 4096),
    ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
    ("input length and `max_tokens` exceed context limit: 197202 + 21333 > 200000, decrease", 200_000),
    ("The input token count (1,200,000) exceeds the maximum number of tokens allowed (1,048,576).", 1_048_576),
    ("This model's maximum prompt length is 131,072 but the request contains 537,812 tokens.", 131_072),
    ("Invalid request: Your request exceeded model token limit: 262144", 262_144),
    ("prompt token count of 70000 exceeds the limit of 64000", 64_000),
    ("Range of input length should be [1, 30720]", 30_720),
    ("context length exceeded: 9000 > 8192", 8192),
    ("Context size has been exceeded.", None),
    ("Please reduce the length of the messages or completion.", None),
    ("maximum context length is 3 tokens", None),
)


@pytest.mark.parametrize(("said", "window"), NAMED)
def test_the_window_that_a_refusal_names(said: str, window: int | None) -> None:
    assert window_named_in(said) == window


def test_the_window_that_llama_cpp_gives_beside_its_words() -> None:
    error = {
        "code": 400,
        "message": "the request exceeds the available context size",
        "n_ctx": 8192,
        "n_prompt_tokens": 9,
    }
    body = json.dumps({"error": {**error, "type": "exceed_context_size_error"}}).encode()
    fault = in_stream("local", read(body, str))
    assert isinstance(fault, ContextOverflow)
    assert fault.window == 8192


@pytest.mark.parametrize("said", ["Context size has been exceeded.", "context length exceeded: 9000 > 8192"])
@pytest.mark.parametrize("fields", [{"code": 500, "type": "server_error"}, {}])
def test_an_overflow_that_a_server_takes_for_a_failure_of_its_own(said: str, fields: dict[str, Any]) -> None:
    """As the status of the answer, and as an error inside a stream, with a code or without one."""
    window = window_named_in(said)
    body = json.dumps({"error": {"message": said, **fields}}).encode()
    for fault in (from_status("local", 500, said), in_stream("local", read(body, str))):
        assert isinstance(fault, ContextOverflow)
        assert fault.window == window


REMEDIES = (
    (400, "registry.ollama.ai/library/gemma3:270m does not support tools", "does not support tools, which Crow needs"),
    (500, "tools param requires --jinja flag", "--jinja"),
    (
        400,
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "--tool-call-parser NAME",
    ),
    (500, "model requires more system memory (22.8 GiB) than is available (11.0 GiB)", "smaller model"),
    (404, "No models loaded. Please load a model in the developer page or use the 'lms load' command.", "lms load"),
    (500, "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "--mmproj"),
    (404, 'model "qwen3" not found, try pulling it first', "ollama pull"),
)


@pytest.mark.parametrize(("status", "said", "remedy"), REMEDIES)
def test_what_a_servers_owner_has_to_change_is_said_and_not_tried_again(status: int, said: str, remedy: str) -> None:
    fault = from_status("local", status, said)
    assert isinstance(fault, ModelRejected)
    assert remedy in fault.remedy


def test_other_failures_of_a_server_are_tried_again() -> None:
    assert isinstance(from_status("local", 503, "Loading model"), ModelUnavailable)
