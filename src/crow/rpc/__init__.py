"""JSON-RPC over lines, below everything that speaks it: lines of a stream, messages, and connections of two peers.

Where is …?
- where a line from the client becomes a call: `lines.py` (cuts lines) → `jsonrpc.py` (reads a message) →
  `connection.py` (finds the handler) → `acp/agent.py` (handshake, log-ins), `acp/sessions.py` (all else)
- which error code and words a client gets; what a client's own error means: `jsonrpc.py`
"""
