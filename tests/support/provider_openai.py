"""The test provider as a strict chat completions server."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from crow.model.scripted import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, take_turns, words
from tests.support.wire_rules import check_chat


class OpenAIDialect(Dialect):
    type = "openai"
    path = "/v1/chat/completions"
    thought_field = "reasoning_content"

    def key_of(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def complaint(self, status: int, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "error", "code": None}}).encode()

    # --- replies

    def opening(self, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        yield _chunk({"role": "assistant", "content": ""})

    def spoken(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        calls = 0
        for part in parts:
            match part:
                case str():
                    yield from (_chunk({"content": word}) for word in words(part))
                case Think():
                    yield from (_chunk({self.thought_field: word}) for word in words(part.text))
                case Call():
                    yield from self._call(calls, part)
                    calls += 1

    def interleaved(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        calls = [part for part in parts if isinstance(part, Call)]
        return take_turns(*(list(self._call(index, call)) for index, call in enumerate(calls)))

    def closing(self, finish: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        yield _chunk({}, finish)
        if usage is not None:
            counts = {"prompt_tokens": usage.get("input", 0), "completion_tokens": usage.get("output", 0)}
            details = {"prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)}}
            yield event({"choices": [], "usage": counts | details})
        yield event("[DONE]")

    def natural_finish(self, parts: tuple[Spoken, ...]) -> str:
        return "tool_calls" if any(isinstance(part, Call) for part in parts) else "stop"

    def _call(self, index: int, call: Call) -> Iterator[bytes]:
        function = {"name": call.tool, "arguments": ""}
        yield _chunk({"tool_calls": [{"index": index, "id": next(self._call_ids), "function": function}]})
        for fragment in fragments(call):
            yield _chunk({"tool_calls": [{"index": index, "function": {"arguments": fragment}}]})

    # --- requests

    def check(self, request: Request) -> None:
        check_chat(request.body)


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return event(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
    )
