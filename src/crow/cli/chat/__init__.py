"""`crow chat`, a conversation in the terminal. Begin with `application`; `conversation` is the session behind it."""

from crow.cli.chat.command import add_arguments, main

__all__ = ["add_arguments", "main"]
