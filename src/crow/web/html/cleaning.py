"""What of a page is its content: takes out the rest, and finds the part that matters."""

from collections.abc import Callable

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString

from crow.web.html.outline import Outline, common_parent, is_main, outermost, take_out

NO_CONTENT = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "audio", "video"),
        *("dialog", "title", "meta", "link", "base"),
    }
)
AROUND_IT = frozenset({"nav", "footer", "button", "select", "input", "textarea", "menu"})
ROLES_AROUND_IT = frozenset({"navigation", "banner", "search", "dialog", "alertdialog", "complementary", "contentinfo"})
SHARE_OF_MAIN = 1 / 3
"""A part of the page is its main content only if it has at least this much of the text."""
MOST_OF_IT = 1 / 2
"""What has more of the text than this is no mere addition, whatever it is called."""
NEARLY_NOTHING = (40, 1 / 20)
"""Fewer characters than this and a smaller share are left: then what stands around the content is the content."""
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
    take_out(node for node in soup.descendants if isinstance(node, PreformattedString))  # comments and the like
    take_out(outermost(soup, _is_unseen))
    _take_out_unless_it_is_all(soup, _stands_around)
    _take_out_unless_it_is_all(soup, _is_addition)
    take_out(outermost(soup, _is_a_mark))


def main_part(soup: BeautifulSoup) -> Tag:
    """What the page calls its main content, if that is long enough; else all of it."""
    outline = Outline(soup)
    mains = outermost(soup, lambda element: is_main(element) and element.name != "article")
    articles = outermost(soup, lambda element: element.name == "article")
    for group in (mains, articles):
        # A list of posts, or a question with its answers, is several articles.
        part = common_parent([element for element in group if outline.length(element)] or [soup])
        if part is not soup and outline.length(part) >= outline.whole * SHARE_OF_MAIN:
            return part
    return soup


def classes_of(element: Tag) -> set[str]:
    return {str(name).lower() for name in element.get_attribute_list("class") if name}


def _is_unseen(element: Tag) -> bool:
    if element.name in ("html", "body"):  # some pages hide themselves until their scripts have run
        return False
    if element.name in NO_CONTENT or "hidden" in element.attrs or element.get("aria-hidden") == "true":
        return True
    style = str(element.get("style", "")).replace(" ", "").lower()
    return "display:none" in style or "visibility:hidden" in style


def _take_out_unless_it_is_all(soup: BeautifulSoup, is_unwanted: Callable[[Tag, Outline], bool]) -> None:
    outline = Outline(soup)
    unwanted = outermost(soup, lambda element: is_unwanted(element, outline))
    left = outline.whole - sum(outline.length(element) for element in unwanted)
    if left >= min(NEARLY_NOTHING[0], outline.whole * NEARLY_NOTHING[1]):
        take_out(unwanted)


def _stands_around(element: Tag, outline: Outline) -> bool:
    if element.name == "aside" and not outline.is_in_main(element):
        return not classes_of(element) & CALLOUTS
    return element.name in AROUND_IT or element.get("role") in ROLES_AROUND_IT


def _is_addition(element: Tag, outline: Outline) -> bool:
    """But not the page itself, nor what most of it, its title or its main content is in."""
    if element.name in ("html", "body", "main", "article", "pre", "code", "h1"):
        return False
    if not _is_called_an_addition(element, outline) or outline.is_around_main(element):
        return False
    return outline.length(element) <= outline.whole * MOST_OF_IT


def _is_called_an_addition(element: Tag, outline: Outline) -> bool:
    if element.name == "form" or (element.name == "header" and not outline.is_in_main(element)):
        return True
    if not element.attrs:
        return False
    if classes_of(element) & ADDITIONS:
        return True
    # A plain word as an id may just as well be the place of a section that is about it.
    id = str(element.get("id", "")).lower()
    return element.name == "div" and "-" in id and id in ADDITIONS


def _is_a_mark(element: Tag) -> bool:
    if element.name != "a" or not str(element.get("href", "")).startswith("#"):
        return False
    return element.find("img") is None and element.get_text(strip=True) in MARKS
