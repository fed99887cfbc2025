"""`crow web`: the page, and the Agent Client Protocol over WebSocket, for browsers and other clients of this user.

connections (how many, for how long) ──▶ app ──▶ gate (who may) ──▶ built_files (the page)
                                                      └──────────▶ an agent of acp, for each WebSocket

Where is …?
- who may connect to `crow web`, and how all others are refused: `gate.py`
- one-time links, tokens, and what a second `crow web` asks for: `tokens.py`
- the page's files: `built_files.py`
- how many may connect, and how a WebSocket becomes a client of the protocol: `connections.py`
- where the server is put together and run: `app.py` (the server), `cli/web_server.py` (its process), `cli/web.py`
  (the command)
"""
