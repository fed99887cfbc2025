"""MCP servers that a session uses, as tools of the model.

    hub ──▶ connection ──▶ stdio
     │          │   └────▶ remote ──▶ login (over HTTP)
     │          ├────────▶ startup (waiting for it, starting it again) ──▶ server_errors
     │          ├────────▶ inventory (what the server has)
     │          └────────▶ elicitation ──▶ forms (what the server asks of us)
     ├──▶ tool ──▶ schemas
     │      └────▶ content (what a call gave)
     └──▶ tool_search, prompts_and_resources

Every message of a server passes `message_guard` before anything else sees it. Nothing here is loaded
before a session has servers, but for `configured`.

Where is …?
- when there are too many MCP tools for a request, and which are listed then: `hub.py` (decides), `tool_search.py`
  (the tool that finds the others)
- the life of one MCP server; when it is started again: `connection.py` (its states), `opening.py` (over what it is
  reached), `startup.py` (waiting, trying again)
- what the person is told when an MCP server fails or ends: `server_errors.py`
- what an MCP server asks of the person: `elicitation.py` (answers it), `forms.py` (what may be shown)
- what a server's call is about: its target, the change it asks for: `changes.py`
- an MCP server that floods, or sends what cannot be read: `message_guard.py`
"""
