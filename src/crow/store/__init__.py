"""Keeping sessions: every event of every journal, in one SQLite file below CROW_HOME.

The rest of Crow knows `base` and opens the store with `store.open_store`; the rest runs on the store's own threads.

Where is …?
- which process owns a session, and whether that process is still alive: `owners.py`
- what keeps a second process from writing to a session: `sessions.py` (claims it, refuses others)
- which process is the `crow web` of a home: `web_owner.py`
- how sessions are found by what was said in them, and when the index is brought up to date: `search_index.py`
- how a session is kept, and read again: `store.py` (collects and hands on), `sessions.py` (writes rows), `queries.py`
  (reads), `records.py` (an event as a row)
- where long texts are stored once and packed: `contents.py`
- when a session in which nothing was said is removed, and by whom: `sessions.py` (`EMPTY_FOR`: a day later, by the
  next process that opens a session)
- how a session is deleted in small steps, and the room given back: `sessions.py` (`begin_deletion`), `layout.py`
  (`remove_session`), `database.py` (`vacuum`)
- how a store of an older version becomes one of today: `database.py` (when), `layout.py` (what is changed)
- what is said when the disk is full, damaged or silent: `failures.py` (the words), `worker.py` (notices silence)
"""
