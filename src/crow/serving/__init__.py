"""`crow web`: the page, and the Agent Client Protocol over WebSocket, for browsers and other clients of this user.

connections (how many, for how long) ──▶ app ──▶ gate (who may) ──▶ built_files (the page)
                                                      └──────────▶ web_socket ──▶ an agent of acp
"""
