"""The command line: one file per sub-command, and what they share: the parser, the process, questions in a terminal,
rendering. Each command is imported only when it is called.
"""
