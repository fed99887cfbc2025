"""Turns what a provider answered into our errors: where its own words stand in a body, and what they mean.

Providers say in many wordings that a request is too long, a key wrong, money or a rate used up; a body is JSON of many
forms, or HTML.
"""

import http
import re
from collections.abc import Callable
from typing import Any, Unpack, cast

import msgspec

from crow.errors import (
    AnswerFields,
    CallMalformed,
    ContextOverflow,
    ModelError,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
    ReplyBroken,
)
from crow.model.endpoint import Endpoint
from crow.model.sse import WHOLE, ServerEvent
from crow.visible import made_visible

# What is worth sending again unchanged; every status from 500 on is, too.
TEMPORARY = frozenset({408, 409, 425, 429})

# How servers word it that a conversation no longer fits. Only some of them have a code for it.
OVERFLOW = re.compile(
    "|".join(
        (
            r"context_length_exceeded",  # OpenAI's code
            r"maximum context length",  # OpenAI, vLLM, Mistral
            r"exceeds? the context (window|length|limit)",  # OpenAI, Ollama
            r"prompt is too long",  # Anthropic
            r"exceed context limit",  # Anthropic: the input and max_tokens together
            r"exceed_context_size_error",  # llama.cpp's type
            r"exceeds the available context size",  # llama.cpp
            r"context (size|length|window) (has been )?exceeded",  # llama.cpp and LM Studio, with a status of 500
            r"longer than the maximum model length",  # vLLM
            r"prompt too long",  # Ollama
            r"exceed(s|ed) max(imum)? context length",  # Ollama
            r"loaded with context length of only",  # LM Studio
            r"greater than the context length",  # LM Studio
            r"exceeds the maximum number of tokens allowed",  # Gemini
            r"reduce the length of the messages",  # Groq, older OpenAI
            r"maximum prompt length is",  # xAI
            r"exceeded model token limit",  # Kimi
            r"context window exceeds limit",  # MiniMax
            r"exceeds the limit of \d+",  # Copilot
            r"input is too long",  # Bedrock
            r"range of input length should be",  # Alibaba
            r"too_many_prompt_tokens|length of all messages is too long",  # Perplexity
            r"longer than the model's context length",
            r"maximum allowed input length",
            r"tokens in request more than max tokens",
        )
    ),
    re.IGNORECASE,
)

RATE_LIMIT = re.compile(r"rate.?limit", re.IGNORECASE)
"""Which is about tokens too, of a minute."""

# OpenAI answers 429 to an empty account too; waiting does not fill it.
NO_MONEY = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance is too low|exceeded_current_quota_error"
    r"|insufficient (account )?balance|please recharge|in arrears",
    re.IGNORECASE,
)

# xAI and Google answer 400 to a wrong key.
WRONG_KEY = re.compile(r"(incorrect|invalid) api key|api key (not valid|expired|not found)|API_KEY_INVALID", re.I)


def from_status(
    provider: str,
    status: int,
    said: str = "",
    *,
    code: str = "",
    retry_after: float | None = None,
    key_name: str = "",
    window: int | None = None,
    written: str = "",
    silence_is_overflow: bool = False,
) -> ModelError:
    """The error for an HTTP status. `said` is the provider's own message, `code` its own name for the error, `window`
    the number of tokens that it gave beside its message, `written` the call of its model that it would not pass on.
    `silence_is_overflow`: a 400 without a word is how this provider says that a request is too long."""
    message = f"{provider} answered {_status_words(status)}{_quoted(status, said or code)}"
    answer: AnswerFields = {"provider": provider, "status": status, "said": said}
    clue = f"{code} {said}"

    silent = silence_is_overflow and status == 400 and not clue.strip()
    if status == 413 or silent or _is_overflow(status, clue):
        return overflow(message, window, **answer)
    if status not in (401, 403, 429) and (remedy := remedy_for(said)):
        return ModelRejected(message, remedy=remedy, **answer)
    if status == 402 or (status < 500 and NO_MONEY.search(clue)):
        return ModelRejected(message, remedy="Check the account's credit with the provider.", **answer)
    if status in (401, 403) or (status == 400 and WRONG_KEY.search(clue)):
        return ModelRefusedKey(message, remedy=_key_remedy(status, key_name), **answer)
    if status == 400 and written:
        remedy = "The model's calls do not match the tools. Try again, or choose another model."
        return CallMalformed(message, remedy=remedy, written=written, **answer)
    if status in TEMPORARY or status >= 500:
        remedy = "Try again later, or choose another model."
        return ModelUnavailable(message, remedy=remedy, retry_after=retry_after, **answer)
    return ModelRejected(message, remedy=_rejected_remedy(status), **answer)


