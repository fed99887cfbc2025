"""What is known of a model without asking anyone: the packaged catalogue of windows and prices, and what its name
suggests.

The catalogue, `facts.json`, is made by `scripts/catalogue.py` and read with the first question. A wrong fact costs an
error from the provider, so a price counts only where the vendor itself is asked, and the window of a model that anyone
can run only where it does not run on this machine or next to it.
"""

import functools
import os.path
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

import msgspec

from crow.config.hosts import host_of, is_nearby
from crow.model.base import Price

Source = Literal["", "name", "catalogue", "list", "server", "config"]

_TABLE = os.path.join(os.path.dirname(__file__), "facts.json")

_CLOSED = ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com", "api.x.ai")
"""Vendors whose models run nowhere else: their names mean the same behind every gateway."""
_OPEN = (
    "api.mistral.ai",
    "api.deepseek.com",
    "api.moonshot.ai",
    "api.z.ai",
    "api.minimax.io",
    "dashscope-intl.aliyuncs.com",
)

_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one source knows of a model. None: it does not say."""

    window: int | None = None
    """Tokens of a request, with its reply unless that is `apart`."""
    output: int | None = None
    apart: bool = False
    """The reply has room of its own beside the window."""
    images: bool | None = None
    audio: bool | None = None
    thinks: bool | None = None
    levels: tuple[str, ...] | None = None
    price: Price | None = None
    responses_only: bool = False
    """It answers on the Responses wire and on no other."""
    source: Source = ""
    """Where the window is from; without one, the first that knows anything."""

    def over(self, other: "Facts") -> "Facts":
        """These facts, completed by what the other source knows."""
        # A list that counts the reply's room in says nothing against the limit of a request.
        window = other if self.window is None or (other.apart and self.source == "list") else self
        return Facts(
            window=window.window,
            output=self.output or other.output,
            apart=window.apart,
            images=other.images if self.images is None else self.images,
            audio=other.audio if self.audio is None else self.audio,
            thinks=other.thinks if self.thinks is None else self.thinks,
            levels=other.levels if self.levels is None else self.levels,
            price=self.price or other.price,
            responses_only=self.responses_only or other.responses_only,
            source=window.source or self.source or other.source,
        )


class _Row(msgspec.Struct, frozen=True, array_like=True):
    """A model in the catalogue; its header says what the cells are."""

    window: int | None
    output: int | None
    abilities: str
    levels: str
    price: tuple[float, ...]
    long: tuple[float, ...] = ()

    def facts(self, *, priced: bool) -> Facts:
        return Facts(
            window=self.window,
            output=self.output,
            apart="a" in self.abilities,
            images="s" in self.abilities,
            audio="h" in self.abilities,
            thinks="t" in self.abilities,
            levels=tuple(self.levels.split()),
            price=self._price() if priced else None,
            responses_only="r" in self.abilities,
            source="catalogue",
        )

    def _price(self) -> Price | None:
        if not self.price:
            return None
        read, written, cached, cache_write = self.price
        long = Price(*self.long[1:5], currency="USD") if self.long else None  # pyright: ignore[reportCallIssue] -- four
        above = int(self.long[0]) if self.long else 0
        return Price(read, written, cached, cache_write, "USD", above, long)


class _Table(msgspec.Struct, frozen=True):
    vendors: dict[str, dict[str, _Row]]


def known_facts(model: str, base_url: str) -> Facts:
    """What the catalogue has of a model at this address, else what its name suggests."""
    return _in_catalogue(model, base_url) or _suggested(model)


def _in_catalogue(model: str, base_url: str) -> Facts | None:
    vendor = _table().get(host_of(base_url), {})
    for name in (model, _DATE.sub("", model), f"{_DATE.sub('', model)}-latest"):
        if name in vendor:
            return vendor[name].facts(priced=True)
    found = _by_name(_CLOSED).get(_plain(model))
    if found is None and not is_nearby(base_url):
        found = _by_name(_OPEN).get(_plain(model))
    return found.facts(priced=False) if found else None


def _suggested(model: str) -> Facts:
    family = family_of(model)
    if family is None:
        return Facts()
    return Facts(
        window=family.context_window,
        output=family.max_output,
        images=family.images,
        audio=family.audio,
        thinks=bool(family.thought_levels),
        levels=family.thought_levels,
        source="name",
    )


@functools.cache
def _table() -> dict[str, dict[str, _Row]]:
    with open(_TABLE, "rb") as file:
        return msgspec.json.decode(file.read(), type=_Table).vendors


@functools.cache
def _by_name(vendors: tuple[str, ...]) -> dict[str, _Row]:
    return {_plain(name): row for name, row in _rows(vendors)}


def _rows(vendors: tuple[str, ...]) -> Iterator[tuple[str, _Row]]:
    """The vendor of the first ones wins, as it is the one that made the model."""
    for vendor in reversed(vendors):
        yield from _table()[vendor].items()


def _plain(model: str) -> str:
    """A model's name as every gateway has it: `anthropic/claude-sonnet-4.5:beta` is `claude-sonnet-4-5`."""
    name = re.sub(r"(-v\d+)?(:.*)?$", "", model.rsplit("/", 1)[-1].lower(), count=1)
    return _DATE.sub("", re.sub(r"^([a-z]+\.)+(?=claude)", "", name)).replace(".", "-")


