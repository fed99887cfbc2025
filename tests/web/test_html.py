"""HTML as Markdown, shape by shape; whole pages are in the golden files that test_page_content.py compares."""

import pytest

from crow.web.markdown import html_to_markdown

URL = "https://example.com/docs/page"


def markdown(html: str) -> str:
    return html_to_markdown(html, URL).text


# --- what is content


def test_a_page_that_is_one_large_form_is_no_form():
    assert markdown("<form><h1>Birds</h1><p>All of the page.</p><input><button>Go</button></form>") == (
        "# Birds\n\nAll of the page."
    )


def test_a_form_that_holds_the_title_is_no_mere_form():
    page = "<form><h1>Birds</h1><p>Text.</p></form><div>More text, which is longer than what is in the form.</div>"
    assert markdown(page).startswith("# Birds\n\nText.\n\nMore text")


def test_all_of_several_articles_are_given():
    posts = "<div><article><h2>One</h2>Short.</article><article><h2>Two</h2>Somewhat longer.</article></div>"
    assert markdown(f"<div>Welcome</div>{posts}") == "## One\n\nShort.\n\n## Two\n\nSomewhat longer."


def test_articles_outside_the_main_part_are_no_part_of_it():
    page = "<main><p>The text of the page.</p></main><article>Read this too</article><article>And this</article>"
    assert markdown(page) == "The text of the page."


@pytest.mark.parametrize("name", ["nav", "aside", "footer", "menu", "header"])
def test_a_page_is_not_left_empty_because_all_of_it_stands_around_something(name):
    assert markdown(f"<main></main><{name}><p>One.</p></{name}><{name}><p>Two.</p></{name}>") == "One.\n\nTwo."


def test_a_page_that_hides_itself_until_its_scripts_have_run_is_seen():
    assert markdown('<html hidden><body style="visibility: hidden"><p>Text.</p></body></html>') == "Text."


def test_an_aside_within_the_main_part_belongs_to_it():
    page = "<aside>Advertisement</aside><main><p>First.</p><aside><p>Mind the cat.</p></aside><p>Then.</p></main>"
    assert markdown(page) == "First.\n\nMind the cat.\n\nThen."


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


TEXT = "Crows are among the cleverest of all birds. " * 3


def test_a_page_that_its_scripts_will_show_is_seen():
    """All of it is in something hidden, whatever stands around that."""
    article = f"<h1>Birds</h1><p>{TEXT}</p>"
    expected = f"# Birds\n\n{TEXT.strip()}"
    assert markdown(f'<div style="visibility:hidden"><main>{article}</main></div>') == expected
    menu = "<nav>" + "<a href=/x>Somewhere</a> " * 30 + "</nav>"
    streamed = f'{menu}<main>Loading</main><div hidden id="S:0"><article>{article}</article></div>'
    assert markdown(streamed) == expected


def test_what_is_shown_on_a_click_is_seen():
    assert markdown("<p>One.</p><div hidden=until-found>Two.</div><div role=tabpanel hidden>Three.</div>") == (
        "One.\n\nTwo.\n\nThree."
    )


def test_a_heading_that_is_a_button_stays_and_a_button_beside_a_heading_does_not():
    page = f"<p>{TEXT}</p><h3><span><button>How?</button></span></h3><p>So.</p><h3>Why? <button>Copy</button></h3>"
    assert markdown(page).endswith("\n\n### How?\n\nSo.\n\n### Why?")
    assert markdown(f"<p>{TEXT}</p><button><h3>How?</h3></button><p>So.</p>").endswith("### How?\n\nSo.")
    table = "<table><tr><th>a</th></tr><tr><td><button>Yes</button></td></tr></table>"
    assert markdown(f"<p>{TEXT}</p>{table}").endswith("| Yes |")


def test_tasks_are_marked_as_done_or_not():
    tasks = "<ul><li><input type=checkbox checked disabled> one</li><li><input type=checkbox disabled>two</li></ul>"
    assert markdown(tasks) == "- [x] one\n- [ ] two"
    tasks = "<ul class=task-list><li><label><input type=checkbox checked>one</label></li></ul>"
    assert markdown(tasks) == "- [x] one"
    assert markdown("<ul><li><input type=checkbox checked>a choice</li></ul>") == "- a choice"


def test_links_to_edit_a_section_are_left_out():
    edit = '<span class="mw-editsection">[<a href="/edit">edit</a>]</span>'
    assert markdown(f"<h2>Birds</h2>{edit}<p>{TEXT}</p>") == f"## Birds\n\n{TEXT.strip()}"


def test_columns_that_share_a_name_with_line_numbers_are_no_line_numbers():
    columns = "".join(f'<div class="gutter"><h2>{name}</h2><p>{TEXT}</p></div>' for name in "AB")
    assert markdown(f"{columns}<p>{TEXT * 3}</p>").count("## ") == 2


def test_additions_that_are_all_of_the_page_together_stay():
    columns = "".join(f'<div class="sidebar"><h2>{name}</h2><p>{TEXT}</p></div>' for name in "ABC")
    found = markdown(f"{columns}<p>Copyright 2024 The Company, all rights reserved everywhere.</p>")
    assert found.count(TEXT.strip()) == 3


