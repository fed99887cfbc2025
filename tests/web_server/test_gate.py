"""The gate of `crow web`: right and hostile requests, byte by byte, against the real program."""

import hashlib
import hmac
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import DEADLINE
from tests.support.web import Refused, Response, Web, WebSocket, ask, handshake, serving, upgrade


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with serving(tmp_path_factory.mktemp("web")) as server:
        yield server


@pytest.fixture(scope="module")
def token(web: Web) -> str:
    """A page's own token, which it got for its link."""
    with web.connect() as client:
        return client.initialize()["_meta"]["crow"]["token"]


def page_handshake(web: Web, token: str, *, origin: str | None = None, **more: str) -> Response:
    lines = [f"Sec-WebSocket-Protocol: acp.v1, crow.token.{token}"]
    if origin != "":
        lines.append(f"Origin: {web.origin if origin is None else origin}")
    return handshake(web.port, *lines, **more)


# --- how the server proves that it is the one


def test_the_server_proves_that_it_knows_a_token_and_shows_nothing_of_it(web: Web, token: str):
    stored = hashlib.sha256(token.encode()).digest()
    for nonce in ("n1", "n2"):
        answer = ask(web.port, request=f"GET /proof?id={stored.hex()[:8]}&nonce={nonce}&origin={web.origin} HTTP/1.1")
        expected = hmac.new(stored, f"{web.origin} {nonce}".encode(), "sha256").hexdigest()
        assert (answer.status, answer.body.decode()) == (200, expected)
        assert answer.header("cache-control") == "no-store"
        assert page_handshake(web, expected).status == 401, "a proof lets nobody in"


@pytest.mark.parametrize(
    "query",
    [
        "id=ID&nonce=n&origin=http://127.0.0.1:1",
        "id=ID&nonce=n&origin=ORIGIN/",
        "id=ID&nonce=n",
        "id=00000000&nonce=n&origin=ORIGIN",
        "id=&nonce=n&origin=ORIGIN",
        "id=%ff&nonce=%00&origin=%ed%a0%80",
        "id=ID&id=ID&nonce&&&==&origin=%",
        "",
    ],
)
def test_no_proof_is_given_for_another_address_or_an_unknown_token(web: Web, token: str, query: str):
    id = hashlib.sha256(token.encode()).hexdigest()[:8]
    asked = query.replace("ID", id).replace("ORIGIN", web.origin)
    answer = ask(web.port, request=f"GET /proof?{asked} HTTP/1.1")
    assert (answer.status, answer.body) == (200, b"")


# --- who is asked for by which name


def test_the_page_is_served_at_the_address_that_was_printed(web: Web):
    assert web.origin == f"http://127.0.0.1:{web.port}"
    answer = ask(web.port)
    assert (answer.status, answer.header("content-type")) == (200, "text/html; charset=utf-8")
    assert b"@NONCE@" not in answer.body


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:PORT",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1.evil.example:PORT",
        "localhost:PORT",
        "0.0.0.0:PORT",
        "[::1]:PORT",
        "127.1:PORT",
        "127.0.0.1:PORT.",
        "127.0.0.1.:PORT",
    ],
)
def test_another_name_for_this_machine_is_refused(host: str, web: Web, token: str):
    """One that a hostile page has made to lead here is such a name."""
    named = host.replace("PORT", str(web.port))
    assert ask(web.port, host=named).status == 421
    assert page_handshake(web, token, host=named).status == 421


def test_two_names_and_none_are_no_request(web: Web):
    assert ask(web.port, "Host: evil.example").status == 400
    assert ask(web.port, host="").status == 400
    assert handshake(web.port, f"Host: 127.0.0.1:{web.port}").status == 400


# --- other pages


@pytest.mark.parametrize("site", ["cross-site", "same-site", "SAME-ORIGIN", "none, cross-site", ""])
def test_what_another_page_asks_for_is_refused(site: str, web: Web, token: str):
    assert ask(web.port, f"Sec-Fetch-Site: {site}").status == 403
    lines = [f"Sec-Fetch-Site: {site}", f"Origin: {web.origin}", f"Sec-WebSocket-Protocol: acp.v1, crow.token.{token}"]
    assert handshake(web.port, *lines).status == 403


def test_what_the_person_or_the_page_asks_for_is_served(web: Web):
    for site in ("none", "same-origin"):
        assert ask(web.port, f"Sec-Fetch-Site: {site}").status == 200


