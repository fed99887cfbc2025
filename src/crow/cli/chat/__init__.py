"""`crow chat`, a conversation in the terminal: its options, and whether this terminal can show it. The chat itself
begins in `application`; `conversation` is the session behind it.

Where is …?
- how `crow chat` draws: `application.py` (all of it together), `rows.py` (the last rows), `inline.py` (printing above
  them), `transcript.py` (what is printed, and what is unfolded)
- what the keys of `crow chat` do: `keys.py`; which key answers a question: `cli/answer_keys.py`
- the session of `crow chat`, and the messages that wait: `conversation.py` (the session), `messages.py` (the queue)
- what is completed while it is typed, and the history of what was: `completion.py`
"""

import argparse
import asyncio
import os
import sys

from crow.cli.chat.messages import clean_lines
from crow.cli.interactive_client import complain, prepare_output
from crow.cli.opening import (
    WrongUsage,
    add_opening_arguments,
    attached,
    chosen_session,
    folder_of,
    named_session,
    read_opening,
)
from crow.cli.process import log_to_file
from crow.cli.terminal import is_interactive, only_prints_lines
from crow.config.home import home
from crow.errors import CrowError
from crow.visible import join_surrogates

EXAMPLES = """\
  crow chat                       start a new session
  crow chat "fix the failing test"
  crow chat --continue            continue the last session in this folder
  crow chat --resume              pick a session to continue
  crow chat --attach sketch.png "build this page"

keys: Enter sends, or steers the running turn · Tab queues a message until after the turn · Esc or Ctrl-C stops it;
press again to quit · Shift-Tab changes the mode · Alt-Enter or Ctrl-J starts a new line · Ctrl-O shows what is folded ·
Ctrl-D quits
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="the first message")
    add_opening_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    if not is_interactive() or not sys.stdout.isatty():
        print('crow chat: needs a terminal. Without one, use: crow run "…"', file=sys.stderr)
        return 2
    if only_prints_lines(os.environ):
        print(
            'crow chat: this terminal can only print lines. Use: crow run "…", then crow run --continue "…"',
            file=sys.stderr,
        )
        return 2
    try:
        cwd = folder_of(arguments)
        session = named_session(arguments) or chosen_session(arguments, cwd)
        files = [os.path.abspath(path) for path in arguments.attach if attached(path)]
        opening = read_opening(arguments, cwd, session)
    except WrongUsage as error:
        print(f"crow chat: {error}", file=sys.stderr)
        return 2
    except CrowError as error:
        return complain(error)
    prepare_output()
    log_to_file(home(os.environ))
    prompt = join_surrogates(clean_lines(" ".join(arguments.prompt)))
    from crow.cli.chat.application import Chat

    async def talk() -> int:
        return await Chat(opening, files).run(prompt)

    return asyncio.run(talk())