# --- what a name suggests, where neither the configuration, nor the vendor's list, nor the catalogue knows the model

# Only facts that matter to a conversation: how much fits, whether the model sees, how long it can be told to think. A
# wrong guess costs an error from the provider, so what is not certain is left open.


class Family(NamedTuple):
    pattern: str
    """Compiled with its first use: all of them would be a tenth of our start-up."""
    context_window: int | None = None
    images: bool = True
    audio: bool = False
    max_output: int | None = None
    """Only Anthropic's API insists on a limit, so only its models have one here."""
    thought_levels: tuple[str, ...] = ()


def _family(
    pattern: str,
    context_window: int | None = None,
    *,
    images: bool = True,
    audio: bool = False,
    max_output: int | None = None,
    levels: str = "",
) -> Family:
    # Names come as `gpt-4o`, `openai/gpt-4o`, `us.anthropic.claude-…`: a family may begin after any separator.
    name = rf"(?:^|[/.:_-]){pattern}"
    return Family(name, context_window, images, audio, max_output, tuple(levels.split()))


LONGEST_NAME = 200
"""Characters of a model's name that tell its family."""
# The first match counts: the particular before the general.
FAMILIES = (
    _family(r"claude-3-(opus|sonnet|haiku)", 200_000, max_output=4_096),
    _family(r"claude-3[-.]5", 200_000, max_output=8_192),
    _family(r"claude-3[-.]7", 200_000, max_output=64_000, levels="off low medium high"),
    _family(r"claude-opus-4(-0|-1|-2025|$)", 200_000, max_output=32_000, levels="off low medium high"),
    _family(r"claude-\w+-4([-.]5|-0|-2025|@|$)", 200_000, max_output=64_000, levels="off low medium high"),
    _family(r"claude", 200_000, max_output=64_000, levels="low medium high"),
    _family(r"gpt-4o-audio", 128_000, images=False, audio=True),
    _family(r"gpt-4o", 128_000),
    _family(r"gpt-4\.1", 1_047_576),
    _family(r"gpt-5[\w.-]*-(chat|pro)", 272_000),
    _family(r"gpt-5[\w.-]*-codex", 272_000, levels="low medium high"),
    _family(r"gpt-5\.1", 272_000, levels="off low medium high"),
    _family(r"gpt-5\.", 272_000, levels="off low medium high xhigh"),
    _family(r"gpt-5", 272_000, levels="minimal low medium high"),
    _family(r"gpt-[6-9]", 272_000, levels="off low medium high xhigh"),
    _family(r"gpt-oss", 131_072, images=False, levels="low medium high"),
    _family(r"o3-mini", 200_000, images=False, levels="low medium high"),
    _family(r"o[34](-|$)", 200_000, levels="low medium high"),
    _family(r"gemini-(1|2\.0)", 1_048_576, audio=True),
    _family(r"gemini", 1_048_576, audio=True, levels="low medium high"),
    _family(r"gemma-?3-?(270m|1b|:1b)", images=False),  # the small ones are text only
    _family(r"gemma-?3", 131_072),
    _family(r"llama-?4"),
    _family(r"kimi-for-coding", 262_144),
    _family(r"openrouter/auto$", 200_000),  # any model may answer: the smallest of those that usually do
    _family(r"(llava|pixtral|moondream|internvl)"),
    _family(r"vl(-|:|$)"),  # qwen2.5-vl, deepseek-vl
    _family(r"qwen[\d.]*vl"),  # Ollama's spelling
)


def family_of(model: str) -> Family | None:
    name = model[:LONGEST_NAME]
    return next((family for family in FAMILIES if re.search(family.pattern, name, re.IGNORECASE)), None)
