"""The vendors of chat completions, each with the rules it is known for; see `tests.support.vendors`."""

import json
import re
from typing import Any

from tests.support.provider_dialect import Answer, Request, insist
from tests.support.vendors import ChatVendor, Json, thought_of


class Gemini(ChatVendor):
    """Signs the calls of its models, and wants the signature back with the call."""

    name = "gemini"
    host = "generativelanguage.googleapis.com"
    path = "/v1beta/openai/chat/completions"
    default_model = "gemini-flash-latest"
    more_call_fields = frozenset({"extra_content"})
    more_message_fields = frozenset({"extra_content"})
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150}  # noqa: RUF012 -- thoughts in the total

    def complaint(self, said: str) -> Any:
        return [{"error": {"code": 400, "message": said, "status": "INVALID_ARGUMENT"}}]

    def thought(self, text: str) -> list[Json]:
        return []  # none are shown

    def call(self, call_id: str) -> Json:
        return super().call("") | {"extra_content": {"google": {"thought_signature": self._signature(self.replies)}}}

    def _signature(self, reply: int) -> str:
        return f"Cs+/{reply}=="

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        if is_current and message.get("tool_calls"):
            first = message["tool_calls"][0]
            signature = first.get("extra_content", {}).get("google", {}).get("thought_signature")
            insist(signature, "Function call is missing a thought_signature in functionCall parts.")
            insist(signature == self._signature(number), "Thought signature is not valid.")


class Mistral(ChatVendor):
    """Forbids every field that it does not know, takes ids of nine letters, and thinks in parts of the content."""

    name = "mistral"
    host = "api.mistral.ai"
    path = "/v1/chat/completions"
    default_model = "mistral-medium-latest"
    refused_status = 422
    fields = frozenset({"model", "messages", "stream", "tools", "max_tokens", "reasoning_effort", "prompt_cache_key"})

    def extra(self, where: str, name: str) -> str:
        return f"{where}{name}"

    def complaint(self, said: str) -> Any:
        place = ["body", *said.split(".")]
        detail = [{"type": "extra_forbidden", "loc": place, "msg": "Extra inputs are not permitted", "input": "x"}]
        return {"object": "error", "message": {"detail": detail}, "type": "invalid_request_error", "code": None}

    def thought(self, text: str) -> list[Json]:
        return [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}]

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        for call in message.get("tool_calls", []):
            insist(re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]), "tool_call_id")
        insist(message.get("content"), "content")
        thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought_of(number)}]}
        insist(message["content"][0] == thinking, "thinking")

    def reply(self, body: Json) -> list[bytes]:
        return super().reply(body | {"stream_options": {}})  # the usage comes unasked


class DeepSeek(ChatVendor):
    """Wants the thoughts back with every call of every turn, and takes no lists for text."""

    name = "deepseek"
    host = "api.deepseek.com"
    path = "/v1/chat/completions"
    default_model = "deepseek-flash"
    more_fields = frozenset({"thinking"})
    more_message_fields = frozenset({"reasoning_content"})
    usage = {  # noqa: RUF012
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_cache_hit_tokens": 64,
    }

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        if message.get("tool_calls"):
            insist(
                message.get("reasoning_content") == thought_of(number),
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
            )

    def check_more(self, body: Json) -> None:
        for message in body["messages"]:
            insist(not isinstance(message.get("content"), list), "invalid type: sequence, expected a string")


class Moonshot(DeepSeek):
    """Like DeepSeek, in other words; and it takes no content that says nothing."""

    name = "moonshot"
    host = "api.moonshot.ai"
    default_model = "kimi-k3"
    more_fields = frozenset({"thinking", "prompt_cache_key"})
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120, "cached_tokens": 64}  # noqa: RUF012

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        insist("content" not in message or message["content"], "text content is empty")
        if message.get("tool_calls"):
            said = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"
            insist(message.get("reasoning_content") == thought_of(number), said)

    def check_more(self, body: Json) -> None:
        insist(body.get("temperature", 1) == 1, "invalid temperature: only 1 is allowed for this model")


