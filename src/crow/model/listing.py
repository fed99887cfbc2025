"""Asks providers which models they have, a server nearby which one it is, and a model whether it answers.

A server on this machine or nearby (llama.cpp, vLLM, LM Studio, Ollama) says how large its window is now: the one that
it was started with, or loaded the model with, and not what the model was made for. A vendor is never asked for that.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast, get_args

import msgspec

from crow.config.settings import Limits, ProviderSettings, ThoughtLevel
from crow.errors import ModelError, ModelRejected, ModelUnavailable
from crow.messages import Text, UserMessage
from crow.model import catalog
from crow.model.base import ModelInfo, ModelRequest, Price
from crow.model.endpoint import find_endpoint
from crow.model.facts import Facts
from crow.model.http import Http
from crow.timeouts import timeout

LIST_TIMEOUT = 20.0
"""Seconds without a byte; a listing is a small thing."""

# Where servers say how much fits: OpenRouter, vLLM, Groq, Together, LM Studio, Mistral, Gemini, …
WINDOW_FIELDS = (
    "context_length",
    "max_model_len",
    "context_window",
    "max_context_length",
    "max_input_tokens",
    "inputTokenLimit",
)


NO_LIST = (404, 405, 501)
"""What a server answers that has models but no list of them."""

LONGEST_NAME = 300

Entry = dict[str, Any]


class Listing(msgspec.Struct):
    data: list[Any] | None = None
    """Null with a server that has nothing loaded."""
    models: list[Any] | None = None
    """Gemini's and Ollama's own lists."""


async def list_models(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> list[ModelInfo]:
    """The provider's models by name, with what it says of them; the same errors as a reply would give."""
    providers = {provider: settings}
    if settings.type == "scripted":
        return [catalog.describe(f"{provider}/{name}", providers) for name in settings.models]
    listed = await list_facts(provider, settings, environ)
    return [catalog.describe(f"{provider}/{name}", providers, facts) for name, facts in listed.items()]


