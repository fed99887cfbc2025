"""HTML as Markdown, shape by shape; whole pages are in the golden files that test_reading.py compares."""

import pytest

from crow.web.html import html_to_markdown

URL = "https://example.com/docs/page"


def markdown(html: str) -> str:
    return html_to_markdown(html, URL).text


# --- what is content


def test_a_page_that_is_one_large_form_is_no_form():
    assert markdown("<form><h1>Birds</h1><p>All of the page.</p><input><button>Go</button></form>") == (
        "# Birds\n\nAll of the page."
    )


def test_a_small_form_is_left_out():
    assert markdown("<p>The text of the page.</p><form>Search <input></form>") == "The text of the page."


@pytest.mark.parametrize(
    "noise",
    [
        '<div class="cookie-banner">We use cookies.</div>',
        '<div id="cookie-consent">We use cookies.</div>',
        '<div role="dialog">We use cookies.</div>',
        '<div class="left sidebar"><a href="/a">A</a></div>',
        '<a class="skip-link" href="#main">Skip to content</a>',
        '<div class="share-buttons"><a href="/share">Share</a></div>',
        '<div role="complementary">On this page</div>',
    ],
)
def test_what_stands_around_the_content_is_left_out_without_a_main_element(noise):
    assert markdown(f"{noise}<h1>Birds</h1><p>The text of the page, which is long enough.</p>") == (
        "# Birds\n\nThe text of the page, which is long enough."
    )


def test_what_is_most_of_the_page_stays_whatever_it_is_called():
    assert (
        markdown('<div class="sidebar">Nearly all of the text.</div><p>Rest</p>') == "Nearly all of the text.\n\nRest"
    )


def test_a_section_about_cookies_is_no_banner():
    page = '<p>A long text about many things.</p><section id="cookies"><h2 id="sidebar">Cookies</h2>Yes.</section>'
    assert "## Cookies\n\nYes." in markdown(page)


def test_marks_beside_headings_are_left_out_and_headings_stay():
    page = '<h2>One<a class="headerlink" href="#1">¶</a></h2><h2>Two <a href="#2">#</a></h2><h2><a href="#3">3</a></h2>'
    assert markdown(page) == "## One\n\n## Two\n\n## 3"


# --- code


@pytest.mark.parametrize(
    ("html", "language"),
    [
        ('<pre><code class="language-python">x</code></pre>', "python"),
        ('<pre class="lang-py s-code-block"><code>x</code></pre>', "py"),
        ('<pre><code class="hljs rust">x</code></pre>', "rust"),
        ('<pre data-lang="go">x</pre>', "go"),
        ('<div class="highlight-toml notranslate"><div class="highlight"><pre>x</pre></div></div>', "toml"),
        ('<div class="highlight highlight-source-shell"><pre>x</pre></div>', "shell"),
        ('<div class="highlight-default"><div class="highlight"><pre>x</pre></div></div>', ""),
        ('<pre class="wide"><code class="block">x</code></pre>', ""),
        ('<pre><code class="language-`evil\n`">x</code></pre>', ""),
    ],
)
def test_code_has_its_language(html, language):
    assert markdown(html) == f"```{language}\nx\n```"


def test_code_keeps_its_blank_lines_and_cannot_end_its_fence():
    assert markdown("<pre>a\n\n\n\n  b  \n</pre>") == "```\na\n\n\n\n  b  \n```"
    assert markdown("<pre>```\nx\n```</pre><p>after</p>") == "````\n```\nx\n```\n````\n\nafter"


def test_line_numbers_are_no_code():
    gutter = '<table><tr><td class="gutter"><pre>1\n2</pre></td><td class="code"><pre>a\nb</pre></td></tr></table>'
    within = '<pre><span class="linenos">1</span>a\n<span class="linenos">2</span>b</pre>'
    assert markdown(gutter) == markdown(within) == "```\na\nb\n```"


# --- tables


def test_a_cell_stays_in_its_row():
    page = "<table><tr><th>a</th><th>b</th></tr><tr><td><p>1</p><p>2</p></td><td><code>x | y</code></td></tr></table>"
    assert markdown(page) == "| a | b |\n| --- | --- |\n| 1 2 | `x \\| y` |"
    page = "<table><tr><th>a</th></tr><tr><td><pre>x\ny</pre></td></tr></table>"
    assert markdown(page) == "| a |\n| --- |\n| `x y` |"


def test_cells_that_span_keep_the_columns_in_line():
    page = (
        "<table><tr><th>a</th><th>b</th><th>c</th></tr><tr><td rowspan=2>1</td><td colspan=2>2</td></tr>"
        "<tr><td>3</td><td>4</td></tr><tr><td>5</td><td>6</td><td>7</td></tr></table>"
    )
    assert markdown(page).splitlines()[2:] == ["| 1 | 2 | |", "|  | 3 | 4 |", "| 5 | 6 | 7 |"]


def test_tables_that_only_lay_out_the_page_are_no_tables():
    inner = "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>"
    assert markdown(f"<table><tr><td>{inner}</td><td>beside</td></tr></table>") == "| a |\n| --- |\n| 1 |\n\nbeside"
    assert markdown('<table role="presentation"><tr><td>one</td><td>two</td></tr></table>') == "one\n\ntwo"


# --- remarks, powers, blank lines


def test_notes_become_quotations():
    note = '<aside class="admonition tip"><p class="admonition-title">Tip</p><p>Do it.</p></aside>'
    assert markdown(f"{note}<aside>An advertisement</aside>") == "> **Tip**\n>\n> Do it."


def test_a_power_is_told_from_a_number():
    assert markdown("<p>x<sup>2</sup> and e<sup>n+1</sup></p>") == "x^2 and e^(n+1)"


def test_there_are_no_runs_of_blank_lines():
    assert markdown("<p>a</p><br><br><br><div><div></div></div><br><p>b</p>") == "a\n\nb"
