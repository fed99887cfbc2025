"""How large a model's window is, in the words of a provider that refused what did not fit."""

import re

SMALLEST, LARGEST = 256, 100_000_000
"""Tokens. A number beyond these is something else."""

NUMBER = r"(\d[\d,_]*)"

# The number that is the window, and not the one that says how long the request was.
NAMED = re.compile(
    "|".join(
        (
            rf"maximum (?:context|prompt|model|sequence|input|allowed input) length (?:is|of) (?:only )?{NUMBER}",
            rf"maximum context length \({NUMBER}\)",
            rf"exceeds the available context size \({NUMBER}",  # llama.cpp
            rf"context (?:length|window|size) of (?:only )?{NUMBER}",  # LM Studio, Ollama
            rf"longer than the model's context length \({NUMBER}",
            rf"maximum number of tokens allowed \({NUMBER}",  # Gemini
            rf"{NUMBER} tokens? maximum|> {NUMBER} maximum",  # Anthropic
            rf"exceed context limit: [\d\s+]*> {NUMBER}",  # Anthropic: the input and max_tokens together
            rf"exceeded model token limit: {NUMBER}",  # Kimi
            rf"exceeds the limit of {NUMBER}",  # Copilot
            rf"range of input length should be \[\d+, {NUMBER}\]",  # Alibaba
            rf"\bn_ctx\b\W+{NUMBER}",
        )
    ),
    re.IGNORECASE,
)


def window_named_in(said: str) -> int | None:
    """The window that a refusal names; None if it names none."""
    for found in NAMED.finditer(said):
        number = next(group for group in found.groups() if group)
        tokens = int(number.replace(",", "").replace("_", ""))
        if SMALLEST <= tokens <= LARGEST:
            return tokens
    return None
