"""The test provider as a strict Responses server. It seals its reasoning and takes back only what it sealed."""

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from crow.config.settings import ModelSettings, ProviderSettings
from crow.model.script import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, insist, take_turns, words

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FIELDS = {
    *("model", "input", "stream", "store", "instructions", "tools", "include", "reasoning"),
    *("max_output_tokens", "prompt_cache_key"),
}
ITEM_FIELDS = {
    "message": {"type", "role", "content", "phase"},
    "reasoning": {"type", "summary", "encrypted_content"},
    "function_call": {"type", "call_id", "name", "arguments"},
    "function_call_output": {"type", "call_id", "output"},
}


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
    """Raises Refused for what the real API would not take from a client that stores nothing there."""
    insist(isinstance(body, dict), "The body is no object.")
    insist(set(body) <= FIELDS, f"Unknown parameters: {sorted(set(body) - FIELDS)}.")
    insist(body.get("model"), "Missing required parameter: 'model'.")
    insist(body.get("stream") is True, "stream is not true.")
    insist(body.get("store") is False, "store is not false.")
    insist(body.get("max_output_tokens", 16) >= 16, "Invalid 'max_output_tokens': integer below minimum value.")
    insist(set(body.get("reasoning", {})) <= {"effort", "summary"}, "Unknown parameter: 'reasoning'.")
    insist(body.get("tools") != [], "tools is empty.")
    for tool in body.get("tools", []):
        insist(set(tool) == {"type", "name", "description", "parameters", "strict"}, "Invalid tool.")
        insist(tool["type"] == "function" and tool["strict"] is False, "Invalid tool.")
        insist(NAME.fullmatch(tool["name"]), "A tool's name is invalid.")
    insist(body.get("input"), "input is empty.")
    _check_items(body["input"])


def _check_items(items: list[dict[str, Any]]) -> None:
    seen: set[str] = set()
    open_ids: list[str] = []
    answering = False
    for place, item in enumerate(items):
        where = f"input[{place}]"
        kind = item.get("type", "message")
        insist(
            kind in ITEM_FIELDS and set(item) <= ITEM_FIELDS[kind], f"{where}: unknown fields in {kind}: {set(item)}"
        )
        insist(not (answering and open_ids and kind != "function_call_output"), f"{where}: No tool output found.")
        answering = kind == "function_call_output"
        match kind:
            case "function_call":
                insist(NAME.fullmatch(item["call_id"]) and item["call_id"] not in seen, f"{where}: call_id not unique.")
                insist(NAME.fullmatch(item["name"]), f"{where}: invalid name.")
                insist(isinstance(item["arguments"], str), f"{where}: arguments are no text.")
                seen.add(item["call_id"])
                open_ids.append(item["call_id"])
            case "function_call_output":
                insist(item["call_id"] in open_ids, f"{where}: No tool call found for {item['call_id']}.")
                open_ids.remove(item["call_id"])
                _check_content(item["output"], where)
            case "reasoning":
                _check_reasoning(item, items[place + 1 : place + 2], where)
            case _ if item["role"] == "assistant":
                texts = [part["text"] for part in item["content"] if part["type"] == "output_text"]
                insist(texts and all(text.strip() for text in texts), f"{where}: empty message.")
                insist(item.get("phase", "commentary") in ("commentary", "final_answer"), f"{where}: phase.")
            case _:
                insist(item["role"] == "user", f"{where}: unknown role.")
                insist(not open_ids, f"{where}: No tool output found for {open_ids}.")
                insist(isinstance(item["content"], list), f"{where}: content.")
                _check_content(item["content"], where)
    insist(not open_ids, f"No tool output found for tool call {open_ids}.")


def _check_reasoning(item: dict[str, Any], following: list[dict[str, Any]], where: str) -> None:
    text = "".join(part["text"] for part in item["summary"])
    insist(item["encrypted_content"] == sealed(text), f"{where}: The encrypted content could not be verified.")
    follows = following[0] if following else {}
    produced = follows.get("type") in ("reasoning", "function_call") or follows.get("role") == "assistant"
    insist(produced, "Item of type 'reasoning' was provided without its required following item.")


def _check_content(content: Any, where: str) -> None:
    if isinstance(content, str):
        insist(content.strip(), f"{where}: empty text.")
        return
    insist(content, f"{where}: empty content.")
    for part in content:
        if part["type"] == "input_image":
            head, _, data = part["image_url"].partition(";base64,")
            insist(head.startswith("data:image/") and base64.b64decode(data, validate=True), f"{where}: image.")
        else:
            insist(part["type"] == "input_text" and part["text"].strip(), f"{where}: text.")


def _event(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, "sequence_number": 1, **fields}, kind)
