"""`crow mcp`: our own tools, served to other programs over MCP. The same code as the built-in ones, behind another
protocol.

stdio, http ──▶ server (the calls) ──▶ clients (folders, and what is kept for each) ──▶ file_editor (with its undo)

Where is …?
- our tools as a server for other programs: `server.py` (the server and its calls), `cli/mcp_server.py` (builds it)
- in which folders a client may work: `clients.py`
- what `crow mcp` refuses, as nobody can be asked: `policy/rule_policy.py` (`judge_in`)
"""
