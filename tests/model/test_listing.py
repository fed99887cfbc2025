from typing import Any

import pytest

from crow.config.settings import ModelSettings
from crow.errors import ModelRefusedKey, ModelUnavailable, ReplyBroken
from crow.model.base import ModelInfo
from crow.model.listing import list_models
from tests.model.asking import run
from tests.support.provider import Provider


def listed(models: Any, **configured: ModelSettings) -> list[ModelInfo]:
    with Provider() as provider:
        provider.openai.models = models
        return run(list_models("house", provider.openai.settings(**configured), {}))


@pytest.mark.parametrize(
    "entry",
    [
        {"id": "m", "context_length": 32768},
        {"id": "m", "max_model_len": 32768, "root": "m"},
        {"id": "m", "context_window": 32768},
        {"id": "m", "max_context_length": 32768},
        {"id": "m", "meta": {"n_ctx_train": 32768, "n_params": 1}},
        {"id": "m", "context_length": None, "top_provider": {"context_length": 32768}},
    ],
)
def test_the_window_wherever_the_server_says_it(entry: dict[str, Any]) -> None:
    assert listed({"object": "list", "data": [entry]}) == [ModelInfo("house", "m", 32768)]


def test_what_is_configured_known_or_unknown() -> None:
    entries = [{"id": "qwen", "context_length": 5}, {"id": "gpt-4o", "meta": None}, {"id": "new/one"}, {"no": "id"}]
    assert listed({"data": entries}, qwen=ModelSettings(context_window=7, images=True)) == [
        ModelInfo("house", "qwen", 7, images=True),
        ModelInfo("house", "gpt-4o", 128_000, images=True),
        ModelInfo("house", "new/one"),
    ]


def test_a_server_that_says_what_its_models_see() -> None:
    sees = {"id": "m", "architecture": {"input_modalities": ["text", "image"]}}
    assert listed([sees]) == [ModelInfo("house", "m", images=True)]
    assert listed({"data": [sees]}, m=ModelSettings(images=False)) == [ModelInfo("house", "m")]


def test_nothing_loaded() -> None:
    assert listed({"data": None}) == []


def test_anthropic() -> None:
    with Provider(key="k") as provider:
        provider.anthropic.models = {"data": [{"type": "model", "id": "claude-sonnet-4-5"}], "has_more": False}
        infos = run(list_models("house", provider.anthropic.settings(), {}))
        levels = ("off", "low", "medium", "high")
        assert infos == [ModelInfo("house", "claude-sonnet-4-5", 200_000, 64_000, images=True, thought_levels=levels)]
        assert provider.anthropic.looks[0].path.startswith("/v1/models")


@pytest.mark.parametrize("models", ["words", 7, {"data": "words"}, {"data": [1]}])
def test_something_else(models: Any) -> None:
    with pytest.raises(ReplyBroken, match="no list of models"):
        listed(models)


def test_the_same_errors_as_a_reply() -> None:
    with Provider(key="right") as provider:
        settings = provider.openai.settings()
        provider.openai.key = "another"
        with pytest.raises(ModelRefusedKey):
            run(list_models("house", settings, {}))
    with pytest.raises(ModelUnavailable, match="refused the connection"):
        run(list_models("house", settings, {}))
