"""What a reply costs, where the configuration has prices."""

from typing import Any

import pytest

from crow.config.settings import ModelSettings, ProviderSettings
from crow.model import catalog
from crow.model.base import Price, Usage
from crow.model.prices import cost_of


def price_of(**settings: Any) -> Price | None:
    provider = ProviderSettings("openai", base_url="http://127.0.0.1/v1", models={"m": ModelSettings(**settings)})
    return catalog.describe("house/m", {"house": provider}).price


def test_no_price_is_built_in() -> None:
    provider = ProviderSettings("openai", base_url="http://127.0.0.1/v1")
    assert catalog.describe("house/gpt-5", {"house": provider}).price is None
    assert price_of() is None


def test_what_the_cache_costs_may_be_left_out() -> None:
    assert price_of(price_input=3, price_output=15) == Price(3, 15, 3, 3, "USD")
    assert price_of(price_input=3, price_output=15, price_cached=0, price_cache_write=4, currency="EUR") == Price(
        3, 15, 0, 4, "EUR"
    )


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(), 0.0),
        (Usage(input_tokens=1_000_000), 3.0),
        (Usage(output_tokens=1_000_000), 15.0),
        (Usage(input_tokens=1_000_000, cached_tokens=1_000_000), 0.3),
        (Usage(input_tokens=1_000_000, cache_written_tokens=1_000_000), 3.75),
        (Usage(input_tokens=100, output_tokens=10, cached_tokens=60, cache_written_tokens=30), 310.5e-6),
        (Usage(input_tokens=10, cached_tokens=60), 18e-6),  # a server that counts the cached ones apart
    ],
)
def test_each_token_is_paid_once(usage: Usage, cost: float) -> None:
    assert cost_of(usage, Price(3.0, 15.0, 0.3, 3.75, "USD")) == pytest.approx(cost)
