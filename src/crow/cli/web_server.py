"""Puts the server of `crow web` together (its port, its socket for other processes, its page), and runs it."""

import argparse
import asyncio
import logging
import os
import select
import socket
import sys

from crow.acp.agent import LazyHost
from crow.cli.process import in_a_folder, log_to_file, serve_until_shutdown
from crow.cli.web import DEFAULT_PORT, show_link
from crow.errors import CrowError
from crow.store.web_owner import WebOwner
from crow.web_server.app import ADDRESS, WebServer
from crow.web_server.built_files import find_built_files
from crow.web_server.tokens import Tokens


def serve(folder: str, owner: WebOwner, arguments: argparse.Namespace) -> int:
    log_to_file(folder)
    listener = listen(arguments.port)

    async def serve_and_leave() -> int:
        host = LazyHost(folder, os.environ)
        host.outlives_clients = True
        port = listener.getsockname()[1]
        started_in = os.getcwd() if in_a_folder() else ""
        tokens = Tokens(folder)
        if arguments.port is None and port != DEFAULT_PORT:
            _tell_of_other_port(port, has_pages=bool(tokens.all))
        server = WebServer(host, tokens, find_built_files(), port, arguments.behind or "", started_in, _show)
        host.attached_routes = server.routes()
        host.get().show_at_home = _show
        path = await host.get().ownership.socket_opened()
        if path:
            owner.publish(os.path.basename(path), server.origin)
        show_link(server.new_link(), open_it=arguments.open)

        async def close() -> None:
            owner.withdraw()
            await server.close()
            await host.end()

        async def finish() -> None:
            """Turns that editors watch are finished; the editors go on with their sessions."""
            owner.withdraw()
            await server.close()
            ownership = host.get().ownership
            if ownership.has_others(None):
                print("Waiting for turns that editors watch. Press Ctrl-C again to stop them.", file=sys.stderr)
                await ownership.hand_over()

        status = await serve_until_shutdown(server.serve(listener), close, finish)
        # Not by returning: the interpreter would wait for threads that may hang in a file or a name look-up.
        logging.shutdown()
        os._exit(status)

    return asyncio.run(serve_and_leave())


def _show(text: str) -> str:
    """Shows the person a line in the terminal of this process, and says where that is; empty if there is none: commands
    can read files. One that is stopped, and so takes nothing, is none."""
    if not sys.stderr.isatty() or not select.select([], [sys.stderr], [], 0)[1]:
        return ""
    if text:
        print(text, file=sys.stderr, flush=True)
    return "the terminal of `crow web`"


def listen(wanted: int | None) -> socket.socket:
    """A socket that only this machine reaches. Without a wish it is the usual port, or a free one."""
    try:
        return socket.create_server((ADDRESS, wanted or DEFAULT_PORT))
    except OSError as error:
        if wanted is not None:
            said = f"Port {wanted} is not available: {os.strerror(error.errno or 0).lower()}."
            raise CrowError(said, remedy="Choose another with --port, or leave it out.") from None
    return socket.create_server((ADDRESS, 0))


def _tell_of_other_port(port: int, *, has_pages: bool) -> None:
    """Whoever has the port now has the browser's storage of that address, if one of our pages is loaded anew there."""
    print(f"Port {DEFAULT_PORT} is in use by another program; using {port}.", file=sys.stderr)
    if has_pages:
        said = "If you loaded a page of Crow anew there, it may have the page's token: crow web --forget all ends it."
        print(said, file=sys.stderr)
