"""MCP servers that a session uses, as tools of the model.

    hub ──▶ connection ──▶ stdio ──▶ program
     │          │   └────▶ remote ──▶ login (over HTTP)
     │          ├────────▶ startup (waiting for it, starting it again) ──▶ server_errors
     │          ├────────▶ inventory (what the server has)
     │          └────────▶ elicitation ──▶ forms (what the server asks of us)
     ├──▶ tool ──▶ schemas ──▶ schema_dialect
     │      └────▶ content (what a call gave)
     └──▶ tool_search, prompts_and_resources

Every message of a server passes `raw_messages` and `message_guard` before anything else sees it. Nothing here is loaded
before a session has servers, but for `configured`.
"""
