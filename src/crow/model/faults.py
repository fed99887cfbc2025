"""From what a provider answered to our errors: one table for every adapter, and for scripts.

Knows statuses and wordings only, no HTTP library, so that it costs nothing to import.
"""

import http
import re

from crow.errors import CallMalformed, ContextOverflow, ModelError, ModelRefusedKey, ModelRejected, ModelUnavailable
from crow.model.server_faults import remedy_for
from crow.model.window import window_named_in

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
) -> ModelError:
    """The error for an HTTP status. `said` is the provider's own message, `code` its own name for the error, `window`
    the number of tokens that it gave beside its message, `written` the call of its model that it would not pass on."""
    message = f"{provider} answered {_status_words(status)}{_quoted(status, said or code)}"
    clue = f"{code} {said}"

    if status == 413 or _is_overflow(status, clue):
        return ContextOverflow(
            message,
            provider=provider,
            status=status,
            said=said,
            remedy="The conversation no longer fits the model: use /compact, or start a new session.",
            window=window or window_named_in(said),
        )
    if status not in (401, 403, 429) and (remedy := remedy_for(said)):
        return ModelRejected(message, provider=provider, status=status, said=said, remedy=remedy)
    if status == 402 or (status < 500 and NO_MONEY.search(clue)):
        return ModelRejected(
            message, provider=provider, status=status, said=said, remedy="Check the account's credit with the provider."
        )
    if status in (401, 403) or (status == 400 and WRONG_KEY.search(clue)):
        return ModelRefusedKey(
            message, provider=provider, status=status, said=said, remedy=_key_remedy(status, key_name)
        )
    if status == 400 and written:
        return CallMalformed(
            message,
            provider=provider,
            status=status,
            said=said,
            remedy="The model's calls do not fit the tools: try again, or choose another model.",
            written=written,
        )
    if status in TEMPORARY or status >= 500:
        return ModelUnavailable(
            message,
            provider=provider,
            status=status,
            said=said,
            remedy="Try again in a while, or choose another model.",
            retry_after=retry_after,
        )
    return ModelRejected(message, provider=provider, status=status, said=said, remedy=_rejected_remedy(status))


def _is_overflow(status: int, clue: str) -> bool:
    if status in (401, 403, 429) or RATE_LIMIT.search(clue):
        return False
    # Cerebras says nothing at all.
    return OVERFLOW.search(clue) is not None or (status == 400 and not clue.strip())


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
