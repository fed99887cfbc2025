"""Keeping sessions: every event of every journal, in one SQLite file below CROW_HOME.

- `base`: what the rest of Crow knows of the store.
"""
