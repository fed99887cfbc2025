"""`crow web`: the page, and the Agent Client Protocol over WebSocket, for browsers and other clients of this user.

connections (how many, for how long) ──▶ app ──▶ gate (who may) ──▶ built_files (the page)
                                                      └──────────▶ web_socket ──▶ an agent of acp

Where is …?
- who may connect to `crow web`, and with which answer all others are refused: `gate.py` (every request),
  `connections.py` (how many, for how long)
- links that are good once, and tokens: `tokens.py`
- the page's files; the headers of every answer: `built_files.py`; `answers.py`
- how a WebSocket becomes a client of the protocol: `web_socket.py`
- where the server is put together and run: `app.py` (the server), `cli/web_server.py` (its process), `cli/web.py`
  (the command)
"""