class OpenRouter(ChatVendor):
    """Plays a Gemini behind a gateway: the details of its thoughts come back unchanged, or the request is refused."""

    name = "openrouter"
    host = "openrouter.ai"
    path = "/api/v1/chat/completions"
    default_model = "openrouter/auto"
    more_fields = frozenset({"reasoning"})
    more_message_fields = frozenset({"reasoning", "reasoning_details"})
    usage = {  # noqa: RUF012
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "cost": 0.25,
        "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 10},
    }

    def complaint(self, said: str) -> Any:
        raw = json.dumps({"error": {"message": said}})
        metadata = {"raw": raw, "provider_name": "Google AI Studio"}
        return {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}

    def thought(self, text: str) -> list[Json]:
        pieces = [text[:3], text[3:]]
        details = [
            {"type": "reasoning.text", "text": piece, "format": "google-gemini-v1", "index": 0} for piece in pieces
        ]
        reply = self.replies
        sealed = {"type": "reasoning.encrypted", "data": f"seal{reply}", "id": f"call_{reply}", "index": 0}
        deltas = [
            {"content": "", "reasoning": piece, "reasoning_details": [entry]}
            for piece, entry in zip(pieces, details, strict=True)
        ]
        return [*deltas, {"content": "", "reasoning": None, "reasoning_details": [sealed]}]

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        if not message.get("tool_calls"):
            return
        insist(
            message.get("reasoning_details")
            == [
                {"type": "reasoning.text", "text": thought_of(number), "format": "google-gemini-v1", "index": 0},
                {"type": "reasoning.encrypted", "data": f"seal{number}", "id": f"call_{number}", "index": 0},
            ],
            "Function call is missing a thought_signature in functionCall parts.",
        )
        insist(message["tool_calls"][0]["id"] == f"call_{number}", "Function call is missing a thought_signature.")


class Groq(ChatVendor):
    """Has another name for thoughts, and refuses everybody else's; looks at calls before it passes them on."""

    name = "groq"
    host = "api.groq.com"
    path = "/openai/v1/chat/completions"
    default_model = "openai/gpt-oss-120b"
    more_message_fields = frozenset({"reasoning"})

    def __init__(self, failures: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._failures = list(failures)
        """What its model writes for calls, one for each of the first requests."""

    def extra(self, where: str, name: str) -> str:
        return f"'{where.rstrip('.')}' : property '{name}' is unsupported"

    def thought(self, text: str) -> list[Json]:
        return [{"reasoning": text}]

    def respond(self, request: Request) -> Answer:
        answer = super().respond(request)
        if answer.status != 200 or not self._failures:
            return answer
        error = {"code": "tool_use_failed", "type": "invalid_request_error", "failed_generation": self._failures.pop(0)}
        said = "Tool call validation failed: attempted to call tool 'read' with wrong arguments."
        self.refusals.append(said)
        self.replies -= 1
        return Answer([json.dumps({"error": {"message": said, **error}}).encode()], 400)


class Cerebras(Groq):
    """Takes thoughts as Groq does."""

    name = "cerebras"
    host = "api.cerebras.ai"
    path = "/v1/chat/completions"
    default_model = "gpt-oss-120b"
    more_fields = frozenset({"prompt_cache_key"})

    def complaint(self, said: str) -> Any:
        return {"message": said, "type": "invalid_request_error", "param": "x", "code": "wrong_api_format"}


class ZAI(ChatVendor):
    """Reads the thoughts of earlier turns if it is told to, and wants them as they were."""

    name = "zai"
    host = "api.z.ai"
    path = "/api/paas/v4/chat/completions"
    default_model = "glm-5.3"
    more_fields = frozenset({"thinking"})
    more_message_fields = frozenset({"reasoning_content"})

    def complaint(self, said: str) -> Any:
        return {"error": {"code": "1210", "message": said}}

    def check_reply(self, message: Json, number: int, *, is_current: bool) -> None:
        thought = thought_of(number)
        insist(message.get("reasoning_content", thought) == thought, "reasoning_content was changed")

    def check_more(self, body: Json) -> None:
        told = body.get("thinking", {}) == {"type": "enabled", "clear_thinking": False}
        insist(told, "Earlier thoughts would be read and paid for again.")


CHAT_VENDORS = (Gemini, Mistral, DeepSeek, Moonshot, OpenRouter, Groq, Cerebras, ZAI)
