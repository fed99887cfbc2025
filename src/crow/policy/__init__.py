"""May this action run? Decisions from rules, modes and paths, which ask nobody and change nothing.

Two readers of a shell line, written apart, must agree before a rule covers it. docs/permissions.md says which file does
what.
"""