def test_an_index_that_is_a_list_of_links_stays():
    links = "".join(f"<li><a href=/{number}>Package {number}</a></li>" for number in range(4))
    found = markdown(f"<h1>All packages of the distribution, by name</h1><nav><ul>{links}</ul></nav>")
    assert found.endswith("- [Package 3](https://example.com/3)")


def test_a_long_menu_around_a_short_text_is_left_out():
    menu = "<nav>" + "<a href=/x>Somewhere</a> " * 300 + "</nav>"
    assert markdown(f"{menu}<h1>Birds</h1><p>{TEXT * 2}</p>") == f"# Birds\n\n{(TEXT * 2).strip()}"


def test_with_the_menu_its_footer_goes_too():
    menu = "<nav>" + "<a href=/x>Somewhere</a> " * 300 + "</nav>"
    page = f"{menu}<h1>Birds</h1><p>{TEXT * 2}</p><footer>Copyright 2024 The Company.</footer>"
    assert markdown(page) == f"# Birds\n\n{(TEXT * 2).strip()}"


def test_what_the_page_calls_its_main_part_is_enough_however_short():
    around = f"<nav>{'<a href=/x>Somewhere</a> ' * 30}</nav><footer>{TEXT}</footer><div hidden>{TEXT * 5}</div>"
    assert markdown(f"<main><h1>Birds</h1><p>None.</p></main>{around}") == "# Birds\n\nNone."


def test_a_header_with_a_heading_and_a_lead_belongs_to_the_content():
    page = f"<header><h2>Birds</h2><p>All about them.</p></header><div>{TEXT}</div>"
    assert markdown(page) == f"## Birds\n\nAll about them.\n\n{TEXT.strip()}"
    page = f"<header><h2><a href=/>The Site</a></h2>Menu</header><div>{TEXT}</div>"
    assert markdown(page) == TEXT.strip()


# --- formulas

MATH = r'<math alttext="{\displaystyle x=2}"><mi>x</mi><annotation encoding="application/x-tex">x=2</annotation></math>'


@pytest.mark.parametrize(
    "formula",
    [
        (
            f'<span class="mwe-math-element"><span style="display: none">{MATH}</span>'
            r'<img class="mwe-math-fallback-image-inline" aria-hidden="true" alt="{\displaystyle x=2}"></span>'
        ),
        r'<img class="mwe-math-fallback-image-inline" aria-hidden="true" alt="{\displaystyle x=2}">',
        (
            f'<span class="katex"><span class="katex-mathml">{MATH.replace("alttext", "x")}</span>'
            '<span class="katex-html" aria-hidden="true">x=2</span></span>'
        ),
        MATH,
        '<span class="MathJax"><i>x</i>=2</span><script type="math/tex">x=2</script>',
    ],
)
def test_a_formula_is_given_once_as_tex(formula):
    assert markdown(f"<p>Let {formula} be.</p>") == "Let $x=2$ be."


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
        ('<figure class="highlight python"><table><tr><td><pre>x</pre></td></tr></table></figure>', "python"),
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


@pytest.mark.parametrize(
    "lines",
    [
        "<div class=line>if x:</div><div class=line></div><div class=line>    y  </div>",
        "<div>if x:</div>\n<div></div>\n<div>    y  </div>\n",
        "<div>if x:\n</div><div>\n</div><div>    y  \n</div>",
        "<code><p>if x:</p><p><br></p><p><b>    y</b>  </p></code>",
        "if x:<br><br>    y  ",
        "<ol><li>if x:</li><li></li><li>    y  </li></ol>",
        "<span class=line>if x:</span><span class=line></span><span class=line>    y  </span>",
        "<span class=line>if x:</span>\n<span class=line></span>\n<span class=line>    y  </span>",
        "<span class=line>if x:</span><br><span class=line></span><br><span class=line>    y  </span><br>",
        "<span class=line>if x:\n</span><span class=line>\n</span><span class=line>    y  \n</span>",
        "<span style='display: block'>if x:</span><span style='display: block'></span><span class=line>    y  </span>",
    ],
)
def test_code_keeps_its_lines_however_they_are_written(lines):
    assert markdown(f"<pre>{lines}</pre>") == "```\nif x:\n\n    y  \n```"


@pytest.mark.parametrize(
    "table",
    [
        "<tr><td class=linenos><pre>1\n2</pre></td><td><div><pre>if x:\n    y\n</pre></div></td></tr>",
        "<tr><td><pre> 9\n10\n</pre></td><td><pre>if x:\n    y\n</pre></td></tr>",
        "<tr><td>1</td><td><pre>if x:</pre></td></tr><tr><td>2</td><td><pre>    y</pre></td></tr>",
        "<tr><td data-line-number=1></td><td class=code>if x:</td></tr><tr><td>2</td><td class=code>    y</td></tr>",
    ],
)
def test_a_table_of_numbers_and_code_is_the_code(table):
    assert markdown(f"<p>Before</p><table>{table}</table>") == "Before\n\n```\nif x:\n    y\n```"


