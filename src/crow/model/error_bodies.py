"""Finds a provider's own words in the body of an error answer, JSON of many forms or HTML, and makes errors of replies
that are malformed.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from crow.errors import ModelError, ModelRejected, ReplyBroken
from crow.model.endpoint import Endpoint
from crow.model.error_kinds import from_status, names_overflow, overflow
from crow.model.sse import WHOLE, ServerEvent
from crow.visible import made_visible

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
            remedy="Try again; if it stays, base_url or the server is at fault.",
            is_lasting=True,
        )

    def cut_off(self, what: str = "a reply that stops in the middle") -> ReplyBroken:
        """The error for a reply that has begun well and is not whole."""
        provider = self.endpoint.provider
        return ReplyBroken(f"{provider} sent {what}.", provider=provider, remedy="Try again.")

    def ended_oddly(self, reason: str) -> str:
        """A sentence for the person about a reply that is whole and ended for a reason that nobody knows."""
        return f"{self.endpoint.provider} ended its reply for a reason unknown to Crow: {self._excerpt(reason)}."

    def complained(self, body: bytes) -> ModelError:
        """The error for a complaint that came where a reply should be."""
        said = read(body, self.endpoint.scrub)
        return in_stream(self.endpoint.provider, said, self.endpoint.key_name)

    def no_reply(self, body: bytes) -> ModelError:
        """The error for a whole document that is none; only what it complains of may be gone another time."""
        try:
            msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self.unreadable("something that is no part of a reply", body)
        said = read(body, self.endpoint.scrub)
        if said.understood:
            return in_stream(self.endpoint.provider, said, self.endpoint.key_name)
        return self.wrong_place("something that is no reply", body)

    def quoted(self, said: str) -> str:
        """What the provider said, fit to be shown to a person."""
        return shortened(said, self.endpoint.scrub)

    def no_event(self, arrived: ServerEvent) -> ModelError:
        """The error for an event that cannot be read."""
        if arrived.name == b"error":
            return self.complained(arrived.data)
        if arrived.name == WHOLE:
            return self.no_reply(arrived.data)
        return self.unreadable("something that is no part of a reply", arrived.data)

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
            remedy="Check base_url: it should end in the version of the API, such as /v1.",
        )
