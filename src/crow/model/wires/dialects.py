"""The table of what single vendors want in chat completions (how thinking is switched, which fields), known before the
first request and found by host.

Listed is only what costs something if it is learned from a refusal, or cannot be learned because nobody refuses it. The
defaults are what every other server takes.
"""

import re
from collections.abc import Callable
from typing import Literal

import msgspec

from crow.config.hosts import host_of
from crow.model.endpoint import AZURE_HOSTS, OPENAI_HOSTS
from crow.model.wires.encoding import Json

ThoughtField = Literal["reasoning_content", "reasoning", "content"]
"""`content`: as a part of it, beside the text."""


def _effort(model: str, level: str) -> Json:
    return {"reasoning_effort": _value(level)} if level else {}


def _value(level: str) -> str:
    return "none" if level == "off" else level


def _effort_inside(model: str, level: str) -> Json:
    """As gateways take it, which know best what each model behind them wants. They know no `max`."""
    return {"reasoning": {"effort": "xhigh" if level == "max" else _value(level)}} if level else {}


def _switch(model: str, level: str) -> Json:
    return {"thinking": {"type": "disabled" if level == "off" else "enabled"}} if level else {}


def _kimi(model: str, level: str) -> Json:
    takes_effort = level not in ("", "off") and re.search(r"\bk[3-9]", model)
    return _switch(model, level) | (_effort(model, level) if takes_effort else {})


def _deepseek(model: str, level: str) -> Json:
    effort = {"reasoning_effort": "max" if level in ("xhigh", "max") else "high"} if level not in ("", "off") else {}
    return _switch(model, level) | effort


def _zai(model: str, level: str) -> Json:
    if level == "off":
        return {"thinking": {"type": "disabled"}}
    # Said without a level too: only so are the thoughts of earlier turns read, and their tokens found in the cache.
    thinking: Json = {"thinking": {"type": "enabled", "clear_thinking": False}}
    takes_effort = (version := re.search(r"glm-(\d+)(?:\.(\d+))?", model)) and (
        (int(version[1]), int(version[2] or 0)) >= (5, 2)
    )
    return thinking | ({"reasoning_effort": "low" if level == "minimal" else level} if level and takes_effort else {})


def _alibaba(model: str, level: str) -> Json:
    return {"enable_thinking": level != "off"} if level else {}


def _groq(model: str, level: str) -> Json:
    if "qwen" in model and level:
        return {"reasoning_effort": "none" if level == "off" else "default"}
    return _effort(model, level)


def _mistral(model: str, level: str) -> Json:
    return {"reasoning_effort": "none" if level == "off" else "high"} if level else {}


class Dialect(msgspec.Struct, frozen=True):
    level: Callable[[str, str], Json] = _effort
    """The fields that tell a model (its name) how long to think; an empty level leaves it to the vendor."""
    thought_field: ThoughtField = "reasoning_content"
    """For a thought of which was not recorded how it came."""
    fills_thoughts: bool = False
    """A message with calls is refused without a thought; where there is none, a blank is enough."""
    content_beside_calls: bool = True
    """False where a message with calls is refused whose content says nothing; it is left out then."""
    reply_after_results: bool = False
    """A prompt is refused that directly follows the results of calls, as after a turn that was cancelled."""
    limit_field: str = "max_tokens"
    cache_key: bool = False
    """Takes `prompt_cache_key`."""
    marked_models: tuple[str, ...] = ()
    """How the names begin of models whose prompts are cached only up to marks."""
    signature: Literal["", "call", "details"] = ""
    """Where Gemini's signature of a call goes that some other model made."""


GEMINI = re.compile(r"gemini-(?![12]\b)", re.IGNORECASE)
"""Names of models that refuse a call without a signature: Gemini 3 and newer, and what is called latest."""

_OPENAI = Dialect(limit_field="max_completion_tokens", cache_key=True)
_GATEWAY = Dialect(
    level=_effort_inside,
    thought_field="reasoning",
    limit_field="max_completion_tokens",
    marked_models=("anthropic/", "google/", "qwen/"),
    signature="details",
)
_KIMI = Dialect(level=_kimi, fills_thoughts=True, content_beside_calls=False, cache_key=True)
_GOOGLE = Dialect(signature="call")
_ZAI = Dialect(level=_zai)

# A host, or how a host ends.
_BY_HOST = {
    **dict.fromkeys(OPENAI_HOSTS, _OPENAI),
    **{f".{host}": _OPENAI for host in AZURE_HOSTS},
    "openrouter.ai": _GATEWAY,
    "ai-gateway.vercel.sh": _GATEWAY,
    ".snowflakecomputing.com": msgspec.structs.replace(_GATEWAY, marked_models=()),
    "generativelanguage.googleapis.com": _GOOGLE,
    "-aiplatform.googleapis.com": _GOOGLE,
    "aiplatform.googleapis.com": _GOOGLE,
    "api.deepseek.com": Dialect(level=_deepseek, fills_thoughts=True),
    "api.moonshot.ai": _KIMI,
    "api.moonshot.cn": _KIMI,
    "api.kimi.com": _KIMI,
    "api.xiaomimimo.com": Dialect(level=_switch, fills_thoughts=True),
    "api.z.ai": _ZAI,
    "open.bigmodel.cn": _ZAI,
    "api.groq.com": Dialect(level=_groq, thought_field="reasoning"),
    "api.cerebras.ai": Dialect(thought_field="reasoning", cache_key=True),
    "ollama.com": Dialect(thought_field="reasoning"),
    "api.mistral.ai": Dialect(level=_mistral, thought_field="content", reply_after_results=True, cache_key=True),
    "api.x.ai": Dialect(cache_key=True),
    "api.deepinfra.com": Dialect(cache_key=True),
    ".aliyuncs.com": Dialect(level=_alibaba),
}


def dialect_of(url: str) -> Dialect:
    return _known(url) or Dialect()


def is_vendor(url: str) -> bool:
    """Whether an address is that of a vendor who knows its models and the calls that they write."""
    return _known(url) is not None


def _known(url: str) -> Dialect | None:
    host = host_of(url)
    if host in _BY_HOST:
        return _BY_HOST[host]
    return next((row for name, row in _BY_HOST.items() if name[0] in ".-" and host.endswith(name)), None)
