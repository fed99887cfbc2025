"""What a reply cost, where the configuration says what tokens cost. No price is built in: they change too often."""

from crow.model.base import Price, Usage

MILLION = 1_000_000


def cost_of(usage: Usage, price: Price) -> float:
    fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
    cost = (
        fresh * price.input
        + usage.cached_tokens * price.cached
        + usage.cache_written_tokens * price.cache_write
        + usage.output_tokens * price.output
    )
    return cost / MILLION
