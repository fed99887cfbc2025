"""Knows the wordings by which providers say that a request is too long, a key wrong, money or a rate used up, and which
error each becomes.

Knows statuses and wordings only, no HTTP library, so that it costs nothing to import.
"""

import http
import re
from typing import Unpack

from crow.errors import (
    AnswerFields,
    CallMalformed,
    ContextOverflow,
    ModelError,
    ModelRefusedKey,
    ModelRejected,
    ModelUnavailable,
)

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
        remedy = "The model's calls do not fit the tools: try again, or choose another model."
        return CallMalformed(message, remedy=remedy, written=written, **answer)
    if status in TEMPORARY or status >= 500:
        remedy = "Try again in a while, or choose another model."
        return ModelUnavailable(message, remedy=remedy, retry_after=retry_after, **answer)
    return ModelRejected(message, remedy=_rejected_remedy(status), **answer)


def _is_overflow(status: int, clue: str) -> bool:
    return status not in (401, 403, 429) and names_overflow(clue)


def names_overflow(clue: str) -> bool:
    return OVERFLOW.search(clue) is not None and not RATE_LIMIT.search(clue)


def overflow(message: str, window: int | None, **answer: Unpack[AnswerFields]) -> ContextOverflow:
    """The error for a request that is too long; `window` is the number of tokens that came beside the words."""
    remedy = "The conversation no longer fits the model: use /compact, or start a new session."
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
    check = f"check {key_name}" if key_name else "give the provider a key in the configuration"
    if status == 403:
        return f"Run `crow login` or {check}; the key may also lack the right to use this model."
    return f"Run `crow login` or {check}."


def _rejected_remedy(status: int) -> str:
    if status == 404:
        return "Check base_url and the model's name; `crow models` lists those there are."
    if 300 <= status < 400:
        return "Set base_url to the address that the server really has."
    return "Sending the same again would not help: change the request, or choose another model."


# --- what only the owner of a model server can change: how a model was started, or that it was not

WITHOUT_TOOLS = (
    "The model or its template knows no tools, which Crow works with: choose another model. Those that `ollama show "
    "MODEL` lists with the capability `tools` have them."
)

REMEDIES: tuple[tuple[str, str], ...] = (
    (r"does not support tools", WITHOUT_TOOLS),
    (r"requires? --jinja|--jinja flag", "Start llama-server with --jinja: without it, no tools can be used."),
    (
        r"enable-auto-tool-choice|tool-call-parser",
        "Start vLLM with --enable-auto-tool-choice --tool-call-parser NAME; its documentation lists the names.",
    ),
    (
        r"requires more system memory|model failed to load|insufficient system (?:memory|resources)",
        "The machine has too little memory for it: choose a smaller model, or start it with a smaller window.",
    ),
    (
        r"no models? (?:is )?loaded|no model loaded",
        "Load a model in the server first (LM Studio: `lms load`, or its page for developers).",
    ),
    (r"\bmmproj\b", "Start llama-server with --mmproj FILE, the part of the model that sees and hears."),
    (r"try pulling it first", "Run `ollama pull MODEL` first; `crow models` lists those that are there."),
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
