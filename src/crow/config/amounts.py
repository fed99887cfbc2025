"""An amount of money or tokens, as a budget states it: "0.50 USD", "200k tokens"."""

import re

import msgspec

from crow.config.settings import BudgetSettings

TOKENS = "tokens"

# A comma parts thousands: before any other number of digits it is a decimal comma, which would make 150 of 1,50.
_WRITTEN = re.compile(r"((?:[1-9]\d{0,2}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?) ?([kKM]?) ?(tokens?|[A-Z]{3})", re.ASCII)
_FACTORS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_LARGEST = 1e12


class Amount(msgspec.Struct, frozen=True):
    value: float
    unit: str
    """A currency's three letters, or `TOKENS`."""

    def __str__(self) -> str:
        return shown(self.value, self.unit)


def parse_amount(key: str, written: str) -> Amount:
    """ValueError names the key, and says what was expected."""
    found = _WRITTEN.fullmatch(written.strip())
    unit = found[3].replace("tokens", "token").replace("token", TOKENS) if found else ""
    value = float(re.sub("[_,]", "", found[1])) * _FACTORS[found[2]] if found else 0.0
    if found is None or (found[2] and unit != TOKENS):
        comma = " (decimals are written with a point)" if "," in written else ""
        raise ValueError(f'{key}: expected an amount like "0.50 USD" or "200k tokens"{comma}, found {written[:100]!r}')
    if not 0 < value <= _LARGEST:
        raise ValueError(f"{key}: expected more than nothing, and an amount that can be spent, found {written[:100]!r}")
    return Amount(value, unit)


def amounts_of(settings: BudgetSettings) -> dict[str, tuple[Amount, ...]]:
    """By `turn`, `session` and `day`. ValueError as above."""
    written = {"turn": settings.turn, "session": settings.session, "day": settings.day}
    return {scope: (parse_amount(f"budget.{scope}", text),) for scope, text in written.items() if text}


def shown(value: float, unit: str) -> str:
    """For people: a small sum of money with as many digits as it takes to be something."""
    if unit == TOKENS:
        return f"{value:,.0f} {unit}"
    digits = 2 if value >= 1 or value == 0 or round(value, 2) == round(value, 6) else 4
    return f"{value:,.{digits}f} {unit}"
