"""Running commands on this machine, with everything that they start, and keeping their output.

`base.py` has the `Terminal` protocol that tools are given; `terminal.py` implements it.

Where is …?
- how a command is run, with which shell and environment: `terminal.py`
- how everything that a command started is ended, daemons too: `supervisor.py` (the program that ends it),
  `processes.py` (the agent's side of it)
- what a command writes to, and why nothing in it waits for a key: `pty.py`
- how output becomes text for the model: `terminal_text.py` (without escape sequences, and what is left of output
  that draws over itself)
- what is kept of a command's output, on disk too: `terminal_buffer.py` (what is kept), `terminal_recording.py` (reads
  it)
- commands in the background: how many, when they end: `terminals.py` (the commands), `tools/background.py` (the tools
  to read and stop them)
"""
