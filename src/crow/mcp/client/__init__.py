"""MCP servers that a session uses, as tools of the model.

    hub ──▶ connection ──▶ inventory (its client, what the server has) ──▶ stdio
     │          │                                                     └──▶ remote ──▶ login (over HTTP)
     │          └────────▶ elicitation ──▶ forms (what the server asks of us)
     ├──▶ tool ──▶ schemas
     └──▶ tool_search, prompts_and_resources

Every message of a server passes `message_guard` before anything else sees it. Nothing here is loaded before a session
has servers, but for `configured`.

Where is …?
- when there are too many MCP tools for a request, and which are listed then: `hub.py` (decides), `tool_search.py`
  (the tool that finds the others)
- the life of one MCP server; when it is started again: `connection.py`
- over what a server is reached, and when its lists are asked for again: `inventory.py`, `stdio.py`, `remote.py`
- what the person is told when an MCP server fails or ends: `server_errors.py`
- what an MCP server asks of the person: `elicitation.py` (answers it), `forms.py` (what may be shown)
- what a server's call is about: its target, the change it asks for: `changes.py`
- an MCP server that floods, or sends what cannot be read: `message_guard.py`
"""
