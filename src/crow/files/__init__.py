"""The files of this machine: paths that are resolved once, text with its encoding, and writing that
keeps everything else.

`base.py` has the `Workspace` protocol that tools are given; `local.py` implements it.

Where is …?
- how a file is written: `atomic.py` (on disk), `acp/workspace.py` (through the editor)
- what of the old file a write keeps: owner, mode, attributes: `atomic.py`
- where a path leads, found out once, and how it is reached without following links: `resolved_path.py`
- how bytes become text and text bytes: encodings, byte order marks, line ends: `text.py`
"""
