"""What a model's name suggests when neither the configuration, nor the vendor's list, nor the catalogue knows it.

Only facts that matter to a conversation: how much fits, whether the model sees, how long it can be told to think. A
wrong guess here costs an error from the provider, so what is not certain is left open;
`[providers.NAME.models.MODEL]` always wins.
"""

import re
from typing import NamedTuple


class Family(NamedTuple):
    pattern: str
    """Compiled with its first use: all of them would be a tenth of our start-up."""
    context_window: int | None = None
    images: bool = True
    audio: bool = False
    max_output: int | None = None
    """Only Anthropic's API insists on a limit, so only its models have one here."""
    thought_levels: tuple[str, ...] = ()


def _family(
    pattern: str,
    context_window: int | None = None,
    *,
    images: bool = True,
    audio: bool = False,
    max_output: int | None = None,
    levels: str = "",
) -> Family:
    # Names come as `gpt-4o`, `openai/gpt-4o`, `us.anthropic.claude-…`: a family may begin after any separator.
    name = rf"(?:^|[/.:_-]){pattern}"
    return Family(name, context_window, images, audio, max_output, tuple(levels.split()))


# The first match counts: the particular before the general.
FAMILIES = (
    _family(r"claude-3-(opus|sonnet|haiku)", 200_000, max_output=4_096),
    _family(r"claude-3[-.]5", 200_000, max_output=8_192),
    _family(r"claude-3[-.]7", 200_000, max_output=64_000, levels="off low medium high"),
    _family(r"claude-opus-4(-0|-1|-2025|$)", 200_000, max_output=32_000, levels="off low medium high"),
    _family(r"claude-\w+-4([-.]5|-0|-2025|@|$)", 200_000, max_output=64_000, levels="off low medium high"),
    _family(r"claude", 200_000, max_output=64_000, levels="low medium high"),
    _family(r"gpt-4o-audio", 128_000, images=False, audio=True),
    _family(r"gpt-4o", 128_000),
    _family(r"gpt-4\.1", 1_047_576),
    _family(r"gpt-5[\w.-]*-(chat|pro)", 272_000),
    _family(r"gpt-5[\w.-]*-codex", 272_000, levels="low medium high"),
    _family(r"gpt-5\.1", 272_000, levels="off low medium high"),
    _family(r"gpt-5\.", 272_000, levels="off low medium high xhigh"),
    _family(r"gpt-5", 272_000, levels="minimal low medium high"),
    _family(r"gpt-[6-9]", 272_000, levels="off low medium high xhigh"),
    _family(r"gpt-oss", 131_072, images=False, levels="low medium high"),
    _family(r"o3-mini", 200_000, images=False, levels="low medium high"),
    _family(r"o[34](-|$)", 200_000, levels="low medium high"),
    _family(r"gemini-(1|2\.0)", 1_048_576, audio=True),
    _family(r"gemini", 1_048_576, audio=True, levels="low medium high"),
    _family(r"gemma-?3-?(270m|1b|:1b)", images=False),  # the small ones are text only
    _family(r"gemma-?3", 131_072),
    _family(r"llama-?4"),
    _family(r"kimi-for-coding", 262_144),
    _family(r"openrouter/auto$", 200_000),  # any model may answer: the smallest of those that usually do
    _family(r"(llava|pixtral|moondream|internvl)"),
    _family(r"vl(-|:|$)"),  # qwen2.5-vl, deepseek-vl
    _family(r"qwen[\d.]*vl"),  # Ollama's spelling
)


def family_of(model: str) -> Family | None:
    return next((family for family in FAMILIES if re.search(family.pattern, model, re.IGNORECASE)), None)
