"""What a reply costs: from prices of the configuration, or of the catalogue where the vendor itself is asked."""

from typing import Any

import pytest

from crow.config.settings import ModelSettings, ProviderSettings
from crow.model import catalog
from crow.model.base import Price, Usage, cost_of, told_cost


def price_of(**settings: Any) -> Price | None:
    provider = ProviderSettings("openai", base_url="http://127.0.0.1/v1", models={"m": ModelSettings(**settings)})
    return catalog.describe("house/m", {"house": provider}).price


def test_a_price_of_the_catalogue_is_the_vendors_alone() -> None:
    def price(url: str) -> Price | None:
        return catalog.describe("house/gpt-5", {"house": ProviderSettings("openai", base_url=url)}).price

    assert price("https://api.openai.com/v1") == Price(1.25, 10.0, 0.125, 1.25, "USD")
    assert price("http://127.0.0.1/v1") is None
    assert price("https://gateway.example/v1") is None
    assert price_of() is None


def test_a_long_request_costs_more_as_a_whole() -> None:
    price = Price(2.0, 10.0, 0.2, 2.0, "USD", above=200_000, long=Price(4.0, 20.0, 0.4, 4.0, "USD"))
    assert cost_of(Usage(input_tokens=200_000), price) == pytest.approx(0.4)
    assert cost_of(Usage(input_tokens=200_001, output_tokens=1_000), price) == pytest.approx(0.800004 + 0.02)


def test_what_the_provider_says_wins() -> None:
    price = Price(3.0, 15.0, 0.3, 3.75, "USD")
    assert told_cost(Usage(input_tokens=1_000_000, cost=0.25, currency="EUR"), price) == (0.25, "EUR")
    assert told_cost(Usage(input_tokens=1_000_000, cost=0.0), None) == (0.0, "USD")
    assert told_cost(Usage(input_tokens=1_000_000, cost=0.0, currency="EUR"), price) == (3.0, "USD")
    assert told_cost(Usage(input_tokens=1_000_000), price) == (3.0, "USD")
    assert told_cost(Usage(input_tokens=1_000_000), None) == (None, "")


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
