"""The commands that Crow brings itself.

help.py, init.py, mcp.py, permissions.py, export.py, rename.py, undo.py: one command each, of that name
options.py      /mode, /model, /plan: what can be chosen for the session
context.py      /compact, /clear, /context: what the model has in mind
all.py          puts them together
"""
