"""`crow mcp --http`: on this machine only, with a token, for several clients, and for no web page."""

import asyncio
import json
import socket
import subprocess
from pathlib import Path

import httpx2
import pytest

from tests.mcp.hosts import HttpServer, Roots, done, refused, serving_http
from tests.support.editor import clean_environment
from tests.support.patience import DEADLINE
from tests.support.warm import CROW, warm

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def post(server: HttpServer, **headers: str) -> httpx2.Response:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(server.url, content=json.dumps(HELLO), headers=ACCEPT | sent)


def test_only_who_shows_the_token_is_served(tmp_path: Path):
    with serving_http(tmp_path) as server:
        assert post(server, Authorization=f"Bearer {server.token}").status_code == 200
        assert post(server, Authorization=f"bearer {server.token}").status_code == 200
        for wrong in ("", "Bearer", f"Bearer {server.token}x", f"Basic {server.token}", server.token):
            answer = post(server, Authorization=wrong)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert post(server).status_code == 401
        assert httpx2.get(server.url).status_code == 401
        assert httpx2.get(server.url.replace("/mcp", "/")).status_code == 401
        assert httpx2.post(f"{server.url}?token={server.token}", json=HELLO, headers=ACCEPT).status_code == 401
        twice = [("Authorization", "Bearer no"), ("Authorization", f"Bearer {server.token}"), *ACCEPT.items()]
        assert httpx2.post(server.url, json=HELLO, headers=twice).status_code == 401


def test_a_web_page_cannot_use_it(tmp_path: Path):
    """Not even one whose name was made to lead to this machine, or that learned the token."""
    with serving_http(tmp_path) as server:
        token = f"Bearer {server.token}"
        port = server.url.split(":")[2].partition("/")[0]
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil:{port}"):
            assert post(server, Authorization=token, Host=host).status_code == 421
        for origin in ("https://evil.example", f"http://evil.example:{port}", "http://127.0.0.1:1", "null"):
            assert post(server, Authorization=token, Origin=origin).status_code == 403
        assert post(server, Authorization=token, Host=f"localhost:{port}").status_code == 200
        assert post(server, Authorization=token, Origin=f"http://127.0.0.1:{port}").status_code == 200
        modern = {"MCP_Protocol_Version": "2026-07-28"}
        assert post(server, Authorization=token, Host="evil.example", **modern).status_code == 421


def test_it_listens_on_this_machine_only(tmp_path: Path):
    with serving_http(tmp_path) as server:
        port = int(server.url.split(":")[2].partition("/")[0])
        with socket.socket() as other:
            other.settimeout(5)
            assert other.connect_ex(("127.0.0.2", port)) != 0
        sockets = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()]
        assert {address for address in sockets if address.endswith(f":{port:04X}")} == {f"0100007F:{port:04X}"}


def test_the_token_can_be_given(tmp_path: Path):
    token = "a-token-of-some-length"
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    with serving_http(tmp_path, "--token-file", str(file)) as server:
        assert post(server, Authorization=f"Bearer {token}").status_code == 200
        assert post(server, Authorization="Bearer no").status_code == 401
    with serving_http(tmp_path, CROW_MCP_TOKEN=token) as server:
        assert post(server, Authorization=f"Bearer {token}").status_code == 200


@pytest.mark.parametrize(
    ("content", "said"), [("", "is empty"), ("short", "cannot be used"), ("with blanks in it, and long", "plain")]
)
def test_a_token_that_is_none_is_refused(content: str, said: str, tmp_path: Path):
    file = tmp_path / "token"
    file.write_text(content)
    done = subprocess.run(
        [*warm(CROW), "mcp", "--http", "--token-file", str(file)],
        env=clean_environment(tmp_path, tmp_path),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert content == "" or content not in done.stderr


def test_a_port_that_is_taken_is_named(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*warm(CROW), "mcp", "--http", str(port)],
            env=clean_environment(tmp_path, tmp_path),
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"crow: Port {port} cannot be used: address already in use.")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_two_clients_at_once_have_their_own_folders_and_their_own_past(tmp_path: Path):
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "file.txt").write_text("text\n")

    async def talk(server: HttpServer) -> None:
        async with server.connect(roots=Roots(one)) as first, server.connect(roots=Roots(two, one)) as second:
            await asyncio.gather(
                done(first, "str_replace", "file.txt", old_str="text", new_str="first"),
                done(second, "str_replace", "file.txt", old_str="text", new_str="second"),
            )
            assert ((one / "file.txt").read_text(), (two / "file.txt").read_text()) == ("first\n", "second\n")
            assert "outside" in await refused(first, "view", two / "file.txt")
            # What the first did is not the second's to take back, nor does it know the file.
            assert "no edit" in await refused(second, "undo_edit", one / "file.txt")
            await done(first, "view", "file.txt")
            assert "has not been read" in await refused(second, "create", one / "file.txt", file_text="x")
            await asyncio.gather(done(first, "undo_edit", "file.txt"), done(second, "undo_edit", "file.txt"))
            assert ((one / "file.txt").read_text(), (two / "file.txt").read_text()) == ("text\n", "text\n")

    with serving_http(tmp_path) as server:
        asyncio.run(talk(server))


def test_a_large_file_can_be_created_in_one_request(tmp_path: Path):
    text = "a line of text\n" * 400_000

    async def talk(server: HttpServer) -> None:
        async with server.connect() as client:
            await done(client, "create", "large.txt", file_text=text)

    with serving_http(tmp_path) as server:
        asyncio.run(talk(server))
    assert (tmp_path / "large.txt").read_text() == text
