"""Our wire types beside the protocol's own schema, the unstable one: a new release shows up as a list of differences.

Every known difference is listed with its reason. A line in the failure that is not listed is something to decide.
"""

import enum
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from crow.acp import wire
from crow.acp.agent import EXTENSIONS, Agent, LazyHost
from crow.messages import StopReason
from crow.results import ToolKind
from tests.conformance import digest

SAME_THING = {
    "Annotations": "Annotations",
    "AgentCapabilities": "AgentCapabilities",
    "AgentMessageChunk": "SessionUpdate agent_message_chunk",
    "AgentThoughtChunk": "SessionUpdate agent_thought_chunk",
    "AudioContent": "ContentBlock audio",
    "AuthMethod": "AuthMethod terminal",
    "AgentAuthCapabilities": "AgentAuthCapabilities",
    "AuthenticateRequest": "AuthenticateRequest",
    "AvailableCommand": "AvailableCommand",
    "AvailableCommandsUpdate": "SessionUpdate available_commands_update",
    "CommandInput": "UnstructuredCommandInput",
    "ConfigChoice": "SessionConfigSelectOption",
    "ConfigOption": "SessionConfigOption select",
    "ConfigOptionUpdate": "SessionUpdate config_option_update",
    "Cost": "Cost",
    "CurrentModeUpdate": "SessionUpdate current_mode_update",
    "ListSessionsRequest": "ListSessionsRequest",
    "ListSessionsResponse": "ListSessionsResponse",
    "LoadSessionRequest": "LoadSessionRequest",
    "LoadSessionResponse": "LoadSessionResponse",
    "SessionInfo": "SessionInfo",
    "SessionInfoUpdate": "SessionUpdate session_info_update",
    "SessionMode": "SessionMode",
    "SessionStatusResponse": "SessionStatusResponse",
    "CompactionUpdate": "SessionUpdate compaction_update",
    "Notice": "SessionUpdate notice",
    "SessionModes": "SessionModeState",
    "SessionRequest": "DeleteSessionRequest",
    "SetConfigOptionRequest": "SetSessionConfigOptionRequest value_id",
    "SetConfigOptionResponse": "SetSessionConfigOptionResponse",
    "SetModeRequest": "SetSessionModeRequest",
    "BooleanOptionCapabilities": "SessionConfigOptionsCapabilities",
    "ClientAuthCapabilities": "AuthCapabilities",
    "ClientCapabilities": "ClientCapabilities",
    "ClientSessionCapabilities": "ClientSessionCapabilities",
    "ContentToolContent": "ToolCallContent content",
    "DiffToolContent": "ToolCallContent diff",
    "ElicitationCapabilities": "ElicitationCapabilities",
    "EmbeddedResource": "ContentBlock resource",
    "EnvVariable": "EnvVariable",
    "FileSystemCapabilities": "FileSystemCapabilities",
    "FormRequest": "CreateElicitationRequest form",
    "LinkRequest": "CreateElicitationRequest url",
    "LinkDone": "CompleteElicitationNotification",
    "McpCapabilities": "McpCapabilities",
    "HttpHeader": "HttpHeader",
    "ImageContent": "ContentBlock image",
    "Implementation": "Implementation",
    "InitializeRequest": "InitializeRequest",
    "InitializeResponse": "InitializeResponse",
    "McpServer": "McpServer stdio",
    "NewSessionRequest": "NewSessionRequest",
    "NewSessionResponse": "NewSessionResponse",
    "PermissionOption": "PermissionOption",
    "Plan": "SessionUpdate plan",
    "PlanEntry": "PlanEntry",
    "PromptCapabilities": "PromptCapabilities",
    "PromptRequest": "PromptRequest",
    "PromptResponse": "PromptResponse",
    "ReadTextFileRequest": "ReadTextFileRequest",
    "ReadTextFileResponse": "ReadTextFileResponse",
    "RequestPermissionRequest": "RequestPermissionRequest",
    "RequestPermissionResponse": "RequestPermissionResponse",
    "ResourceContents": "TextResourceContents",
    "ResourceLink": "ContentBlock resource_link",
    "SessionCapabilities": "SessionCapabilities",
    "SessionNotification": "SessionNotification",
    "CreateTerminalRequest": "CreateTerminalRequest",
    "CreateTerminalResponse": "CreateTerminalResponse",
    "TerminalToolContent": "ToolCallContent terminal",
    "TerminalExitStatus": "TerminalExitStatus",
    "TerminalOutputResponse": "TerminalOutputResponse",
    "TerminalRequest": "TerminalOutputRequest",
    "TextContent": "ContentBlock text",
    "ToolCall": "SessionUpdate tool_call",
    "ToolCallFields": "ToolCallUpdate",
    "ToolCallLocation": "ToolCallLocation",
    "ToolCallUpdate": "SessionUpdate tool_call_update",
    "UsageUpdate": "SessionUpdate usage_update",
    "UserMessageChunk": "SessionUpdate user_message_chunk",
    "WriteTextFileRequest": "WriteTextFileRequest",
}
OURS_ALONE = {
    "CrowMeta": "where what we say beside the protocol stands",
    "AnswerFacts": "what a client says beside the answer to a question",
    "ClientFacts": "what a client says of itself that is no capability of the protocol",
    "CapabilityMeta": "where extensions are advertised",
    "InitializeMeta": "the same, with what a process says on its own socket",
    "LeftOver": "an extension: messages that no turn took",
    "LeftOverMessage": "one of them",
    "LoadFacts": "what a relay says of a session that its client has seen",
    "PromptRequestFacts": "what a client says of a prompt",
    "RelayFacts": "what two processes say of each other",
    "TrustedNotification": "an extension between processes: a client may take part in a session",
    "ReleasedNotification": "an extension between processes: a session no longer lives where it did",
    "TurnEnd": "an extension: how a turn ended that others watch",
    "StatusFacts": "what we say of a session beside its status",
    "SteeringCapability": "an extension: messages into a running turn",
    "SteeringFacts": "what we say of such a message",
    "SteeringMeta": "where that stands",
    "SteeringResponse": "the answer to one",
    "CallFacts": "what we say of a call beside its display",
    "CallMeta": "where that stands",
    "CommandFacts": "what we say of a list of commands: those of a project that is not trusted",
    "DiffFacts": "what we say of a diff beside its texts",
    "DiffLines": "the same",
    "DisplayTerminal": "an extension of Zed's, in a call's `_meta`",
    "DisplayTerminalExit": "the same",
    "DisplayTerminalOutput": "the same",
    "Empty": "any result without content",
    "FormResponse": "there is a type for each action; we read an unknown one as not accepted",
    "MessageChunk": "what the three chunks share",
    "NoticeFacts": "what we say of a notice beside its sentence",
    "NoticeMeta": "where that stands",
    "PermissionOutcome": "there is a type for each outcome; we read an unknown one as no consent",
    "PromptFacts": "what we say of a turn's end beside its stop reason",
    "PromptMeta": "where that stands",
    "QuestionFacts": "what we say of a question beside its options",
    "StateNotification": "an extension: what a session is doing",
    "Wire": "the base of all",
}
KNOWN = {
    # what we have and the schema has not
    "ResourceContents.blob: only ours": "text and blob are one type here, two there",
    "ConfigChoice.group: only ours": "a choice and a group of them are one type here, two there",
    "ConfigChoice.options: only ours": "a choice and a group of them are one type here, two there",
    "McpServer.type: only ours": "all transports are one type here",
    "McpServer.url: only ours": "all transports are one type here",
    "McpServer.headers: only ours": "all transports are one type here",
    # what is required there and may be left out here
    "ConfigChoice.value: required only there": "a group has none",
    "LoadSessionRequest.mcpServers: required only there": "lenient, and optional in resume and fork",
    "NewSessionRequest.mcpServers: required only there": "lenient: absent and null mean none",
    "McpServer.command: required only there": "all transports are one type here",
    "McpServer.args: required only there": "lenient, and absent for the other transports",
    "McpServer.env: required only there": "lenient, and absent for the other transports",
    "AuthMethod.type: the schema does not know ['agent']": "both kinds of methods are one type here",
    "AuthMethod.type: required only there": "absent for methods that the agent handles itself",
    "TerminalOutputResponse.truncated: required only there": "lenient",
    "ResourceContents.text: required only there": "text and blob are one type here",
    "InitializeResponse.agentCapabilities: required only here": "we always say what we can",
    "InitializeResponse.authMethods: required only here": "always sent, even if empty",
    "InitializeResponse.agentInfo: required only here": "we always say who we are",
    "CreateTerminalRequest.args: required only here": "we always say it",
    "CreateTerminalRequest.cwd: required only here": "we always say it",
    "CreateTerminalRequest.env: required only here": "we always say it",
    "CreateTerminalRequest.outputByteLimit: required only here": "we always say it",
    "FormRequest.sessionId: required only here": "whatever we ask belongs to a session",
    "LinkRequest.sessionId: required only here": "whatever we ask belongs to a session",
    # what the schema has and we do not use
    "AgentAuthCapabilities.status: only theirs": "unstable: auth/status",
    "ClientCapabilities.subagents: only theirs": "unstable: a subagent is one call",
    "FormRequest.requestId: only theirs": "whatever we ask belongs to a session",
    "LinkRequest.requestId: only theirs": "whatever we ask belongs to a session",
    "ListSessionsRequest.archived: only theirs": "unstable: session/archive",
    "LoadSessionRequest.systemPrompt: only theirs": "unstable, and not advertised",
    "NewSessionRequest.systemPrompt: only theirs": "unstable, and not advertised",
    "SessionCapabilities.archive: only theirs": "unstable: session/archive",
    "SessionCapabilities.systemPrompt: only theirs": "unstable",
    "SessionCapabilities.title: only theirs": "unstable: session/set_title",
    "SessionInfo.archived: only theirs": "unstable: session/archive",
    "ToolCallFields.name: only theirs": "said once, with the call",
    "ToolCallUpdate.name: only theirs": "said once, with the call",
    "McpCapabilities.acp: only theirs": "servers inside the protocol are not settled yet",
    "AgentCapabilities.providers: only theirs": "unstable",
    "Annotations.lastModified: only theirs": "not used",
    "Annotations.priority: only theirs": "not used",
    "AuthMethod.env: only theirs": "the login needs none",
    "ClientCapabilities.plan: only theirs": "unstable",
    "PromptResponse.usage: only theirs": "unstable",
}
NOT_SERVED = {
    "auth/status": "unstable",
    "session/archive": "unstable",
    "session/unarchive": "unstable",
    "session/set_title": "unstable; there is the command /rename",
    "providers/list": "unstable",
    "providers/set": "unstable",
    "providers/disable": "unstable",
    "mcp/message": "unstable",
}


