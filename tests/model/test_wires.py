"""Which of OpenAI's two APIs is spoken: by the address, as configured, or as a refusal says."""

from typing import Any

import msgspec
import pytest

from crow.config.settings import Limits, ProviderSettings
from crow.errors import ModelRejected
from crow.messages import StopReason
from crow.model import catalog, endpoint
from crow.model.base import Done, ModelRequest, Said
from crow.model.wires.openai import prefers_responses
from tests.model.asking import HELLO, READ, ask_all, run
from tests.support.provider import Provider

DONE = Done(StopReason.END_TURN)

NO_TOOLS = (
    "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use function "
    "tools, use /v1/responses or set reasoning_effort to 'none'."
)
NOT_HERE = "This model is only supported in v1/responses and not in v1/chat/completions."


@pytest.mark.parametrize(
    ("address", "responses"),
    [
        ("", True),
        ("https://api.openai.com", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://api.openai.com/v1/chat/completions", False),
        ("https://house.openai.azure.com", True),
        ("https://house.openai.azure.com/openai/v1", True),
        ("https://house.services.ai.azure.com/openai/v1?api-version=preview", True),
        ("https://house.openai.azure.com/openai/deployments/gpt?api-version=2024-10-21", False),
        ("https://house.services.ai.azure.com/models", False),
        ("https://api.openai.com.example.org/v1", False),
        ("https://api.x.ai/v1", True),
        ("https://api.x.ai/v1/chat/completions", False),
        ("https://openrouter.ai/api/v1", False),
        ("https://openrouter.ai/api/v1/responses", True),
        ("http://127.0.0.1:8080/v1", False),
    ],
)
def test_by_the_address(address: str, *, responses: bool) -> None:
    place = endpoint.find_endpoint("openai", ProviderSettings("openai", base_url=address), {})
    assert prefers_responses(place) == responses


def talk(provider: Provider, times: int = 2, **settings: Any) -> list[Any]:
    """What comes of the same request, some times over, each in a session of its own."""
    configured = msgspec.structs.replace(provider.openai.settings(), **settings)
    request = ModelRequest("", HELLO, [READ])
    outcomes: list[Any] = []
    for _ in range(times):
        model = catalog.create("house/gpt-5.6", {"house": configured}, Limits(), {})
        outcomes += run(ask_all(model, request))
    return outcomes


def asked(provider: Provider) -> tuple[int, int]:
    return len(provider.openai.requests), len(provider.responses.requests)


@pytest.mark.parametrize(("status", "said"), [(400, NO_TOOLS), (404, NOT_HERE)])
def test_chat_completions_send_to_responses_at_once_and_for_good(status: int, said: str) -> None:
    with Provider() as provider:
        provider.openai.fail(status, said)
        provider.responses.answer("Hi")
        provider.responses.answer("Hi")
        for outcome in talk(provider):
            assert (outcome.error, outcome.events[0], outcome.events[-1]) == (None, Said("Hi"), DONE)
        assert asked(provider) == (1, 2)


def test_where_there_are_no_responses_chat_completions_are_spoken() -> None:
    with Provider() as provider:
        provider.responses.fail(404, "Not found")
        provider.openai.answer("Hi")
        provider.openai.answer("Hi")
        outcomes = talk(provider, base_url=f"{provider.url}/v1/responses")
        assert [outcome.events for outcome in outcomes] == [[Said("Hi"), DONE]] * 2
        assert asked(provider) == (2, 1)


def test_a_model_that_is_not_there_is_looked_for_nowhere_else() -> None:
    with Provider() as provider:
        provider.responses.fail(404, "The model `gpt-5.6` does not exist.")
        (outcome,) = talk(provider, 1, base_url=f"{provider.url}/v1/responses")
        assert isinstance(outcome.error, ModelRejected)
        assert asked(provider) == (0, 1)


def test_each_is_tried_once() -> None:
    """A server that sends from one to the other and back: the person is told what it says."""
    with Provider() as provider:
        provider.openai.fail(400, NO_TOOLS, times=9)
        provider.responses.fail(404, "Not found", times=9)
        (outcome,) = talk(provider, 1)
        assert isinstance(outcome.error, ModelRejected)
        assert "use /v1/responses" in str(outcome.error)
        assert asked(provider)[0] <= 5
        assert asked(provider)[1] == 1


def test_the_configuration_decides() -> None:
    with Provider() as provider:
        provider.responses.answer("Hi")
        (outcome,) = talk(provider, 1, wire="responses")
        assert outcome.events[0] == Said("Hi")
        provider.openai.answer("Hi")
        (outcome,) = talk(provider, 1, wire="chat", base_url=f"{provider.url}/v1/responses")
        assert outcome.events[0] == Said("Hi")
        provider.responses.fail(404, "Not found")
        (outcome,) = talk(provider, 1, wire="responses")
        assert isinstance(outcome.error, ModelRejected)
        assert asked(provider) == (1, 2)
