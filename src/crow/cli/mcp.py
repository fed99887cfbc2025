"""`crow mcp`: our file and web tools for other programs, as a server of the Model Context Protocol."""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from crow.config.variables import MCP_TOKEN
from crow.errors import CrowError

if TYPE_CHECKING:
    from crow.mcp.serving.server import CrowServer  # only for the types: `mcp` takes a second to import

HINT = "crow mcp speaks the Model Context Protocol on standard input and output: other programs start it."
SHORTEST_TOKEN = 16
EXAMPLES = """\
Without --root, the folders are those that the host names; if it names none, the one that the server is started in.

examples:
  crow mcp                          on standard input and output, as most hosts want it
  crow mcp --root ~/project         files of this folder only, whatever the host names
  crow mcp --http 8123 --terminal   over HTTP on this machine, and with commands
  crow mcp list                     the servers of your config.toml
  crow mcp test docs                start the server `docs` and list its tools; without a name, all of them
  crow mcp login docs               log in to the server `docs` of your config.toml
  crow mcp logout docs              delete the tokens of that login, and Crow's registration there
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "action",
        nargs="?",
        choices=["list", "test", "login", "logout"],
        help="about the servers that Crow itself uses: list them, try them, log in to one, or out",
    )
    parser.add_argument("server", nargs="?", metavar="NAME", help="that server, as in your config.toml, or its address")
    parser.add_argument(
        "--root", metavar="DIR", action="append", default=[], help="a folder to work in; may be given more than once"
    )
    parser.add_argument(
        "--terminal", action="store_true", help="offer `terminal` as well, for hosts that cannot run commands"
    )
    parser.add_argument(
        "--allow-protected",
        action="store_true",
        help="do not refuse files that may hold keys, or whose content can run later",
    )
    parser.add_argument(
        "--http",
        metavar="PORT",
        nargs="?",
        const=0,
        type=_port,
        help="serve over HTTP on this machine; without a port, a free one is taken and printed",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"holds the token that clients show over HTTP (or set {MCP_TOKEN}); by default a new one is printed",
    )
    parser.set_defaults(wrong_usage=parser.error)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def _refuse_what_is_not_for(action: str, arguments: argparse.Namespace) -> None:
    """Options of the server that we are would be passed over."""
    given = {
        "--root": arguments.root,
        "--terminal": arguments.terminal,
        "--allow-protected": arguments.allow_protected,
        "--http": arguments.http is not None,
        "--token-file": arguments.token_file is not None,
    }
    for option, is_given in given.items():
        if is_given:
            arguments.wrong_usage(f"{action} goes without {option}")
    if action == "list" and arguments.server is not None:
        arguments.wrong_usage(f"list: what is {arguments.server!r} for?")


def main(arguments: argparse.Namespace) -> int:
    if arguments.action is not None:
        _refuse_what_is_not_for(arguments.action, arguments)
    if arguments.action in ("list", "test"):
        from crow.cli.mcp_servers import list_servers, test_servers

        return list_servers() if arguments.action == "list" else test_servers(arguments.server)
    if arguments.action is not None:
        if not arguments.server:
            arguments.wrong_usage(f"{arguments.action}: say which server")
        from crow.cli.mcp_login import log_in, log_out

        return log_in(arguments.server) if arguments.action == "login" else log_out(arguments.server)
    if arguments.token_file is not None and arguments.http is None:
        arguments.wrong_usage("--token-file is for --http")
    for folder in arguments.root:
        if not os.path.isdir(folder):
            arguments.wrong_usage(f"--root: there is no folder {folder}")
    if arguments.http is not None:
        return _serve_http(arguments)
    return _serve_stdio(arguments)


def _serve_stdio(arguments: argparse.Namespace) -> int:
    from crow.cli import stdio

    streams = stdio.take_for("crow mcp", HINT)
    if streams is None:
        return 1
    # Only now: whatever prints while it is imported can no longer reach the client.
    from crow.cli.failure import output_failed
    from crow.cli.mcp_offering import run
    from crow.mcp.serving.stdio import serve_stdio

    async def serve(server: "CrowServer") -> None:
        try:
            await serve_stdio(server, *streams)
        except OSError as error:
            raise output_failed(error) from error

    return run(arguments, serve)


def _serve_http(arguments: argparse.Namespace) -> int:
    import secrets

    given = _given_token(arguments.token_file)
    from crow.cli.mcp_offering import run
    from crow.mcp.serving.http import address_of, listen, serve_http

    token = given or secrets.token_urlsafe(32)
    listener = listen(arguments.http)

    async def serve(server: "CrowServer") -> None:
        # Said when we run: whoever reads it may tell us to go the next moment.
        print(f"crow mcp: {address_of(listener)}", file=sys.stderr)
        if not given:
            print(f"token: {token}", file=sys.stderr)
        await serve_http(server, listener, token)

    return run(arguments, serve)


def _given_token(path: str | None) -> str:
    """From the file or the environment; empty if neither has one."""
    if path is None:
        return _checked(os.environ.get(MCP_TOKEN, ""), MCP_TOKEN)
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or "it is no text"
        raise CrowError(f"The token file {path} cannot be read: {said.lower()}.") from None
    if not token:
        raise CrowError(f"The token file {path} is empty.")
    return _checked(token, path)


def _checked(token: str, source: str) -> str:
    if token and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise CrowError(f"The token in {source} cannot be used: it needs {SHORTEST_TOKEN} plain characters or more.")
    return token
