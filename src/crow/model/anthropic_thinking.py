"""How long a model of the messages API may think: older ones want a budget of tokens, newer ones a word."""

from collections.abc import Sequence
from typing import Any

from crow.model.base import ModelInfo
from crow.model.families import family_of

Json = dict[str, Any]

BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 12_000, "high": 24_000, "xhigh": 32_000, "max": 48_000}
SMALLEST_BUDGET = 1_024
"""The API refuses a smaller one."""


def thinking_fields(info: ModelInfo, level: str, max_tokens: int, messages: Sequence[Json]) -> Json:
    """What a request says about it; nothing if it is left to the provider, switched off or not possible now."""
    if level in ("", "off"):
        return {}
    family = family_of(info.model)
    if family and family.thinks_by_effort:
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    # The budget counts towards the reply's limit: a quarter of that is kept for the answer.
    budget = min(BUDGETS[level], max_tokens * 3 // 4)
    if budget < SMALLEST_BUDGET or not _may_begin(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _may_begin(messages: Sequence[Json]) -> bool:
    """In the middle of its tool rounds a model may think only if it began to with the first of them.

    A level that was chosen meanwhile therefore counts from the next prompt on: the API would refuse the request.
    """
    first: Json | None = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            first = message
        elif not any(block["type"] == "tool_result" for block in message["content"]):
            break
    return first is None or first["content"][0]["type"] in ("thinking", "redacted_thinking")
