"""Budgets as they are written."""

import pytest

from crow.config.load import parse_settings
from crow.config.settings import Amount, parse_amount, shown_amount
from crow.errors import ConfigError


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0.50 USD", Amount(0.5, "USD")),
        ("5 EUR", Amount(5, "EUR")),
        ("1,000.25 USD", Amount(1000.25, "USD")),
        ("12,000,000 tokens", Amount(12_000_000, "tokens")),
        ("0.5USD", Amount(0.5, "USD")),
        ("200k tokens", Amount(200_000, "tokens")),
        ("200 k tokens", Amount(200_000, "tokens")),
        ("1.5M tokens", Amount(1_500_000, "tokens")),
        ("200_000 tokens", Amount(200_000, "tokens")),
        ("1 token", Amount(1, "tokens")),
    ],
)
def test_amounts(written: str, amount: Amount) -> None:
    assert parse_amount("budget.turn", written) == amount


@pytest.mark.parametrize(
    "written",
    [
        "5",
        "USD",
        "$5",
        "5 usd",
        "5 dollars",
        "-1 USD",
        "0 USD",
        "0.00 USD",
        "5k USD",
        "1e3 USD",
        "1e99M tokens",
        "5 USD a",
        "∞ USD",
        "1,50 USD",
        "0,500 USD",
        "1,5000 USD",
        "1.500,00 USD",
        "1,000,00 USD",
        "1,5M tokens",
    ],
)
def test_what_is_no_amount_is_said_with_its_key(written: str) -> None:
    with pytest.raises(ConfigError, match=r"^/c: budget\.day: expected .*found"):
        parse_settings(f'[budget]\nday = "{written}"\n', "/c")


@pytest.mark.parametrize(("table", "words"), [("day = 5", "a string in quotes"), ('week = "5 USD"', "unknown key")])
def test_other_mistakes(table: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse_settings(f"[budget]\n{table}\n", "/c")


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (0.0, "USD", "0.00 USD"),
        (0.1, "USD", "0.10 USD"),
        (0.1234, "USD", "0.1234 USD"),
        (1234.567, "EUR", "1,234.57 EUR"),
        (200_000.0, "tokens", "200,000 tokens"),
    ],
)
def test_how_an_amount_is_shown(value: float, unit: str, words: str) -> None:
    assert shown_amount(value, unit) == words