def _is_overflow(status: int, clue: str) -> bool:
    return status not in (401, 403, 429) and names_overflow(clue)


def names_overflow(clue: str) -> bool:
    return OVERFLOW.search(clue) is not None and not RATE_LIMIT.search(clue)


def overflow(message: str, window: int | None, **answer: Unpack[AnswerFields]) -> ContextOverflow:
    """The error for a request that is too long; `window` is the number of tokens that came beside the words."""
    remedy = "The conversation no longer fits the model. Use /compact or start a new session."
    return ContextOverflow(message, remedy=remedy, window=window or window_named_in(answer.get("said", "")), **answer)


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:  # such as Anthropic's 529
        return "Overloaded" if status == 529 else ""


def _status_words(status: int) -> str:
    phrase = _phrase(status)
    return f"{status} ({phrase})" if phrase else str(status)


def _quoted(status: int, said: str) -> str:
    if phrase := _phrase(status):
        said = said.removeprefix(f"{status} {phrase}").lstrip()  # which many pages begin with
    said = said.rstrip(".")
    return f": {said}." if said else "."


def _key_remedy(status: int, key_name: str) -> str:
    check = f"check {key_name}" if key_name else "set a key for the provider in config.toml"
    if status == 403:
        return f"Run `crow login` or {check}; the key may also not be allowed to use this model."
    return f"Run `crow login` or {check}."


def _rejected_remedy(status: int) -> str:
    if status == 404:
        return "Check base_url and the model's name. `crow models` lists the models available."
    if 300 <= status < 400:
        return "Set base_url to the server's real address."
    return "Sending it again would not help. Change the request or choose another model."


# --- what only the owner of a model server can change: how a model was started, or that it was not

WITHOUT_TOOLS = (
    "This model does not support tools, which Crow needs. Choose one for which `ollama show MODEL` lists the "
    "capability `tools`."
)

REMEDIES: tuple[tuple[str, str], ...] = (
    (r"does not support tools", WITHOUT_TOOLS),
    (r"requires? --jinja|--jinja flag", "Start llama-server with --jinja: tools do not work without it."),
    (
        r"enable-auto-tool-choice|tool-call-parser",
        "Start vLLM with --enable-auto-tool-choice --tool-call-parser NAME; its documentation lists the names.",
    ),
    (
        r"requires more system memory|model failed to load|insufficient system (?:memory|resources)",
        "Not enough memory. Choose a smaller model, or start it with a smaller context window.",
    ),
    (
        r"no models? (?:is )?loaded|no model loaded",
        "Load a model in the server first (LM Studio: `lms load`, or its Developer tab).",
    ),
    (r"\bmmproj\b", "Start llama-server with --mmproj FILE, which lets the model see and hear."),
    (r"try pulling it first", "Run `ollama pull MODEL` first. `crow models` lists the models available."),
)
"""What the server said, and what helps. Some answer so with a status of 500, as if another attempt could succeed."""


def remedy_for(said: str) -> str:
    """What helps against such a complaint; empty if it is none of these."""
    return next((remedy for pattern, remedy in REMEDIES if re.search(pattern, said, re.IGNORECASE)), "")


# --- the window that a refusal names

SMALLEST_WINDOW, LARGEST_WINDOW = 256, 100_000_000
"""Tokens. A number beyond these is something else."""

NUMBER = r"(\d[\d,_]{0,20})"

# The number that is the window, and not the one that says how long the request was.
WINDOW = re.compile(
    "|".join(
        (
            rf"maximum (?:context|prompt|model|sequence|input|allowed input) length (?:is|of) (?:only )?{NUMBER}",
            rf"maximum context length \({NUMBER}\)",
            rf"exceeds the available context size \({NUMBER}",  # llama.cpp
            rf"context (?:length|window|size) of (?:only )?{NUMBER}",  # LM Studio, Ollama
            rf"context (?:length|window|size) exceeded: \d+ > {NUMBER}",
            rf"longer than the model's context length \({NUMBER}",
            rf"maximum number of tokens allowed \({NUMBER}",  # Gemini
            rf"{NUMBER} tokens? maximum|> {NUMBER} maximum",  # Anthropic
            rf"exceed context limit: [\d\s+]*> {NUMBER}",  # Anthropic: the input and max_tokens together
            rf"exceeded model token limit: {NUMBER}",  # Kimi
            rf"exceeds the limit of {NUMBER}",  # Copilot
            rf"range of input length should be \[\d+, {NUMBER}\]",  # Alibaba
            rf"\bn_ctx\b\W+{NUMBER}",
        )
    ),
    re.IGNORECASE,
)


