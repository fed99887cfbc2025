"""The server of `crow web`: puts gate, page and WebSocket together, gives links and tokens away, and closes."""

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from crow.acp import wire
from crow.acp.agent import Agent, AttachedRoute, LazyHost
from crow.rpc.jsonrpc import ErrorCode, RpcError, errors_as_answers
from crow.rpc.lines import LONGEST_LINE
from crow.rpc.uvicorn_server import UvicornServer
from crow.web_server.built_files import BuiltFiles
from crow.web_server.connections import (
    ACCEPTED_AT_ONCE,
    GOING_AWAY,
    LISTEN_BACKLOG,
    POLICY_VIOLATION,
    HttpConnection,
    Receive,
    Send,
    ServerConfig,
    Strangers,
    WebSocketClient,
    WebSocketConnection,
)
from crow.web_server.gate import (
    LINK,
    PROTOCOL,
    TEXT,
    Credential,
    Gate,
    HttpAnswer,
    Refusal,
    Scope,
    content,
    refusal,
)
from crow.web_server.tokens import (
    Forget,
    GivenLink,
    GivenToken,
    KnownTokens,
    Links,
    Mistakes,
    StoredToken,
    Tokens,
)

logger = logging.getLogger(__name__)

ADDRESS = "127.0.0.1"
MOST_CLIENTS = 64
"""WebSockets at a time."""
PING_EVERY = 15.0
MOST_MISSED = 3
"""Intervals of pings without an answer, after which a client is dead."""
SHOWN_EVERY = 5.0
"""Seconds between two links or tokens that are shown in our terminal: a command could ask for any number."""
PROOF_PATH = "/proof"
LARGEST_HEAD = 32 * 1024
"""Bytes of a request's head."""


class Admitted(NamedTuple):
    """A client that may connect."""

    token: StoredToken
    secret: str
    """Its own token, if it came by a link and does not know that yet; else empty."""
    link: str = ""
    """That link."""


