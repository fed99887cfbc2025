"""MCP in both directions: servers that we use, as tools (`client/`); our own tools, as a server (`server/`).

The only room that knows the library for MCP, which is loaded when a session has servers, or for `crow mcp`.

Where is …?
- how a result, with its diff, crosses from one Crow to another: `results.py`
"""
