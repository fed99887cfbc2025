"""The files and commands that a session works with: this machine's. The editor's are in `crow.acp`.

- `base`: all that a tool knows of it: `Workspace`, `Document`, `Commands`, `Terminal`.
- `local`: the files on this machine's disk. `place` and `atomic` write them, `text` and `endings` keep their bytes,
  `words` says what is wrong with a path, `excerpt` takes a few lines out of a long text.
- `search`: names and lines below a folder. `listing`, `ignore` and `globs` choose the files, `matcher` looks into them,
  `child` runs it; `unsaved`: what an editor has not saved of them.
- `terminals`: those of a session. `terminal`: one command; `processes` and `keeper` end all that it starts,
  `terminal_recording` and `terminal_text` keep what it prints and make it readable, `outputs` is the folder for it,
  `environment` says which variables a command gets.
"""
