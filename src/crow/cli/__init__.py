"""The command line: one file per sub-command, and what they share: the parser, the process, questions in a terminal,
rendering. Each command is imported only when it is called.

Where is …?
- which session `crow run` and `crow chat` open, in which folder, with which model and files: `opening.py`
- what `crow run` prints where: `run.py` (decides; the answer alone), `render.py` (everything)
- what Ctrl-C does in `crow run`, how a question is answered with one key, and the exit code:
  `interactive_client.py` (`Interrupts`, `Keyboard`, `exit_code_of`), `answer_keys.py` (which key is an answer)
- where escape sequences of a model are made harmless in a terminal: `render_screen.py`
- what `crow doctor` checks: `doctor.py`; of providers, models and MCP servers: `doctor_connections.py`
- where the log is written, and what happens at a signal or a crash: `process.py`
"""
