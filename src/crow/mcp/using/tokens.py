"""What a login leaves: tokens, and the registration of this client, in a file below CROW_HOME.

Tokens belong to an address, not to a name: whoever names another address gets none of them. What an address says after
its path does not count: nobody is told it, and so nobody could log in by it.
"""

import hashlib
import os
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from crow.config.home import write_file
from crow.errors import ConfigError
from crow.mcp.using.failures import ServerFailed
from crow.mcp.using.server_address import bare_address


class _Kept(msgspec.Struct, frozen=True):
    url: str
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    places: dict[str, Any] | None = None
    """Where the authorisation server renews tokens, in its own words."""


class Tokens:
    """What is known of one address, in a file below CROW_HOME that only its owner can read."""

    def __init__(self, home: str, url: str) -> None:
        self._url = bare_address(url)
        digest = hashlib.sha256(self._url.encode()).hexdigest()[:32]
        self._path = os.path.join(home, "mcp", "tokens", f"{digest}.json")

    @property
    def are_there(self) -> bool:
        return self._read().tokens is not None

    def port(self) -> int:
        """The one that this client was registered with; 0 if it was not."""
        uris = (self._read().client or {}).get("redirect_uris") or [""]
        return urlsplit(str(uris[0])).port or 0

    def keep_places(self, metadata: OAuthMetadata | None) -> None:
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
        """False if there was nothing."""
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

    def _read(self) -> _Kept:
        try:
            with open(self._path, "rb") as file:
                kept = msgspec.json.decode(file.read(), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeError):
            return _Kept(self._url)
        return kept if kept.url == self._url else _Kept(self._url)

    def _write(self, kept: _Kept) -> None:
        try:
            write_file(self._path, msgspec.json.encode(kept))
        except ConfigError as error:
            raise ServerFailed(f"its login cannot be kept: {error.message}") from None


class NewTokens(Tokens):
    """Those of a login that has begun, with a registration of its own: the server may have forgotten the former one.

    Nothing is kept before it has worked.
    """

    def __init__(self, home: str, url: str) -> None:
        super().__init__(home, url)
        self._now = _Kept(self._url)

    def keep(self) -> None:
        super()._write(self._now)

    def _read(self) -> _Kept:
        return self._now

    def _write(self, kept: _Kept) -> None:
        self._now = kept


def _understood(kind: Any, value: dict[str, Any] | None) -> Any:
    try:
        return None if value is None else kind.model_validate(value)
    except ValidationError:
        return None
