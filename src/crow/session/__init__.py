"""One conversation's life: its journal, its one running turn, what it was set up with, what was chosen in it.

Where is …?
- what a client is shown of a session that is loaded: `replay.py` (the fold), `acp/translate_session.py` (the updates)
- what a session has changed so far, compared with what was: `changes.py`; `undo.py` has what an undo would do
- where a session is put together, tool by tool: `open.py` (all parts), `toolset.py` (the tools),
  `live/opening.py` (the store, its folders and the client's side)
- where cancelling happens; where a turn is begun, steered and ended: `session.py` (begins one), `running_turn.py`
  (steers, cancels and ends it; `Turns`: which one runs)
- in which order an event is stored, becomes history and is told: `journal.py`
- how a session comes by its title: `journal.py` (`Title`)
- how what was cut off by a kill or a power cut gets its end: `recovery.py`
- which model a session gets: `models.py` (among configured ones), `config/discovery.py` (where none is configured)
- what can be chosen for a session: mode, model, thought level: `options.py`
- what a slash command does: `commands.py` (finds it; those that are files), `builtin_commands.py` and
  `settings_commands.py` (Crow's own)
- a session as Markdown or JSON: `export.py`
- what becomes of a message that is said into a running turn: `running_turn.py` (`steer` accepts and stores it),
  `turn/steering.py` (what waits, and whether a turn may end), `turn/prompt.py` (takes it in), `recovery.py` (after a
  kill)
- which MCP servers a session uses, and when they are started: `servers.py`
"""
