"""The command line: one file per sub-command, each imported only when it is called, and what the commands share: the
parser, the process, asking the person in a terminal, and showing a conversation there.
"""
