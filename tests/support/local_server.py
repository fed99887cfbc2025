"""A model server on this machine as the usual ones are: it says what it is, counts what it is sent, and refuses what is
too long together with the reply that may follow.

    with local_server(8192, LLAMA_CPP, reply) as server:
        server.url, server.rounds, server.refused, server.looks
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.support.provider import Provider
from tests.support.provider_dialect import Answer, Request, Spoken, Step
from tests.support.windowed import BYTES_A_TOKEN, Json, WindowedDialect

Replies = Callable[[Json], tuple[Spoken | Step, ...]]
Reports = Callable[[int], Mapping[str, Any]]
"""What is found below each address, for a server of that window."""


def llama_cpp(window: int) -> Mapping[str, Any]:
    caps = {"supports_tools": True, "supports_tool_calls": True}
    return {"/props": {"default_generation_settings": {"n_ctx": window}, "chat_template_caps": caps}}


def ollama(window: int) -> Mapping[str, Any]:
    return {"/api/ps": {"models": [{"name": "m:latest", "model": "m:latest", "context_length": window}]}}


def lm_studio(window: int) -> Mapping[str, Any]:
    entry = {"id": "m", "state": "loaded", "max_context_length": 131072, "loaded_context_length": window}
    return {"/api/v0/models": {"object": "list", "data": [entry]}}


def vllm(window: int) -> Mapping[str, Any]:
    return {"/v1/models": {"object": "list", "data": [{"id": "m", "max_model_len": window}]}}


def silent(window: int) -> Mapping[str, Any]:
    """It says nothing of itself: only its refusal names the window."""
    return {}


class LocalDialect(WindowedDialect):
    def __init__(self, url: str, window: int, reports: Mapping[str, Any], reply: Replies) -> None:
        super().__init__(url, window, reply)
        self.reports = dict(reports)

    def respond(self, request: Request) -> Answer:
        if request.path in self.reports:
            self.looks.append(request)
            return Answer(
                [json.dumps(self.reports[request.path]).encode()], headers={"content-type": "application/json"}
            )
        if request.method == "GET":
            return super().respond(request)
        prompt = len(json.dumps(request.body, ensure_ascii=False).encode()) // BYTES_A_TOKEN
        asked = prompt + request.body.get("max_tokens", 0)
        if asked > self.window >= prompt:
            self.refused += 1
            message = f"This model's maximum context length is {self.window} tokens. You requested {asked} tokens."
            return self._too_long(message)
        return super().respond(request)


@contextmanager
def local_server(window: int, reports: Reports, reply: Replies) -> Iterator[LocalDialect]:
    with Provider() as provider:
        provider.openai = dialect = LocalDialect(provider.openai.url, window, reports(window), reply)
        yield dialect
