"""OpenAI and Azure, with the rules they are known for; see `tests.support.vendors`."""

import json
from collections.abc import Mapping
from typing import Any

from crow.model.scripted import Call, Think
from tests.support.provider_dialect import Answer, Request, Step, insist
from tests.support.provider_responses import ResponsesDialect, check_request
from tests.support.vendors import ARGUMENTS, DONE, Json, Vendor, thought_of

LOOKING = "I look."

NO_TOOLS = (
    "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. To use function tools, "
    "use /v1/responses or set reasoning_effort to 'none'."
)


class OpenAI(Vendor):
    """Stores nothing, takes its reasoning back only as it gave it, and lets its newest models use tools only there."""

    name = "openai"
    host = "api.openai.com"
    path = "/v1/responses"
    default_model = "gpt-5.6"
    more_usage: Json = {}  # noqa: RUF012

    def respond(self, request: Request) -> Answer:
        if request.method == "POST" and request.path.endswith("/chat/completions"):
            self.requests.append(request)
            self.refusals.append(NO_TOOLS.format(request.body["model"]))
            return self.refuse(400, self.refusals[-1])
        return super().respond(request)

    def check(self, body: Json) -> None:
        check_request(body)
        insist(body["model"] == self.default_model, f"The model {body['model']} does not exist.")
        insist(body["include"] == ["reasoning.encrypted_content"], "Without this, reasoning cannot be given back.")

    def reply(self, body: Json) -> list[bytes]:
        thought = Think(thought_of(self.replies))
        is_last = body["input"][-1].get("type") == "function_call_output"
        parts = (thought, DONE) if is_last else (thought, LOOKING, Call("read", raw=ARGUMENTS))
        usage = {"input": 100, "cached": 64, "written": 32, "output": 20, "reasoning": 12}
        stream = Stream("", self.key)
        stream.answer(*parts, usage=usage, call_ids=["call_0"])  # the same in every reply, as of Bedrock's
        return [_with_usage(step, self.more_usage) for step in stream.events]


def _with_usage(step: bytes, more: Json) -> bytes:
    if not more or b'"input_tokens"' not in step:
        return step
    return step.replace(b'"input_tokens"', json.dumps(more)[1:-1].encode() + b', "input_tokens"', 1)


class Stream(ResponsesDialect):
    """One reply, to be taken from where it is."""

    def send(self, *steps: Step, dribble: bool = False, headers: Mapping[str, str] | None = None) -> None:
        self.events = [step for step in steps if isinstance(step, bytes)]


class Azure(OpenAI):
    """Has the key in a header of its own, and a company's names for models."""

    name = "azure"
    host = "house.openai.azure.com"
    path = "/openai/v1/responses"
    key_header = "api-key"
    default_model = "our-deployment"


class XAI(OpenAI):
    """Says what a reply cost, in units of its own."""

    name = "xai"
    host = "api.x.ai"
    default_model = "grok-4.5"
    more_usage = {"cost_in_usd_ticks": 2_500_000_000}  # noqa: RUF012

    def complaint(self, said: str) -> Any:
        return {"code": "Client specified an invalid argument", "error": said}


class Gateway(OpenAI):
    """A company's own address for OpenAI's models, at which chat completions are the usual thing."""

    name = "gateway"
    host = "gateway.example"
