"""Logs in to an MCP server over HTTP (OAuth): the browser's page, the port to which it returns, and tokens that are
stored and renewed.

What a login leaves is stored below CROW_HOME: the tokens, and the registration of this client.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl, ValidationError

from crow.actions import Link
from crow.config.home import write_file
from crow.config.settings import McpServerSettings
from crow.errors import ConfigError
from crow.mcp.client.configured import ConfiguredServer, bare_address
from crow.mcp.client.elicitation import Asker
from crow.mcp.client.message_guard import MessageGuard
from crow.mcp.client.remote import UNAUTHORISED, Remote
from crow.mcp.client.server_errors import LoginNeeded, ServerFailed, as_failure, first_of
from crow.timeouts import timeout
from mcp import Client

logger = logging.getLogger(__name__)
LOGIN_TIMEOUT = 300.0
"""Seconds that the person has in the browser."""
PAGE = "Crow is logged in. You can close this page."
PAGE_REFUSED = "The login was rejected, so Crow is not logged in. You can close this page."
PAGE_STRANGE = "This is not the login that Crow is waiting for. Nothing was changed."
LONG_AGO = 1.0
"""The expiry that is noted for a token that the server no longer accepts: long past."""
_LONGEST_REQUEST = 16 * 1024


# --- what a login leaves


class _StoredLogin(msgspec.Struct, frozen=True):
    url: str
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    places: dict[str, Any] | None = None
    """Where the authorisation server renews tokens, in its own words."""


class TokenStorage:
    """What is known of one address, in a file below CROW_HOME that only its owner can read.

    Tokens belong to an address, not to a name: whoever names another address gets none of them. What an address says
    after its path does not count: nobody is told it, and so nobody could log in by it.
    """

    def __init__(self, home: str, url: str) -> None:
        self._url = bare_address(url)
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:32]
        self._path = os.path.join(home, "mcp", "tokens", f"{digest}.json")

    @property
    def are_there(self) -> bool:
        return self._read().tokens is not None

    def port(self) -> int:
        """The port of the redirect address that this client was registered with; 0 if it was not registered."""
        uris = (self._read().client or {}).get("redirect_uris") or [""]
        return urlsplit(str(uris[0])).port or 0

    def store_metadata(self, metadata: OAuthMetadata | None) -> None:
        if metadata is not None:
            places = metadata.model_dump(mode="json", exclude_none=True)
            self._write(msgspec.structs.replace(self._read(), places=places))

    def recall(self, provider: OAuthClientProvider) -> None:
        """What the library does not keep by itself: without it no token could be renewed."""
        kept = self._read()
        provider.context.current_tokens = _understood(OAuthToken, kept.tokens)
        provider.context.token_expiry_time = kept.expires_at
        provider.context.oauth_metadata = _understood(OAuthMetadata, kept.places)

    def delete(self) -> bool:
        """Deletes the stored login. False if there was none."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ServerFailed(f"{self._path} cannot be deleted: {error.strerror}") from None
        return True

    async def get_tokens(self) -> OAuthToken | None:
        return _understood(OAuthToken, self._read().tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at = None if tokens.expires_in is None else time.time() + tokens.expires_in
        kept = tokens.model_dump(mode="json", exclude_none=True)
        self._write(msgspec.structs.replace(self._read(), tokens=kept, expires_at=expires_at))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return _understood(OAuthClientInformationFull, self._read().client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        client = client_info.model_dump(mode="json", exclude_none=True)
        self._write(msgspec.structs.replace(self._read(), client=client))

    def _read(self) -> _StoredLogin:
        try:
            with open(self._path, "rb") as file:
                kept = msgspec.json.decode(file.read(), type=_StoredLogin)
        except (OSError, msgspec.DecodeError, UnicodeError):
            return _StoredLogin(self._url)
        return kept if kept.url == self._url else _StoredLogin(self._url)

    def _write(self, kept: _StoredLogin) -> None:
        try:
            write_file(self._path, msgspec.json.encode(kept))
        except ConfigError as error:
            raise ServerFailed(f"the login cannot be saved: {error.message}") from None


class PendingTokenStorage(TokenStorage):
    """Those of a login that has begun, with a registration of its own: the server may have forgotten the former one.

    Nothing is kept before it has worked.
    """

    def __init__(self, home: str, url: str) -> None:
        super().__init__(home, url)
        self._now = _StoredLogin(self._url)

    def keep(self) -> None:
        super()._write(self._now)

    def _read(self) -> _StoredLogin:
        return self._now

    def _write(self, kept: _StoredLogin) -> None:
        self._now = kept


def _understood(kind: Any, value: dict[str, Any] | None) -> Any:
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError:
        return None


# --- using it


def with_stored_tokens(home: str, url: str) -> httpx2.Auth | None:
    """Lets itself in with what a login has left, and asks nobody. None if there was no login."""
    tokens = TokenStorage(home, url)

    async def refuse(url: str) -> None:
        raise LoginNeeded

    async def wait() -> AuthorizationCodeResult:
        raise LoginNeeded

    if not tokens.are_there:
        return None
    return Renewing(_provider(url, tokens, tokens.port(), refuse, wait), tokens)


class Renewing(httpx2.Auth):
    """Tokens are renewed when their time is up, which the library does, and also when a server says that it is.

    Other sessions share them: one that was renewed elsewhere is taken from the file instead.
    """

    def __init__(self, provider: OAuthClientProvider, tokens: TokenStorage) -> None:
        self._provider = provider
        self._tokens = tokens
        tokens.recall(provider)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if not self._provider.context.is_token_valid():
            self._tokens.recall(self._provider)
        for may_renew in (True, False):
            async with aclosing(self._provider.async_auth_flow(request)) as flow:
                try:
                    sent = await anext(flow)
                    while True:
                        response = yield sent
                        if may_renew and sent is request and response.status_code == UNAUTHORISED:
                            break  # the library would ask for a new login at once
                        sent = await flow.asend(response)
                except StopAsyncIteration:
                    return
            self._take_another(request.headers.get("authorization", ""))

    def _take_another(self, refused: str) -> None:
        """In place of the token that was refused: the one that is there by now, or a new one."""
        context = self._provider.context
        if _is_shown(context.current_tokens, refused):
            self._tokens.recall(self._provider)
        if _is_shown(context.current_tokens, refused):
            context.token_expiry_time = LONG_AGO


def _is_shown(tokens: OAuthToken | None, header: str) -> bool:
    return tokens is not None and header == f"Bearer {tokens.access_token}"


# --- a login


async def log_in(
    settings: McpServerSettings, home: str, show: Callable[[str], Awaitable[None]], *, patience: float = LOGIN_TIMEOUT
) -> None:
    """`show` brings the address of the login page to the person. ServerFailed says why it did not work."""
    tokens = PendingTokenStorage(home, settings.url)
    async with _listening() as (port, login):

        async def show_page(url: str) -> None:
            login.state = parse_qs(urlsplit(url).query).get("state", [""])[0]
            await show(url)

        async def wait() -> AuthorizationCodeResult:
            try:
                async with timeout(patience):
                    return await login.answer
            except TimeoutError:
                raise ServerFailed("nobody logged in in time", lasting=True) from None

        auth = _provider(settings.url, tokens, port, show_page, wait)
        guard = MessageGuard(asyncio.get_running_loop().time, lambda name, fault: None)
        transport = Remote(settings, auth, guard, lambda unauthorised: None, lambda failure: None)
        try:
            async with Client(transport, mode="legacy", cache=None):
                tokens.store_metadata(auth.context.oauth_metadata)
                tokens.keep()
        except Exception as error:  # noqa: BLE001 -- the edge of a library: its failure becomes ours
            logger.debug("a login to an MCP server failed: %s", type(first_of(error)).__name__)
            raise as_failure(error) from None


async def log_in_through(asker: Asker, server: ConfiguredServer, known_as: str, home: str) -> None:
    """The same, where the person's client can show an address: it does, and is told when the person is done."""
    link_id = f"login-{known_as}"

    async def show(url: str) -> None:
        link = Link("", f"Log in to the MCP server {server.shown_name}.", url, link_id)
        if not await asker.visit(link):
            raise ServerFailed("you did not log in", lasting=True)

    await log_in(server.settings, home, show)
    asker.visited(link_id)


def _provider(
    url: str,
    tokens: TokenStorage,
    port: int,
    show: Callable[[str], Awaitable[None]],
    wait: Callable[[], Awaitable[AuthorizationCodeResult]],
) -> OAuthClientProvider:
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(f"http://127.0.0.1:{port or 1}/callback")],
        client_name="Crow",
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",  # noqa: S106 -- no password
    )
    return OAuthClientProvider(url, metadata, tokens, redirect_handler=show, callback_handler=wait)


