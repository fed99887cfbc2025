"""What a server leaves out of a request without a word: noticed from the tokens that it says it has read."""

from crow.messages import ToolMessage, UserMessage
from crow.model.base import ModelRequest, Usage
from crow.tokens import tokens_of, tokens_of_text, tokens_of_tool

LEAST_CUT = 1000
"""Tokens. Some servers count only what they had not read before: such a number is small."""

LARGER_WINDOW = (
    "Give it a larger window: OLLAMA_CONTEXT_LENGTH (or `num_ctx`) for Ollama, --ctx-size for llama-server, the "
    "context length with which LM Studio loads the model."
)


def silent_loss(name: str, request: ModelRequest, usage: Usage, *, first: bool) -> str:
    """What was lost, with the remedy; empty if nothing seems to be. `first`: nothing was read before this request."""
    words = tokens_of_text(request.system) + sum(map(tokens_of, request.messages))
    tools = sum(map(tokens_of_tool, request.tools))
    read = usage.input_tokens
    if not read or any(has_media(message) for message in request.messages):
        return ""
    # The estimate is high, by a third or so: half of it is less than any tokenizer makes of the text.
    if LEAST_CUT < read < words // 2:
        return (
            f"{name} read only {read:,} of about {words + tools:,} tokens: its server cut the request. {LARGER_WINDOW}"
        )
    if first and read < words and read < (words + tools) // 2:
        return (
            f"{name} read {read:,} of about {words + tools:,} tokens: its template seems to leave out the tools. "
            "Use a template or a model with tools (llama-server: --jinja, --chat-template-file)."
        )
    return ""


def has_media(message: object) -> bool:
    match message:
        case UserMessage(parts=parts):
            return any(not hasattr(part, "text") for part in parts)
        case ToolMessage(images=images):
            return bool(images)
        case _:
            return False
