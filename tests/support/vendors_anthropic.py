"""Anthropic, with the rules it is known for; see `tests.support.vendors`."""

from collections.abc import Mapping
from typing import Any

from crow.model.scripted import Call, Think
from tests.support.provider_anthropic import AnthropicDialect, seal
from tests.support.provider_dialect import Answer, Request, Stall, Step, insist
from tests.support.vendors import ARGUMENTS, DONE, Json, Vendor, thought_of
from tests.support.wire_rules import check_messages

FIELDS = {"model", "max_tokens", "messages", "stream", "system", "tools", "thinking", "output_config"}
TOOL_FIELDS = {"name", "description", "input_schema", "cache_control", "eager_input_streaming"}
EFFORTS = ("low", "medium", "high", "xhigh", "max")


class Anthropic(Vendor):
    """Its newest model: it thinks unasked, shows its thoughts only if asked to, and takes no budget. `thinks_forever`
    is the number of a reply that never gets beyond its thought."""

    name = "anthropic"
    host = "api.anthropic.com"
    path = "/v1/messages"
    key_header = "x-api-key"
    default_model = "claude-sonnet-5"

    def __init__(self, thinks_forever: int = 0) -> None:
        super().__init__()
        self.thinks_forever = thinks_forever

    def complaint(self, said: str) -> Any:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": said}, "request_id": "req_1"}

    def respond(self, request: Request) -> Answer:
        answer = super().respond(request)
        stalls = answer.status == 200 and self.replies == self.thinks_forever
        return Answer([*answer.steps, Stall()]) if stalls else answer

    def check(self, body: Json) -> None:
        for name in set(body) - FIELDS:
            insist(False, f"{name}: Extra inputs are not permitted")
        for tool in body.get("tools", []):
            insist(
                set(tool) <= TOOL_FIELDS, f"tools.0.custom: Extra inputs are not permitted: {set(tool) - TOOL_FIELDS}"
            )
        insist(body["model"] == self.default_model, f"model: {body['model']}")
        thinking = body.get("thinking", {})
        insist(thinking.get("type") != "enabled", "adaptive thinking is required: budgets are not supported")
        effort = body.get("output_config", {}).get("effort", "high")
        insist(effort in EFFORTS, f"This model does not support effort level '{effort}'.")
        # A thought that it did not show is sealed as well: its text is empty.
        check_messages(body)
        for place, message in enumerate(body["messages"]):
            for block in message["content"] if message["role"] == "assistant" else ():
                if block["type"] == "thinking":
                    known = (seal(thought_of(reply)) for reply in range(1, self.replies + 1))
                    insist(block["signature"] in known, f"messages.{place}: Invalid `signature` in `thinking` block")

    def reply(self, body: Json) -> list[bytes]:
        thought = Think(thought_of(self.replies))
        shows = body.get("thinking", {}).get("display") == "summarized"
        answers = any(block["type"] == "tool_result" for block in body["messages"][-1]["content"])
        parts = (thought, DONE) if answers else (thought, Call("read", raw=ARGUMENTS))
        stream = _Stream("", self.key)
        usage = {"input": 100, "cached": 64, "written": 32, "output": 20}
        if self.replies == self.thinks_forever:
            stream.answer(thought, usage=usage, then=Stall())
        else:
            stream.answer(*parts, usage=usage)
        return stream.events if shows else [step for step in stream.events if b"thinking_delta" not in step]


class _Stream(AnthropicDialect):
    """One reply, to be taken from where it is."""

    def send(self, *steps: Step, dribble: bool = False, headers: Mapping[str, str] | None = None) -> None:
        self.events = [step for step in steps if isinstance(step, bytes)]


class Forgetful(Anthropic):
    """Takes none of its own thoughts back, as after a change of keys at the vendor's."""

    def check(self, body: Json) -> None:
        super().check(body)
        for place, message in enumerate(body["messages"]):
            for number, block in enumerate(message["content"]):
                where = f"messages.{place}.content.{number}"
                insist(block["type"] != "thinking", f"{where}: Invalid `signature` in `thinking` block")


def blocks_of(body: Json) -> list[Json]:
    return [block for message in body["messages"] for block in message["content"]]
