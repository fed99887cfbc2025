"""What can be said of a model in config.toml: its levels of thought and its prices."""

from pathlib import Path

import pytest

from crow.config.load import load_settings
from crow.config.settings import ModelSettings
from crow.errors import ConfigError

HEAD = '[providers.local]\ntype = "openai"\nbase_url = "http://127.0.0.1:8080/v1"\n[providers.local.models.m]\n'


def load(folder: Path, lines: str) -> ModelSettings:
    (folder / "config.toml").write_text(HEAD + lines)
    return load_settings(str(folder)).providers["local"].models["m"]


def test_levels_and_prices(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        'thought_levels = ["off", "high"]\nprice_input = 3\nprice_output = 15.5\nprice_cached = 0\n'
        'price_cache_write = 3.75\ncurrency = "EUR"\n',
    )
    assert settings == ModelSettings(
        thought_levels=["off", "high"],
        price_input=3,
        price_output=15.5,
        price_cached=0,
        price_cache_write=3.75,
        currency="EUR",
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("price_input = -1\nprice_output = 1", "price_input: expected a number of at least 0, found -1."),
        ('price_input = "3"\nprice_output = 1', "price_input: expected a number of at least 0, found a string."),
        ("price_output = 1", ": expected price_input and price_output together."),
        ("price_cached = 1", ": expected price_input and price_output beside the prices of the cache."),
        ('currency = "euro"', '.currency: expected three capital letters, like "EUR".'),
        ('thought_levels = "high"', "thought_levels: expected a list in [ ], found a string."),
        ('thought_levels = ["hihg"]', 'found "hihg" (did you mean "high"?).'),
        ("thinking = true", "thinking: unknown key"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, lines)
    assert said in str(caught.value)
    assert "providers.local.models.m" in str(caught.value)
