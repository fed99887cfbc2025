"""The commands that Crow brings itself.

helping.py      /help, /init, /mcp
choosing.py     /mode, /model, /plan
permissions.py  /permissions
remembering.py  /compact, /clear, /context: what the model has in mind
keeping.py      /export, /undo: what was kept of the session
all.py          puts them together
"""
