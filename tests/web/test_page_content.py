"""What comes of a page: Markdown, text, a picture, or a sentence that says why not."""

import asyncio
import base64
import codecs
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from crow.errors import WebError
from crow.web.addresses import read_url
from crow.web.conversion_process import Job
from crow.web.fetching import Page
from crow.web.page_content import MOST_HTML, PageContent, convert_page, decode_page, read_page
from tests.support.patience import DEADLINE
from tests.web.pdf_file import pdf

GOLDEN = Path(__file__).parent / "golden"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def page(body: bytes | str, content_type: str = "text/html", **more: str) -> Page:
    body = body.encode() if isinstance(body, str) else body
    return Page(read_url("https://example.com/docs/page?x=1"), 200, "OK", content_type, body, **more)  # pyright: ignore[reportArgumentType]


def read(body: bytes | str, content_type: str = "text/html", **more: str) -> PageContent:
    return asyncio.run(read_page(page(body, content_type, **more)))


# --- HTML


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*.html"))])
def test_a_page_becomes_markdown(name):
    found = read((GOLDEN / f"{name}.html").read_text())
    expected = (GOLDEN / f"{name}.md").read_text()
    assert f"title: {found.title}\ndate: {found.date}\n\n{found.text}\n" == expected


def test_a_page_without_a_body_is_empty():
    assert read("").text == ""
    assert read("<html><script>x()</script></html>").text == ""


def test_what_a_reader_would_not_see_is_left_out():
    hidden = (
        '<p style="display: none">one</p><p hidden>two</p><div aria-hidden="true">three</div><!-- four -->'
        "<script>five</script><template>six</template><noscript>seven</noscript><p>seen</p>"
    )
    assert read(hidden).text == "seen"


def test_a_page_nested_too_deeply_is_given_as_plain_text():
    found = read("<div>" * 5000 + "inside" + "</div>" * 5000 + "<p>after</p>")
    assert found.text == "inside\nafter"
    assert any("plain text" in note for note in found.notes)


def test_a_page_that_is_too_long_is_read_as_far_as_it_goes():
    found = read("<pre>" + "word " * (MOST_HTML // 4) + "</pre>")
    assert any("of the page's source" in note for note in found.notes)
    assert 900_000 < len(found.text) <= 1_000_000


def test_a_page_that_is_cut_says_so():
    assert read("<p>hello", cut="time").notes == ("the server was too slow: only the part that arrived was read",)


def test_a_conversion_is_given_up_after_a_while():
    content = b"<p>hello</p>"
    with pytest.raises(WebError, match="too much time"):
        asyncio.run(convert_page(Job("html", len(content) + 1, "http://example.com/"), content, seconds=0.5))


def test_a_conversion_that_crashes_is_an_error_in_words():
    with pytest.raises(WebError, match="converted"):
        asyncio.run(convert_page(Job("other", 0, ""), b""))  # pyright: ignore[reportArgumentType]


def test_a_conversion_ends_when_nobody_waits_for_it_any_more():
    content = b"<p>hello <a href=x>world</a></p>\n" * 30_000  # several seconds of work
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "crow.web.conversion_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(Job("html", len(content), "http://example.com/")) + b"\n" + content)
    process.stdin.close()
    assert (process.stdout.read(), process.wait(DEADLINE)) == (b"", 1)
    process.stdout.close()


# --- text


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "text/plain",
        "application/xml",
        "text/csv",
        "application/ld+json",
        "image/svg+xml",
        "text/x-python",
    ],
)
def test_text_is_given_as_it_is(kind):
    body = '{"a":  [1, 2],\n "<b>": "&amp;"}'
    found = read(body, f"{kind}; charset=utf-8")
    assert (found.text, found.kind) == (body, kind)


def test_a_page_that_does_not_say_what_it_is_is_looked_at():
    assert read("<!DOCTYPE html><title>T</title><p>x</p>", "").title == "T"
    assert read("just words", "").text == "just words"
    assert read("just words", "application/octet-stream").text == "just words"


@pytest.mark.parametrize(
    "kind",
    [
        *("binary/octet-stream", "application/csv", "application/typescript", "video/mp2t", "application/x-python"),
        *("application/x-patch", "application/x-tex", "application/x-httpd-php", "application/x-shellscript"),
        *("message/rfc822", "multipart/mixed", "text", "*/*", "unknown/unknown"),
    ],
)
def test_text_is_text_whatever_its_type_is_called(kind):
    assert read("wörds\n  and more", kind).text == "wörds\n  and more"


@pytest.mark.parametrize(
    ("body", "kind"), [('{"a": "<b>",\n "c": 1}', "application/json"), ("a\n  b & c < d", "text/plain")]
)
def test_what_is_only_called_html_keeps_its_lines(body, kind):
    found = read(body, "text/html")
    assert (found.text, found.kind) == (body, kind)


