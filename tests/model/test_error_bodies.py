"""What vendors say when they refuse, in the shapes they say it in, and which of our errors it becomes."""

import json
from typing import Any

import pytest

from crow.config.settings import ProviderSettings
from crow.errors import (
    CallMalformed,
    ContextOverflow,
    ModelError,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)
from crow.model import provider_errors
from crow.model.listing import try_model
from crow.model.provider_errors import from_status
from tests.model.asking import run
from tests.support.provider import Provider


def said(body: Any) -> str:
    return provider_errors.read(json.dumps(body).encode(), lambda text: text.replace("sk-1", "…")).said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": '{"error":{"message":"No such tool."}}', "provider_name": "Google AI Studio"},
                }
            },
            "Google AI Studio: No such tool.",
        ),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "busy, sk-1"}}}, "busy, …"),
        ({"error": {"message": "Provider returned error", "metadata": {"raw": ""}}}, "Provider returned error"),
        ({"error": {"message": "Provider returned error", "metadata": None}}, "Provider returned error"),
        (
            {
                "object": "error",
                "message": {
                    "detail": [
                        {
                            "type": "extra_forbidden",
                            "loc": ["body", "messages", 2, "assistant", "reasoning_content"],
                            "msg": "Extra inputs are not permitted",
                        }
                    ]
                },
                "type": "invalid_request_error",
            },
            "messages.2.assistant.reasoning_content: Extra inputs are not permitted",
        ),
        ({"detail": [{"loc": ["body", "stop"], "msg": "Field required"}]}, "stop: Field required"),
        ([{"error": {"code": 400, "message": "Bad.", "status": "INVALID_ARGUMENT"}}], "Bad."),
        (
            {"error": {"code": "BadRequest", "message": "It failed.", "details": [{"message": "No deployment."}]}},
            "It failed: No deployment.",
        ),
        ({"code": "Client specified an invalid argument", "error": "Incorrect key"}, "Incorrect key"),
    ],
)
def test_the_words_that_help_are_quoted(body: Any, words: str) -> None:
    assert said(body) == words


@pytest.mark.parametrize(
    ("status", "words", "error"),
    [
        (400, "Incorrect API key provided: x. You can obtain one from the console.", ModelRefusedKey),
        (400, "API key not valid. Please pass a valid API key.", ModelRefusedKey),
        (402, "Insufficient Balance", ModelRejected),
        (429, "Your account org-1 is suspended due to insufficient balance, please recharge", ModelRejected),
        (429, "exceeded_current_quota_error", ModelRejected),
        (400, "Access denied, please make sure your account is not in arrears", ModelRejected),
        (429, "rate limit reached for tokens per minute", ModelUnavailable),
        (400, "This model's maximum prompt length is 131072 but the request has 200000 tokens.", ContextOverflow),
        (400, "Invalid request: Your request exceeded model token limit: 262144", ContextOverflow),
        (400, "invalid params, context window exceeds limit (2013)", ContextOverflow),
        (400, "prompt token count of 130000 exceeds the limit of 128000", ContextOverflow),
        (400, "Input is too long for requested model.", ContextOverflow),
        (400, "Range of input length should be [1, 98304]", ContextOverflow),
        (400, "The length of all messages is too long", ContextOverflow),
        (400, "too_many_prompt_tokens", ContextOverflow),
        (422, "inputs are longer than the model's context length", ContextOverflow),
        (400, "Total tokens in request more than max tokens", ContextOverflow),
        (413, "", ContextOverflow),
        (400, "rate limit: the input is too long for this minute", ModelRejected),
    ],
)
def test_what_the_words_mean(status: int, words: str, error: type[ModelError]) -> None:
    found = from_status("house", status, words, key_name="the variable HOUSE_KEY")
    assert type(found) is error
    if error is ModelRefusedKey:
        assert "HOUSE_KEY" in found.remedy
    if error is ModelRejected and "rate" not in words:
        assert "credit" in found.remedy


def test_a_400_without_a_word_is_an_overflow_only_where_that_is_known() -> None:
    assert type(from_status("house", 400, "")) is ModelRejected
    assert type(from_status("house", 400, "", silence_is_overflow=True)) is ContextOverflow
    assert type(from_status("house", 400, "no", silence_is_overflow=True)) is ModelRejected


def test_the_call_that_was_not_passed_on_is_kept() -> None:
    error = {"message": "No.", "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<x>"}
    found = provider_errors.read(json.dumps({"error": error}).encode(), str)
    for raised in (
        from_status("groq", 400, found.said, code=found.name, written=found.written),
        provider_errors.in_stream("groq", found),
    ):
        assert isinstance(raised, CallMalformed)
        assert raised.written == "<x>"


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("Could not finish the message because max_tokens or model output limit was reached.", True),
        ("no such model", False),
    ],
)
def test_a_model_that_was_still_thinking_when_it_was_tried_has_answered(words: str, answers: bool) -> None:
    with Provider() as provider:
        provider.openai.fail(400, words)
        providers: dict[str, ProviderSettings] = {"house": provider.openai.settings()}
        if answers:
            run(try_model("house/m", providers, {}))
        else:
            with pytest.raises(ModelRejected):
                run(try_model("house/m", providers, {}))
