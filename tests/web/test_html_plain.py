"""HTML as plain text, for pages that are too large or too deep to become Markdown."""

import asyncio

import pytest

from crow.web.conversion_process import Converted, Job
from crow.web.page_content import MOST_HTML, convert_page
from crow.web.plain_text import NOTE, html_to_plain_text


def text(html: str) -> str:
    return html_to_plain_text(html).text


def converted(html: str) -> Converted:
    content = html.encode()
    return asyncio.run(convert_page(Job("html", len(content), "https://example.com/"), content))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>Birds</h1> <p>One\n <b>two</b>,\n\tthree.</p><br><br>four", "Birds\nOne two, three.\nfour"),
        ("<table><tr><th>a<th>b<tr><td>1</td> <td>2</td></table>", "a | b\n1 | 2"),
        ("<pre>if x:\n\n    y</pre> z", "if x:\n\n    y\nz"),
        ("a &amp; b &lt;c&gt; &#228; &#99999999999; 1 < 2", "a & b <c> ä \ufffd 1 < 2"),
        ("a<!-- b > c -->d<!doctype html>e<!-->f", "adef"),
        ("a<script>if (x < '</b>') b</script>c<STYLE>d</sTyle >e", "ace"),
        ("a<script>b", "a"),
        ("a<svg><path></svg>b<noscript>c</noscript>d<svg>e", "abde"),
        ("<p title='a > b' x=\"c > d\">e</p>", "e"),
        ("a</>b</ c>d", "abd"),
        ("a<b", "a"),
        ("", ""),
    ],
)
def test_the_text_of_a_page(html, expected):
    assert text(html) == expected


def test_its_title():
    page = html_to_plain_text("<title> Crows &amp;\n ravens</title><svg><title>x</title></svg><p>text")
    assert (page.title, page.text) == ("Crows & ravens", "text")


@pytest.mark.parametrize(
    ("part", "read"),
    [
        *((part, "") for part in ("</", "<!", "<!--", "<!--x--", "<a ", "<a x=", "<a x = ", '<a x="', "<a x='")),
        *((part, "") for part in ("<a x=\"'", "<script>", "<svg>", "<svg><title>", "<script></scripty ", "&#9")),
        *((part, "") for part in ("<td>", "<br>", "<pre>")),
        *((part, part) for part in ("<", "< ", "&", "&#")),
        ("&ampl", "&l"),
    ],
)
def test_no_page_takes_more_than_one_pass(part, read):
    """A pattern that goes back takes hours for some of these."""
    count = MOST_HTML // len(part)
    assert text(part * count) == (read * count).rstrip()


def test_an_attribute_or_a_number_without_end_takes_no_more_than_one_pass():
    assert text("<a x=" + " " * MOST_HTML) == ""
    assert text("&#" + "9" * MOST_HTML) == "\ufffd"


@pytest.mark.parametrize(
    "tag",
    [
        *("<div>", "<b>", "<pre>"),
        *(
            pytest.param(tag, marks=pytest.mark.slow)
            for tag in ("<ul><li>", "<table><tr><td>", "<header>", "<article>")
        ),
    ],
)
def test_a_deep_page_comes_as_plain_text(tag):
    page = converted("<title>Deep</title>" + tag * 40_000 + "inside")
    assert (page.title, page.text, page.note) == ("Deep", "inside", NOTE)


@pytest.mark.slow
def test_a_page_that_takes_too_much_time_comes_as_plain_text():
    page = converted("<ol>" + "<li>x" * 200_000)  # the numbers of a list are counted anew for each of them
    assert page.note == NOTE
    assert page.text == "\n".join("x" * 200_000)


@pytest.mark.parametrize(
    ("html", "count"),
    [
        ("<table>" + ("<tr>" + "<td>1</td>" * 50 + "</tr>") * 100 + "</table>", 5_000),
        ("<main>" + "<a href=x>1</a>" * 3_000, 3_000),
        ("<header><p>1</p></header>" * 3_000, 3_000),
    ],
)
def test_nothing_of_a_large_page_is_lost(html, count):
    assert converted(html).text.count("1") == count
