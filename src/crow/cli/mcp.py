"""`crow mcp`: serves our tools over the Model Context Protocol, on stdio or HTTP with a token; and `crow mcp list`,
`test`, `login` and `logout`.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING

from crow.config.discovery import MCP_TOKEN
from crow.config.home import config_path, home
from crow.config.hosts import shown_address
from crow.config.load import load_settings
from crow.config.settings import McpServerSettings
from crow.errors import CrowError

if TYPE_CHECKING:
    from crow.mcp.server.server import CrowServer  # only for the types: `mcp` takes a second to import

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
            arguments.wrong_usage(f"{action} does not take {option}")
    if action == "list" and arguments.server is not None:
        arguments.wrong_usage(f"list: unexpected argument {arguments.server!r}")


def main(arguments: argparse.Namespace) -> int:
    if arguments.action is not None:
        _refuse_what_is_not_for(arguments.action, arguments)
    if arguments.action in ("list", "test"):
        return _list_servers() if arguments.action == "list" else _test_servers(arguments.server)
    if arguments.action is not None:
        if not arguments.server:
            arguments.wrong_usage(f"{arguments.action}: name a server")
        return _log_in(arguments.server) if arguments.action == "login" else _log_out(arguments.server)
    if arguments.token_file is not None and arguments.http is None:
        arguments.wrong_usage("--token-file needs --http")
    for folder in arguments.root:
        if not os.path.isdir(folder):
            arguments.wrong_usage(f"--root: no such folder: {folder}")
    if arguments.http is not None:
        return _serve_http(arguments)
    return _serve_stdio(arguments)


# --- the server


def _serve_stdio(arguments: argparse.Namespace) -> int:
    from crow.cli.process import output_failed, take_streams_for

    streams = take_streams_for("crow mcp", HINT)
    if streams is None:
        return 1
    # Only now: whatever prints while it is imported can no longer reach the client.
    from crow.cli.mcp_server import run
    from crow.mcp.server.stdio import serve_stdio

    async def serve(server: "CrowServer") -> None:
        try:
            await serve_stdio(server, *streams)
        except OSError as error:
            raise output_failed(error) from error

    return run(arguments, serve)


def _serve_http(arguments: argparse.Namespace) -> int:
    import secrets

    given = _given_token(arguments.token_file)
    from crow.cli.mcp_server import run
    from crow.mcp.server.http import address_of, listen, serve_http

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


# --- the servers that Crow uses


def _list_servers() -> int:
    from crow.cli.doctor_connections import shown_settings
    from crow.mcp.client.configured import shown_name

    place = home(os.environ)
    servers = load_settings(place).mcp_servers
    if not servers:
        print(f"No MCP servers in {config_path(place)}. Your editor and projects may add some: see /mcp.")
    width = max((len(shown_name(name)) for name in servers), default=0)
    for name, settings in servers.items():
        print(f"{shown_name(name):<{width}}  {shown_settings(settings)}")
    return 0


def _test_servers(name: str | None) -> int:
    """Starts one server, or all; 1 if one of them does not work."""
    from crow.cli.doctor_connections import check_of, try_servers

    place = home(os.environ)
    settings = load_settings(place)
    servers = settings.mcp_servers
    if name is not None and name not in servers:
        others = f"Available: {', '.join(servers)}." if servers else "None is configured."
        raise CrowError(f'Unknown MCP server "{name}" in your config.toml. {others}')
    wanted = servers if name is None else {name: servers[name]}
    if not wanted:
        return _list_servers()
    status = 0
    for server in try_servers(wanted, settings.limits, place):
        check = check_of(server, wanted[server.name], place)
        if check.outcome == "fine":
            print(f"{check.text}:")
            for tool, cost in server.tools:
                print(f"  {tool}  (about {cost:,} tokens in every request)")
        else:
            status = 1
            print("\n  ".join([f"crow: {check.text}", *check.remedy.splitlines()]), file=sys.stderr)
    return status


def _log_out(name: str) -> int:
    from crow.mcp.client.login import TokenStorage
    from crow.mcp.client.server_errors import ServerFailed

    folder = home(os.environ)
    url, name = _server(name, folder).url, _shown(name)
    try:
        was_there = TokenStorage(folder, url).delete()
    except ServerFailed as failed:
        raise CrowError(f"Not logged out of {name}: {failed.message}.") from None
    if was_there:
        print(f"Logged out of {name}. Its tokens and Crow's registration were deleted from this machine.")
    else:
        print(f"Not logged in to {name} on this machine.")
    return 0


def _log_in(name: str) -> int:
    """A name of `[mcp_servers]`, or the address of a server that an editor or a project brings."""
    import asyncio
    import logging

    from crow.mcp.client import login
    from crow.mcp.client.server_errors import ServerFailed

    logging.disable()  # the library would log what is nobody else's business
    folder = home(os.environ)
    settings, name = _server(name, folder), _shown(name)

    async def show(url: str) -> None:
        print(f"Open this page in a browser on this machine and log in:\n\n{url}\n", flush=True)

    try:
        asyncio.run(login.log_in(settings, folder, show))
    except ServerFailed as failed:
        raise CrowError(f"Not logged in to {name}: {failed.message.rstrip('.')}.") from None
    print(f"Logged in to {name}.")
    return 0


def _shown(name: str) -> str:
    """An address may hold a key."""
    return shown_address(name) if _is_address(name) else name


def _is_address(name: str) -> bool:
    return name.startswith(("http://", "https://"))


def _server(name: str, folder: str) -> McpServerSettings:
    if _is_address(name):
        return McpServerSettings(url=name)
    servers = load_settings(folder).mcp_servers
    if name not in servers:
        known = ", ".join(server for server, one in servers.items() if one.url) or "none"
        raise CrowError(
            f'Unknown MCP server "{name}" in your config.toml. With an address: {known}.',
            remedy="Give one of these names, or an address.",
        )
    if not servers[name].url:
        raise CrowError(f"The MCP server {name} is a local program and has no login.")
    return servers[name]