def test_a_websocket_of_the_page_is_accepted(web: Web, token: str):
    answer = page_handshake(web, token)
    assert answer.status == 101
    assert answer.header("sec-websocket-protocol") == "acp.v1", "the token is never said again"
    assert len(answer.header("acp-connection-id")) == 32


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:1", 403),
        ("http://localhost:PORT", 403),
        ("https://127.0.0.1:PORT", 403),
        ("http://127.0.0.1:PORT.evil.example", 403),
        ("http://127.0.0.1:PORT0", 403),
        ("http://127.0.0.1:PORT/", 403),
        ("http://evil.example", 403),
        ("HTTP://127.0.0.1:PORT", 403),
        ("null", 403),
        ("", 403),
        ("http://127.0.0.1:PORT\r\nOrigin: http://evil.example", 400),
        ("http://127.0.0.1:PORT\r\nOrigin: http://127.0.0.1:PORT", 400),
    ],
)
def test_a_websocket_of_another_page_is_refused_whatever_it_knows(origin: str, status: int, web: Web, token: str):
    assert page_handshake(web, token, origin=origin.replace("PORT", str(web.port))).status == status


# --- credentials


def test_a_page_without_the_right_credential_is_refused(web: Web, token: str):
    origin = f"Origin: {web.origin}"
    assert handshake(web.port, origin).status == 401
    for offered in (
        "acp.v1",
        "acp.v1, crow.token.",
        f"acp.v1, crow.token.{token}x",
        f"acp.v1, crow.link.{token}",
        f"acp.v1, crow.token.{web.link}",
        f"acp.v1, crow.link.{web.link}",  # it was opened before
        f"acp.v1, crow.token.{token}, crow.token.{token}",
        f"acp.v1, {token}",
    ):
        answer = handshake(web.port, origin, f"Sec-WebSocket-Protocol: {offered}")
        assert (answer.status, answer.header("www-authenticate")) == (401, "Bearer"), offered


def test_another_client_shows_a_token_of_its_own(web: Web):
    token = web.token()
    with web.connect(token) as client:
        assert client.response.header("sec-websocket-protocol") == ""
        assert client.initialize()["agentInfo"]["name"] == "crow"
    for wrong in ("Bearer", f"Bearer {token}x", f"Basic {token}", token, f"Bearer {token}\r\nAuthorization: Bearer x"):
        assert handshake(web.port, f"Authorization: {wrong}").status == 401
    assert handshake(web.port).status == 401
    assert handshake(web.port, path=f"/acp?token={token}").status == 401


def test_a_link_is_good_once(web: Web):
    given = web.beside().stdout.strip()
    assert given.startswith(f"{web.origin}/#link=")
    lines = [f"Origin: {web.origin}", f"Sec-WebSocket-Protocol: acp.v1, crow.link.{given.partition('#link=')[2]}"]
    with WebSocket(web.port, lines) as page:
        assert handshake(web.port, *lines).status == 401
        page.initialize()
    assert handshake(web.port, *lines).status == 401


# --- routes and headers


def test_only_the_files_of_the_page_are_there(web: Web):
    assert ask(web.port, request="GET /page.js HTTP/1.1").header("content-type").startswith("text/javascript")
    for path in (
        *("/index.html", "/notes.txt", "/page.js/", "//page.js", "/../built/page.js", "/%2e%2e/built/page.js"),
        *("/built/page.js", "/page%2ejs/x", "/.git/config", "/etc/passwd", "/?prompt=do+it/x", "/mcp"),
    ):
        answer = ask(web.port, request=f"GET {path} HTTP/1.1")
        assert (path, answer.status) in ((path, 404), ("/?prompt=do+it/x", 200))
    assert handshake(web.port, path="/").status == 404
    assert handshake(web.port, path="/acp/").status == 404
    assert ask(web.port, request="GET /acp HTTP/1.1").status == 426


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_possible(method: str, web: Web):
    for path in ("/", "/acp", "/page.js"):
        answer = ask(web.port, "Content-Length: 0", request=f"{method} {path} HTTP/1.1")
        assert answer.status == 405
        assert not [name for name, _ in answer.headers if name.startswith("access-control")]