def test_a_table_of_numbers_and_code_within_code_is_the_code():
    table = (
        "<table><tr><td class='rouge-gutter gl'><pre class=lineno>1\n2\n</pre></td><td><pre>x\n  y\n</pre></td></tr>"
    )
    assert markdown(f"<div class=language-ruby><div><pre><code>{table}</table></code></pre></div></div>") == (
        "```ruby\nx\n  y\n```"
    )


def test_a_fragment_that_is_all_lines_is_code():
    lines = (
        "<div class=line><span class=lineno>    1</span><b>int</b> main() {</div>\n"
        "<div class=line><span class=lineno>    2</span>    <b>return</b> 0;</div>\n"
        "<div class=line><span class=lineno>    3</span>}</div>"
    )
    assert markdown(f"<p>{TEXT}</p><div class=fragment>{lines}</div>").endswith(
        "```\nint main() {\n    return 0;\n}\n```"
    )
    assert markdown("<div class=fragment><p>Only words.</p></div>") == "Only words."


def test_a_table_of_numbers_and_other_things_is_a_table():
    page = "<table><tr><th>1</th><th>one</th></tr><tr><td>2</td><td><code>two</code></td></tr></table>"
    assert markdown(page) == "| 1 | one |\n| --- | --- |\n| 2 | `two` |"


# --- links


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href='/x y'>l</a>", "[l](https://example.com/x%20y)"),
        ("<a href='//b\u00fccher.example/\u00e4\\b'>l</a>", "[l](https://b\u00fccher.example/\u00e4%5Cb)"),
        ("<a href='a<b>'>l</a>", "[l](https://example.com/docs/a%3Cb%3E)"),
        ("a<a href=/b><h3>B</h3><p>c</p></a>d", "a\n\n### B\n\nc\n\n<https://example.com/b>\n\nd"),
        ("a<a href=/b><div>b</div></a>c", "a\n\n[b](https://example.com/b)\n\nc"),
        ("a<a href=b> l </a>c", "a [l](https://example.com/docs/b) c"),
        ("<a href=https://example.com/>https://example.com/</a>", "<https://example.com/>"),
        ("<a href=#there>l</a> <a href=javascript:x()>m</a> <a>n</a> <a href='http://[x'>o</a>", "l m n o"),
        ("<img src='/a b.png' alt=Bird>", "![Bird](https://example.com/a%20b.png)"),
        ("<img src=data:x alt=Bird> flies", "Bird flies"),
        ("<base href=/other/><a href=x>l</a>", "[l](https://example.com/other/x)"),
        ("<base href='http://[x'><a href=x>l</a>", "[l](https://example.com/docs/x)"),
    ],
)
def test_links_lead_somewhere_from_anywhere(html, expected):
    assert markdown(html) == expected


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


def test_an_aside_that_is_a_note_is_a_quotation_too():
    assert (
        markdown("<main><aside class=note aria-label=Caution><p>Hot.</p></aside></main>") == "> **Caution**\n>\n> Hot."
    )


def test_a_power_is_told_from_a_number():
    assert markdown("<p>x<sup>2</sup> and e<sup>n+1</sup></p>") == "x^2 and e^(n+1)"


def test_there_are_no_runs_of_blank_lines():
    assert markdown("<p>a</p><br><br><br><div><div></div></div><br><p>b</p>") == "a\n\nb"


# --- what a page says of itself


def test_the_title_of_a_picture_is_not_that_of_the_page():
    found = html_to_markdown("<svg><title>Yes</title></svg><h1>Prices</h1><p>None.</p>", URL)
    assert found.title == "Prices"


def test_a_page_that_leads_on_says_where():
    found = html_to_markdown('<meta http-equiv="Refresh" content="0; URL=\'../new page\'"><title>Moved</title>', URL)
    assert (found.text, found.note) == ("", "the page redirects to https://example.com/new%20page: fetch that")
    found = html_to_markdown(f'<meta http-equiv="refresh" content="300; url=/"><p>{TEXT * 2}</p>', URL)
    assert (found.text, found.note) == ((TEXT * 2).strip(), "")
    assert html_to_markdown('<meta http-equiv="refresh" content="5"><p>Wait.</p>', URL).note == ""


def test_a_page_that_is_built_by_scripts_says_what_it_is_about():
    page = '<meta name=description content="An app."><noscript>Enable scripts.</noscript><div id=root></div><script>'
    found = html_to_markdown(page, URL)
    assert found.text == "Its description says: An app.\n\nWithout JavaScript it says: Enable scripts."
    assert found.note == "the page needs JavaScript, which Crow does not run"


def test_a_page_of_frames_names_them():
    page = "<frameset><frame src=menu.html><frame src=/main.html><noframes><body>No <b>frames</b>?</body></noframes>"
    found = html_to_markdown(page, URL)
    note = "the page is made of frames: fetch https://example.com/docs/menu.html or https://example.com/main.html"
    assert (found.text, found.note) == ("", note)