def window_named_in(said: str) -> int | None:
    """The window that a refusal names; None if it names none."""
    for found in WINDOW.finditer(said):
        number = next(group for group in found.groups() if group)
        tokens = int(number.replace(",", "").replace("_", ""))
        if SMALLEST_WINDOW <= tokens <= LARGEST_WINDOW:
            return tokens
    return None


# --- the provider's own words in the body of an answer

LONGEST = 64 * 1024
"""Bytes of an answer in which a complaint is looked for."""
LONGEST_QUOTE = 300
"""Characters of it that are shown."""

# Errors that arrive inside a stream have a name instead of a status.
STATUS_OF_NAME = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "api_error": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

_TAG = re.compile(r"<[^<>]*>")
_UNSEEN = ("script", "style")

Scrub = Callable[[str], str]
"""Takes the secrets out of a text. Every reader below needs one, and uses it before it shortens anything."""


class ErrorDetails(msgspec.Struct, frozen=True):
    said: str
    name: str = ""
    """The provider's own name for the error, if it has one."""
    status: int | None = None
    window: int | None = None
    """How many tokens fit, where it is told beside the words, as by llama.cpp."""
    written: str = ""
    """What the provider's own model wrote for a call that it would not pass on."""
    understood: bool = True
    """False if it came in no shape that a complaint has; `said` is then all there was."""


def read(body: bytes, scrub: Scrub) -> ErrorDetails:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ErrorDetails(shortened(_words(body.decode("utf-8", "replace")), scrub), understood=False)
    return from_json(value, scrub)


def from_json(value: Any, scrub: Scrub) -> ErrorDetails:
    """From `{"error": {"message": …}}`, `{"error": "…"}`, `{"message": …}`, `{"detail": …}` or a list of such."""
    match value:
        case [first, *_]:
            return from_json(first, scrub)
        case {"error": inner} if inner and not isinstance(inner, str):
            return from_json(inner, scrub)
        case {"error": str(said)} | {"message": str(said)} | {"msg": str(said)} | {"detail": str(said)}:
            fields = cast("dict[str, Any]", value)
            name, status = _name_and_status(fields)
            return ErrorDetails(
                shortened(_with_place(_deepest(said, fields), fields), scrub),
                shortened(name, scrub),
                status,
                _window(fields),
                _text(fields.get("failed_generation")),
            )
        case {"detail": [*several]}:  # FastAPI: what vLLM and others say to a wrong request
            return from_json(several, scrub)
        case {"message": {"detail": [*several]}}:  # Mistral: the same as if it were a text
            return from_json(several, scrub)
        case _:
            said = msgspec.json.encode(value).decode() if value else ""
            return ErrorDetails(shortened(said, scrub), understood=False)


def _deepest(said: str, fields: dict[str, Any]) -> str:
    """A gateway's own words say little: those of the provider behind it, and the details, are what helps."""
    match fields:
        case {"metadata": {"raw": str(raw), **more}} if raw.strip():  # OpenRouter
            behind = _text(more.get("provider_name"))
            return f"{behind}: {_said_in(raw)}" if behind else _said_in(raw)
        case {"details": [{"message": str(detail)}, *_]} if detail and detail not in said:  # Azure
            return f"{said.rstrip('.')}: {detail}"
        case _:
            return said


def _said_in(raw: str) -> str:
    """The words in a complaint that was put into another one, as JSON or as it was."""
    return read(raw.encode("utf-8", "replace"), lambda text: text).said


def _with_place(said: str, fields: dict[str, Any]) -> str:
    match fields:
        case {"loc": ["body", *place] | [*place], "msg": str()} if place:
            return f"{'.'.join(str(step) for step in place)}: {said}"
        case _:
            return said


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def in_stream(provider: str, details: ErrorDetails, key_name: str = "") -> ModelError:
    """The error for a complaint that came where a reply should be."""
    status = details.status or STATUS_OF_NAME.get(details.name)
    if status is None:
        said = details.said or details.name or "no reason given"
        message = f"{provider} reported an error instead of a reply: {said.rstrip('.')}."
        if names_overflow(said):
            return overflow(message, details.window, provider=provider, said=details.said)
        remedy = "Try again, or choose another model."
        return ReplyBroken(message, provider=provider, said=details.said, remedy=remedy, is_lasting=True)
    return from_status(
        provider,
        status,
        details.said,
        code=details.name,
        key_name=key_name,
        window=details.window,
        written=details.written,
    )