async def list_facts(provider: str, settings: ProviderSettings, environ: Mapping[str, str]) -> dict[str, Facts]:
    """The same, as the provider alone says it."""
    path = "/models?limit=1000" if settings.type == "anthropic" else "/models"
    connection = Http(find_endpoint(provider, settings, environ), idle=LIST_TIMEOUT, environ=environ)
    try:
        body = await connection.get(path)
    finally:
        await connection.close()
    try:
        listing: Listing | list[Any] = msgspec.json.decode(body, type=Listing | list[Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise connection.unreadable("something that is not a list of models") from error
    entries = listing if isinstance(listing, list) else listing.data or listing.models or []
    if entries and not any(isinstance(entry, dict) for entry in entries):
        raise connection.unreadable("something that is not a list of models")
    return {name: facts_in(entry) for entry in entries if (name := _name(entry))}


def _name(entry: Any) -> str:
    """Empty if it is no entry of a model, or has a name that nobody could type."""
    fields = cast("Entry", entry) if isinstance(entry, dict) else {}
    for field in ("id", "name", "model"):
        if isinstance(name := fields.get(field), str) and name:
            name = name.removeprefix("models/")  # Gemini
            return name if name.isprintable() and len(name) <= LONGEST_NAME else ""
    return ""


def facts_in(entry: Entry) -> Facts:
    levels = _levels(entry)
    return Facts(
        window=_window(entry),
        output=_output(entry),
        images=_sees(entry),
        audio=_hears(entry),
        thinks=True if levels else _thinks(entry),
        levels=levels,
        price=_price(entry),
        source="list",
    )


def _window(entry: Entry) -> int | None:
    places: list[Any] = [entry, entry.get("meta"), entry.get("top_provider")]
    for place in places:
        match place:
            case {**fields}:
                for field in (*WINDOW_FIELDS, "n_ctx", "n_ctx_train"):  # the last two: llama.cpp
                    if isinstance(size := fields.get(field), int) and size > 0:
                        return size
            case _:
                pass
    return None


def _output(entry: Entry) -> int | None:
    match entry:
        case {"top_provider": {"max_completion_tokens": int(tokens)}}:  # OpenRouter
            return tokens
        case {"max_completion_tokens": int(tokens)}:  # Groq
            return tokens
        case {"max_input_tokens": int(), "max_tokens": int(tokens)}:  # Anthropic
            return tokens
        case _:
            return None


def _sees(entry: Entry) -> bool | None:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:  # OpenRouter
            return "image" in kinds
        case {"capabilities": {"vision": bool(sees)}}:  # Mistral
            return sees
        case {"capabilities": {"image_input": {"supported": bool(sees)}}}:  # Anthropic
            return sees
        case _:
            return None


def _hears(entry: Entry) -> bool | None:
    match entry:
        case {"architecture": {"input_modalities": [*kinds]}}:
            return "audio" in kinds
        case _:
            return None


def _thinks(entry: Entry) -> bool | None:
    match entry:
        case {"supported_parameters": [*parameters]}:  # OpenRouter
            return "reasoning" in parameters
        case {"capabilities": {"thinking": {"supported": bool(thinks)}}}:  # Anthropic
            return thinks
        case _:
            return None


def _levels(entry: Entry) -> tuple[str, ...] | None:
    match entry:
        case {"capabilities": {"effort": {"supported": True, **efforts}}}:  # Anthropic
            return tuple(level for level in get_args(ThoughtLevel) if _is_supported(efforts.get(level)))
        case _:
            return None


def _is_supported(ability: Any) -> bool:
    match ability:
        case {"supported": True}:
            return True
        case _:
            return False


def _price(entry: Entry) -> Price | None:
    """OpenRouter's, in dollars for a token, as text; less than nothing where it depends."""
    match entry:
        case {"pricing": {"prompt": str(into), "completion": str(out), **more}}:
            try:
                costs = [float(cost) * 1_000_000 for cost in (into, out)]
                read = float(more.get("input_cache_read") or into) * 1_000_000
                written = float(more.get("input_cache_write") or into) * 1_000_000
            except (TypeError, ValueError):
                return None
            prices = [round(price, 6) for price in (*costs, read, written)]
            readable = all(0 <= price < 1e12 for price in prices)
            return Price(prices[0], prices[1], prices[2], prices[3], "USD") if readable else None
        case _:
            return None


# --- one tiny request to a model: the only way to know that it answers

# A list of models proves little. Some are public, so that any key gets one, and not every model on it is for everybody.

TRIAL_TIMEOUT = 60.0
"""Seconds; a server on this machine may have to load the model first."""
LONGEST_ANSWER = 16
"""Tokens. Some servers refuse a limit of one."""

CUT_OFF = r"max_tokens or model output limit was reached"
"""How OpenAI words it that a model was still thinking when its tokens were used up: it did answer."""

QUESTION = ModelRequest("", (UserMessage((Text("Say hi."),)),))


async def try_model(name: str, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]) -> None:
    """Returns if the model answered, raises what a reply would raise. Nothing is tried twice."""
    info = msgspec.structs.replace(catalog.describe(name, providers), max_output=LONGEST_ANSWER)
    settings = providers.get(info.provider)
    if settings is None or settings.type == "scripted":
        return
    model = catalog.create(name, providers, Limits(stream_idle=TRIAL_TIMEOUT), environ, info)
    try:
        async with timeout(TRIAL_TIMEOUT), contextlib.aclosing(model.reply(QUESTION)) as events:
            async for _ in events:
                pass
    except ModelRejected as error:
        if not re.search(CUT_OFF, error.said, re.IGNORECASE):
            raise
    except TimeoutError:
        raise ModelUnavailable(
            f"{info.provider} did not finish a short answer within {TRIAL_TIMEOUT:g} s.", provider=info.provider
        ) from None
    finally:
        await model.close()


# --- what a server nearby says of itself

REPORT_TIMEOUT = 5.0
"""Seconds without a byte of what a server says of itself."""

Kind = Literal["llama.cpp", "Ollama", "LM Studio", "vLLM"]
_VERSION = re.compile(r"/v\d\w*$")
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
    connection = Http(replace(endpoint, url=_VERSION.sub("", endpoint.url)), idle=REPORT_TIMEOUT, environ=environ)
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
