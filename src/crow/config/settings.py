"""What can be configured, and its defaults. The names are fixed: users' files and the documentation rely on them."""

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
    mcp_start: Seconds = 10
    mcp_late: Seconds = 120
    mcp_call: Seconds = 60

    def first_token_at(self, url: str) -> float:
        """Seconds that the server at this address may take before its reply begins."""
        if not is_on_this_machine(url):
            return self.stream_idle
        usual = FIRST_TOKEN if self.stream_idle >= STREAM_IDLE else self.stream_idle
        return self.first_token or max(usual, self.stream_idle)


class BudgetSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Amounts such as "0.50 USD" or "200k tokens", see `crow.config.amounts`; empty: no limit."""

    turn: str = ""
    session: str = ""
    day: str = ""


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
