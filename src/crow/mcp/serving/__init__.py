"""`crow mcp`: our own tools, served to other programs over MCP. The same code as the built-in ones, behind another
protocol.

stdio, http ──▶ server ──▶ clients (what is kept for each) ──▶ file_editor ──▶ workspace (its files, and undo)
                  └──────▶ calling (one call)
"""
