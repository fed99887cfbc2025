"""What is known of models: the catalogue, and which source wins."""

import re
from pathlib import Path

import pytest

from crow.config.settings import VENDORS, ModelSettings, ProviderSettings
from crow.model import catalog
from crow.model.base import ModelInfo, Price
from crow.model.facts import Facts, known_facts

GATEWAY = "https://gateway.example/v1"
HERE = "http://127.0.0.1:8080/v1"

DEFAULTS = {
    "anthropic": (1_000_000, True, True),
    "openai": (922_000, True, True),
    "openrouter": (200_000, True, False),
    "gemini": (1_048_576, True, True),
    "mistral": (262_144, True, True),
    "deepseek": (1_000_000, True, True),
    "groq": (131_072, False, True),
    "xai": (500_000, True, True),
}
"""Window, sees, has a price; the price of a router is what it tells."""


def describe(provider: str, model: str, **settings: ModelSettings) -> ModelInfo:
    vendor = VENDORS[provider]
    return catalog.describe(
        f"{provider}/{model}", {provider: ProviderSettings(vendor.type, base_url=vendor.base_url, models=settings)}
    )


@pytest.mark.parametrize("provider", VENDORS)
def test_the_default_model_of_every_vendor_is_known(provider: str) -> None:
    info = describe(provider, VENDORS[provider].default_model)
    assert info.context_window is not None
    if provider in DEFAULTS:
        assert (info.context_window, info.images, info.price is not None) == DEFAULTS[provider]


@pytest.mark.parametrize(
    ("url", "model", "window", "output", "apart", "sees", "thinks"),
    [
        ("https://api.openai.com/v1", "gpt-4.1", 1_047_576, 32_768, False, True, False),
        ("https://api.openai.com/v1", "gpt-4o", 128_000, 16_384, False, True, False),
        ("https://api.openai.com/v1", "gpt-5", 272_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5-2025-08-07", 272_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5-mini", 272_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5.1", 272_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5.2-codex", 272_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5.4", 922_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-5.5", 922_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "gpt-6.1-sol", 922_000, 128_000, True, True, True),
        ("https://api.openai.com/v1", "o3", 200_000, 100_000, False, True, True),
        ("https://api.openai.com/v1", "o4-mini", 200_000, 100_000, False, True, True),
        ("https://api.anthropic.com", "claude-haiku-4-5", 200_000, 64_000, False, True, True),
        ("https://api.anthropic.com", "claude-sonnet-4-5-20250929", 200_000, 64_000, False, True, True),
        ("https://api.anthropic.com", "claude-sonnet-4-6", 1_000_000, 64_000, False, True, True),
        ("https://api.anthropic.com", "claude-opus-4-7", 1_000_000, 128_000, False, True, True),
        ("https://api.anthropic.com", "claude-opus-5-5", 1_000_000, 128_000, False, True, True),
        (
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "gemini-2.5-pro",
            1_048_576,
            65_536,
            True,
            True,
            True,
        ),
        ("https://api.mistral.ai/v1", "mistral-large-latest", 262_144, None, False, True, False),
        ("https://api.mistral.ai/v1", "codestral-latest", 128_000, None, False, False, False),
        ("https://api.deepseek.com/v1", "deepseek-v4-pro", 1_000_000, 393_216, False, False, True),
        ("https://api.x.ai/v1", "grok-code-fast-1", 256_000, None, False, True, True),
        ("https://api.moonshot.ai/v1", "kimi-k3", 1_048_576, None, False, True, True),
        ("https://api.moonshot.ai/v1", "kimi-k2.5", 262_144, None, False, True, True),
        ("https://api.z.ai/api/paas/v4", "glm-5.2", 1_000_000, 128_000, False, False, True),
        ("https://api.z.ai/api/coding/paas/v4", "glm-4.6", 200_000, 128_000, False, False, True),
        ("https://api.cerebras.ai/v1", "gpt-oss-120b", 131_072, 32_768, False, False, True),
        ("https://api.groq.com/openai/v1", "openai/gpt-oss-20b", 131_072, 65_536, False, False, True),
        (GATEWAY, "anthropic/claude-sonnet-4.5:beta", 200_000, 64_000, False, True, True),
        (GATEWAY, "us.anthropic.claude-haiku-4-5-20251001-v1:0", 200_000, 64_000, False, True, True),
        (GATEWAY, "deepseek/deepseek-v4-pro", 1_000_000, 393_216, False, False, True),
        (HERE, "openai/gpt-5", 272_000, 128_000, True, True, True),
    ],
)
def test_well_known_models(
    url: str, model: str, window: int, output: int | None, apart: bool, sees: bool, thinks: bool
) -> None:
    facts = known_facts(model, url)
    assert (facts.window, facts.output, facts.apart, facts.images, facts.thinks) == (
        window,
        output,
        apart,
        sees,
        thinks,
    )
    assert (facts.price is not None) == (url not in (GATEWAY, HERE))
    assert facts.source == "catalogue"


def test_a_window_next_door_is_its_servers_to_say() -> None:
    """Anyone can run these models, with any window."""
    for url in (HERE, "http://localhost:1234/v1", "http://gpu.lan/v1", "http://192.168.0.7:8000/v1", "http://[::1]/v1"):
        assert known_facts("deepseek-v4-pro", url).window is None
        assert known_facts("mistral-large-latest", url).window is None


def test_which_models_need_the_responses_wire() -> None:
    url = "https://api.openai.com/v1"
    names = ("gpt-5-codex", "gpt-5.3-codex", "gpt-5-pro", "o3-pro", "gpt-5.6", "gpt-4.1", "o3")
    assert [known_facts(name, url).responses_only for name in names] == [True, True, True, True, False, False, False]


def test_which_source_wins() -> None:
    providers = {"openai": ProviderSettings("openai", base_url="https://api.openai.com/v1")}
    listed = Facts(window=300_000, images=False, price=Price(9, 9, 9, 9, "USD"), source="list")
    catalogue = catalog.facts_about("openai/gpt-4.1", providers)
    assert (catalogue.window, catalogue.source) == (1_047_576, "catalogue")
    vendor = catalog.facts_about("openai/gpt-4.1", providers, listed)
    assert (vendor.window, vendor.images, vendor.output, vendor.source) == (300_000, False, 32_768, "list")
    assert vendor.price == listed.price
    own = {"gpt-4.1": ModelSettings(context_window=7, images=True)}
    providers = {"openai": ProviderSettings("openai", base_url="https://api.openai.com/v1", models=own)}
    configured = catalog.facts_about("openai/gpt-4.1", providers, listed)
    assert (configured.window, configured.images, configured.source) == (7, True, "config")
    assert configured.price == listed.price
    assert catalog.facts_about("openai/gpt-9-new", providers).source == "name"


def test_a_list_that_counts_the_reply_in_says_nothing_against_the_limit_of_a_request() -> None:
    providers = {"router": ProviderSettings("openai", base_url=GATEWAY)}
    facts = catalog.facts_about("router/openai/gpt-5", providers, Facts(window=400_000, source="list"))
    assert (facts.window, facts.apart) == (272_000, True)


def test_the_table_names_its_licence_and_no_address() -> None:
    text = (Path(catalog.__file__).parent / "facts.json").read_text()
    assert '"licence": "MIT' in text
    assert "http" not in text
    assert len(text) < 40_000
    assert not re.search(r"[^\x00-\x7f]", text)
