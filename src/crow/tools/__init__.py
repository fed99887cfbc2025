"""What the model may do, one file for a tool or two of a kind, with the prompt text beside it.

`base` says what a tool is. `editing/` finds where an edit applies in a text; `lenient/` finds what is meant by a call
that is not written as it should be.

Where is …?
- what a change replaces, and how it is taken back: `file_changes.py` (stores what is replaced), `session/undo.py`
  (takes it back), `session/persistence.py` (without a store)
- what a tool is, and how to add one: `base.py`
- what is meant by a path that is not plain, and which names `write` refuses: `paths_meant.py`, which also suggests
  paths where nothing lies
- where a change to a file is shown; where the model is told that the file became something else than it wrote:
  `file_changes.py`
- which lines of a file the model has been shown, and what it may not overwrite unread: `read.py`
  (`ReadTracker`)
"""
