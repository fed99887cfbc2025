"""One spelling for each address, and none for what could be read in two ways."""

import pytest

from crow.errors import WebError
from crow.web.addresses import follow, read_url


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://example.com", "https://example.com/"),
        ("  HTTPS://Example.COM:443/A?b=C#d\n", "https://example.com/A?b=C"),
        ("http://example.com.:8080/", "http://example.com:8080/"),
        ("http://example.com?q", "http://example.com/?q"),
        ("http://bücher.example/straße", "http://xn--bcher-kva.example/stra%C3%9Fe"),
        ("http://BÜCHER。example/", "http://xn--bcher-kva.example/"),
        ("http://exam\u00adple.com/", "http://example.com/"),
        ("http://a_b.example/%20?x=%2F", "http://a_b.example/%20?x=%2F"),
        ("http://0x5db8d822/", "http://93.184.216.34/"),
        ("http://[2606:2800:220:0:0::1]:81/", "http://[2606:2800:220::1]:81/"),
        ("http://example.com//other.example/", "http://example.com//other.example/"),
    ],
)
def test_an_address_has_one_spelling(written, read):
    url = read_url(written)
    assert url.text == read
    assert read_url(url.text) == url


@pytest.mark.parametrize(
    "written",
    [
        "",
        "example.com",
        "https://",
        "https:///path",
        "https://?q",
        "http://a b.example/",
        "http://example.com/a b",
        "http://example.com/\x00",
        "http://example.com\\path",
        "http://example.com\r\nHost: other",
        "http://user@example.com/",
        "http://:@example.com/",
        "http://example.com:80x/",
        "http://example.com:99999/",
        "http://-a.example/",
        "http://a..example/",
        "http://" + "a" * 64 + ".example/",
        "http://" + "a." * 130 + "example/",
        "http://exa%6dple.com/",
        "http://exa<mple.com/",
        "http://example.com/" + "a" * 5000,
        "http://xn--\u00df.example/",
        "http://[2606:4700:4700::11112/x",
        "http://[2606:4700:4700::1111",
        "http://[2606:4700:4700::1111]x/",
    ],
)
def test_what_is_no_address_is_refused_with_a_sentence(written):
    with pytest.raises(WebError) as failure:
        read_url(written)
    assert str(failure.value).endswith(".")
    assert "\n" not in str(failure.value)


def test_a_password_in_an_address_is_not_repeated():
    with pytest.raises(WebError) as failure:
        read_url("https://me:hunter2@example.com/")
    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b", "https://example.com/b"),
        ("b?c", "https://example.com/a/b?c"),
        ("?c", "https://example.com/a/x?c"),
        ("//other.example/b", "https://other.example/b"),
        ("http://other.example", "http://other.example/"),
    ],
)
def test_a_redirect_leads_where_a_browser_would_go(location, target):
    assert follow(read_url("https://example.com/a/x?y"), location).text == target
