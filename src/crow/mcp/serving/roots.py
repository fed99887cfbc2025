"""The folders that a client lets us work in: those that the server was started with, else those that the host names.

Hosts up to protocol 2025-11-25 are asked once and say when the list changes. Later ones cannot be asked: a call is
answered with the question, and comes again with the answer, each time.
"""

import logging
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from crow.errors import WorkspaceError
from crow.paths import shown

logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a host gets to name its folders."""
ROOTS = "roots"
"""Under which name the question goes to a host that cannot be asked directly."""
LONGEST_LOGGED = 200
"""Characters of a root that cannot be used."""
REMEDY = "Start the server with `crow mcp --root FOLDER`."
NO_FOLDERS = "The host was asked for its folders and answered something else."

Context = ServerRequestContext[Any, Any]


class NamedRoots(BaseModel):
    """What a host names. The library's own type takes no list in which something else than a `file:` stands."""

    roots: list[Any]


class CallParams(types.CallToolRequestParams):
    """A call, in which answers to our questions are left as they came, for the same reason."""

    input_responses: dict[str, Any] | None = None  # pyright: ignore[reportIncompatibleVariableOverride] -- wider


def offers_roots(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def cannot_be_asked(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def question() -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})


def roots_in(params: CallParams) -> tuple[str, ...] | None:
    """The folders that came with a call, in answer to the question; None if it has not been asked yet."""
    answered = (params.input_responses or {}).get(ROOTS)
    if answered is None:
        return None
    try:
        return folders(NamedRoots.model_validate(answered))
    except ValueError:
        raise WorkspaceError(NO_FOLDERS, remedy=REMEDY) from None


async def ask_for_roots(ctx: Context) -> tuple[str, ...]:
    """Asks on the stream of the request that needs to know, which every transport has.

    A host that has folders to name and does not name them opens none: it may have meant fewer than we would guess.
    """
    # Not by the session's own `send_request`, which refuses the whole list if one root in it has a wrong form.
    stream = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001
    try:
        answered = await stream.send_raw_request("roots/list", None, {"timeout": PATIENCE})
        result = NamedRoots.model_validate(answered)
    except MCPError as error:
        logger.warning("roots/list failed: %s", error)
        if error.code == types.REQUEST_TIMEOUT:
            raise WorkspaceError(f"The host did not name its folders within {PATIENCE:g} s.", remedy=REMEDY) from None
        raise WorkspaceError("The host was asked for its folders and refused.", remedy=REMEDY) from None
    except ValueError as error:
        logger.warning("roots/list was answered with something else: %s", error)
        raise WorkspaceError(NO_FOLDERS, remedy=REMEDY) from None
    return folders(result)


def folders(named: NamedRoots) -> tuple[str, ...]:
    """The host's roots as paths; what lies elsewhere than on this machine is none of ours, nor what is no address."""
    paths = [path for root in named.roots if (path := _path(root))]
    if not paths:
        raise WorkspaceError("The host names no folder that may be used.", remedy=REMEDY)
    return tuple(dict.fromkeys(paths))


def existing(folders: Sequence[str]) -> tuple[str, ...]:
    """Those that are there now. What is named but missing is not made, and a file is not taken for a folder."""
    found = tuple(folder for folder in folders if os.path.isdir(folder))
    if not found:
        named = ", ".join(shown(folder) for folder in folders)
        raise WorkspaceError(f"There is nothing to work in. Not there, or no folder: {named}.", remedy=REMEDY)
    return found


def start_folder(folder: str) -> tuple[str, ...]:
    """The folder that the server was started in, for a host that names none.

    Programs with windows start their servers in `/`, which nobody means to open.
    """
    if not folder:
        raise WorkspaceError(
            "The host names no folder, and the one that the server was started in is not there.", remedy=REMEDY
        )
    if folder == "/":
        raise WorkspaceError("The host names no folder, and the server was started in /.", remedy=REMEDY)
    return (folder,)


def _path(root: object) -> str:
    """Empty if the root is no folder here. One that makes no sense closes none of the others."""
    match root:
        case {"uri": str(uri)}:
            path = _path_of(uri)
        case _:
            path = ""
    if not path:
        logger.warning("a root that is no folder here: %s", shown(str(root)[:LONGEST_LOGGED]))
    return path


def _path_of(uri: str) -> str:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return ""
    path = unquote(parts.path)
    return "" if "\0" in path else path
