"""The test provider as a strict messages server. It seals its thoughts and takes none back with a broken seal."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from crow.model.script import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, insist, take_turns, words

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
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
        body = request.body
        insist(isinstance(body, dict), "The body is no object.")
        insist(body.get("model"), "model: field required")
        insist(body.get("stream") is True, "stream: not true")
        insist(isinstance(body.get("max_tokens"), int) and body["max_tokens"] > 0, "max_tokens: field required")
        names = [tool["name"] for tool in body.get("tools", [])]
        insist(len(names) == len(set(names)), "tools: names must be unique")
        insist(all(NAME.fullmatch(name) for name in names), "tools: invalid name")
        for block in body.get("system", []):
            _check_text(block, "system")
        insist(json.dumps(body).count('"cache_control"') <= 4, "A maximum of 4 blocks with cache_control may be given")
        _check_messages(body["messages"])


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _check_messages(messages: list[dict[str, Any]]) -> None:
    insist(messages, "messages: at least one message is required")
    seen_ids: set[str] = set()
    open_ids: list[str] = []
    for place, message in enumerate(messages):
        where = f"messages.{place}"
        role, content = message["role"], message["content"]
        insist(role == ("user", "assistant")[place % 2], f"{where}: roles must alternate, beginning with user")
        insist(content, f"{where}: content must not be empty")
        if role == "user":
            _check_results(content, open_ids, where)
            open_ids = []
        else:
            for block in content:
                _check_spoken(block, seen_ids, where)
            open_ids = [block["id"] for block in content if block["type"] == "tool_use"]
    insist(not open_ids, f"tool_use ids were found without tool_result blocks immediately after: {open_ids}")


def _check_results(content: list[dict[str, Any]], open_ids: list[str], where: str) -> None:
    results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
    insist(sorted(results) == sorted(open_ids), f"{where}: results {results} for the calls {open_ids}")
    leading = [block["type"] for block in content[: len(results)]]
    insist(set(leading) <= {"tool_result"}, f"{where}: tool_result blocks must come first")
    for block in content:
        if block["type"] == "tool_result":
            insist(block["content"], f"{where}: empty tool_result")
            for inner in block["content"]:
                _check_user_block(inner, where)
        else:
            _check_user_block(block, where)


def _check_user_block(block: dict[str, Any], where: str) -> None:
    if block["type"] == "image":
        kinds = ("image/jpeg", "image/png", "image/gif", "image/webp")
        insist(block["source"]["media_type"] in kinds, f"{where}: media_type")
    else:
        _check_text(block, where)


def _check_text(block: dict[str, Any], where: str) -> None:
    insist(block["type"] == "text", f"{where}: unexpected block {block['type']}")
    insist(block["text"].strip(), f"{where}: text content blocks must contain non-whitespace text")


def _check_spoken(block: dict[str, Any], seen_ids: set[str], where: str) -> None:
    match block["type"]:
        case "thinking":
            insist(block["signature"] == seal(block["thinking"]), f"{where}: Invalid signature in thinking block")
            insist("cache_control" not in block, f"{where}: thinking blocks cannot be cached")
        case "redacted_thinking":
            insist(block["data"], f"{where}: redacted_thinking without data")
        case "tool_use":
            insist(NAME.fullmatch(block["name"]), f"{where}: tool_use name")
            insist(NAME.fullmatch(block["id"]) and block["id"] not in seen_ids, f"{where}: ids must be unique")
            insist(isinstance(block["input"], dict), f"{where}: input must be an object")
            seen_ids.add(block["id"])
        case _:
            _check_text(block, where)
