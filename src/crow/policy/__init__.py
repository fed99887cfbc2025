"""May this action run? Decisions from rules, modes and paths, which ask nobody and change nothing.

Two readers of a shell line, written apart, must agree before a rule covers it.

Where is …?
- what plan mode refuses, how the model is told of it, and how it is left: `base.py` (the table of modes),
  `turn/requests.py` (`mode_to_tell`), `tools/ask.py` (`LeavePlan`)
- what may run without asking: `deed_verdicts.py` (a verdict on each thing that is done, and the strictest of them: deny
  beats ask beats allow), `base.py` (what each mode says where no rule does), `rule_policy.py` (a session's rules and
  answers)
- which paths are secret or protected, whatever the rules say: `risky_names.toml` (their names, and what each triggers
  or holds), `paths.py` (decides), `project/server_programs.py` (programs of MCP servers, which trust covers too); a
  word of a command that names one: `path_words.py`
- which commands are hidden in a shell line: behind `sudo`, in `bash -c`, in a substitution: `nested_commands.py`
  (digs them out), `grammar.py` (parses the line)
- whether an allow rule covers a whole shell line: `shell.py` (every command of it), `plain_lines.py` (the strict
  second reader)
- whether an allow rule covers one command: `commands.py` (its words), `wildcard.py` (what its `*` stands for),
  `option_table.toml` (the table of options)
- when git is not trusted in a folder: `repositories.py` (planted repositories, hooks), `submodules.py` (planted
  submodules, and which commands add one)
- what a command of a line may have brought when the next one runs: `brought_files.py`
- how a rule's path glob is matched: `rule_matching.py`
- what an "always" offers, in which words, and where it is kept: `grants.py`
"""
