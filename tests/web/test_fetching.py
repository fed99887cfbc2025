"""Fetching a page from a real server: what is sent, what is followed, and where it is cut."""

import asyncio
import functools
import gzip
import os
import socket
import ssl
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trustme

from crow.errors import WebError
from crow.web.addresses import AllowedHosts, RedirectNotFollowed, WebUrl, read_url
from crow.web.fetching import FetchLimits, Page, Unpacker, fetch
from tests.support.ports import free_port
from tests.support.website import Website, answer, head, redirect

ALLOWED = ("127.0.0.1", "*.test")


async def loopback(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def always(start: WebUrl, target: WebUrl) -> bool:
    return True


def fetched(
    url: str, limits: FetchLimits | None = None, may_follow: Callable[[WebUrl, WebUrl], bool] = always
) -> Page | RedirectNotFollowed:
    return asyncio.run(fetch(read_url(url), AllowedHosts(ALLOWED, loopback), limits or FetchLimits(), may_follow))


def page(url: str, limits: FetchLimits | None = None) -> Page:
    found = fetched(url, limits)
    assert isinstance(found, Page)
    return found


# --- what is sent


def test_a_request_has_the_name_and_no_secrets(monkeypatch):
    with Website() as site, Website() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv("NETRC", "/dev/null")
        site.pages["/a/b"] = answer("hello", set_cookie="a=b; Path=/")
        found = page(f"http://Site.Test:{site.port}/a/b?q=1&r=ü#place")
        assert found.body == b"hello"
        [request] = site.requests
        assert (request.method, request.path) == ("GET", "/a/b?q=1&r=%C3%BC")
        assert request.headers["host"] == f"site.test:{site.port}"
        assert {"cookie", "authorization", "referer"}.isdisjoint(request.headers)
        assert request.headers["user-agent"].startswith("crow/")
        assert proxy.accepted == 0


def test_a_cookie_is_not_sent_to_the_next_hop():
    with Website() as site:
        site.pages["/"] = answer("", status="302 Found", location="/next", set_cookie="a=b; Path=/")
        site.pages["/next"] = answer("there")
        assert page(f"{site.url}/").url.target == "/next"
        assert "cookie" not in site.requests[1].headers


# --- TLS


@pytest.fixture
def authority(monkeypatch, tmp_path):
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return ca


def served_by(ca: trustme.CA, name: str) -> tuple[ssl.SSLContext, list[str | None]]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    asked_for: list[str | None] = []
    context.sni_callback = lambda connection, asked, context: asked_for.append(asked)
    return context, asked_for


def test_the_certificate_must_be_that_of_the_name_though_an_address_is_connected_to(authority):
    context, asked_for = served_by(authority, "site.test")
    with Website(tls=context) as site:
        site.pages["/"] = answer("secure")
        assert page(f"https://site.test:{site.port}/").body == b"secure"
        assert asked_for == ["site.test"]
        with pytest.raises(WebError, match=r"TLS .*other\.test"):
            page(f"https://other.test:{site.port}/")


# --- redirects


def test_redirects_are_followed_up_to_a_limit():
    with Website() as site:
        for number in range(6):
            site.pages[f"/{number}"] = redirect(f"/{number + 1}")
        site.pages["/6"] = answer("there")
        assert page(f"{site.url}/1").body == b"there"
        with pytest.raises(WebError, match="more than 5 times"):
            page(f"{site.url}/0")


def test_a_redirect_that_may_not_be_followed_is_given_back():
    with Website() as site:
        site.pages["/"] = redirect("http://elsewhere.test/x")
        found = fetched(f"{site.url}/", may_follow=lambda start, target: start.host == target.host)
        assert found == RedirectNotFollowed(read_url("http://elsewhere.test/x"))


def test_a_redirect_without_a_place_is_an_answer():
    with Website() as site:
        site.pages["/"] = answer("choose", status="300 Multiple Choices")
        site.pages["/lost"] = answer("where?", status="302 Found")
        assert page(f"{site.url}/").status == 300
        assert page(f"{site.url}/lost").status == 302


def test_a_redirect_with_a_blank_in_it_is_followed():
    with Website() as site:
        site.pages["/"] = redirect("/a b")
        site.pages["/a%20b"] = answer("there")
        assert page(f"{site.url}/").body == b"there"


def test_a_redirect_to_nowhere_is_said():
    with Website() as site:
        site.pages["/"] = redirect("//[")
        with pytest.raises(WebError, match=r"127\.0\.0\.1 .*//\["):
            page(f"{site.url}/")


# --- limits


def endless(connection: socket.socket) -> None:
    connection.sendall(head("200 OK", {"content-type": "text/plain"}))
    while True:
        connection.sendall(b"x" * 65536)


def dripping(
    connection: socket.socket, start: bytes = head("200 OK", {"content-type": "text/plain"}) + b"first"
) -> None:
    connection.sendall(start)
    connection.settimeout(0.05)
    while True:
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            connection.sendall(b".")


def silent(connection: socket.socket) -> None:
    connection.recv(1)


def stalled(connection: socket.socket) -> None:
    connection.sendall(head("200 OK", {"content-type": "text/plain"}) + b"first")
    connection.recv(1)


def endless_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"x-more: " + b"y" * 1000 + b"\r\n")


