"""How many tokens a text takes: estimated from its bytes, rather too high than too low."""

import msgspec

from crow.messages import ToolSpec

BYTES_A_TOKEN = 3
"""Prose and code have about four; tables of numbers, and writing beyond ASCII, fewer."""
PER_TOOL = 8
"""Tokens that a tool takes beside its text."""


def tokens_of_text(text: str) -> int:
    return _tokens_of_bytes(_bytes_of(text))


def tokens_of_tool(spec: ToolSpec) -> int:
    """What it takes in every request."""
    size = _bytes_of(spec.name) + _bytes_of(spec.description) + len(msgspec.json.encode(spec.schema))
    return _tokens_of_bytes(size) + PER_TOOL


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _tokens_of_bytes(size: int) -> int:
    return -(-size // BYTES_A_TOKEN)
