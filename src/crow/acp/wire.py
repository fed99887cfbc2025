"""The types of ACP v1: every request, answer and update with its fields, Crow's extensions among them. Nothing outside
`crow.acp` and the command line sees these.

Reading is lenient where the protocol is: unknown keys are skipped, `null` counts as left out. `_meta` is never
read as a parameter. Keys become camelCase on the wire; fields that hold their default are not sent.
"""

from typing import Any, Generic, Literal, TypeVar

import msgspec

Facts = TypeVar("Facts")

PROTOCOL_VERSION = 1
NARROWEST, WIDEST = 72, 240
"""Columns of a command's terminal, whatever a client shows: the model reads the output too, and programs cut what does
not fit."""


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class Empty(Wire, frozen=True):
    """Parameters or a result without content. Also what is read of an answer that has nothing for us."""


class CrowMeta(Wire, Generic[Facts], frozen=True):
    """The `_meta` of a message in which Crow's own programs say what the protocol has no field for."""

    crow: Facts


# --- initialize


class FileSystemCapabilities(Wire, frozen=True):
    read_text_file: bool | None = None
    write_text_file: bool | None = None


class ClientAuthCapabilities(Wire, frozen=True):
    terminal: bool | None = None


class ElicitationCapabilities(Wire, frozen=True):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class BooleanOptionCapabilities(Wire, frozen=True):
    boolean: dict[str, Any] | None = None


class ClientSessionCapabilities(Wire, frozen=True):
    config_options: BooleanOptionCapabilities | None = None
    compaction: dict[str, Any] | None = None
    notices: dict[str, Any] | None = None


class ClientCapabilities(Wire, frozen=True):
    fs: FileSystemCapabilities | None = None
    terminal: bool | None = None
    auth: ClientAuthCapabilities | None = None
    elicitation: ElicitationCapabilities | None = None
    session: ClientSessionCapabilities | None = None
    meta: Any = msgspec.field(name="_meta", default=None)
    """`{"terminal_output": true}` from clients that show raw output; anything from others."""


class Implementation(Wire, frozen=True):
    name: str
    version: str
    title: str | None = None


class InitializeRequest(Wire, frozen=True):
    protocol_version: int
    client_capabilities: ClientCapabilities | None = None
    client_info: dict[str, Any] | None = None
    """Not judged: a client that leaves out its version is as welcome as any."""
    meta: Any = msgspec.field(name="_meta", default=None)
    """`ClientFacts` below `crow` from Crow's own programs; anything from others."""


ATTACH_VERSION = 1
"""Of what two Crows say to each other on a socket beyond the protocol. The older of two that differ refuses."""


class RelayFacts(Wire, frozen=True):
    """What two Crows tell each other of themselves when one attaches to the other's sessions."""

    attach: int = 0
    """The version of what they say to each other beyond the protocol; 0 from who is no Crow."""
    version: str = ""
    process: int = 0
    token: str = ""
    """The token of a page that came to `crow web` by a link, and shows it from now on."""
    cwd: str = ""
    """The folder in which `crow web` was started."""
    home: str = ""
    """The person's home, for which `~` stands."""
    page: str = ""
    """Which build of the page `crow web` serves."""


class ClientFacts(RelayFacts, frozen=True):
    """What a client says of itself in `initialize` that the protocol has no capability for."""

    environ: dict[str, str] = {}
    """The environment of a relay's editor, for sessions that are opened for it: bytes, written as Latin-1."""
    changes: bool = False
    """It is told which lines of a diff are changed."""
    choices: bool = False
    """It shows the choices of a question in a form, such as `crow run` does in a terminal."""
    reasons: bool = False
    """It can send the person's words with a rejection: see AnswerFacts."""
    state: bool = False
    """It is told of each change of a session's state."""
    typing: bool = False
    """A person there can type into commands."""
    unattended: bool = False
    """Nobody sits at it, who could answer a question."""
    brief: bool = False
    """It leaves when its prompt is answered, such as `crow run`: its new sessions live with it, not in `crow web`."""


class PromptCapabilities(Wire, frozen=True):
    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class SessionCapabilities(Wire, frozen=True):
    list: Empty | None = None
    resume: Empty | None = None
    fork: Empty | None = None
    close: Empty | None = None
    delete: Empty | None = None
    status: Empty | None = None
    additional_directories: Empty | None = None


class AgentAuthCapabilities(Wire, frozen=True):
    logout: Empty | None = None


class McpCapabilities(Wire, frozen=True):
    """Kinds of MCP servers that a client may hand over, besides those that are started."""

    http: bool = False
    sse: bool = False