def _name_and_status(fields: dict[str, Any]) -> tuple[str, int | None]:
    """`code` is a number with some servers, a name with others; `type` is the next best name."""
    code, kind = fields.get("code"), fields.get("type")
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    names = [name for name in (code, kind) if isinstance(name, str)]
    known = [name for name in names if name in STATUS_OF_NAME]
    return (known or names or [""])[0], status


def _window(fields: dict[str, Any]) -> int | None:
    size = fields.get("n_ctx")
    return size if isinstance(size, int) and size > 0 else None


def _words(page: str) -> str:
    """What a page says; its title only if it says nothing else, as most repeat it."""
    whole = page
    for name in _UNSEEN:
        whole = _without_element(whole, name)
    body = _TAG.sub(" ", _without_element(whole, "head"))
    return body if body.strip() else _TAG.sub(" ", whole)


def _without_element(page: str, name: str) -> str:
    """A page without all that stands between the tags of an element, as far as it is closed."""
    ends = list(re.finditer(rf"</{name}\s*>", page, re.IGNORECASE))
    pieces: list[str] = []
    place = number = 0
    for opening in re.finditer(rf"<{name}\b", page, re.IGNORECASE):
        while number < len(ends) and ends[number].start() < opening.start():
            number += 1
        if number < len(ends) and opening.start() >= place:
            pieces.append(page[place : opening.start()])
            place = ends[number].end()
    return " ".join([*pieces, page[place:]])


def shortened(text: str, scrub: Scrub, longest: int = LONGEST_QUOTE) -> str:
    text = made_visible(" ".join(scrub(text).split()))
    return text if len(text) <= longest else text[: longest - 1] + "…"


LONGEST_EXCERPT = 80


class ReplyErrors:
    """Errors about the answers of one endpoint, without its secrets."""

    endpoint: Endpoint

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def unreadable(self, what: str, quoted: bytes | str = "") -> ReplyBroken:
        """The error for a reply that is not whole, or not understood; another attempt may succeed."""
        provider = self.endpoint.provider
        excerpt = f": {self._excerpt(quoted)}" if quoted else ""
        return ReplyBroken(
            f"{provider} sent {what}{excerpt}.",
            provider=provider,
            remedy="Try again. If it happens again, check base_url and the server.",
            is_lasting=True,
        )

    def cut_off(self, what: str = "an incomplete reply") -> ReplyBroken:
        """The error for a reply that has begun well and is not whole."""
        provider = self.endpoint.provider
        return ReplyBroken(f"{provider} sent {what}.", provider=provider, remedy="Try again.")

    def ended_oddly(self, reason: str) -> str:
        """A sentence for the person about a reply that is whole and ended for a reason that nobody knows."""
        return f"{self.endpoint.provider} ended its reply for an unknown reason: {self._excerpt(reason)}."

    def complained(self, body: bytes) -> ModelError:
        """The error for a complaint that came where a reply should be."""
        said = read(body, self.endpoint.scrub)
        return in_stream(self.endpoint.provider, said, self.endpoint.key_name)

    def no_reply(self, body: bytes) -> ModelError:
        """The error for a whole document that is none; only what it complains of may be gone another time."""
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self.unreadable("something that is not part of a reply", body)
        said = read(body, self.endpoint.scrub)
        if said.understood:
            return in_stream(self.endpoint.provider, said, self.endpoint.key_name)
        return self.wrong_place("something that is not a reply", body)

    def quoted(self, said: str) -> str:
        """What the provider said, fit to be shown to a person."""
        return shortened(said, self.endpoint.scrub)

    def no_event(self, arrived: ServerEvent) -> ModelError:
        """The error for an event that cannot be read."""
        if arrived.name == b"error":
            return self.complained(arrived.data)
        if arrived.name == WHOLE:
            return self.no_reply(arrived.data)
        return self.unreadable("something that is not part of a reply", arrived.data)

    def _excerpt(self, quoted: bytes | str) -> str:
        """The beginning of something unreadable, to give an idea of it."""
        text = quoted[:LONGEST]
        if isinstance(text, bytes):
            text = text.decode("utf-8", "replace")
        return shortened(text, self.endpoint.scrub, LONGEST_EXCERPT)

    def wrong_place(self, what: str, quoted: bytes = b"") -> ModelRejected:
        """The error for an answer that no address of such an API gives."""
        excerpt = f": {self._excerpt(quoted)}" if quoted else ""
        return ModelRejected(
            f"{self.endpoint.provider} answered with {what} at {self.endpoint.shown_url}{excerpt}.",
            provider=self.endpoint.provider,
            remedy="Check base_url. It should end in the API version, such as /v1.",
        )
