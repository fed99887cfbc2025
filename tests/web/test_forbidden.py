"""Addresses that must never be reached, in every spelling, directly and through redirects."""

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from crow.errors import WebError
from crow.web.addresses import AllowedHosts, RedirectNotFollowed, is_public, read_url
from crow.web.fetching import FetchLimits, Page, fetch
from tests.support.website import Website, answer, forbidden_listeners, redirect
from tests.web.connections import watched

NAMES = {
    "start.test": ["127.0.0.1"],
    "localhost": ["127.0.0.1", "::1"],
    "app.localhost": ["127.0.0.1"],
    "localtest.test": ["127.0.0.1"],
    "six.test": ["::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "mixed.test": ["93.184.216.34", "127.0.0.1"],
    "zone.test": ["fe80::1%lo"],
    "nat64.test": ["64:ff9b::7f00:1"],
    "zero.test": ["0.0.0.0"],
    "intranet.test": ["10.1.2.3"],
    "metadata.google.internal": ["169.254.169.254"],
    "instance-data.ec2.internal": ["169.254.169.254"],
    "nowhere.test": [],
    "xn--lochost-b0a.test": ["127.0.0.1"],
}

FORBIDDEN = [
    "http://127.0.0.1:{port}/",
    "http://127.0.0.2:{port}/",
    "http://127.255.255.254:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0x0.01:{port}/",
    "http://0X7F.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.000.000.001:{port}/",
    "http://00000177.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://0.1.2.3:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::ffff:0:127.0.0.1]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "http://[2002:a00:1::1]:{port}/",
    "http://[2001:0:7f00:1::]:{port}/",
    "http://[2001:db8::1]:{port}/",
    "http://[3fff::1]:{port}/",
    "http://[fc00::1]:{port}/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]:{port}/",
    "http://[fe80::1%25lo]:{port}/",
    "http://[fe80::1%lo]:{port}/",
    "http://[fec0::1]:{port}/",
    "http://[ff02::1]:{port}/",
    "http://[100::1]:{port}/",
    "http://[2001:10::1]:{port}/",
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://172.16.0.1/",
    "http://172.31.255.254/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://169.254.169.254/latest/",
    "http://169.254.1.1/",
    "http://2852039166/latest/",
    "http://0xa9fea9fe/latest/",
    "http://[::ffff:a9fe:a9fe]/latest/",
    "http://192.0.0.192/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://198.51.100.7/",
    "http://203.0.113.7/",
    "http://192.88.99.1/",
    "http://168.63.129.16/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://1.2.3.4.5/",
    "http://256.256.256.256/",
    "http://1.2.3.0x/",
    "http://4294967296/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://app.localhost:{port}/",
    "http://localtest.test:{port}/",
    "https://localtest.test:{port}/",
    "http://six.test:{port}/",
    "http://mapped.test:{port}/",
    "http://mixed.test:{port}/",
    "http://zone.test:{port}/",
    "http://nat64.test:{port}/",
    "http://zero.test:{port}/",
    "http://intranet.test/",
    "http://metadata.google.internal/",
    "http://instance-data.ec2.internal/",
    "http://nowhere.test:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://127。0。0。1:{port}/",
    "http://\uff11\uff12\uff17.0.0.\uff11:{port}/",  # full-width digits
    "http://ｌｏｃａｌｈｏｓｔ:{port}/",  # noqa: RUF001 -- that is the point
    "http://lochösṫ..test/",
    "http://user@127.0.0.1:{port}/",
    "http://user:pw@localhost:{port}/",
    "http://93.184.216.34@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@93.184.216.34/",
    "http://93.184.216.34\\@127.0.0.1:{port}/",
    "http://93.184.216.34#@127.0.0.1:{port}/",
    "http://127.0.0.1%2f@x.test:{port}/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://local%68ost:{port}/",
    "http://127.0.0.1\\.x.test:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:127.0.0.1:{port}",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    "file:///etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_x",
    "data:text/html,hello",
    "javascript:alert(1)",
    "ws://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "jar:http://127.0.0.1:{port}/!/",
    "dict://127.0.0.1:{port}/",
    "http://[::1:{port}/",
    "http://::1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://localhost:0/",
    "http://localhost:65536/",
    "http://localhost:-1/",
    "http://93.184.216.34:22/",
    "http://93.184.216.34:25/",
    "http://93.184.216.34:6379/",
    "http://93.184.216.34:5432/",
    "http://93.184.216.34:11211/",
    "http://93.184.216.34:0/",
    "http://localhost:٨٠٨٠/",
    "http://127.0.0.1:{port}:80/",
    "http://.localhost:{port}/",
]
"""Every one of them is refused before anything is connected to."""

REACHES_A_PUBLIC_HOST = {"http://93.184.216.34#@127.0.0.1:{port}/"}
"""What looks like another host behind a fragment is none: only the public host is asked."""

LIMITS = FetchLimits(total=5, connect=2, silence=2)


async def resolver(host: str, port: int) -> Sequence[str]:
    return NAMES.get(host, [])


def fetched(url: str, *, allow: Sequence[str] = (), limits: FetchLimits = LIMITS) -> Page | RedirectNotFollowed:
    return asyncio.run(fetch(read_url(url), AllowedHosts(allow, resolver), limits, lambda start, target: True))


@pytest.mark.parametrize("written", [url for url in FORBIDDEN if url not in REACHES_A_PUBLIC_HOST])
def test_a_forbidden_address_is_refused_before_anything_is_connected_to(written):
    with forbidden_listeners() as (port, listeners), watched() as connections:
        with pytest.raises(WebError):
            fetched(written.format(port=port))
        assert connections == []
        assert [listener.accepted for listener in listeners] == [0, 0]


@pytest.mark.parametrize("written", FORBIDDEN)
def test_a_redirect_into_a_forbidden_address_is_refused(written):
    with forbidden_listeners() as (port, listeners), Website() as site, watched() as connections:
        site.pages["/"] = redirect(written.format(port=port))
        outcome = None
        with contextlib.suppress(WebError):
            outcome = fetched(f"http://start.test:{site.port}/", allow=["start.test"])
        assert outcome is None or _is_the_same_site(outcome, site)
        assert set(connections) <= {"127.0.0.1", "93.184.216.34"}
        assert [listener.accepted for listener in listeners] == [0, 0]


def _is_the_same_site(outcome: Page | RedirectNotFollowed, site: Website) -> bool:
    """An address without a scheme is a path of the site that redirects."""
    return isinstance(outcome, Page) and outcome.url.port == site.port


@pytest.mark.parametrize("url", sorted(REACHES_A_PUBLIC_HOST))
def test_a_fragment_is_no_host(url):
    with forbidden_listeners() as (port, listeners), watched() as connections:
        with pytest.raises(WebError):
            fetched(url.format(port=port))
        assert connections == ["93.184.216.34"]
        assert [listener.accepted for listener in listeners] == [0, 0]


@pytest.mark.parametrize("url", ["http://127.1:{port}/", "http://localtest.test:{port}/", "http://[::1]:{port}/"])
def test_the_listeners_would_have_been_reached(url):
    with forbidden_listeners() as (port, listeners):
        for listener in listeners:
            listener.pages["/"] = answer("here", "text/plain")
        page = fetched(url.format(port=port), allow=["127.0.0.1", "localtest.test", "[::1]"])
        assert isinstance(page, Page)
        assert page.body == b"here"
        assert sum(listener.accepted for listener in listeners) == 1


# --- a resolver that changes its answer


class Rebinding:
    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked += 1
        return [self.answers[min(self.asked, len(self.answers)) - 1]]


def test_a_name_is_looked_up_once_and_what_was_checked_is_connected_to():
    rebinding = Rebinding("93.184.216.34", "127.0.0.1")
    with forbidden_listeners() as (port, listeners), watched() as connections:
        url = read_url(f"http://rebinding.test:{port}/")
        with pytest.raises(WebError, match="connections"):
            asyncio.run(fetch(url, AllowedHosts((), rebinding), LIMITS, lambda start, target: True))
        assert (rebinding.asked, connections) == (1, ["93.184.216.34"])
        assert [listener.accepted for listener in listeners] == [0, 0]


def test_each_hop_is_looked_up_and_checked_again():
    rebinding = Rebinding("127.0.0.1", "169.254.169.254")

    async def mixed(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == "named.test" else await rebinding(host, port)

    rebinding.asked = 1
    with Website() as site, watched() as connections:
        site.pages["/"] = redirect(f"http://changing.test:{site.port}/secret")
        url = read_url(f"http://named.test:{site.port}/")
        with pytest.raises(WebError, match=r"changing\.test .*public internet"):
            asyncio.run(fetch(url, AllowedHosts(["named.test"], mixed), LIMITS, lambda start, target: True))
        assert connections == ["127.0.0.1"]
        assert [request.path for request in site.requests] == ["/"]


# --- what allow_private covers


@pytest.mark.parametrize(
    ("entry", "host", "covered"),
    [
        ("docs.lan", "docs.lan", True),
        ("DOCS.lan.", "docs.lan", True),
        ("docs.lan", "x.docs.lan", False),
        ("*.lan", "docs.lan", True),
        ("*.lan", "a.b.lan", True),
        ("*.lan", "lan", False),
        ("*.lan", "docs.plan", False),
        ("*", "docs.lan", False),
        ("127.0.0.1", "127.1", True),
        ("*.1", "127.0.0.1", False),
        ("*.0.1", "127.0.0.1", False),
        ("::1", "[::1]", True),
        ("[::1]", "[0::1]", True),
    ],
)
def test_a_private_host_is_reached_only_if_it_is_named(entry, host, covered):
    async def private(host: str, port: int) -> Sequence[str]:
        return ["10.0.0.7"]

    url = read_url(f"http://{host}/")
    hosts = AllowedHosts([entry], private)
    if covered:
        assert asyncio.run(hosts.addresses(url)) == ([url.host] if url.is_address else ["10.0.0.7"])
    else:
        with pytest.raises(WebError, match="allow_private"):
            asyncio.run(hosts.addresses(url))


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1", "2a00::1"]
)
def test_public_addresses_are_public(address):
    assert is_public(address)