class SteeringCapability(Wire, frozen=True, omit_defaults=False):
    """That messages are taken while a turn runs, and what becomes of one that comes while none does."""

    supported: bool = True
    idle_behavior: Literal["promptRequired"] = "promptRequired"


class CapabilityMeta(Wire, frozen=True, omit_defaults=False):
    steering: SteeringCapability = SteeringCapability()


class InitializeMeta(CapabilityMeta, frozen=True, omit_defaults=False):
    crow: RelayFacts | msgspec.UnsetType = msgspec.UNSET
    """What this process says of itself on its own socket."""


class AgentCapabilities(Wire, frozen=True):
    load_session: bool = False
    prompt_capabilities: PromptCapabilities = PromptCapabilities()
    session_capabilities: SessionCapabilities = SessionCapabilities()
    mcp_capabilities: McpCapabilities = McpCapabilities()
    auth: AgentAuthCapabilities = AgentAuthCapabilities()
    meta: CapabilityMeta | None = msgspec.field(name="_meta", default=None)


class AuthMethod(Wire, frozen=True):
    id: str
    name: str
    description: str | None = None
    type: Literal["agent", "terminal"] | None = None
    args: list[str] | None = None


class InitializeResponse(Wire, frozen=True, omit_defaults=False):
    protocol_version: int
    agent_capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]
    agent_info: Implementation
    meta: InitializeMeta = msgspec.field(name="_meta")


class AuthenticateRequest(Wire, frozen=True):
    method_id: str


# --- what can be chosen for a session


class SessionMode(Wire, frozen=True):
    id: str
    name: str
    description: str | None = None


class SessionModes(Wire, frozen=True):
    current_mode_id: str
    available_modes: list[SessionMode]


class ConfigChoice(Wire, frozen=True):
    """A choice; or a group of them, which has `group` and `options` instead of a value."""

    name: str
    value: str | None = None
    description: str | None = None
    group: str | None = None
    options: "list[ConfigChoice] | None" = None


class ConfigOption(Wire, frozen=True, tag_field="type", tag="select"):
    id: str
    name: str
    current_value: str
    options: list[ConfigChoice]
    description: str | None = None
    category: str | None = None


class SetModeRequest(Wire, frozen=True):
    session_id: str
    mode_id: str


class SetConfigOptionRequest(Wire, frozen=True):
    """We have no options of type boolean, so anything but a string is wrong."""

    session_id: str
    config_id: str
    value: str


class SetConfigOptionResponse(Wire, frozen=True):
    config_options: list[ConfigOption]


# --- sessions


class EnvVariable(Wire, frozen=True):
    name: str
    value: str


class HttpHeader(Wire, frozen=True):
    name: str
    value: str


class McpServer(Wire, frozen=True):
    """All transports in one: `type` is absent for stdio in v1."""

    name: str
    type: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[EnvVariable] | None = None
    url: str | None = None
    headers: list[HttpHeader] | None = None


class NewSessionRequest(Wire, frozen=True):
    cwd: str
    mcp_servers: list[McpServer] | None = None
    additional_directories: list[str] | None = None


class LeftOverMessage(Wire, frozen=True):
    message_id: str
    text: str


class LoadFacts(Wire, frozen=True):
    """What a relay says of a session that it opens."""

    proof: str = ""
    """That it knows the key of a `TrustedNotification`."""


class LoadSessionRequest(NewSessionRequest, frozen=True, kw_only=True):
    """Also of `session/resume` and `session/fork`, where it names the source."""

    session_id: str
    meta: Any = msgspec.field(name="_meta", default=None)
    """`LoadFacts` below `crow` from a relay; anything from others."""


class LoadSessionResponse(Wire, frozen=True):
    """Also the answer to `session/resume`."""

    modes: SessionModes | None = None
    config_options: list[ConfigOption] | None = None


class NewSessionResponse(LoadSessionResponse, frozen=True, kw_only=True):
    """Also the answer to `session/fork`."""

    session_id: str


class ReleasedNotification(Wire, frozen=True):
    """`_crow/released`, for relays and clients that follow the state: the process in which a session lived has ended or
    let go of it, and whoever watches may load it again."""

    session_id: str
    reason: str = ""
    """In a sentence."""


class TrustedNotification(Wire, frozen=True):
    """`_crow/trusted`, for relays: the client takes part in the session, and whoever owns that next trusts it too."""

    session_id: str
    key: str
    """Known to trusted clients alone."""


