"""MCP in both directions: servers that we use, as tools (`using/`); our own tools, as a server (`serving/`).

The only room that knows the `mcp` package, which is loaded when a session has servers, or for `crow mcp`.
"""
