"""Reads token counts and cost out of a reply of OpenAI's two APIs, which every vendor reports a little differently."""

import math
from typing import Any, cast

from crow.model.base import MOST_TOKENS, Usage

DOLLARS = "USD"
TICKS_PER_DOLLAR = 1e10
"""xAI's unit."""


def read_usage(value: Any) -> Usage | None:
    """None if there are no counts in it: a reply is not worth less because its bill is unreadable."""
    usage = _object(value)
    # Chat completions say prompt and completion where Responses say input and output.
    reading, writing = (
        ("prompt", "completion") if "prompt_tokens" in usage or "completion_tokens" in usage else ("input", "output")
    )
    prompt, completion = _count(usage.get(f"{reading}_tokens")), _count(usage.get(f"{writing}_tokens"))
    if prompt is None and completion is None:
        return None
    read, written = _object(usage.get(f"{reading}_tokens_details")), _object(usage.get(f"{writing}_tokens_details"))
    inputs, outputs = prompt or 0, completion or 0
    reasoning = _first(written.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if not (read.get("audio_tokens") or usage.get("prompt_audio_seconds")):  # which Mistral counts in the total alone
        # xAI and Google count a model's thoughts in the total alone.
        thoughts = (_count(usage.get("total_tokens")) or 0) - inputs - outputs
        if thoughts > 0:
            outputs, reasoning = outputs + thoughts, reasoning or thoughts
    cost = _cost(usage)
    return Usage(
        input_tokens=inputs,
        output_tokens=outputs,
        cached_tokens=_first(
            read.get("cached_tokens"),
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            usage.get("cached_tokens"),  # Moonshot, Together
            usage.get("num_cached_tokens"),  # Mistral
        ),
        cache_written_tokens=_first(read.get("cache_write_tokens"), usage.get("cache_creation_input_tokens")),
        reasoning_tokens=reasoning,
        cost=cost,
        currency=DOLLARS if cost is not None else "",
    )


def _cost(usage: dict[str, Any]) -> float | None:
    """In dollars, where the vendor says it."""
    match usage:
        case {"cost": {"total_cost": told}}:  # Perplexity
            return _money(told)
        case {"cost": told, "is_byok": True}:  # the gateway's share: the vendor behind it sends a bill of its own
            elsewhere = _money(_object(usage.get("cost_details")).get("upstream_inference_cost"))
            return None if (share := _money(told)) is None else share + (elsewhere or 0)
        case {"cost": told}:
            return _money(told)
        case {"cost_in_usd_ticks": ticks}:
            return None if (told := _money(ticks)) is None else told / TICKS_PER_DOLLAR
        case _:
            return None


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _first(*values: Any) -> int:
    return next((count for value in values if (count := _count(value))), 0)


def _count(value: Any) -> int | None:
    number = _money(value)
    return None if number is None or number > MOST_TOKENS else int(number)


def _money(value: Any) -> float | None:
    """A number, be it written as text; None if it is none, or below nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