def our_types() -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(wire).items()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == wire.__name__
    }


def our_fields(struct: Any) -> dict[str, tuple[bool, Any]]:
    fields = {field.encode_name: (field.required, field.type) for field in msgspec.structs.fields(struct)}
    config = struct.__struct_config__
    if config.tag is not None:
        fields[config.tag_field] = (True, Literal[config.tag])  # pyright: ignore[reportInvalidTypeForm]
    return {name: field for name, field in fields.items() if name != "_meta"}


def their_fields(fields: digest.Fields) -> dict[str, tuple[bool, set[str]]]:
    return {name.removesuffix("?"): (not name.endswith("?"), set(listed)) for name, listed in fields.items()}


def values(annotation: Any) -> set[str]:
    """The strings that a type lists, if it lists any."""
    if get_origin(annotation) is Literal:
        return {value for value in get_args(annotation) if isinstance(value, str)}
    if get_origin(annotation) in (Union, types.UnionType) or hasattr(annotation, "__metadata__"):
        return set().union(*(values(part) for part in get_args(annotation)))
    return (
        {str(member) for member in annotation}
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum)
        else set()
    )


def differences() -> Iterator[str]:
    types = digest.read()["types"]
    for ours_name, theirs_name in SAME_THING.items():
        if theirs_name not in types:
            yield f"{ours_name}: the schema has no {theirs_name} any more"
            continue
        ours, theirs = our_fields(getattr(wire, ours_name)), their_fields(types[theirs_name])
        for name in sorted(ours.keys() | theirs.keys()):
            place = f"{ours_name}.{name}"
            if name not in theirs:
                yield f"{place}: only ours"
            elif name not in ours:
                yield f"{place}: only theirs"
            else:
                yield from field_differences(place, ours[name], theirs[name])


