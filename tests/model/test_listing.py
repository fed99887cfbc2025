import time
from pathlib import Path
from typing import Any

import pytest

from crow.config.settings import ModelSettings
from crow.errors import ModelRefusedKey, ModelUnavailable, ReplyBroken
from crow.model.base import ModelInfo, Price
from crow.model.facts import FRESH_FOR, Facts, keep_listing, read_listings
from crow.model.listing import facts_in, list_models
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
    with pytest.raises(ReplyBroken, match="not a list of models"):
        listed(models)


def test_the_same_errors_as_a_reply() -> None:
    with Provider(key="right") as provider:
        settings = provider.openai.settings()
        provider.openai.key = "another"
        with pytest.raises(ModelRefusedKey):
            run(list_models("house", settings, {}))
    with pytest.raises(ModelUnavailable, match="refused the connection"):
        run(list_models("house", settings, {}))


def test_an_odd_entry_is_left_out_and_the_others_stay() -> None:
    odd = [{"id": 5}, {"id": None}, 7, None, {"id": "a\nb"}, {"id": "a\x1b[31m"}, {"id": "x" * 10_000}, []]
    price = {"prompt": "NaN", "completion": "1e400"}
    models = listed({"data": [*odd, {"id": "good", "context_length": 9, "pricing": price}]})
    assert [(info.model, info.context_window, info.price) for info in models] == [("good", 9, None)]


def test_what_vendors_say_of_their_models() -> None:
    anthropic = {
        "id": "claude-next",
        "max_input_tokens": 900_000,
        "max_tokens": 96_000,
        "capabilities": {
            "image_input": {"supported": True},
            "thinking": {"supported": True, "types": {"adaptive": {"supported": True}}},
            "effort": {"supported": True, "low": {"supported": True}, "max": {"supported": True}, "high": None},
        },
    }
    assert facts_in(anthropic) == Facts(900_000, 96_000, images=True, thinks=True, levels=("low", "max"), source="list")
    openrouter = {
        "id": "x/y",
        "context_length": 1000,
        "top_provider": {"max_completion_tokens": 100},
        "pricing": {"prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003"},
        "supported_parameters": ["tools", "reasoning"],
        "architecture": {"input_modalities": ["text", "audio"]},
    }
    price = Price(3.0, 15.0, 0.3, 3.0, "USD")
    assert facts_in(openrouter) == Facts(1000, 100, images=False, audio=True, thinks=True, price=price, source="list")
    assert facts_in({"id": "auto", "pricing": {"prompt": "-1", "completion": "-1"}}).price is None
    assert facts_in({"id": "g", "context_window": 9, "max_completion_tokens": 3}) == Facts(9, 3, source="list")


def test_a_list_is_kept_for_a_day_for_its_owner_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, url = str(tmp_path / "home"), "https://api.example.com/v1"
    models = {"m": Facts(7, price=Price(1, 2, 3, 4, "USD"), source="list")}
    keep_listing(home, url, models)
    keep_listing(home, "http://127.0.0.1:8080/v1", models)  # it may load another model any moment
    kept = read_listings(home)
    assert {place: listed.models for place, listed in kept.items()} == {url: models}
    assert kept[url].is_fresh
    assert (tmp_path / "home" / "models.json").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(time, "time", lambda: kept[url].asked + FRESH_FOR)
    assert not kept[url].is_fresh
    (tmp_path / "home" / "models.json").write_text("{")
    assert read_listings(home) == {}
