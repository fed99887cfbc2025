"""`crow chat`: its options, and whether the chat with an input line or the plain one is started."""

import argparse
import asyncio
import os
import sys

from crow.cli.chat.messages import clean_lines
from crow.cli.interactive_client import complain, prepare_output
from crow.cli.opening import add_opening_arguments, chosen_session, folder_of, named_session, read_opening
from crow.cli.process import log_to_file
from crow.cli.run_prompt import WrongUsage, attached
from crow.cli.terminal import is_interactive, only_prints_lines
from crow.config.home import home
from crow.errors import CrowError
from crow.visible import join_surrogates

EXAMPLES = """\
  crow chat                       a new conversation
  crow chat "mend the failing test"
  crow chat --continue            the last one of this folder
  crow chat --resume              choose one
  crow chat --attach sketch.png "build this page"

keys: Enter sends, or steers the turn that runs · Tab queues a message for after it · Esc or Ctrl-C stops it, twice
leaves · Shift-Tab changes the mode · Alt-Enter or Ctrl-J begins a new line · Ctrl-O unfolds what was folded · Ctrl-D
leaves
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("prompt", metavar="PROMPT", nargs="*", help="what to begin with")
    add_opening_arguments(parser)


def main(arguments: argparse.Namespace) -> int:
    if not is_interactive() or not sys.stdout.isatty():
        print('crow chat: this needs a terminal; without one use: crow run "…"', file=sys.stderr)
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
    if only_prints_lines(os.environ):
        from crow.cli.chat.plain import PlainChat as Chat
    else:
        from crow.cli.chat.application import Chat

    async def talk() -> int:
        return await Chat(opening, files).run(prompt)

    return asyncio.run(talk())