class WebServer:
    """`port` is the one it listens on; `behind` the address under which a proxy offers the page, if there is one; `cwd`
    the folder in which a session is likely to begin, if there is one."""

    def __init__(
        self,
        host: LazyHost,
        tokens: Tokens,
        files: BuiltFiles,
        port: int,
        behind: str = "",
        cwd: str = "",
        show: Callable[[str], str] = lambda _: "",
    ) -> None:
        """`show` is as `Faces.show_at_home`."""
        self._show = show
        self._shown_at = float("-inf")
        self._host = host
        self._tokens = tokens
        self._files = files
        self._links = Links()
        self._mistakes = Mistakes()
        own = f"http://{ADDRESS}:{port}"
        self.origin = behind or own
        self._is_behind = bool(behind)
        self._cwd = cwd
        self._gate = Gate([own, behind] if behind else [own])
        self._clients: dict[WebSocketClient, StoredToken] = {}
        self._talks: set[asyncio.Future[None]] = set()
        self._ending = False

    # --- links and tokens

    def new_link(self) -> GivenLink:
        """A link for a person, if there is a page."""
        link = f"{self.origin}/#link={self._links.make()}" if self._files.is_complete else ""
        return GivenLink(link=link, origin=self.origin, has_page=self._files.is_complete, is_behind=self._is_behind)

    def routes(self) -> Mapping[str, AttachedRoute]:
        """What other processes of the same user may ask for, on the unix socket alone."""
        return {
            "_crow/web/link": AttachedRoute(wire.Empty, self._give_link),
            "_crow/web/token": AttachedRoute(wire.Empty, self._give_token),
            "_crow/web/tokens": AttachedRoute(wire.Empty, self._list_tokens),
            "_crow/web/forget": AttachedRoute(Forget, self._forget),
        }

    def _give_link(self, request: wire.Empty, is_trusted: bool) -> GivenLink:
        if not is_trusted and self._files.is_complete:
            self._check_shows()
        given = self.new_link()
        if is_trusted or not given.link:
            return given
        self._show(f"New one-time link, valid for 10 minutes: {given.link}")
        return msgspec.structs.replace(given, link="")

    async def _give_token(self, request: wire.Empty, is_trusted: bool) -> GivenToken:
        if not is_trusted:
            self._check_shows()
        secret, stored = await self._tokens.make("crow web --token")
        if is_trusted:
            return GivenToken(token=secret, id=stored.id, origin=self.origin)
        self._show(f"New token: {secret}\nTo revoke it, run crow web --forget {stored.id}.")
        return GivenToken(origin=self.origin)

    def _check_shows(self) -> None:
        """RpcError if nothing can be shown to the person now: not where a command could read it, nor all the time."""
        now = time.monotonic()
        if now < self._shown_at + SHOWN_EVERY:
            raise RpcError(
                ErrorCode.INVALID_REQUEST, "One was just shown in the terminal of `crow web`. Wait a few seconds."
            )
        if not self._show(""):
            said = (
                f"Commands have run since, and crow web (process {os.getpid()}) has no terminal in which they "
                "cannot read a link. Restart it."
            )
            raise RpcError(ErrorCode.INVALID_REQUEST, said)
        self._shown_at = now

    def _list_tokens(self, request: wire.Empty, is_trusted: bool) -> KnownTokens:
        self._tokens.use(self._clients.values())
        return KnownTokens(tokens=list(self._tokens.all))

    async def _forget(self, request: Forget, is_trusted: bool) -> KnownTokens:
        if request.links:
            self._links.forget()
        gone = self._tokens.forget(request.ids)
        for client, token in self._clients.items():
            if token in gone:
                client.close(POLICY_VIOLATION, "access was revoked")
        with errors_as_answers():
            await self._tokens.store()
        return KnownTokens(tokens=list(gone))

    # --- requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._gate.check(scope)
        if isinstance(found, Refusal):
            await _answer(scope, send, refusal(*found))
        elif found is None:
            serve = self._prove if scope["path"] == PROOF_PATH else self._serve_file
            await _answer(scope, send, serve(scope))
        else:
            admitted = self._no_room() or await self._verify(found, scope)
            # Others may have come while the token was looked up, or the end.
            if isinstance(admitted, Admitted) and (refused := self._no_room()):
                self._left(admitted, was_told=False)
                admitted = refused
            if isinstance(admitted, Refusal):
                await _answer(scope, send, refusal(*admitted))
            else:
                await self._talk(admitted, scope, receive, send)

    def _no_room(self) -> Refusal | None:
        """Why no client is let in, whatever it shows."""
        if self._ending:
            return Refusal(503, "crow web is shutting down.")
        return Refusal(503, "Too many clients.") if len(self._clients) >= MOST_CLIENTS else None

    def _serve_file(self, scope: Scope) -> HttpAnswer:
        return self._files.answer(scope["path"])

    def _prove(self, scope: Scope) -> HttpAnswer:
        """A page shows its token to this server once the server has proved that it knows the token, at the address that
        the page has: so another program that got the port is shown none, nor can it have us answer in its place. The
        answer is empty if there is no such token."""
        asked = parse_qs(scope["query_string"].decode("latin-1"))
        id, nonce, origin = (asked.get(name, [""])[0] for name in ("id", "nonce", "origin"))
        proof = self._tokens.prove(id, f"{origin} {nonce}") if self._gate.is_own(origin) else ""
        return content(TEXT, proof.encode())

    async def _verify(self, shown: Credential, scope: Scope) -> Admitted | Refusal:
        self._tokens.use(self._clients.values())
        secret, token = "", None
        if shown.kind != LINK:
            token = await self._tokens.find(shown.secret)
        elif self._links.spend(shown.secret):
            secret, token = await self._tokens.make(_program(scope))
        if token is not None and self._tokens.knows(token):  # it may have been forgotten while it was stored
            return Admitted(token, secret, shown.secret if secret else "")
        if await self._mistakes.add():
            return Refusal(401, "Unknown or expired link or token. Run `crow web` for a new link.")
        return Refusal(429, "Too many wrong tokens. Try again later.")

    async def _talk(self, admitted: Admitted, scope: Scope, receive: Receive, send: Send) -> None:
        told: list[wire.RelayFacts] = []

        def facts(request: wire.InitializeRequest) -> wire.RelayFacts:
            told.append(_web_facts(admitted.secret, self._cwd, self._files.build))
            return told[0]

        agent = Agent(self._host, facts)
        client = WebSocketClient(agent, receive, send, scope["crow.abort"])
        self._clients[client] = admitted.token  # before anything is waited for: so it is counted, and told of the end
        talk = asyncio.ensure_future(_accept_and_run(client, scope, receive, send))
        self._talks.add(talk)
        try:
            await talk
        finally:
            self._talks.discard(talk)
            del self._clients[client]
            self._left(admitted, was_told=bool(told))

    def _left(self, admitted: Admitted, *, was_told: bool) -> None:
        """A page that lost its connection before it was told its token may open its link again."""
        if admitted.link:
            self._links.settle(admitted.link, is_used=was_told)
            if not was_told:
                self._tokens.forget([admitted.token.id])

    # --- serving

    async def serve(self, listener: socket.socket) -> None:
        """Until it is cancelled."""
        config = ServerConfig(
            self,  # pyright: ignore[reportArgumentType] -- an application as the interface has it, with plain types
            http=HttpConnection,
            ws=WebSocketConnection,
            ws_max_size=LONGEST_LINE,
            ws_ping_interval=PING_EVERY,
            ws_ping_timeout=MOST_MISSED * PING_EVERY,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            log_level="error",  # not what strangers do wrong: they could fill the log with it
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=ACCEPTED_AT_ONCE,
            h11_max_incomplete_event_size=LARGEST_HEAD,
            timeout_graceful_shutdown=1,
        )
        config.strangers = Strangers()
        await UvicornServer(config, lambda: listener.listen(LISTEN_BACKLOG)).serve([listener])

    async def close(self) -> None:
        """Tells every client that this ends, and waits until they have left."""
        self._ending = True
        for client in self._clients:
            client.close(GOING_AWAY, "crow web is shutting down")
        if self._talks:
            await asyncio.wait(self._talks)


def _web_facts(secret: str, cwd: str, page: str) -> wire.RelayFacts:
    """A page that came by a link is given its own token; every one is told where a session is likely to begin, and
    which build of the page is served."""
    return wire.RelayFacts(token=secret, cwd=cwd, home=os.path.expanduser("~"), page=page)


async def _accept_and_run(client: WebSocketClient, scope: Scope, receive: Receive, send: Send) -> None:
    await receive()  # that it wants to connect
    headers = [(b"acp-connection-id", secrets.token_hex(16).encode())]
    chosen = PROTOCOL if PROTOCOL in scope["subprotocols"] else None
    await send({"type": "websocket.accept", "subprotocol": chosen, "headers": headers})
    await client.run()


async def _answer(scope: Scope, send: Send, answer: HttpAnswer) -> None:
    kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
    await send({"type": f"{kind}.start", "status": answer.status, "headers": answer.closing_headers})
    shown = b"" if scope["type"] == "http" and scope["method"] == "HEAD" else answer.body
    await send({"type": f"{kind}.body", "body": shown})


def _program(scope: Scope) -> str:
    """What a client says that it is."""
    found: Any = next((value for name, value in scope["headers"] if name.lower() == b"user-agent"), b"")
    return bytes(found).decode("latin-1")
