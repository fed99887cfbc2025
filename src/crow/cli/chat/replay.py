"""What `crow chat` draws of a session that it loads: the last few prompts of its past, with what followed each."""

from msgspec.structs import replace

from crow.acp import wire
from crow.cli.render import Renderer
from crow.cli.render_screen import DIM

MOST_REPLAYED = 30
"""Prompts of a stored conversation that are drawn again, with what followed them."""


class Replay:
    """Collects the updates that a load brings, until all are there."""

    def __init__(self) -> None:
        self._updates: list[wire.Update] = []
        self._prompts: list[int] = []
        """Where each prompt begins among the updates."""
        self._last_prompt: str | None = None

    def take(self, update: wire.Update) -> None:
        if isinstance(update, wire.UserMessageChunk) and (
            update.message_id is None or update.message_id != self._last_prompt
        ):
            self._last_prompt = update.message_id
            self._prompts.append(len(self._updates))
        before = self._updates[-1] if self._updates else None
        if isinstance(before, wire.ToolCall) and isinstance(update, wire.ToolCallUpdate) and _is_same(before, update):
            self._updates[-1] = _completed(before, update)
        else:
            self._updates.append(update)

    def draw(self, renderer: Renderer, session: str) -> None:
        left_out = self._prompts[:-MOST_REPLAYED]
        first = self._prompts[len(left_out)] if left_out else 0
        if left_out:
            renderer.mark("i", f"{len(left_out)} earlier prompts are not shown: crow sessions show {session}", DIM)
        for update in self._updates[first:]:
            renderer.update(update)


def _is_same(call: wire.ToolCall, update: wire.ToolCallUpdate) -> bool:
    return call.tool_call_id == update.tool_call_id


def _completed(call: wire.ToolCall, update: wire.ToolCallUpdate) -> wire.ToolCall:
    """A past call with what came of it, which is told in a second update."""
    return replace(
        call,
        status=update.status or call.status,
        content=update.content or call.content,
        raw_output=update.raw_output,
    )
