"""The tools of a model with a small window: the few that work cannot do without, described in a few words.

All tools with their full descriptions take about 3,000 tokens of every request. That is nothing to a window of 200,000,
and most of one of 8,192.
"""

import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from crow.messages import ToolSpec

SMALL_WINDOW = 16_000
"""Tokens: below it, a model gets the small set."""

DESCRIPTIONS = {
    "read": "Read a file as numbered lines, or list a folder. For more, go on with `offset`.",
    "write": "Write a whole file. An existing one must have been read in full: else use `edit`.",
    "edit": "Replace text in a file. `old` is copied exactly from the file, without line numbers, and must be unique.",
    "find": "Find files by name or glob.",
    "search": "Search files for a regular expression.",
    "terminal": "Run a shell command.",
    "ask": "Ask the user, if you cannot go on without an answer.",
    "leave_plan": "In plan mode: show the complete plan and ask to carry it out.",
}

LEFT_OUT = {
    "write": ("append",),
    "search": ("context", "mode"),
    "terminal": ("background", "cwd"),
}
"""Arguments that the model is not told of."""


def small_set(specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Those of the tools that belong to it, and all that are not Crow's own: whoever added a server wants its tools."""
    return [_small(spec) if spec.name in DESCRIPTIONS else spec for spec in specs if _belongs(spec.name)]


def _belongs(name: str) -> bool:
    return name in DESCRIPTIONS or name.startswith("mcp__") or name in ("find_tools", "mcp_resources")


@functools.cache
def _small_schema(name: str, schema: bytes) -> dict[str, Any]:
    """The same for the same tool: it is asked for before each request."""
    bare = _bare(msgspec.json.decode(schema, type=dict[str, Any]))
    for left_out in LEFT_OUT.get(name, ()):
        bare["properties"].pop(left_out, None)
    return bare


def _small(spec: ToolSpec) -> ToolSpec:
    return ToolSpec(spec.name, DESCRIPTIONS[spec.name], _small_schema(spec.name, msgspec.json.encode(spec.schema)))


def _bare(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an object with nothing but the names and types of its properties."""
    bare: dict[str, Any] = {key: schema[key] for key in ("type", "enum", "required") if key in schema}
    if "properties" in schema:
        bare["properties"] = {name: _bare(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        bare["items"] = _bare(schema["items"])
    return bare
