"""The files and commands that a session works with: this machine's. The editor's are in `crow.acp`.

A tool knows no more of them than `base` says. `local` has the files, `search` finds names and lines in them, `terminal`
runs commands, whose processes a supervisor (`processes`, `supervisor`) ends with everything they start.
"""
