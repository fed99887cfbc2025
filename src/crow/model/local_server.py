"""Asks a model server on this machine or nearby (llama.cpp, vLLM, LM Studio, Ollama) which one it is, and how large its
window is now.

The window is the one that the server was started with, or loaded the model with, and not what the model was made for.
A vendor is never asked.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

import msgspec

from crow.config.settings import ProviderSettings
from crow.errors import ModelError
from crow.model.endpoint import find_endpoint
from crow.model.http import Http

REPORT_TIMEOUT = 5.0
"""Seconds without a byte of what a server says of itself."""

Kind = Literal["llama.cpp", "Ollama", "LM Studio", "vLLM"]
VERSION = re.compile(r"/v\d\w*$")
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class ServerReport(msgspec.Struct, frozen=True):
    kind: Kind
    window: int | None = None
    """None while the model is not loaded."""
    takes_tools: bool = True
    """False if the model's template leaves out the tools."""

    @property
    def ends_replies(self) -> bool:
        """Whether a reply has a longest length although no request says so."""
        return self.kind == "vLLM"


async def ask_server(
    provider: str, settings: ProviderSettings, model: str, environ: Mapping[str, str]
) -> ServerReport | None:
    """None if it is none of the servers that are known here, or does not answer."""
    endpoint = find_endpoint(provider, settings, environ)
    # What these servers say of themselves lies beside the API, not below its version.
    connection = Http(replace(endpoint, url=VERSION.sub("", endpoint.url)), idle=REPORT_TIMEOUT, environ=environ)
    try:
        answers = await asyncio.gather(
            _get(connection, "/props"),
            _get(connection, "/v1/models"),
            _get(connection, "/api/ps"),
            _get(connection, "/api/v0/models"),
        )
        props, listed, running, loaded = answers
        report = llama_cpp(props) or lm_studio(loaded, model) or vllm(listed, model) or llama_cpp_listed(listed, model)
        if report is None and (report := ollama(running, model)) is not None and report.window is None:
            report = ollama_shown(await _post(connection, "/api/show", {"model": model}))
        return report
    finally:
        await connection.close()


async def _get(connection: Http, path: str) -> Any:
    try:
        return msgspec.json.decode(await connection.get(path))
    except (ModelError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None


async def _post(connection: Http, path: str, body: dict[str, str]) -> Any:
    try:
        return msgspec.json.decode(await connection.ask(path, msgspec.json.encode(body)))
    except (ModelError, msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def llama_cpp(props: Any) -> ServerReport | None:
    """From `/props`. The window is that of one slot: several requests at once share what the server has."""
    match props:
        case {"default_generation_settings": {"n_ctx": int(window)}}:
            caps = props.get("chat_template_caps")
            takes_tools = not isinstance(caps, dict) or cast("dict[str, Any]", caps).get("supports_tools") is not False
            return ServerReport("llama.cpp", _usable(window), takes_tools)
        case _:
            return None


def llama_cpp_listed(listed: Any, model: str) -> ServerReport | None:
    """From `/v1/models`, where a server keeps its `/props` to itself."""
    match _entry(listed, "data", model):
        case {"meta": {"n_ctx": int(window)}}:
            return ServerReport("llama.cpp", _usable(window))
        case _:
            return None


def vllm(listed: Any, model: str) -> ServerReport | None:
    match _entry(listed, "data", model):
        case {"max_model_len": int(window)}:
            return ServerReport("vLLM", _usable(window))
        case _:
            return None


def lm_studio(loaded: Any, model: str) -> ServerReport | None:
    match _entry(loaded, "data", model):
        case {"state": "loaded", "loaded_context_length": int(window)}:
            return ServerReport("LM Studio", _usable(window))
        case {"state": str(), "max_context_length": int()}:
            return ServerReport("LM Studio")
        case _:
            return None


def ollama(running: Any, model: str) -> ServerReport | None:
    """From `/api/ps`, which lists what is loaded."""
    match running:
        case {"models": [*entries]}:
            found = _same(entries, model)
            window = found.get("context_length") if found else None
            return ServerReport("Ollama", _usable(window) if isinstance(window, int) else None)
        case _:
            return None


def ollama_shown(shown: Any) -> ServerReport:
    """From `/api/show`: what the model's file asks for. What the model was made for says nothing of what it gets."""
    match shown:
        case {"parameters": str(parameters)} if found := NUM_CTX.search(parameters):
            return ServerReport("Ollama", _usable(int(found[1])))
        case _:
            return ServerReport("Ollama")


def _usable(window: int) -> int | None:
    return window if window > 0 else None


def _entry(listing: Any, field: str, model: str) -> dict[str, Any] | None:
    match listing:
        case {**fields} if isinstance(entries := fields.get(field), list):
            return _same(cast("list[Any]", entries), model)
        case _:
            return None


def _same(entries: Sequence[Any], model: str) -> dict[str, Any] | None:
    """The entry of that name; Ollama's have a tag, which may be left out."""
    names = (model, f"{model}:latest")
    for entry in entries:
        match entry:
            case {"id": str(name)} | {"name": str(name)} | {"model": str(name)} if name in names:
                return cast("dict[str, Any]", entry)
            case _:
                continue
    return None