# --- where the browser comes back to


class _AwaitedLogin:
    """A login that the browser has still to come back from."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self.state = ""
        """What the login page was given to bring back, and nobody else knows; empty before that page was shown."""

    def take(self, line: str) -> tuple[str, str]:
        """The answer to a request with that first line: status and page. Whoever does not bring the state (any page and
        any program can knock at a port) ends nothing."""
        method, target, _ = line.split(" ")
        address = urlsplit(target)
        if method != "GET" or address.path != "/callback" or self.answer.done():
            return "404 Not Found", "Not found."
        values = {name: found[0] for name, found in parse_qs(address.query).items()}
        state = values.get("state", "")
        if not self.state or not hmac.compare_digest(state.encode(), self.state.encode()):
            return "400 Bad Request", PAGE_STRANGE
        if "code" not in values:
            self.answer.set_exception(ServerFailed("the login was rejected", lasting=True))
            return "200 OK", PAGE_REFUSED
        self.answer.set_result(AuthorizationCodeResult(code=values["code"], state=state, iss=values.get("iss")))
        return "200 OK", PAGE


@asynccontextmanager
async def _listening() -> AsyncGenerator[tuple[int, _AwaitedLogin]]:
    """Listens on any free port, and gives the port and the login that the browser brings an answer to."""
    login = _AwaitedLogin()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            status, page = login.take(head.split(b"\r\n", 1)[0].decode("ascii"))
            body = page.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
                "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=_LONGEST_REQUEST)
    try:
        yield int(server.sockets[0].getsockname()[1]), login
    finally:
        server.close()
        login.answer.cancel()
