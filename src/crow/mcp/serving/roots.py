"""The folders that a client lets us work in: those that the server was started with, else those that the host names.

Hosts up to protocol 2025-11-25 are asked once and say when the list changes. Later ones cannot be asked: a call is
answered with the question, and comes again with the answer, each time.
"""

import logging
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from crow.errors import WorkspaceError
from crow.paths import shown

logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a host gets to name its folders."""
ROOTS = "roots"
"""Under which name the question goes to a host that cannot be asked directly."""
REMEDY = "Start the server with `crow mcp --root FOLDER`."
NO_FOLDERS = "The host was asked for its folders and answered something else."

Context = ServerRequestContext[Any, Any]


def offers_roots(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.roots is not None


def cannot_be_asked(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def question() -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})


def roots_in(params: types.CallToolRequestParams) -> tuple[str, ...] | None:
    """The folders that came with a call, in answer to the question; None if it has not been asked yet."""
    match (params.input_responses or {}).get(ROOTS):
        case None:
            return None
        case types.ListRootsResult(roots=roots):
            return folders(roots)
        case _:
            raise WorkspaceError(NO_FOLDERS, remedy=REMEDY)


async def ask_for_roots(ctx: Context) -> tuple[str, ...]:
    """Asks on the stream of the request that needs to know, which every transport has.

    A host that has folders to name and does not name them opens none: it may have meant fewer than we would guess.
    """
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        result = await ctx.session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=PATIENCE, metadata=related
        )
    except MCPError as error:
        logger.warning("roots/list failed: %s", error)
        if error.code == types.REQUEST_TIMEOUT:
            raise WorkspaceError(f"The host did not name its folders within {PATIENCE:g} s.", remedy=REMEDY) from None
        raise WorkspaceError("The host was asked for its folders and refused.", remedy=REMEDY) from None
    except ValueError as error:
        logger.warning("roots/list was answered with something else: %s", error)
        raise WorkspaceError(NO_FOLDERS, remedy=REMEDY) from None
    return folders(result.roots)


def folders(roots: Sequence[types.Root]) -> tuple[str, ...]:
    """The host's roots as paths; what is no folder of this machine is none of ours."""
    paths = [path for root in roots if (path := _path(str(root.uri)))]
    if not paths:
        raise WorkspaceError("The host names no folder that may be used.", remedy=REMEDY)
    return tuple(dict.fromkeys(paths))


def start_folder(folder: str) -> tuple[str, ...]:
    """The folder that the server was started in, for a host that names none.

    Programs with windows start their servers in `/`, which nobody means to open.
    """
    if folder == "/":
        raise WorkspaceError("The host names no folder, and the server was started in /.", remedy=REMEDY)
    return (folder,)


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        logger.warning("a root that is no folder here: %s", shown(uri))
        return ""
    path = unquote(parts.path)
    return "" if "\0" in path else path
