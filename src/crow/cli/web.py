"""`crow web`: serves the page and the protocol to browsers of this machine, and prints a link; beside one that runs, a
link to that one.
"""

import argparse
import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING, TypeVar

from crow.config.home import home
from crow.errors import CrowError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crow.store.web_owner import RunningWeb
    from crow.web_server.tokens import GivenLink, StoredToken

Answer = TypeVar("Answer")

START_TIMEOUT = 10.0
"""Seconds that one that starts gets to say where it is."""
DEFAULT_PORT = 2769
"""The letters of "crow" on a telephone's keys."""
EXAMPLES = """\
The link works once, for 10 minutes. The browser that opens it gets a token, which expires after 30 days without use.
Run `crow web` again while it is running for another link.

examples:
  crow web --open                              serve, and open the page in the browser
  crow web --behind https://me.example.ts.net  a proxy of yours offers it under that address, with TLS
  crow web --token                             a token for another client of the protocol, at /acp
  crow web --forget                            list the tokens of pages and clients
  crow web --forget all                        revoke all of them
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--port", metavar="PORT", type=_port, help=f"the port (default: {DEFAULT_PORT})")
    parser.add_argument("--open", action="store_true", help="open the link in the browser")
    parser.add_argument(
        "--behind",
        metavar="ORIGIN",
        type=_origin,
        help="the address under which a proxy of yours offers the page, such as https://me.example.ts.net",
    )
    parser.add_argument("--token", action="store_true", help="print a token for another client")
    parser.add_argument(
        "--forget",
        metavar="ID",
        nargs="?",
        const="",
        help="revoke the token with this ID, or all; without an ID, list them",
    )
    parser.set_defaults(wrong_usage=parser.error)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)


def _origin(text: str) -> str:
    """An address as browsers write it in `Origin`. Without TLS it can only be one of this machine's."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    usual = {"http": 80, "https": 443}.get(text.partition(":")[0], 0)
    written = f"[{host}]" if ":" in host else host
    if not host or not usual or text != f"{parts.scheme}://{written}{'' if port is None else f':{port}'}":  # pyright: ignore[reportPossiblyUnboundVariable] -- it is bound where there is a host
        raise argparse.ArgumentTypeError(f"expected an address like https://me.example.ts.net, found {text!r}")
    if not host.isascii():
        sent = text.replace(host, host.encode("idna").decode())
        raise argparse.ArgumentTypeError(f"write it as browsers send it: {sent}")
    if port == usual:
        raise argparse.ArgumentTypeError(f"leave out :{port}, which browsers do not send")
    if usual == 80 and host not in ("localhost", "127.0.0.1", "::1") and not host.endswith(".localhost"):
        raise argparse.ArgumentTypeError(f"{text} is without TLS, so that others could read along: use https")
    return text


def main(arguments: argparse.Namespace) -> int:
    from crow.store.web_owner import WebOwner

    if arguments.token and arguments.forget is not None:
        arguments.wrong_usage("--token cannot be combined with --forget")
    folder = home(os.environ)
    owner = WebOwner.claim(folder)
    if owner is None:
        return asyncio.run(_beside(arguments, folder))
    try:
        if arguments.token:
            raise CrowError("crow web is not running.", remedy="Start it, then run crow web --token.")
        if arguments.forget is not None:
            return asyncio.run(_forget(folder, arguments.forget))
        from crow.cli.web_server import serve

        return serve(folder, owner, arguments)
    finally:
        owner.close()


# --- without one that runs


async def _forget(folder: str, id: str) -> int:
    from crow.web_server.tokens import Tokens

    tokens = Tokens(folder)
    chosen = _chosen(tokens.all, id)
    if chosen is None:
        return _list(tokens.all)
    gone = tokens.forget(chosen)
    await tokens.store()
    return _say_forgotten(gone)


# --- beside one that runs


async def _beside(arguments: argparse.Namespace, folder: str) -> int:
    from crow.acp.owner_link import ask_owner
    from crow.web_server.tokens import Forget, GivenLink, GivenToken, KnownTokens

    web = await _running(folder)

    async def ask(method: str, params: object, result: type[Answer]) -> Answer:
        return await ask_owner(web.owner, web.socket, method, params, result)

    if arguments.token:
        token = await ask("_crow/web/token", {}, GivenToken)
        if token.token:
            _print_token(token.token, token.id)
        else:
            print(f"The token is in {_terminal_of(web)}.", file=sys.stderr)
        print(f"Use it at {web_socket_address(token.origin)}.", file=sys.stderr)
        return 0
    if arguments.forget is not None:
        known = (await ask("_crow/web/tokens", {}, KnownTokens)).tokens
        chosen = _chosen(known, arguments.forget)
        if chosen is None:
            return _list(known)
        forget = Forget(ids=chosen, links=arguments.forget == "all")
        return _say_forgotten((await ask("_crow/web/forget", forget, KnownTokens)).tokens)
    _refuse_other_address(arguments, web)
    given = await ask("_crow/web/link", {}, GivenLink)
    if given.has_page and not given.link:
        print(f"crow web is already running: a new link is in {_terminal_of(web)}.", file=sys.stderr)
        return 0
    follows = " New link:" if given.has_page else ""
    print(f"crow web is already running (process {web.process}).{follows}", file=sys.stderr)
    show_link(given, open_it=arguments.open)
    return 0


