"""What is known of well-known models when neither the configuration nor the server says it.

Only facts that matter to a conversation: how much fits, and whether the model sees. A wrong guess here costs an
error from the provider, so what is not certain is left open; `[providers.NAME.models.MODEL]` always wins.
"""

import re
from typing import NamedTuple


class Family(NamedTuple):
    pattern: re.Pattern[str]
    context_window: int | None = None
    images: bool = True
    audio: bool = False
    max_output: int | None = None
    """Only Anthropic's API insists on a limit, so only its models have one here."""


def _family(
    pattern: str,
    context_window: int | None = None,
    *,
    images: bool = True,
    audio: bool = False,
    max_output: int | None = None,
) -> Family:
    # Names come as `gpt-4o`, `openai/gpt-4o`, `us.anthropic.claude-…`: a family may begin after any separator.
    return Family(re.compile(rf"(?:^|[/.:_-]){pattern}", re.IGNORECASE), context_window, images, audio, max_output)


# The first match counts: the particular before the general.
FAMILIES = (
    _family(r"claude-3-(opus|sonnet|haiku)", 200_000, max_output=4_096),
    _family(r"claude-3[-.]5", 200_000, max_output=8_192),
    _family(r"claude-opus-4(-0|-1|-2025|$)", 200_000, max_output=32_000),
    _family(r"claude", 200_000, max_output=64_000),
    _family(r"gpt-4o-audio", 128_000, images=False, audio=True),
    _family(r"gpt-4o", 128_000),
    _family(r"gpt-4\.1", 1_047_576),
    _family(r"gpt-5", 400_000),
    _family(r"o3-mini", 200_000, images=False),
    _family(r"o[34](-|$)", 200_000),
    _family(r"gemini", 1_048_576, audio=True),
    _family(r"gemma-?3-?(270m|1b|:1b)", images=False),  # the small ones are text only
    _family(r"gemma-?3", 131_072),
    _family(r"llama-?4"),
    _family(r"(llava|pixtral|moondream|internvl)"),
    _family(r"vl(-|:|$)"),  # qwen2.5-vl, deepseek-vl
    _family(r"qwen[\d.]*vl"),  # Ollama's spelling
)


def family_of(model: str) -> Family | None:
    return next((family for family in FAMILIES if family.pattern.search(model)), None)
