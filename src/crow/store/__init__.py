"""Keeping sessions: every event of every journal, in one SQLite file below CROW_HOME.

- `base`: what the rest of Crow knows of the store.
- `store`: the store as it is used on the event loop; `worker` is the thread on which its work is done.
- `sessions`: all that changes a session's rows. `readings`: all that reads them; `read_only` opens the file for who
  only looks. `listing`: pages of the list; `cursors` are places in it.
- `database`: opens the file and makes transactions. `schema` has the tables, `layout` how an older file becomes one of
  today, `copies` what an upgrade has left beside it; `failures` says in words what is wrong with the file.
- `records`: an event as a row, and back. `contents`: long texts, stored once and packed. `pending`: the rows that a
  session has still to store.
- `owners`: which process owns a session, and whether it lives.
"""