def test_a_text_hides_nothing_and_keeps_its_joiners():
    found = read("a\x1b[1mb\u200bc\u202e\u2066d\r\ne\x07 👩\u200d🔧 می\u200cشد ❤\ufe0f", "text/plain")
    assert found.text == "abc⟨U+202E⟩⟨U+2066⟩d\ne⟨U+0007⟩ 👩\u200d🔧 می\u200cشد ❤\ufe0f"


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("grün".encode(), "text/plain; charset=utf-8", "grün"),
        ("grün".encode("latin-1"), "text/plain; charset=ISO-8859-1", "grün"),
        ("“grün” €".encode("cp1252"), "text/plain; charset=latin1", "“grün” €"),
        ("grün".encode("latin-1"), "text/plain", "grün"),
        ("日本".encode("shift_jis"), 'text/html; charset="Shift_JIS"', "日本"),
        ("日本".encode("euc_jp"), "text/html; charset=euc-jp", "日本"),
        ("中文".encode("gb2312"), "text/html; charset=gb2312", "中文"),
        ("中文 镕".encode("gb18030"), "text/html; charset=GB_2312-80", "中文 镕"),
        ("日本 ①".encode("cp932"), "text/plain; charset=x-sjis", "日本 ①"),
        ("한국어 똠방각하".encode("cp949"), "text/plain; charset=ks_c_5601-1987", "한국어 똠방각하"),
        ("똠방".encode("cp949"), "text/plain; charset=euc-kr", "똠방"),
        ("中文".encode("big5"), "text/plain; charset=Big5", "中文"),
        ("“ğ”".encode("cp1254"), "text/plain; charset=iso-8859-9", "“ğ”"),
        ("łódź".encode("iso8859-2"), "text/plain; charset=latin2", "łódź"),
        ("привет".encode("koi8_r"), "text/html; charset=koi8-r", "привет"),
        ("привет".encode("cp1251"), "text/html; charset=windows-1251", "привет"),
        (codecs.BOM_UTF8 + "grün".encode(), "text/plain; charset=latin1", "grün"),
        (codecs.BOM_UTF16_LE + "grün".encode("utf-16-le"), "text/plain", "grün"),
        (codecs.BOM_UTF16_BE + "grün".encode("utf-16-be"), "text/plain", "grün"),
        ("grün".encode("utf-16-le"), "text/plain; charset=utf-16le", "grün"),
        ("grün".encode("utf-16-le"), "text/plain; charset=UTF-16", "grün"),
        ("grün".encode("utf-16-be"), "text/plain; charset=utf-16be", "grün"),
        ("<meta charset='utf-16'>grün".encode(), "text/html", "<meta charset='utf-16'>grün"),
        ("<meta charset='windows-1251'>да".encode("cp1251"), "text/html", "<meta charset='windows-1251'>да"),
        ("<!-- <meta charset=koi8-r> -->grün".encode(), "text/html", "<!-- <meta charset=koi8-r> -->grün"),
        ("<?xml version='1.0' encoding='koi8-r'?>да".encode("koi8_r"), "", "<?xml version='1.0' encoding='koi8-r'?>да"),
        ("grün".encode(), "text/plain; charset=nonsense", "grün"),
        ("grün".encode(), "text/plain; charset=idna", "grün"),
        ("grün".encode(), "text/plain; charset=unicode_escape", "grün"),
        ("grün".encode()[:-2], "text/plain", "gr"),
        ("grün ".encode() + b"\xff", "text/plain; charset=utf-8", "grün �"),
    ],
)  # fmt: skip
def test_charsets(body, content_type, text):
    assert decode_page(body, content_type) == text


def test_the_zero_bytes_of_utf_16_are_no_binary_data_where_the_server_names_it():
    assert read("<p>grün".encode("utf-16-le"), "text/html; charset=utf-16le").text == "grün"
    assert read("grün".encode("utf-16-be"), "text/plain; charset=utf-16be").text == "grün"


# --- PDF, pictures, other data


def test_a_pdf_becomes_text_page_by_page():
    found = read(pdf("Hello crow", "Second page", title="Birds"), "application/pdf")
    assert found.title == "Birds"
    assert found.text == "--- page 1 of 2 ---\nHello crow\n\n--- page 2 of 2 ---\nSecond page"


def test_a_pdf_is_known_by_its_beginning():
    assert "Hello crow" in read(pdf("Hello crow"), "application/octet-stream").text
    assert "Hello crow" in read(codecs.BOM_UTF8 + b"\r\n" + pdf("Hello crow"), "text/html").text
    assert "Hello crow" in read(b"sent by a printer\n" + pdf("Hello crow"), "application/pdf").text


@pytest.mark.parametrize("kind", ["text/plain", "text/html", ""])
def test_a_text_about_pdf_files_is_none(kind):
    assert read("A file that begins with %PDF-1.7 is a PDF.", kind).text == "A file that begins with %PDF-1.7 is a PDF."


@pytest.mark.parametrize(
    "body", [b"%PDF-1.7\nnonsense", b"%PDF-1.4\n" + b"1 0 obj<</Type/Catalog/Pages 1 0 R>>endobj\n" * 9]
)
def test_a_damaged_pdf_is_said(body):
    with pytest.raises(WebError, match=r"PDF|converted"):
        read(body, "application/pdf")


def test_a_pdf_without_text_is_said():
    with pytest.raises(WebError, match="no text"):
        read(pdf(""), "application/pdf")


def test_a_picture_is_a_picture_whatever_it_calls_itself():
    for kind in ("image/png", "text/html", ""):
        found = read(PICTURE, kind)
        assert found.image is not None
        assert (found.image.mime_type, base64.b64decode(found.image.data)) == ("image/png", PICTURE)


def test_half_a_picture_is_none():
    with pytest.raises(WebError, match="incomplete"):
        read(PICTURE, "image/png", cut="size")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"PK\x03\x04\x00\x00", "application/zip"),
        (b"\x00\x01\x02", "text/plain"),
        (b"\x7fELF\x00", ""),
        (b"x", "video/mp4"),
        (b"x", "font/woff2"),
        (b"x", "application/x-7z-compressed"),
        (b"\x47\x40\x11\x10\x00\x42", "video/mp2t"),
        (bytes(range(1, 256)), "application/x-unheard-of"),
    ],
)
def test_other_data_is_named_and_not_shown(body, kind):
    with pytest.raises(WebError, match="is not text"):
        read(body, kind)


def test_the_date_is_that_of_the_file_where_the_page_says_none():
    assert read("<p>x", modified="Wed, 01 May 2024 10:00:00 GMT").date == "2024-05-01"
    assert read("<p>x", modified="yesterday").date == ""
