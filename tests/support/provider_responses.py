"""The test provider as a strict Responses server. It seals its reasoning and takes back only what it sealed."""

import base64
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from crow.config.settings import ModelSettings, ProviderSettings
from crow.model.scripted import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, take_turns, words
from tests.support.wire_rules import check_responses


def sealed(thought: str) -> str:
    return base64.b64encode(hashlib.sha512(thought.encode()).digest()).decode()


class ResponsesDialect(Dialect):
    type = "openai"
    path = "/v1/responses"

    def settings(self, **models: ModelSettings) -> ProviderSettings:
        return msgspec.structs.replace(super().settings(**models), wire="responses")

    def key_of(self, headers: Mapping[str, str]) -> str:
        return headers.get("authorization", "").removeprefix("Bearer ")

    def complaint(self, status: int, message: str) -> bytes:
        return json.dumps({"error": {"message": message, "type": "invalid_request_error", "code": None}}).encode()

    # --- replies

    def opening(self, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        self._numbers = itertools.count()
        response = {"id": "resp_1", "status": "in_progress", "instructions": "all of it again", "output": []}
        yield _event("response.created", response=response)
        yield _event("response.in_progress", response=response)

    def spoken(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        for index, part in enumerate(parts):
            yield from self._item(index, part)

    def interleaved(self, parts: tuple[Spoken, ...]) -> Iterator[bytes]:
        calls = [part for part in parts if isinstance(part, Call)]
        return take_turns(*(list(self._item(index, call)) for index, call in enumerate(calls)))

    def closing(self, finish: str, usage: Mapping[str, int] | None) -> Iterator[bytes]:
        """`finish` is `completed`, or `incomplete` with its reason after a blank."""
        status, _, reason = finish.partition(" ")
        response: dict[str, Any] = {"id": "resp_1", "status": status, "output": []}
        if reason:
            response["incomplete_details"] = {"reason": reason}
        if usage is not None:
            response["usage"] = {
                "input_tokens": usage.get("input", 0),
                "input_tokens_details": {
                    "cached_tokens": usage.get("cached", 0),
                    "cache_write_tokens": usage.get("written", 0),
                },
                "output_tokens": usage.get("output", 0),
                "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
            }
        yield _event(f"response.{status}", response=response)

    def natural_finish(self, parts: tuple[Spoken, ...]) -> str:
        return "completed"

    def _item(self, index: int, part: Spoken) -> Iterator[bytes]:
        match part:
            case str():
                item = {"type": "message", "id": f"msg_{index}", "role": "assistant", "phase": "final_answer"}
                begun = {**item, "content": []}
                deltas = [("response.output_text.delta", {"delta": word, "content_index": 0}) for word in words(part)]
                ended = {**item, "content": [{"type": "output_text", "text": part, "annotations": []}]}
            case Think():
                item = {"type": "reasoning", "id": f"rs_{index}"}
                begun = {**item, "summary": [], "encrypted_content": "not the one that counts"}
                kind = "response.reasoning_summary_text.delta"
                deltas = [(kind, {"delta": word, "summary_index": 0}) for word in words(part.text)]
                summary = [{"type": "summary_text", "text": part.text}] if part.text else []
                ended = {**item, "summary": summary, "encrypted_content": sealed(part.text)}
            case Call():
                item = {"type": "function_call", "id": f"fc_{index}", "call_id": next(self._call_ids)}
                item["name"] = part.tool
                begun = {**item, "arguments": "", "status": "in_progress"}
                kind = "response.function_call_arguments.delta"
                deltas = [(kind, {"delta": piece}) for piece in fragments(part)]
                ended = {**item, "arguments": part.text, "status": "completed"}
        yield _event("response.output_item.added", output_index=index, item=begun)
        for kind, fields in deltas:
            yield _event(kind, output_index=index, item_id=item["id"], **fields)
        yield _event("response.output_item.done", output_index=index, item=ended)

    # --- requests

    def check(self, request: Request) -> None:
        check_request(request.body)


def check_request(body: Any) -> None:
    check_responses(body, seal=sealed)


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, "sequence_number": 1, **fields}, kind)
