"""`crow chat`, a conversation in the terminal. Begin with `application`; `conversation` is the session behind it.

Where is …?
- how `crow chat` draws: `application.py` (all of it together), `rows.py` (the last rows), `inline.py` (printing above
  them), `transcript.py` (what is printed)
- what the keys of `crow chat` do: `keys.py`; the answer to a question: `questions.py`
- the session of `crow chat`, and the messages that wait: `conversation.py` (the session), `messages.py` (the queue)
"""

from crow.cli.chat.command import add_arguments, main

__all__ = ["add_arguments", "main"]
