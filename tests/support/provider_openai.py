"""The test provider as a strict chat completions server."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from crow.model.script import Call, Think
from tests.support.provider_dialect import Dialect, Request, Spoken, event, fragments, insist, take_turns, words

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")  # Mistral's rule; the others take more


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
        body = request.body
        insist(isinstance(body, dict), "The body is no object.")
        insist(body.get("model"), "model is missing.")
        insist(body.get("stream") is True, "stream is not true.")
        names = [tool["function"]["name"] for tool in body.get("tools", [])]
        insist(len(names) == len(set(names)), "Two tools have the same name.")
        insist(all(NAME.fullmatch(name) for name in names), "A tool's name is invalid.")
        insist(body.get("tools") != [], "tools is empty.")
        _check_messages(body["messages"])


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


def _check_messages(messages: list[dict[str, Any]]) -> None:
    insist(messages, "messages is empty.")
    open_ids: list[str] = []
    seen_ids: set[str] = set()
    before = ""
    for place, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        where = f"messages[{place}]"
        if role == "tool":
            insist(message["tool_call_id"] in open_ids, f"{where}: no open call has this id.")
            open_ids.remove(message["tool_call_id"])
            insist(isinstance(content, str) and content, f"{where}: a tool's content is a text.")
            before = role
            continue
        insist(not open_ids, f"{where}: calls without a result: {open_ids}.")
        match role:
            case "system":
                insist(place == 0 and content, f"{where}: the system message comes first and is not empty.")
            case "user":
                insist(before != "user", f"{where}: roles do not alternate.")
                _check_user(content, where)
            case "assistant":
                insist(before != "assistant", f"{where}: roles do not alternate.")
                calls = message.get("tool_calls", [])
                insist(content or (calls and content is None), f"{where}: empty content.")
                for call in calls:
                    _check_call(call, seen_ids, where)
                open_ids = [call["id"] for call in calls]
            case _:
                insist(False, f"{where}: unknown role {role}.")
        before = role
    insist(not open_ids, f"Calls without a result: {open_ids}.")


def _check_user(content: Any, where: str) -> None:
    insist(content, f"{where}: empty content.")
    for part in content if isinstance(content, list) else []:
        match part["type"]:
            case "text":
                insist(part["text"].strip(), f"{where}: empty text.")
            case "image_url":
                head, _, data = part["image_url"]["url"].partition(";base64,")
                insist(head.startswith("data:image/") and base64.b64decode(data, validate=True), f"{where}: image.")
            case "input_audio":
                insist(part["input_audio"]["format"] in ("wav", "mp3"), f"{where}: audio format.")
            case kind:
                insist(False, f"{where}: unknown part {kind}.")


def _check_call(call: dict[str, Any], seen_ids: set[str], where: str) -> None:
    insist(call["type"] == "function", f"{where}: a call's type is function.")
    insist(call["id"] and call["id"] not in seen_ids, f"{where}: id {call['id']!r} is not unique.")
    insist(CALL_ID.fullmatch(call["id"]), f"{where}: id {call['id']!r} is none that every provider takes.")
    seen_ids.add(call["id"])
    insist(NAME.fullmatch(call["function"]["name"]), f"{where}: a call's name is invalid.")
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = None
    insist(isinstance(arguments, dict), f"{where}: arguments are no JSON object.")
