"""How long a reply may get: what a window has room for, told to servers that would go on for ever."""

import msgspec

from crow.model.base import ModelInfo, ModelRequest
from crow.tokens import tokens_of, tokens_of_text, tokens_of_tool

REPLY = 8_192
"""Tokens that are kept free for the reply, where the model's longest is not known."""

FRAME = 8
"""What a template may put around a message, beyond what is estimated for it."""
SPARE = 64


def reply_room(info: ModelInfo, window: int) -> int:
    """Tokens of the window that are kept free for the reply."""
    return 0 if info.room_apart else min(info.max_output or REPLY, window // 4)


def tokens_of_request(request: ModelRequest) -> int:
    """Estimated, rather too high than too low."""
    tools = sum(map(tokens_of_tool, request.tools))
    return tokens_of_text(request.system) + tools + sum(tokens_of(message) + FRAME for message in request.messages)


def with_limit(request: ModelRequest, info: ModelInfo) -> ModelRequest:
    """The request with the longest reply that fits beside it, where the server has no limit of its own."""
    window = info.context_window
    if not info.needs_limit or window is None:
        return request
    taken = tokens_of_request(request)
    longest = info.max_output or max(REPLY, window // 4)
    # The estimate may be too high, but a request that is sent was found to leave room for a reply.
    limit = max(reply_room(info, window), min(longest, window - taken - SPARE))
    return msgspec.structs.replace(request, max_output=limit)
