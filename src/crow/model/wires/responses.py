"""The Responses API, OpenAI's newer one: the only way to its newest models with both tools and reasoning."""

from crow.errors import ModelRejected
from crow.model.base import ModelInfo, ModelRequest
from crow.model.endpoint import Endpoint
from crow.model.reply_faults import ReplyFaults
from crow.model.wires.exchange import Lesson
from crow.model.wires.learning import Learned, RefusalPattern, without_projector
from crow.model.wires.responses_reply import ReplyReader
from crow.model.wires.responses_request import encode

REFUSALS = (
    RefusalPattern(
        "responses.summary",
        r"verified to generate reasoning summaries",
        "{provider} shows no thoughts of {model}: OpenAI wants the organization verified before it does.",
    ),
    RefusalPattern("responses.summary", r"reasoning\.summary"),
    RefusalPattern(
        "responses.stream",
        r"verified to stream",
        "{provider} sends replies of {model} only whole: OpenAI wants the organization verified before it streams.",
    ),
    RefusalPattern(
        "responses.effort",
        r"reasoning[._]effort|effort level|'(none|minimal|low|medium|high|xhigh|max)' is not supported",
        "{provider} does not take the thought level {level} for {model}: it is left out.",
        of_level=True,
    ),
    # What was sealed for another account or model, or lost what followed it: better without than no answer.
    RefusalPattern(
        "responses.thoughts",
        r"required following item|of type '?reasoning|could not be (verified|decrypted)",
        "{provider} did not take back the earlier thoughts of {model}: they are left out from now on.",
    ),
    RefusalPattern("responses.sealed", r"encrypted[ _]content"),
    RefusalPattern("responses.reasoning", r"(unsupported|unknown|unrecognized|extra)[^.]*\breasoning\b"),
    RefusalPattern("responses.cache_key", r"prompt_cache_key"),
    without_projector("responses.images"),
    RefusalPattern(
        "responses.images",
        r"image[^.]*not supported|not support[^.]*image|input_image",
        "{model} takes no images: they are left out.",
    ),
)


class ResponsesWire:
    path = "/responses"

    def __init__(self, info: ModelInfo, place: Endpoint) -> None:
        self._info = info
        self._learned = Learned(place, info.model)

    def encode(self, request: ModelRequest) -> bytes:
        return encode(self._info, request, self._learned)

    def reader(self, faults: ReplyFaults) -> ReplyReader:
        return ReplyReader(faults)

    def learn(self, error: ModelRejected, request: ModelRequest) -> Lesson | None:
        notice = self._learned.learn(error, REFUSALS, request.thought_level)
        return None if notice is None else Lesson(self, notice)