class StatusFacts(Wire, frozen=True):
    state: str
    """running, asks, idle or saved."""
    process: int | None = None
    """The one in which the session lives."""
    clients: list[str] | None = None
    """The names of those that watch it."""


class SessionStatusResponse(Wire, frozen=True):
    status: Literal["open", "saved"]
    meta: CrowMeta[StatusFacts] | None = msgspec.field(name="_meta", default=None)


class ListSessionsRequest(Wire, frozen=True):
    cwd: str | None = None
    cursor: str | None = None


class SessionInfo(Wire, frozen=True):
    session_id: str
    cwd: str
    title: str | None = None
    updated_at: str | None = None
    additional_directories: list[str] | None = None


class ListSessionsResponse(Wire, frozen=True):
    sessions: list[SessionInfo]
    next_cursor: str | None = None


class SessionRequest(Wire, frozen=True):
    """Parameters that name a session only: of `session/cancel`, `session/close`, `session/delete`, and of
    `_crow/released`, by which a process tells relays that it lets go of a session, and whoever watches may go on."""

    session_id: str


# --- content


class Annotations(Wire, frozen=True):
    audience: list[str] | None = None


class TextContent(Wire, frozen=True, gc=False, tag_field="type", tag="text"):  # never in a cycle, and there may be many
    text: str
    annotations: Annotations | None = None


class ImageContent(Wire, frozen=True, tag_field="type", tag="image"):
    data: str
    mime_type: str
    uri: str | None = None
    annotations: Annotations | None = None


class AudioContent(Wire, frozen=True, tag_field="type", tag="audio"):
    data: str
    mime_type: str
    annotations: Annotations | None = None


class ResourceLink(Wire, frozen=True, tag_field="type", tag="resource_link"):
    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None
    size: int | None = None
    annotations: Annotations | None = None


class ResourceContents(Wire, frozen=True):
    """Text or a blob (base64), never both."""

    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class EmbeddedResource(Wire, frozen=True, tag_field="type", tag="resource"):
    resource: ResourceContents
    annotations: Annotations | None = None


ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


# --- the prompt turn


class PromptRequest(Wire, frozen=True):
    session_id: str
    prompt: list[ContentBlock]
    meta: Any = msgspec.field(name="_meta", default=None)
    """`PromptRequestFacts` below `crow` from Crow's own programs; anything from others."""


class PromptRequestFacts(Wire, frozen=True):
    """What a client says of a prompt beyond the protocol."""

    columns: int = 0
    """How wide the client shows the output of commands; 0 if it does not say."""

    @property
    def terminal_width(self) -> int:
        """How wide commands shall write, in columns; 0 if that is not for the client to say."""
        return min(max(self.columns, NARROWEST), WIDEST) if self.columns > 0 else 0


class PromptFacts(Wire, frozen=True):
    """What a program can use of a turn's last words."""

    left_open: str = ""
    """What the person is to go on with: "question" if the model asked them something, "repetition" if the turn was
    broken off because a call was made again and again, "budget" if it was because no money or tokens are left."""
    command: bool = False
    """Crow has answered a command of its own; for clients that follow the session's state."""


class LeftOver(Wire, frozen=True):
    left_over: list[LeftOverMessage]
    """The messages that were accepted into a turn and that the model did not get."""


class PromptMeta(Wire, frozen=True):
    crow: PromptFacts = PromptFacts()
    steering: LeftOver | None = None


class PromptResponse(Wire, frozen=True):
    stop_reason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]
    meta: PromptMeta | None = msgspec.field(name="_meta", default=None)


class SteeringFacts(Wire, frozen=True):
    """What a program can use beside the outcome of a steering request."""

    message_id: str | None = None
    """The id of the message that was accepted."""
    message: str | None = None
    """Why none was, in a sentence."""


class SteeringMeta(Wire, frozen=True):
    steering: SteeringFacts


class SteeringResponse(Wire, frozen=True):
    """The answer to `_session/steering`, an extension that several agents and clients have in common."""

    outcome: Literal["injected", "promptRequired"]
    reason: Literal["noRunningTurn"] | None = None
    """Some clients take no other."""
    meta: SteeringMeta | None = msgspec.field(name="_meta", default=None)


# --- tool calls


class ContentToolContent(Wire, frozen=True, tag_field="type", tag="content"):
    content: ContentBlock


class DiffLines(Wire, frozen=True):
    """Where a diff lies in its file, and which of its lines are changed."""

    old_line: int
    """The line of the file that `oldText` begins with, counted from 1."""
    new_line: int
    changes: list[tuple[int, int, int, int]]
    """Of each change: its first line in `oldText`, counted from 0, how many there are, and the same of `newText`."""