@functools.cache
def bomb(form: str) -> bytes:
    """An eighth of a gigabyte of zeros, packed."""
    packer = zlib.compressobj(9, zlib.DEFLATED, {"gzip": 31, "deflate": 15}[form])
    million = bytes(2**20)
    body = b"".join(packer.compress(million) for _ in range(128)) + packer.flush()
    return answer(body, "text/plain", content_encoding=form)


def test_an_endless_body_is_cut_at_the_limit():
    with Website() as site:
        site.pages["/"] = endless
        found = page(f"{site.url}/", FetchLimits(body=1_000_000))
        assert (found.cut, len(found.body)) == ("size", 1_000_000)


def test_a_body_of_exactly_the_limit_is_whole():
    with Website() as site:
        site.pages["/"] = answer(b"x" * 1000)
        found = page(f"{site.url}/", FetchLimits(body=1000))
        assert (found.cut, len(found.body)) == ("", 1000)


def test_a_body_that_drips_is_cut_when_the_time_is_up():
    with Website() as site:
        site.pages["/"] = dripping
        found = page(f"{site.url}/", FetchLimits(total=1))
        assert found.cut == "time"
        assert found.body.startswith(b"first")


@pytest.mark.parametrize("start", [b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\nx-more: ", b"HTTP/1.1 302 Found\r\nlocation: /"])
def test_a_head_that_drips_is_given_up_when_the_time_is_up(start):
    with Website() as site:
        site.pages["/"] = functools.partial(dripping, start=start)
        with pytest.raises(WebError, match=r"did not answer within 0\.5 s"):
            page(f"{site.url}/", FetchLimits(total=0.5))


def test_a_body_that_stalls_is_cut_after_the_longest_silence():
    with Website() as site:
        site.pages["/"] = stalled
        found = page(f"{site.url}/", FetchLimits(silence=0.2))
        assert (found.cut, found.body) == ("time", b"first")


def test_a_body_that_breaks_off_is_given_as_far_as_it_came():
    with Website() as site:
        site.pages["/"] = head("200 OK", {"content-type": "text/plain", "content-length": "100"}) + b"first"
        found = page(f"{site.url}/")
        assert (found.cut, found.body) == ("broken", b"first")


def test_a_server_that_says_nothing_is_given_up():
    with Website() as site:
        site.pages["/"] = silent
        with pytest.raises(WebError, match="stopped sending"):
            page(f"{site.url}/", FetchLimits(silence=0.2))
        with pytest.raises(WebError, match=r"0\.2 s"):
            page(f"{site.url}/", FetchLimits(total=0.2))


def test_endless_headers_are_given_up():
    with Website() as site:
        site.pages["/"] = endless_headers
        with pytest.raises(WebError, match="invalid HTTP answer"):
            page(f"{site.url}/")


@pytest.mark.parametrize("form", ["gzip", "deflate"])
def test_a_bomb_is_cut_at_the_limit_with_bounded_memory(form):
    async def measured(url: str) -> tuple[str, int, int]:
        tracemalloc.start()
        try:
            found = await fetch(read_url(url), AllowedHosts(ALLOWED, loopback), FetchLimits(), always)
            assert isinstance(found, Page)
            return found.cut, len(found.body), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with Website() as site:
        site.pages["/"] = bomb(form)
        page(f"{site.url}/none")  # what is loaded once
        cut, size, peak = asyncio.run(measured(f"{site.url}/"))
        limit = FetchLimits().body
        assert (cut, size) == ("size", limit)
        assert peak < 3 * limit


def test_a_bomb_does_not_fill_a_process(tmp_path: Path):
    """The same from outside: what the operating system counts for a process that fetches it."""
    code = (
        "import asyncio, resource, sys\n"
        "from crow.web.fetching import FetchLimits, fetch\n"
        "from crow.web.addresses import AllowedHosts\n"
        "from crow.web.addresses import read_url\n"
        "def get(path):\n"
        "    url = read_url(sys.argv[1] + path)\n"
        "    async def cut():\n"
        "        return (await fetch(url, AllowedHosts(['127.0.0.1']), FetchLimits(), lambda a, b: True)).cut\n"
        "    return asyncio.run(cut())\n"
        "get('/small')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert get('/') == 'size'\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    with Website() as site:
        site.pages["/"] = bomb("gzip")
        done = subprocess.run(
            [sys.executable, "-c", code, site.url], cwd=tmp_path, env=dict(os.environ), capture_output=True, check=True
        )
    assert int(done.stdout) * 1024 < 64 * 1024 * 1024


def test_what_is_packed_is_unpacked():
    with Website() as site:
        site.pages["/"] = answer(gzip.compress(b"hello"), content_encoding="gzip")
        assert page(f"{site.url}/").body == b"hello"


PACKED = {
    "gzip": gzip.compress(b"hello"),
    "x-gzip": gzip.compress(b"hello"),
    "GZIP": gzip.compress(b"he") + gzip.compress(b"") + gzip.compress(b"llo"),
    "gzip ": gzip.compress(b"hello") + bytes(100),
    "deflate": zlib.compress(b"hello"),
    " deflate": zlib.compress(b"hello", wbits=-15),
}


@pytest.mark.parametrize("encoding", PACKED)
def test_every_packing_is_unpacked_whole(encoding):
    with Website() as site:
        site.pages["/"] = answer(PACKED[encoding], content_encoding=encoding)
        found = page(f"{site.url}/")
        assert (found.body, found.cut) == (b"hello", "")


@pytest.mark.parametrize("encoding", PACKED)
def test_it_is_unpacked_however_it_is_split(encoding):
    unpacker = Unpacker(encoding.strip().lower())
    pieces = [piece for byte in PACKED[encoding] for piece in unpacker.unpack(bytes([byte]))]
    assert (b"".join(pieces), unpacker.is_whole) == (b"hello", True)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_what_is_not_packed_as_it_says_is_said(encoding):
    with Website() as site:
        site.pages["/"] = answer(b"just text", content_encoding=encoding)
        with pytest.raises(WebError, match=f"not valid {encoding}"):
            page(f"{site.url}/")


def test_what_is_packed_and_damaged_is_given_as_far_as_it_can_be_read():
    whole = gzip.compress(os.urandom(100_000))
    with Website() as site:
        site.pages["/"] = answer(whole[:50_000] + bytes(50_000), content_encoding="gzip")
        found = page(f"{site.url}/")
        assert found.cut == "damaged"
        assert found.body
        site.pages["/"] = answer(whole[:50_000], content_encoding="gzip")
        assert page(f"{site.url}/").cut == "broken"


def test_packing_without_content_is_not_read_for_ever():
    with Website() as site:
        site.pages["/"] = answer(gzip.compress(b"") * 1000, content_encoding="gzip")
        assert page(f"{site.url}/", FetchLimits(body=10_000)).cut == "size"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
def test_a_packing_that_was_not_asked_for_is_said(encoding):
    with Website() as site:
        site.pages["/"] = answer(b"\x00\x01", content_encoding=encoding)
        with pytest.raises(WebError, match="unsupported encoding"):
            page(f"{site.url}/")


# --- failures


def test_a_port_that_nobody_listens_on_is_said():
    port = free_port()
    with pytest.raises(WebError, match=f"port {port}"):
        page(f"http://127.0.0.1:{port}/")


def test_where_a_proxy_is_set_a_failure_says_that_none_is_used(monkeypatch):
    """Its name, and not what it holds: that may be a password."""
    port = free_port()
    monkeypatch.setenv("HTTP_PROXY", "http://me:secret@proxy.test:3128")
    for url in (f"http://shut.test:{port}/", "http://nowhere.invalid/"):
        with pytest.raises(WebError, match="HTTP_PROXY") as raised:
            asyncio.run(fetch(read_url(url), AllowedHosts(ALLOWED, only_tests), FetchLimits(), always))
        assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "no_proxy"),
    [("HTTPS_PROXY", "http://proxy.test", ""), ("HTTP_PROXY", "", ""), ("HTTP_PROXY", "http://proxy.test", ".test")],
)
def test_a_proxy_that_is_not_for_the_host_is_not_mentioned(name, value, no_proxy, monkeypatch):
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    port = free_port()
    with pytest.raises(WebError) as raised:
        page(f"http://shut.test:{port}/")
    assert "proxy" not in str(raised.value).lower()


async def only_tests(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"] if host.endswith(".test") else []


def test_what_is_no_web_server_is_said():
    with Website() as site:
        site.pages["/"] = b"220 mail.example.com ESMTP\r\n"
        with pytest.raises(WebError, match="invalid HTTP answer"):
            page(f"{site.url}/")


def test_the_next_address_is_tried_where_one_does_not_answer():
    async def two(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9", "127.0.0.1"]

    with Website() as site:
        site.pages["/"] = answer("second")
        url = read_url(f"http://two.test:{site.port}/")
        found = asyncio.run(fetch(url, AllowedHosts(ALLOWED, two), FetchLimits(), always))
        assert isinstance(found, Page)
        assert found.body == b"second"
