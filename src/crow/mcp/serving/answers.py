"""A tool of ours, and what it gave back, as the protocol has them.

There is no structured content: several hosts show the model that instead of the text, which says more.
"""

import mcp_types as types

from crow.mcp import display
from crow.results import ToolKind, ToolResult
from crow.tools.base import Tool

_CHANGING = frozenset({ToolKind.EDIT, ToolKind.DELETE, ToolKind.MOVE, ToolKind.EXECUTE, ToolKind.OTHER})
_OPEN_WORLD = frozenset({ToolKind.FETCH, ToolKind.EXECUTE})
_TITLES = {
    "file_editor": "View and edit files",
    "web_search": "Search the web",
    "web_fetch": "Fetch a web page",
    "terminal": "Run a command",
    "terminal_read": "Read a command's output",
    "terminal_stop": "Stop a command",
}


def described(tool: Tool) -> types.Tool:
    name = tool.spec.name
    return types.Tool(
        name=name,
        title=_TITLES.get(name),
        description=tool.spec.description,
        input_schema=tool.spec.schema,
        annotations=_annotations(tool),
    )


def _annotations(tool: Tool) -> types.ToolAnnotations:
    title = _TITLES.get(tool.spec.name)
    open_world = tool.kind in _OPEN_WORLD
    if tool.kind not in _CHANGING:
        return types.ToolAnnotations(title=title, read_only_hint=True, open_world_hint=open_world)
    # Stopping a command a second time stops nothing more; everything else that changes things may do so each time.
    return types.ToolAnnotations(
        title=title,
        read_only_hint=False,
        destructive_hint=True,
        idempotent_hint=tool.spec.name == "terminal_stop",
        open_world_hint=open_world,
    )


def answer(result: ToolResult) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=result.text)]
    content += [types.ImageContent(data=image.data, mime_type=image.mime_type) for image in result.images]
    shown = display.encode(result)
    meta = {display.KEY: shown} if shown is not None else None
    return types.CallToolResult(content=content, is_error=not result.ok, _meta=meta)
