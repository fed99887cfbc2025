"""An MCP server over HTTP that wants a login, and the authorisation server for it, on one port of this machine.

It prints the port. Whoever opens the login page is let in at once. Tokens last as many seconds as the argument says; in
the folder that may follow, a file `refused` names those that are no longer taken, with `closed` none is renewed, and
`forgotten` says how many of the clients that were registered first are known no longer.
"""

import socket
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, RefreshToken
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl


class Doorman:
    def __init__(self, seconds: int, folder: Path) -> None:
        self.seconds = seconds
        self.folder = folder
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.tokens: dict[str, AccessToken] = {}
        self.refreshing: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        forgotten = self.folder / "forgotten"
        known = list(self.clients)[int(forgotten.read_text()) if forgotten.exists() else 0 :]
        return self.clients[client_id] if client_id in known else None

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = f"code-{len(self.codes)}"
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=[],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
        )
        return f"{params.redirect_uri}?code={code}&state={params.state}"

    async def load_authorization_code(self, client: object, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        return self.issue(client.client_id or "")

    async def load_refresh_token(self, client: object, refresh_token: str) -> RefreshToken | None:
        return None if (self.folder / "closed").exists() else self.refreshing.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        return self.issue(client.client_id or "")

    async def load_access_token(self, token: str) -> AccessToken | None:
        refused = self.folder / "refused"
        return None if refused.exists() and token in refused.read_text().split() else self.tokens.get(token)

    async def revoke_token(self, token: object) -> None:
        pass

    def issue(self, client: str) -> OAuthToken:
        number = len(self.tokens)
        access, refresh = f"secret-access-{number}", f"secret-refresh-{number}"
        expiry = int(time.time()) + self.seconds
        self.tokens[access] = AccessToken(token=access, client_id=client, scopes=[], expires_at=expiry)
        self.refreshing[refresh] = RefreshToken(token=refresh, client_id=client, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.seconds)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(address),
        resource_server_url=AnyHttpUrl(f"{address}/mcp"),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        validate_token_resource=False,
    )
    doorman = Doorman(int(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "/nowhere"))
    server = MCPServer("guarded", auth_server_provider=doorman, auth=settings)  # pyright: ignore[reportArgumentType] -- what this server does not need is left out

    @server.tool()
    def open_safe() -> str:
        """Opens the safe."""
        return "a cake"

    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="critical")).run(sockets=[listener])


if __name__ == "__main__":
    main()
