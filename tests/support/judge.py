"""The official SDK as a judge: every message that Crow sends must be one that its models accept, key by key."""

import functools
from types import ModuleType
from typing import Any

NEWER_THAN_THE_SDK = {
    "notice": ({"sessionUpdate", "severity", "title"}, {"description", "_meta"}),
    "compaction_update": ({"sessionUpdate", "compactionId", "status"}, {"summary", "error"}),
}
"""Updates that the protocol has and this SDK does not: the keys they must and may have."""


@functools.cache
def schema() -> ModuleType:
    import acp.schema

    return acp.schema


PARAMS = {
    "session/update": "SessionNotification",
    "session/request_permission": "RequestPermissionRequest",
    "fs/read_text_file": "ReadTextFileRequest",
    "fs/write_text_file": "WriteTextFileRequest",
    "terminal/create": "CreateTerminalRequest",
    "terminal/output": "TerminalOutputRequest",
    "terminal/wait_for_exit": "WaitForTerminalExitRequest",
    "terminal/kill": "KillTerminalRequest",
    "terminal/release": "ReleaseTerminalRequest",
    "elicitation/create": "CreateFormSessionElicitationRequest",
    "elicitation/complete": "CompleteElicitationNotification",
    "$/cancel_request": "CancelRequestNotification",
}
RESULTS = {
    "initialize": "InitializeResponse",
    "authenticate": "AuthenticateResponse",
    "session/new": "NewSessionResponse",
    "session/prompt": "PromptResponse",
    "session/load": "LoadSessionResponse",
    "session/resume": "ResumeSessionResponse",
    "session/fork": "ForkSessionResponse",
    "session/list": "ListSessionsResponse",
    "session/close": "CloseSessionResponse",
    "session/delete": "DeleteSessionResponse",
    "session/set_mode": "SetSessionModeResponse",
    "session/set_config_option": "SetSessionConfigOptionResponse",
    "logout": "LogoutResponse",
}


def complaint_about_call(method: str, params: dict[str, Any]) -> str | None:
    """What is wrong with a request or notification of the agent's; None if nothing is."""
    if method in ("_crow/state", "_crow/inbox"):
        return None  # for clients that have asked for it: see docs/extensions.md
    if method not in PARAMS:
        return f"{method} is not a method that Crow should call"
    update = params.get("update", {}) if method == "session/update" else {}
    kind = update.get("sessionUpdate")
    if kind in NEWER_THAN_THE_SDK:
        return _complaint_about_newer(kind, update)
    if kind == "tool_call":
        # The programmatic name of a tool is newer than this SDK, which would drop it without a word.
        params = params | {"update": {key: value for key, value in update.items() if key != "name"}}
    if method == "elicitation/create" and params.get("mode") == "url":
        return _complaint("CreateUrlSessionElicitationRequest", params)
    return _complaint(PARAMS[method], params)


EXTENSIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "_session/steering": (
        {"outcome": "injected", "_meta": {"steering": {"messageId": ""}}},
        {"outcome": "promptRequired", "reason": "noRunningTurn", "_meta": {"steering": {"message": ""}}},
    )
}
"""The results of methods that are not the protocol's own: each shape, with an empty text for any text that is not."""


def complaint_about_result(method: str, result: Any) -> str | None:
    if method == "session/status":  # newer than this SDK
        known = result.get("status") in ("open", "saved") and set(result) <= {"status", "_meta"}
        return None if known else f"{method}: {result}"
    if method in EXTENSIONS:
        shapes = EXTENSIONS[method]
        return None if any(_fits(result, shape) for shape in shapes) else f"{method}: {result} is none of {shapes}"
    if method.startswith("_crow/"):
        return None if isinstance(result, dict) else f"{method}: {result}"
    if method not in RESULTS:
        return f"{method} should not have had a result"
    if method == "initialize":  # so is that it can be asked for
        result = _without(result, "agentCapabilities", "sessionCapabilities", "status")
    return _complaint(RESULTS[method], result)


def complaint_about_error(error: Any) -> str | None:
    return _complaint("Error", error)


def _without(value: dict[str, Any], key: str, *further: str) -> dict[str, Any]:
    """The same without what lies at the end of the path."""
    if not further:
        return {name: inner for name, inner in value.items() if name != key}
    return value | ({key: _without(value[key], *further)} if key in value else {})


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict) and isinstance(value, dict):
        return set(value) == set(shape) and all(_fits(value[key], shape[key]) for key in shape)
    return isinstance(value, str) and bool(value) if shape == "" else value == shape


def _complaint(model: str, value: Any) -> str | None:
    import pydantic

    try:
        read = getattr(schema(), model).model_validate(value)
    except pydantic.ValidationError as error:
        return f"{model}: {error}"
    kept = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return None if kept == value else f"{model}: of {value} the SDK kept only {kept}"


def _complaint_about_newer(kind: str, update: dict[str, Any]) -> str | None:
    must, may = NEWER_THAN_THE_SDK[kind]
    keys = set(update)
    if not must <= keys <= must | may or not all(
        isinstance(value, str | list | dict) and value for value in update.values()
    ):
        return f"{kind}: expected {sorted(must)} and perhaps {sorted(may)}, all filled, found {update}"
    return None