class DiffFacts(Wire, frozen=True):
    diff: DiffLines


class DiffToolContent(Wire, frozen=True, tag_field="type", tag="diff"):
    path: str
    new_text: str
    old_text: str | None = None
    meta: CrowMeta[DiffFacts] | None = msgspec.field(name="_meta", default=None)
    """For clients that have asked for the changes in a diff."""


class TerminalToolContent(Wire, frozen=True, tag_field="type", tag="terminal"):
    terminal_id: str


ToolContent = ContentToolContent | DiffToolContent | TerminalToolContent


class ToolCallLocation(Wire, frozen=True):
    path: str
    line: int | None = None


# --- updates


class MessageChunk(Wire, frozen=True, tag_field="sessionUpdate"):
    content: ContentBlock
    message_id: str | None = None


class UserMessageChunk(MessageChunk, frozen=True, tag="user_message_chunk"):
    pass


class AgentMessageChunk(MessageChunk, frozen=True, tag="agent_message_chunk"):
    pass


class AgentThoughtChunk(MessageChunk, frozen=True, tag="agent_thought_chunk"):
    pass


class CallFacts(Wire, frozen=True):
    answered_by: str | None = None
    """The name of the client in which a question about the call was answered."""
    allowed: bool | None = None
    seconds: float | None = None
    """How long the call took, with the update that tells its end."""
    input: Literal["open"] | None = None
    """The call's command can be typed into."""


class DisplayTerminal(msgspec.Struct, frozen=True):
    """A terminal that the client shows and Crow runs. Zed's extension, and so are its keys."""

    terminal_id: str
    cwd: str


class DisplayTerminalOutput(msgspec.Struct, frozen=True):
    terminal_id: str
    data: str


class DisplayTerminalExit(msgspec.Struct, frozen=True):
    terminal_id: str
    exit_code: int | None
    signal: str | None


class CallMeta(Wire, frozen=True):
    crow: CallFacts | None = None
    terminal_info: DisplayTerminal | None = msgspec.field(name="terminal_info", default=None)
    terminal_output: DisplayTerminalOutput | None = msgspec.field(name="terminal_output", default=None)
    terminal_exit: DisplayTerminalExit | None = msgspec.field(name="terminal_exit", default=None)


class ToolCall(Wire, frozen=True, tag_field="sessionUpdate", tag="tool_call"):
    tool_call_id: str
    title: str
    name: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[ToolContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None
    meta: CallMeta | None = msgspec.field(name="_meta", default=None)


class ToolCallFields(Wire, frozen=True):
    """What may change of a call; also the `toolCall` of a permission request, which has no `sessionUpdate`."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[ToolContent] | None = None
    locations: list[ToolCallLocation] | None = None
    raw_input: Any = None
    raw_output: Any = None


class ToolCallUpdate(ToolCallFields, frozen=True, tag_field="sessionUpdate", tag="tool_call_update"):
    meta: CallMeta | None = msgspec.field(name="_meta", default=None)


class PlanEntry(Wire, frozen=True):
    content: str
    priority: str
    status: str


class Plan(Wire, frozen=True, tag_field="sessionUpdate", tag="plan"):
    entries: list[PlanEntry]


class Cost(Wire, frozen=True):
    amount: float
    currency: str


class UsageUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="usage_update"):
    used: int
    size: int
    cost: Cost | None = None


class CommandInput(Wire, frozen=True):
    hint: str


class AvailableCommand(Wire, frozen=True):
    name: str
    description: str
    input: CommandInput | None = None


class CommandFacts(Wire, frozen=True):
    untrusted: list[str] = []
    """The names of commands of a project that is not trusted yet: not offered, but Crow asks when one is given."""


class AvailableCommandsUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="available_commands_update"):
    available_commands: list[AvailableCommand]
    meta: CrowMeta[CommandFacts] | None = msgspec.field(name="_meta", default=None)


class CurrentModeUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="current_mode_update"):
    current_mode_id: str


class ConfigOptionUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="config_option_update"):
    config_options: list[ConfigOption]


class SessionInfoUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="session_info_update"):
    title: str | None = None
    updated_at: str | None = None


class CompactionUpdate(Wire, frozen=True, tag_field="sessionUpdate", tag="compaction_update"):
    """The summary only with `completed`, the error only with `failed`."""

    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: list[ContentBlock] | None = None
    error: str | None = None


class NoticeFacts(Wire, frozen=True):
    """What a program can use of a notice's sentence."""

    is_wait: bool = False
    """It only says that something is still being waited for."""
    retry_in: float | None = None
    """Seconds until a request is tried again."""


class NoticeMeta(Wire, frozen=True):
    crow: NoticeFacts = NoticeFacts()
    steering: LeftOver | None = None


class Notice(Wire, frozen=True, tag_field="sessionUpdate", tag="notice"):
    severity: str
    title: str
    description: str | None = None
    meta: NoticeMeta | None = msgspec.field(name="_meta", default=None)


Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallUpdate
    | Plan
    | UsageUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | CompactionUpdate
    | Notice
)