def _terminal_of(web: "RunningWeb") -> str:
    """Where commands of Crow's, which could ask for a link as well, cannot read it."""
    return f"the terminal of that crow web (process {web.process})"


async def _running(folder: str) -> "RunningWeb":
    """The one that runs. It may be starting just now, or ending."""
    from crow.commands.processes import is_command
    from crow.store.web_owner import find_web

    end = time.monotonic() + START_TIMEOUT
    while (web := find_web(folder)) is None or not web.socket:
        if time.monotonic() > end:
            raise CrowError("The running crow web does not answer.", remedy="Stop it and start another.")
        await asyncio.sleep(0.05)
    if is_command(int(web.process)):
        # A command that serves our sessions could answer the question whether it may run.
        said = f"The crow web that runs (process {web.process}) was started by a command of Crow's."
        raise CrowError(said, remedy="Stop it, and start one yourself.")
    return web


def _refuse_other_address(arguments: argparse.Namespace, web: "RunningWeb") -> None:
    is_elsewhere = arguments.behind not in (None, web.origin)
    if arguments.port and not arguments.behind and web.origin != f"http://127.0.0.1:{arguments.port}":
        is_elsewhere = True
    if is_elsewhere:
        raise CrowError(
            f"crow web is already running at {web.origin} (process {web.process}).",
            remedy="Stop it first to use another address.",
        )


# --- what is printed


def show_link(given: "GivenLink", *, open_it: bool) -> None:
    """Prints the link; where there is no page, the sentence that says so."""
    if not given.has_page:
        from crow.web_server.built_files import MISSING, REMEDY

        print(f"crow: {MISSING} {REMEDY}", file=sys.stderr)
        print(f"Clients with a token (crow web --token) are served at {web_socket_address(given.origin)}.", flush=True)
        return
    print(given.link, flush=True)
    if given.is_behind:
        _print_code(given.link)
    print("One-time link, valid for 10 minutes. For another: crow web", file=sys.stderr)
    if open_it:
        from functools import partial

        from crow.threads import start_thread

        start_thread(partial(_open_in_browser, given.link), "crow-browser")


def web_socket_address(origin: str) -> str:
    return f"{origin.replace('http', 'ws', 1)}/acp"


def _print_code(link: str) -> None:
    """For the camera of another machine. On this one nobody needs it: the link leads nowhere else then."""
    import io

    import segno

    drawn = io.StringIO()
    segno.make(link, micro=False, error="l").terminal(drawn, border=2, compact=True)
    print(drawn.getvalue(), file=sys.stderr)


def _open_in_browser(link: str) -> None:
    """In a thread, as a browser may take its time. For a moment the link stands in the list of processes, and
    nothing can be done about it: whoever is faster than the browser spends it, and the page says so."""
    import shutil
    import subprocess
    import webbrowser

    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or sys.platform == "darwin"
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if os.environ.get("BROWSER"):
        is_open = webbrowser.open(link)
    elif has_screen and opener is not None:
        null = subprocess.DEVNULL
        opened = subprocess.run([opener, link], check=False, stdin=null, stdout=null, stderr=null)  # noqa: S603 -- ours
        is_open = opened.returncode == 0
    else:
        is_open = False
    if not is_open:
        print("No browser could be opened. Open the link yourself.", file=sys.stderr, flush=True)


def _print_token(secret: str, id: str) -> None:
    print(secret, flush=True)
    print(f"Clients send it as `Authorization: Bearer TOKEN`. To revoke it: crow web --forget {id}", file=sys.stderr)


def _chosen(known: "Sequence[StoredToken]", id: str) -> list[str] | None:
    """The ids of those to forget; None if nothing but a list is wanted."""
    if not id:
        return None
    ids = [token.id for token in known if id in ("all", token.id)]
    if not ids and id != "all":
        raise CrowError(f"No token {id[:40]!r}.", remedy="To list tokens: crow web --forget")
    return ids


def _list(known: "Sequence[StoredToken]") -> int:
    if not known:
        print("No tokens.")
    for token in known:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(token.used))
        print(f"{token.id}  last used {used}  {token.name}")
    return 0


def _say_forgotten(gone: "Sequence[StoredToken]") -> int:
    print(f"Revoked: {', '.join(token.id for token in gone) or 'none'}.")
    return 0
