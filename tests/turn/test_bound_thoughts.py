"""A provider whose models' thoughts are good only behind exactly what they were thought behind."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from crow.config.settings import Limits, ModelSettings
from crow.events import OutputsPruned, Remark
from crow.messages import StopReason, ToolMessage
from crow.model import catalog
from crow.model.base import ModelInfo, ModelRequest
from crow.model.scripted import Call, Think
from crow.model.wires.anthropic import encode, thinking_headers
from tests.model.asking import HELLO, ask_all, run
from tests.support.provider import Provider
from tests.support.provider_dialect import Dialect, Request
from tests.support.wire_rules import insist
from tests.turn.talk import Talk

BOUND = (
    "messages.{}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the "
    'block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
BETA = "thinking-binding-controls-2026-08-01"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if name != "cache_control"}
    return [plain(item) for item in value] if isinstance(value, list) else value


class Binding:
    """Makes a server of the messages wire keep what each of its thoughts was thought behind."""

    def __init__(self, dialect: Dialect) -> None:
        self.dropped = 0
        self._strict = dialect.check
        self._prefixes: list[Any] = []
        dialect.check = self.check  # type: ignore[method-assign]

    def check(self, request: Request) -> None:
        self._strict(request)
        body = plain(request.body)
        binding = body.get("thinking", {}).get("block_binding", {})
        has_header = BETA in request.headers.get("anthropic-beta", "")
        insist(has_header or not binding, "thinking.block_binding: not permitted")
        drops = binding.get("prefix_mismatch_behavior") == "drop_block"
        for place, message in enumerate(body["messages"]):
            for block in message["content"] if message["role"] == "assistant" else ():
                known = block["type"] != "thinking" or self._prefix(body, place) in self._prefixes
                insist(known or drops, BOUND.format(place))
                self.dropped += not known
        self._prefixes.append(self._prefix(body, len(body["messages"])))

    def _prefix(self, body: Any, length: int) -> Any:
        return body.get("system"), body.get("tools"), body["messages"][:length]


def test_thoughts_that_lost_what_they_were_thought_behind_are_dropped_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("line\n")

    async def talk() -> tuple[Talk, Binding, list[Any]]:
        with Provider() as provider:
            dialect = provider.anthropic
            binding = Binding(dialect)
            for number in range(2):
                dialect.answer(Think(f"Thought {number}."), Call("read", {"path": "a"}))
                dialect.answer(Think(f"Done {number}."), "Done.")
            dialect.answer("Fine.")
            settings = dialect.settings(**{"claude-sonnet-5-5": ModelSettings(images=True)})
            talk = Talk(tmp_path, catalog.create("house/claude-sonnet-5-5", {"house": settings}, Limits(), {}))
            try:
                assert await talk.turn("Read.") is StopReason.END_TURN
                assert await talk.turn("Again.") is StopReason.END_TURN
                assert binding.dropped == 0
                results = [m.call_id for m in talk.history.messages() if isinstance(m, ToolMessage)]
                talk.journal.append(OutputsPruned((results[0],)))
                assert await talk.turn("And now?") is StopReason.END_TURN
            finally:
                await talk.model.close()
            return talk, binding, [request.body for request in dialect.requests]

    talked, binding, bodies = asyncio.run(talk())
    assert len(bodies) == 5  # none was refused
    assert not talked.of(Remark)
    assert binding.dropped == 3
    assert all(body["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"} for body in bodies)


@pytest.mark.parametrize(
    ("model", "binds"),
    [
        *(("claude-sonnet-5-5", True), ("claude-fable-5-1", True), ("claude-haiku-5-5-20261001", True)),
        *(("claude-opus-6", True), ("claude-opus-5", False), ("claude-sonnet-4-8", False), ("kimi-k3", False)),
    ],
)
def test_only_models_that_bind_their_thoughts_are_asked_to_drop_them(model: str, binds: bool) -> None:
    request = ModelRequest("", HELLO)
    assert (b"drop_block" in encode(ModelInfo("house", model), request)) is binds
    if binds:
        assert BETA in thinking_headers(model)["anthropic-beta"]


def test_an_older_model_that_binds_its_thoughts_all_the_same_is_asked_once_it_has_refused() -> None:
    with Provider() as provider:
        dialect = provider.anthropic
        dialect.fail(400, BOUND.format(1))
        for _ in range(2):
            dialect.answer("Hello.")
        settings = dialect.settings(**{"claude-opus-5": ModelSettings()})
        model = catalog.create("house/claude-opus-5", {"house": settings}, Limits(), {})
        run(ask_all(model, *[ModelRequest("", HELLO)] * 2))
        assert ["drop_block" in str(request.body) for request in dialect.requests] == [False, True, True]