class TurnEnd(Wire, frozen=True):
    """How a turn ended: a stop reason or an error."""

    turn: str
    stop_reason: str | None = None
    error: str | None = None
    left_open: str | None = None
    """As in PromptFacts."""


class StateNotification(Wire, frozen=True):
    """`_crow/state`, for clients that know it: what a session is doing, and who watches. See docs/faces.md."""

    session_id: str
    state: str
    turn: str | None = None
    by: str | None = None
    """The name of the client in which the turn was begun."""
    faces: list[str] | None = None
    ended: TurnEnd | None = None
    """How a turn ended, if that is the news: no other message tells it to those who did not begin it."""


class SessionNotification(Wire, frozen=True):
    session_id: str
    update: Update


# --- what we ask of the client


class PermissionOption(Wire, frozen=True):
    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class QuestionFacts(Wire, frozen=True):
    partial: bool = False
    """The changes that it shows can be accepted one by one: see AnswerFacts."""
    reason: bool = False
    """A rejection may have a reason: see AnswerFacts."""


class RequestPermissionRequest(Wire, frozen=True):
    session_id: str
    tool_call: ToolCallFields
    options: list[PermissionOption]
    meta: CrowMeta[QuestionFacts] | None = msgspec.field(name="_meta", default=None)
    """For clients that have asked for the changes in a diff, or can send reasons."""


class PermissionOutcome(Wire, frozen=True):
    """`selected` with an option, `cancelled`, or something a newer client made up: then it is no consent."""

    outcome: str
    option_id: str | None = None


class AnswerFacts(Wire, frozen=True):
    accepted: Any = None
    """The numbers of the changes that the person accepts, over all diffs of the question; all if it is left out.
    Anything else is no answer: what is not understood must not become a yes."""
    input: str = ""
    """`open` if the person wants to type into the command."""
    reason: str = ""
    """Why the person rejects it, for the model."""


class RequestPermissionResponse(Wire, frozen=True):
    outcome: PermissionOutcome
    meta: Any = msgspec.field(name="_meta", default=None)


class FormRequest(Wire, frozen=True):
    """`elicitation/create` with a form."""

    session_id: str
    mode: Literal["form"]
    message: str
    requested_schema: dict[str, Any]
    tool_call_id: str | None = None


class LinkRequest(Wire, frozen=True):
    """`elicitation/create` with an address to open."""

    session_id: str
    mode: Literal["url"]
    message: str
    url: str
    elicitation_id: str
    tool_call_id: str | None = None


class LinkDone(Wire, frozen=True):
    """`elicitation/complete`: what was to be done at the address is done."""

    elicitation_id: str


class FormResponse(Wire, frozen=True):
    action: str
    """`accept`, `decline`, `cancel`, or something newer: then nothing was accepted."""
    content: dict[str, Any] | None = None


class ReadTextFileRequest(Wire, frozen=True):
    session_id: str
    path: str
    line: int | None = None
    limit: int | None = None


class ReadTextFileResponse(Wire, frozen=True):
    content: str


class WriteTextFileRequest(Wire, frozen=True):
    session_id: str
    path: str
    content: str


# --- the client's terminals


class CreateTerminalRequest(Wire, frozen=True):
    session_id: str
    command: str
    args: list[str]
    env: list[EnvVariable]
    cwd: str
    output_byte_limit: int


class CreateTerminalResponse(Wire, frozen=True):
    terminal_id: str


class TerminalRequest(Wire, frozen=True):
    """Of `terminal/output`, `wait_for_exit`, `kill` and `release`."""

    session_id: str
    terminal_id: str


class TerminalExitStatus(Wire, frozen=True):
    """Also the answer to `terminal/wait_for_exit`. A killed command has no code."""

    exit_code: int | None = None
    signal: str | None = None


class TerminalOutputResponse(Wire, frozen=True):
    output: str
    truncated: bool | None = None
    exit_status: TerminalExitStatus | None = None
