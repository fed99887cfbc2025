"""What of a page is its content: takes out the rest, and finds the part that matters."""

from bs4 import BeautifulSoup, Comment, Tag

NO_CONTENT = (
    "script, style, noscript, template, svg, canvas, iframe, object, embed, audio, video, dialog, "
    "title, meta, link, base"
)
AROUND_IT = (
    "nav, aside, footer, button, select, input, textarea, menu, [role=navigation], [role=banner], [role=search], "
    "[role=dialog], [role=alertdialog], [role=complementary], [role=contentinfo]"
)
UNSEEN = "[hidden], [aria-hidden=true]"
MAIN = "main, article, [role=main]"
SHARE_OF_MAIN = 1 / 3
"""A part of the page is its main content only if it has at least this much of the text."""
MOST_OF_IT = 1 / 2
"""What has more of the text than this is no mere addition, whatever it is called."""
ADDITIONS = frozenset(
    {
        *("sidebar", "left-sidebar", "right-sidebar", "toc", "table-of-contents", "breadcrumb", "breadcrumbs"),
        *("skip-link", "skip-nav", "skip-to-content", "prev-next", "pagination", "site-nav", "site-footer"),
        *("cookie-banner", "cookie-consent", "cookie-notice", "cookie-bar", "cookies", "consent", "gdpr"),
        *("share", "sharing", "share-buttons", "share-links", "social-share", "social-links"),
        *("newsletter", "newsletter-signup", "newsletter-form", "subscribe-form", "related-posts", "related-articles"),
        *("headerlink", "hash-link", "header-anchor", "heading-anchor"),  # beside a heading
        *("linenos", "linenodiv", "line-numbers-rows", "line-number", "gutter"),  # beside code
    }
)
"""Classes of what stands around the content, or beside it, on many pages. Some are used as ids as well."""
CALLOUTS = frozenset(
    {
        *("admonition", "callout", "alert", "markdown-alert", "notice"),
        *("note", "tip", "hint", "important", "warning", "caution", "danger"),
    }
)
"""Classes of remarks that belong to the content; some pages write them as <aside>."""
MARKS = frozenset(("¶", "#", "§", "🔗", "↩", "↩︎", "^", "⚓", "\u200b", ""))
"""What links to a place in the same page look like if they are no part of the text."""


def clean(soup: BeautifulSoup) -> None:
    """Takes out what is no content, and what a reader of the page would not see."""
    _take_out_the_unseen(soup)
    for element in soup.select(AROUND_IT):
        if not (element.name == "aside" and classes_of(element) & CALLOUTS):
            element.extract()
    most = length(soup) * MOST_OF_IT
    _take_out_forms(soup, most)
    for element in soup.select("[class], [id]"):
        if _is_called_an_addition(element) and _is_addition(element, most):
            element.extract()
    for header in soup.select("header"):
        if header.find_parent(("article", "main")) is None and header.find("h1") is None:
            header.extract()
    for link in soup.select("a[href^='#']"):
        if link.get_text(strip=True) in MARKS and link.find("img") is None:
            link.extract()


def main_part(soup: BeautifulSoup) -> Tag:
    """The longest of the parts that the page calls its main content, if that is long enough; else all of it."""
    whole = length(soup)
    candidates = [(element, length(element)) for element in soup.select(MAIN)[:50]]
    longest = max(candidates, key=lambda candidate: candidate[1], default=None)
    if longest is None or longest[1] < whole * SHARE_OF_MAIN or not longest[1]:
        return soup
    return longest[0]


def classes_of(element: Tag) -> set[str]:
    return {str(name).lower() for name in element.get_attribute_list("class") if name}


def length(element: Tag) -> int:
    """Of its text."""
    return sum(len(text) for text in element.stripped_strings)


def _take_out_the_unseen(soup: BeautifulSoup) -> None:
    for comment in soup.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    for element in soup.select(f"{NO_CONTENT}, {UNSEEN}"):
        element.extract()
    for element in soup.select("[style]"):
        style = str(element["style"]).replace(" ", "").lower()
        if "display:none" in style or "visibility:hidden" in style:
            element.extract()


def _take_out_forms(soup: BeautifulSoup, most: float) -> None:
    """Some pages are one large form."""
    for form in soup.select("form"):
        if length(form) > most:
            form.unwrap()
        else:
            form.extract()


def _is_called_an_addition(element: Tag) -> bool:
    """A plain word as an id may just as well be the place of a section that is about it."""
    if classes_of(element) & ADDITIONS:
        return True
    id = str(element.get("id", "")).lower()
    return element.name == "div" and "-" in id and id in ADDITIONS


def _is_addition(element: Tag, most: float) -> bool:
    """Not the page itself, nor what its title or its main content is in."""
    if element.name in ("html", "body", "main", "article", "pre", "code", "h1"):
        return False
    return element.find(["h1", "main", "article"]) is None and length(element) <= most