def test_head_has_no_body(web: Web):
    answer = ask(web.port, request="HEAD / HTTP/1.1")
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.header("content-length")) > 0


@pytest.mark.parametrize("path", ["/", "/page.js", "/nothing", "/acp"])
def test_every_answer_has_the_headers_of_a_page_that_trusts_nobody(path: str, web: Web):
    answer = ask(web.port, request=f"GET {path} HTTP/1.1")
    policy = answer.header("content-security-policy")
    for part in (
        *("default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'"),
        *("frame-ancestors 'none'", "require-trusted-types-for 'script'", "img-src 'self' data: blob:"),
    ):
        assert part in policy.split("; ")
    assert "unsafe" not in policy
    expected = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    assert {name: answer.header(name) for name in expected} == expected
    assert not [name for name, _ in answer.headers if name.startswith("access-control") or "cookie" in name]


def test_a_refused_websocket_has_them_too(web: Web):
    answer = handshake(web.port, f"Origin: {web.origin}")
    assert answer.status == 401
    assert "default-src 'none'" in answer.header("content-security-policy")


WRONG = {
    "no request": (("\x16\x03\x01",), 400),
    "two hosts": (("GET / HTTP/1.1", "Host: HOST", "Host: HOST"), 400),
    "a wrong body": (("GET / HTTP/1.1", "Host: HOST", "Transfer-Encoding: chunked", "", "ZZZ"), 400),
    "an old version": (("GET /acp HTTP/1.1", "Host: HOST", *upgrade("Sec-WebSocket-Version: <b>")), 400),
    "a long line": (("GET /acp HTTP/1.1", "Host: HOST", *upgrade(f"Authorization: Bearer {'x' * 9000}")), 431),
    "many lines": (("GET /acp HTTP/1.1", "Host: HOST", *upgrade(*(f"X-{n}: 1" for n in range(200)))), 431),
}


def send_lines(web: Web, *lines: str) -> Response:
    with socket.create_connection(("127.0.0.1", web.port), DEADLINE) as peer:
        peer.sendall("\r\n".join([*lines, "", ""]).replace("HOST", f"127.0.0.1:{web.port}").encode("latin-1"))
        return Response(b"".join(iter(lambda: peer.recv(65536), b"")))


@pytest.mark.parametrize("wrong", WRONG)
def test_so_has_the_answer_to_what_is_no_request(wrong: str, web: Web):
    """It is answered below the gate, by whoever reads it."""
    lines, status = WRONG[wrong]
    answer = send_lines(web, *lines)
    assert answer.status == status
    assert "default-src 'none'" in answer.header("content-security-policy")
    assert answer.header("x-content-type-options") == "nosniff"
    assert b"<b>" not in answer.body


def test_a_stranger_cannot_fill_the_log(tmp_path: Path):
    with serving(tmp_path) as web:
        for lines, _ in WRONG.values():
            send_lines(web, *lines)
        assert handshake(web.port, "Origin: http://evil.example").status == 403
        assert handshake(web.port, host="evil.example").status == 421
        web.end()
        assert not list((web.home / "log").glob("*"))


def test_cookies_of_other_servers_keep_nobody_out(web: Web):
    """Browsers send those of every server on this machine, whatever its port."""
    assert handshake(web.port, f"Authorization: Bearer {web.token()}", f"Cookie: c={'x' * 20_000}").status == 101


def test_the_nonce_is_new_each_time_and_the_same_in_page_and_header(web: Web):
    nonces: set[str] = set()
    for _ in range(3):
        answer = ask(web.port)
        (nonce,) = re.findall(r"style-src 'self' 'nonce-([\w-]+)'", answer.header("content-security-policy"))
        assert f'content="{nonce}"'.encode() in answer.body
        nonces.add(nonce)
    assert len(nonces) == 3


def test_a_page_that_was_refused_can_tell_that_the_server_is_there(web: Web):
    with pytest.raises(Refused):
        web.connect("wrong")
    assert ask(web.port, request="HEAD / HTTP/1.1").status == 200


def test_no_secret_is_written_down(web: Web, token: str):
    """What is kept of a token does not open anything; the link and the token are nowhere on the disk."""
    secrets = [token.encode(), web.link.encode()]
    for path in Path(web.home).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in secrets if secret in content], path
    kept = web.home / "web-tokens.json"
    assert kept.stat().st_mode & 0o777 == 0o600
