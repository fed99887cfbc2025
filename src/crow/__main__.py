"""The `crow` command: finds the sub-command that was called, imports its module of `crow.cli`, and keeps the process's
memory private.
"""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from crow import descriptors

if TYPE_CHECKING:
    from crow.cli.parsing import Parser

COMMANDS = {
    "acp": "run the agent on standard input and output (editors start this)",
    "chat": "chat in this terminal",
    "run": "answer one prompt, without an editor",
    "web": "serve the page for your browser and print a link to it",
    "demo": "play a scripted session; needs no key and no network",
    "setup": "connect an editor: print or write its configuration",
    "login": "choose a provider and a model, and store the key",
    "logout": "delete a stored key",
    "models": "list your providers' models",
    "config": "show, edit or check your configuration",
    "sessions": "list, show, export, delete or stop sessions",
    "mcp": "run an MCP server with the file and web tools, or test yours",
    "doctor": "check everything and say how to fix it",
    "status": "show what is set up and what to do next",
    "completion": "print a completion script for your shell",
}
"""Name and help of each; the module of the same name has `add_arguments(parser)` and `main(arguments) -> int`."""

EXAMPLES = """\
examples:
  crow                      chat here; before a model is set up: what to do next
  crow login                choose a model
  crow setup zed --write    connect Zed
  crow run "explain this repository"
"""


LARGE = 1024 * 1024
"""Bytes from which on memory is asked of the system for each thing alone."""


def main() -> int:
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] -- so it is when it was closed at the start
        _complain_to_nobody()
    _keep_to_ourselves()
    _give_memory_back()
    descriptors.raise_limit()
    try:
        try:
            return _dispatch(sys.argv[1:])
        finally:
            print(end="", flush=True)  # noqa: T201  a reader that left shows here, not at interpreter exit
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001  the edge of the program: told in one line, logged in full
        from crow.cli.process import report

        return report(error)


def _complain_to_nobody() -> None:
    """Python would print on standard output instead, and the next file that is opened would take the number of standard
    error, to which libraries and commands write."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != 2:  # standard input is closed, too
        os.dup2(nowhere, 2)
        os.close(nowhere)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 -- for as long as we run


def _keep_to_ourselves() -> None:
    """From now on no other process of the person's can read our environment and memory, and a crash leaves no core.

    The commands that we run are such processes: they would find the provider's key in `/proc/PID/environ`.
    """
    if sys.platform != "linux":
        return
    import contextlib
    import resource

    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    _call_system("prctl", 4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def _give_memory_back() -> None:
    """From now on the room of a large text is the system's again as soon as the text is gone.

    Left to itself, glibc puts texts into one heap once it has seen a large one go, between smaller things that stay:
    work on a long file then takes half as much room again, and keeps it.
    """
    if sys.platform == "linux":
        _call_system("mallopt", -3, LARGE)  # M_MMAP_THRESHOLD


def _call_system(function: str, *arguments: int) -> None:
    """Calls a function of the C library, if there is one of that name."""
    import contextlib

    with contextlib.suppress(ImportError, OSError):
        import _ctypes  # the part of ctypes that is written in C: all of it would make each start a tenth slower

        library = _ctypes.dlopen(None, 0)  # pyright: ignore[reportArgumentType] -- None: ourselves
        _ctypes.call_function(_ctypes.dlsym(library, function), arguments)


def _dispatch(arguments: list[str]) -> int:
    if arguments == ["acp"]:  # the editor is waiting: no argparse on this path
        from crow.cli.acp import main as serve

        return serve(None)
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] -- so it is when it was closed at the start
        from crow.errors import CrowError

        raise CrowError("Standard output is closed.")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a path may hold what the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    if arguments[:2] == ["acp", "login"]:
        # A client logs in by starting its agent command line with our arguments behind it.
        arguments = arguments[1:]
    if not arguments:
        from crow.cli import status

        return _parse_and_run(["chat"]) if status.can_chat() else status.main()
    return _parse_and_run(arguments)


def _parse_and_run(arguments: list[str]) -> int:
    """Each command's own arguments are only known once its module is imported, so only the called one is."""
    called = next((argument for argument in arguments if not argument.startswith("-")), "")
    if called and called not in COMMANDS:
        return _unknown_command(called, arguments)
    parser = build_parser([called])
    parsed = parser.parse_args(arguments)
    if not called:
        parser.error("no command given")
    return parsed.run(parsed)


def build_parser(with_arguments_of: Sequence[str]) -> "Parser":
    """The parser of all commands; only the named ones are imported and bring their own arguments."""
    import argparse
    from importlib import import_module

    from crow import __version__
    from crow.cli.parsing import Parser

    parser = Parser(
        prog="crow",
        description="A coding agent for every editor. Without arguments: chat in this terminal, or, before a model "
        "is set up, what to do next.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"crow {__version__}")
    # Not `required`: that none was given would be said instead of what is wrong with those arguments that were.
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name in with_arguments_of:
            module = import_module(f"crow.cli.{name}")
            module.add_arguments(command)
            command.set_defaults(run=module.main)
    return parser


def _unknown_command(called: str, arguments: list[str]) -> int:
    from crow.cli.parsing import did_you_mean
    from crow.visible import one_line

    hint = did_you_mean(called, COMMANDS)
    print(f'crow: unknown command "{one_line(called)}"{hint}. For a list: crow --help', file=sys.stderr)  # noqa: T201
    if not hint:
        print(f'To ask the model: crow run "{one_line(" ".join(arguments))}"', file=sys.stderr)  # noqa: T201
    return 2


if __name__ == "__main__":
    sys.exit(main())
