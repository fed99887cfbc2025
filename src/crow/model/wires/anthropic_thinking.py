"""How long a model of the messages API may think: older ones want a budget of tokens, newer ones a word."""

import re
from collections.abc import Container, Sequence
from typing import Any

from crow.model.base import ModelInfo

Json = dict[str, Any]

THOUGHTS = frozenset({"thinking", "redacted_thinking"})
"""The kinds of blocks that thoughts are."""

BUDGETS = {"minimal": 1_024, "low": 4_096, "medium": 12_000, "high": 24_000, "xhigh": 32_000, "max": 48_000}
SMALLEST_BUDGET = 1_024
"""The API refuses a smaller one."""

INTERLEAVED = {"anthropic-beta": "interleaved-thinking-2025-05-14"}
"""Lets the models that take budgets think between their tool rounds too; newer ones do so anyway."""

NEWEST = (99, 0)
VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?", re.IGNORECASE)


def claude_version(model: str) -> tuple[int, int] | None:
    """`(4, 5)` for claude-haiku-4-5-20251001; the newest there may be for a Claude without a number; None if the name
    is none of Claude's."""
    if (found := VERSION.search(model)) is not None:
        return int(found[1]), int(found[2] or 0)
    return NEWEST if "claude" in model.lower() else None


def thinking_headers(model: str) -> dict[str, str]:
    version = claude_version(model)
    return INTERLEAVED if version is not None and (4, 0) <= version < (4, 6) else {}


def thinking_fields(
    info: ModelInfo, level: str, max_tokens: int, messages: Sequence[Json], refused: Container[str] = ()
) -> Json:
    """What a request says about it; nothing if it is left to the provider, switched off or not possible now.

    `refused` names what the provider does not take: `thinking` of any kind, `display`, or `effort` with a level.
    """
    if "thinking" in refused:
        return {}
    version = claude_version(info.model)
    if version is not None and version >= (4, 6):
        return _adaptive(version, "" if f"effort {level}" in refused else level, shows="display" not in refused)
    if level in ("", "off"):
        return {}
    # The budget counts towards the reply's limit: a quarter of that is kept for the answer.
    budget = min(BUDGETS[level], max_tokens * 3 // 4)
    if budget < SMALLEST_BUDGET or not _may_begin(messages):
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _adaptive(version: tuple[int, int], level: str, *, shows: bool) -> Json:
    """From 4.7 on a model thinks unasked, and keeps its thoughts to itself unless it is told to show them."""
    unasked = version >= (4, 7)
    if level == "off":
        return {"thinking": {"type": "disabled"}} if unasked else {}
    if not level and not unasked:
        return {}
    thinking = {"type": "adaptive"} | ({"display": "summarized"} if unasked and shows else {})
    effort = {"output_config": {"effort": "low" if level == "minimal" else level}} if level else {}
    return {"thinking": thinking, **effort}


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
    return first is None or first["content"][0]["type"] in THOUGHTS
