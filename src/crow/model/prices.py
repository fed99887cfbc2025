"""What a reply cost: as the provider says, else from the price of its tokens."""

from crow.model.base import Price, Usage

MILLION = 1_000_000


def told_cost(usage: Usage, price: Price | None) -> tuple[float | None, str]:
    """The cost and its currency; None if neither the provider nor a price says it.

    A provider that says 0 may mean that it does not know: what has a price is not free.
    """
    if usage.cost or (usage.cost is not None and price is None):
        return usage.cost, usage.currency or "USD"
    return (cost_of(usage, price), price.currency) if price else (None, "")


def cost_of(usage: Usage, price: Price) -> float:
    if price.long is not None and usage.input_tokens > price.above:
        price = price.long
    fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_written_tokens)
    cost = (
        fresh * price.input
        + usage.cached_tokens * price.cached
        + usage.cache_written_tokens * price.cache_write
        + usage.output_tokens * price.output
    )
    return cost / MILLION
