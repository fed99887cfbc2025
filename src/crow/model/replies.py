"""Bounds the length of a reply, stops one that repeats itself, and notices a cut request.

Where a server sets no bounds itself, Crow does: how long a reply may get, when it is stopped, and whether the request
was read whole.
"""

import msgspec

from crow.messages import ToolMessage, UserMessage, tokens_of, tokens_of_text, tokens_of_tool
from crow.model.base import CallGrew, ModelEvent, ModelInfo, ModelRequest, Said, Thinking, Usage

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


# --- a reply that has no end

# Small models fall into repeating a passage, and a server on this machine lets them until its window is full. The tail
# of the reply is looked at from time to time, so that a token costs next to nothing.

STEP = 2048
"""Characters after which the tail is looked at again."""
TAIL = 8192
"""Characters that must repeat. What a tool writes into a file may repeat by intention: twice as many there."""
FEWEST = 8
"""Times that the passage must stand in the tail."""
PROBE = 48
TRIES = 8


class ReplyGuard:
    """Stops a reply at a length that no answer has, or when it only repeats itself.

    For one reply. `repeats`: whether repetition is looked for.
    """

    def __init__(self, most: int, *, repeats: bool) -> None:
        self._left = most
        self._most = most
        self._repeats = repeats
        self._pieces: list[str] = []
        self._tail = ""
        self._fresh = 0
        self._in_call = False

    def objection(self, event: ModelEvent) -> str:
        """Why the reply is to be stopped after this event; empty if it may go on."""
        match event:
            case Said(text=text) | Thinking(text=text):
                in_call = False
            case CallGrew(fragment=text):
                in_call = True
            case _:
                return ""
        self._left -= len(text)
        if self._left < 0:
            return f"The reply was stopped: it is longer than {self._most / 2**20:g} MiB (`reply` in [limits])."
        if not self._repeats:
            return ""
        if in_call is not self._in_call:
            self._in_call, self._tail, self._fresh, self._pieces = in_call, "", 0, []
        self._pieces.append(text)
        self._fresh += len(text)
        if self._fresh < STEP:
            return ""
        wanted = TAIL * 2 if in_call else TAIL
        self._tail = (self._tail + "".join(self._pieces))[-wanted:]
        self._fresh, self._pieces = 0, []
        passage = repeated_passage(self._tail) if len(self._tail) == wanted else ""
        if not passage:
            return ""
        shown = " ".join(passage.split())[:60]
        return f"The reply was stopped: it kept repeating itself (“{shown}…”)."


def repeated_passage(tail: str) -> str:
    """What all of the text repeats, at least `FEWEST` times; empty if it does not."""
    probe, end = tail[-PROBE:], len(tail) - 1
    for _ in range(TRIES):
        found = tail.rfind(probe, 0, end)
        period = len(tail) - PROBE - found
        if found < 0 or period * FEWEST > len(tail):
            return ""
        if tail[period:] == tail[:-period]:
            return tail[-period:]
        end = found + PROBE - 1
    return ""


# --- what a server leaves out of a request without a word: noticed from the tokens that it says it has read

LEAST_CUT = 1000
"""Tokens. Some servers count only what they had not read before: such a number is small."""

LARGER_WINDOW = (
    "Give it a larger context window: OLLAMA_CONTEXT_LENGTH (or `num_ctx`) for Ollama, --ctx-size for llama-server, "
    "the context length with which LM Studio loads the model."
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