def field_differences(place: str, ours: tuple[bool, Any], theirs: tuple[bool, set[str]]) -> Iterator[str]:
    if ours[0] != theirs[0]:
        yield f"{place}: required only {'here' if ours[0] else 'there'}"
    listed, known = values(ours[1]), theirs[1]
    if listed - known and known:
        yield f"{place}: the schema does not know {sorted(listed - known)}"


@pytest.mark.rule("R5", "R18", "R22", "R153")
def test_our_types_differ_from_the_schema_only_where_we_know_it():
    found = set(differences())
    news = sorted(found - set(KNOWN))
    gone = sorted(set(KNOWN) - found)
    assert not news, "The schema and our wire types differ:\n" + "\n".join(news)
    assert not gone, "These differences are no more, so their reasons can go:\n" + "\n".join(gone)


@pytest.mark.rule("R5")
def test_every_type_of_ours_is_compared():
    assert set(our_types()) == set(SAME_THING) | set(OURS_ALONE)


OURS = ("_session/steering", *EXTENSIONS)


@pytest.mark.rule("R59", "R87", "R88", "R102", "R153")
def test_closed_lists_are_those_of_the_protocol():
    lists = digest.read()["lists"]
    assert sorted(reason.value for reason in StopReason) == lists["StopReason"]
    assert sorted(kind.value for kind in ToolKind) == lists["ToolKind"]
    kinds = values(next(f.type for f in msgspec.structs.fields(wire.PermissionOption) if f.name == "kind"))
    assert sorted(kinds) == lists["PermissionOptionKind"]


@pytest.mark.rule("R8", "R16")
def test_every_method_of_the_protocol_is_served_or_left_out_for_a_reason():
    import asyncio

    async def served() -> set[str]:
        connection = Agent(LazyHost("/nowhere", {})).connect(0, 1)
        return {*connection._requests, *connection._notifications}

    methods = {*digest.read()["methods"]["agent"], *OURS}
    assert asyncio.run(served()) | set(NOT_SERVED) == methods
    assert asyncio.run(served()).isdisjoint(NOT_SERVED)
