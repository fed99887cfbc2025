"""The test provider as a strict messages server. It seals its thoughts and takes none back with a broken seal."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from crow.model.scripted import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, take_turns, words
from tests.support.wire_rules import check_messages

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def seal(thought: str) -> str:
    return "seal-" + hashlib.sha256(thought.encode()).hexdigest()


class AnthropicDialect(Dialect):
    type = "anthropic"
    path = "/v1/messages"

    def key_of(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key", "")

    def complaint(self, status: int, message: str) -> bytes:
        kind = ERROR_TYPES.get(status, "api_error")
        return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()

    # --- replies

    def opening(self, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        message: dict[str, Any] = {"id": "msg_1", "role": "assistant", "content": []}
        if usage is not None:
            cached, written = usage.get("cached", 0), usage.get("written", 0)
            message["usage"] = {
                "input_tokens": usage.get("input", 0) - cached - written,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": written,
                "output_tokens": 1,
            }
        yield _event("message_start", message=message)
        yield _event("ping")

    def spoken(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        for index, part in enumerate(parts):
            yield from self._block(index, part)

    def interleaved(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        calls = [part for part in parts if isinstance(part, Call)]
        return take_turns(*(list(self._block(index, call)) for index, call in enumerate(calls)))

    def closing(self, finish: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        counts = {"usage": {"output_tokens": usage.get("output", 0)}} if usage is not None else {}
        yield _event("message_delta", delta={"stop_reason": finish, "stop_sequence": None}, **counts)
        yield _event("message_stop")

    def natural_finish(self, parts: tuple[Spoken, ...]) -> str:
        return "tool_use" if any(isinstance(part, Call) for part in parts) else "end_turn"

    def _block(self, index: int, part: Spoken) -> Iterator[bytes]:
        """A thought whose text is empty was withheld; its signature is then the opaque data."""
        deltas: list[dict[str, Any]]
        match part:
            case str():
                block = {"type": "text", "text": ""}
                deltas = [{"type": "text_delta", "text": word} for word in words(part)]
            case Think(text=""):
                block, deltas = {"type": "redacted_thinking", "data": part.signature}, []
            case Think():
                block = {"type": "thinking", "thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": word} for word in words(part.text)]
                deltas.append({"type": "signature_delta", "signature": seal(part.text)})
            case Call():
                block = {"type": "tool_use", "id": next(self._call_ids), "name": part.tool, "input": {}}
                deltas = [{"type": "input_json_delta", "partial_json": ""}]
                deltas += [{"type": "input_json_delta", "partial_json": piece} for piece in fragments(part)]
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)

    # --- requests

    def check(self, request: Request) -> None:
        check_messages(request.body, seal=seal)


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)
