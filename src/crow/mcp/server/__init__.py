"""`crow mcp`: our own tools, served to other programs over MCP. The same code as the built-in ones, behind another
protocol.

stdio, http ──▶ server ──▶ clients (what is kept for each) ──▶ file_editor ──▶ workspace (its files, and undo)
                  └──────▶ calling (one call)

Where is …?
- our tools as a server for other programs: `server.py` (the server), `clients.py` (its clients' folders),
  `cli/mcp_server.py` (puts it together), `policy/rule_policy.py` (`judge_in`: what it refuses)
"""
