"""Every setting of config.toml with its type and default, how budgets such as "0.50 USD" are read, and the vendors that
Crow knows by name. The names are fixed: users' files and the documentation rely on them.
"""

import os.path
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from crow.config.hosts import is_on_this_machine

Decision = Literal["allow", "ask", "deny"]
"""What a rule, or a mode where no rule says otherwise, decides about an action."""
Mode = Literal["ask", "edit", "plan", "auto"]
"""What may be done without asking; `crow.policy.base` says what each of them does."""
MODES: tuple[Mode, ...] = get_args(Mode)

ThoughtLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How long a model may think. Each model has some of them, or none."""

AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
SecondsOrNone = Annotated[float, msgspec.Meta(ge=0)]
MebiBytes = Annotated[float, msgspec.Meta(gt=0, le=1024)]
Money = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
"""With an end: a sum that is infinite could not be told to an editor."""


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    context_window: AtLeastOne | None = None
    max_output: AtLeastOne | None = None
    images: bool | None = None
    audio: bool | None = None
    thought_levels: list[ThoughtLevel] | None = None
    """An empty list says that the model has none."""
    price_input: Money | None = None
    """Prices are for a million tokens."""
    price_output: Money | None = None
    price_cached: Money | None = None
    """Of what was read from the provider's cache; without it, that costs as much as other input."""
    price_cache_write: Money | None = None
    """The same for what was written to it."""
    currency: str = "USD"


KEY_HEADERS = ("authorization", "x-api-key", "api-key")


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    type: Literal["openai", "anthropic", "scripted"]
    base_url: str = ""
    api_key_env: str = ""
    api_key: str = ""
    api_key_command: str = ""
    """A line for the shell that prints the key: for keys that expire."""
    api_key_header: str = ""
    """The header that carries the key, where the server wants it in another than usual."""
    headers: dict[str, str] = {}
    """Sent with every request; `${NAME}` in a value stands for a variable."""
    extra_body: dict[str, Any] = {}
    """Goes into the body of every request to a model, over what Crow would write there."""
    wire: Literal["chat", "responses", ""] = ""
    """For `openai`: which of its two APIs the server speaks; empty leaves it to the address and to refusals."""
    script: str = ""
    """For `scripted`: the script's path, relative to the file that names it."""
    record: str = ""
    """For `scripted`: a file that gets every request it was sent, one JSON object a line."""
    models: dict[str, ModelSettings] = {}

    @property
    def has_credentials(self) -> bool:
        """Whether the configuration itself says how requests are to be allowed."""
        in_headers = any(name.lower() in KEY_HEADERS for name in self.headers)
        return bool(self.api_key or self.api_key_env or self.api_key_command) or in_headers


class TerminalSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    use_client: bool = True
    timeout: Seconds = 120


class WebSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    search: str = ""
    url: str = ""
    api_key_env: str = ""
    api_key: str = ""
    allow_private: list[str] = []


class McpServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    type: Literal["stdio", "http", "sse", ""] = ""
    headers: dict[str, str] = {}
    mcp_start: Seconds | None = None
    mcp_call: Seconds | None = None


TOOLS = (
    "read",
    "write",
    "edit",
    "find",
    "search",
    "terminal",
    "terminal_read",
    "terminal_stop",
    "plan",
    "ask",
    "web_fetch",
    "web_search",
    "task",
    "leave_plan",
    "find_tools",
    "mcp_resources",
)
"""The tools that a rule can name, beside those of servers (`mcp__server__tool`)."""


class PermissionRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    decision: Decision
    command: str | None = None
    path: str | None = None
    host: str | None = None
    digest: str | None = None
    """Only in what Crow remembers: the rule is for a tool as it was when the person allowed it."""


class PermissionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: list[PermissionRule] = []


STREAM_IDLE = 120
FIRST_TOKEN = 600


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, but for `model_calls` and `reply`."""

    model_calls: AtLeastOne = 100
    retry_wait: SecondsOrNone = 120
    stream_idle: Seconds = STREAM_IDLE
    first_token: Seconds | None = None
    """What a server on this machine may take before its reply begins: it may have to load the model and to read a long
    prompt first. 600, unless `stream_idle` was lowered: then as long as that."""
    reply: MebiBytes = 4
    """The longest text of one reply."""
    mcp_start: Seconds = 3
    mcp_late: Seconds = 120
    mcp_call: Seconds = 60

    def first_token_at(self, url: str) -> float:
        """Seconds that the server at this address may take before its reply begins."""
        if not is_on_this_machine(url):
            return self.stream_idle
        usual = FIRST_TOKEN if self.stream_idle >= STREAM_IDLE else self.stream_idle
        return self.first_token or max(usual, self.stream_idle)


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts such as "0.50 USD" or "200k tokens", see `parse_amount`; empty: no limit."""

    turn: str = ""
    session: str = ""
    day: str = ""


class ChatSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How `crow chat` behaves in the terminal."""

    notify: Literal["bell", "desktop", "off"] = "bell"
    notify_after: SecondsOrNone = 10
    """Seconds without a key after which a question, or the end of a turn, is told so."""


class FacesSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What several clients of one session have to do with each other, and with `crow web`."""

    home: Literal["web", "here"] = "web"
    """Where new sessions of an editor live while a `crow web` runs: there, or in the editor's own Crow."""
    questions: Annotated[int, msgspec.Meta(ge=1, le=60 * 24 * 365)] = 720
    """Minutes for which a question waits in `crow web` while no client is there."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str = ""
    mode: Mode = "ask"
    providers: dict[str, ProviderSettings] = {}
    terminal: TerminalSettings = TerminalSettings()
    web: WebSettings = WebSettings()
    mcp_servers: dict[str, McpServerSettings] = {}
    permission: PermissionSettings = PermissionSettings()
    limits: Limits = Limits()
    budget: BudgetSettings = BudgetSettings()
    chat: ChatSettings = ChatSettings()
    faces: FacesSettings = FacesSettings()


# --- an amount of money or tokens, as a budget states it: "0.50 USD", "200k tokens"

TOKENS = "tokens"

# A comma parts thousands: before any other number of digits it is a decimal comma, which would make 150 of 1,50.
_AMOUNT = re.compile(r"((?:[1-9]\d{0,2}(?:,\d{3})+|\d[\d_]*)(?:\.\d+)?) ?([kKM]?) ?(tokens?|[A-Z]{3})", re.ASCII)
_AMOUNT_FACTORS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_LARGEST_AMOUNT = 1e12


class Amount(msgspec.Struct, frozen=True):
    value: float
    unit: str
    """A currency's three letters, or `TOKENS`."""

    def __str__(self) -> str:
        return shown_amount(self.value, self.unit)


def parse_amount(key: str, written: str) -> Amount:
    """ValueError names the key, and says what was expected."""
    found = _AMOUNT.fullmatch(written.strip())
    unit = found[3].replace("tokens", "token").replace("token", TOKENS) if found else ""
    value = float(re.sub("[_,]", "", found[1])) * _AMOUNT_FACTORS[found[2]] if found else 0.0
    if found is None or (found[2] and unit != TOKENS):
        comma = " (decimals are written with a point)" if "," in written else ""
        raise ValueError(f'{key}: expected an amount like "0.50 USD" or "200k tokens"{comma}, found {written[:100]!r}')
    if not 0 < value <= _LARGEST_AMOUNT:
        raise ValueError(f"{key}: expected more than nothing, and an amount that can be spent, found {written[:100]!r}")
    return Amount(value, unit)


def amounts_of(settings: BudgetSettings) -> dict[str, tuple[Amount, ...]]:
    """By `turn`, `session` and `day`. ValueError as above."""
    written = {"turn": settings.turn, "session": settings.session, "day": settings.day}
    return {scope: (parse_amount(f"budget.{scope}", text),) for scope, text in written.items() if text}


def shown_amount(value: float, unit: str) -> str:
    """For people: a small sum of money with as many digits as it takes to be something."""
    if unit == TOKENS:
        return f"{value:,.0f} {unit}"
    digits = 2 if value >= 1 or value == 0 or round(value, 2) == round(value, 6) else 4
    return f"{value:,.{digits}f} {unit}"


# --- the vendors that Crow knows by name, whose address and usual variable need not be configured

_REGION = re.compile(r"[a-z0-9-]+")


class Vendor(msgspec.Struct, frozen=True):
    title: str
    type: Literal["openai", "anthropic"]
    base_url: str
    key_variable: str
    default_model: str
    """Chosen when nothing else says which: good at code, and a name that outlives a release where there is one."""
    keys_page: str
    """Where a person gets a key."""
    other_variables: tuple[str, ...] = ()
    """Further names of the variable, under which people have the same key."""
    address_variable: str = ""
    """Holds another address that the same key is meant for, such as a gateway's."""
    region: str = ""
    """The part of the address that is another one in each region."""
    region_variables: tuple[str, ...] = ()
    """Hold the region, if one is set."""
    key_has_other_uses: bool = False
    """The variable is set by people who never meant it for a model: a server on this machine goes before it."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return (self.key_variable, *self.other_variables)

    def variable_in(self, environ: Mapping[str, str]) -> str:
        """The variable that holds a key; empty if none does."""
        return next((name for name in self.key_variables if environ.get(name, "").strip()), "")

    def address_in(self, environ: Mapping[str, str]) -> str:
        """Where the key in the vendor's variable is meant for."""
        if self.address_variable and (address := environ.get(self.address_variable)):
            return address
        region = next(filter(None, map(environ.get, self.region_variables)), "")
        return self.base_url.replace(self.region, region) if _REGION.fullmatch(region) else self.base_url

    def is_at(self, address: str) -> bool:
        """Whether the vendor answers there, in whichever region."""
        if not self.region:
            return address == self.base_url
        before, after = self.base_url.split(self.region)
        region = address.removeprefix(before).removesuffix(after)
        return address == f"{before}{region}{after}" and _REGION.fullmatch(region) is not None


def _read_vendors() -> dict[str, Vendor]:
    with open(os.path.join(os.path.dirname(__file__), "vendors.json"), "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Vendor])


VENDORS = _read_vendors()
"""In the order in which their variables are looked for."""
