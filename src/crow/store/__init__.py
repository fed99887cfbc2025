"""Keeping sessions: every event of every journal, in one SQLite file below CROW_HOME.

The rest of Crow knows `base` and opens the store with `store.open_store`; the rest runs on the store's own threads.
"""
