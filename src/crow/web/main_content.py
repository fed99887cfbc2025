"""Finds the main content of a page (the article), and takes out navigation, sidebars, cookie notices, share links and
hidden elements.
"""

import re
from collections.abc import Callable, Iterable

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement, PreformattedString

# --- walks over a page that cost no more than the page is long, however it is built
#
# The library's own ways to search and to remove look at ancestors and siblings again for each element.

MAIN_NAMES = frozenset({"main", "article"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
DEEPEST = 2000
"""The most levels of nested elements: what follows goes down the page by recursion."""


class Outline:
    """How long the text of each element is, and how it stands to the page's title and main content."""

    def __init__(self, root: Tag) -> None:
        self._lengths: dict[int, int] = {}
        self._linked: dict[int, int] = {}
        self._titled: dict[int, int] = {}
        self._lettered: dict[int, int] = {}
        self._in_main: set[int] = set()
        self._around_main: set[int] = set()
        tags = self._go_down(root)
        for tag in reversed(tags[1:]):
            if tag.parent is not None:
                self._add_to(tag.parent, tag)
        self.whole = self._lengths[id(root)]

    def _go_down(self, root: Tag) -> list[Tag]:
        """Measures the text that is in each element itself. All of the elements, in their order."""
        self._begin(root)
        tags = [root]
        for node in root.descendants:
            parent = node.parent
            if parent is None:
                continue
            if isinstance(node, Tag):
                tags.append(node)
                self._begin(node)
                if is_main(parent) or id(parent) in self._in_main:
                    self._in_main.add(id(node))
            elif type(node) is NavigableString:  # a comment is a kind of it
                text = node.strip()
                self._lengths[id(parent)] += len(text)
                if any(character.isalpha() for character in text):
                    self._lettered[id(parent)] += len(text)
        return tags

    def _begin(self, tag: Tag) -> None:
        self._lengths[id(tag)] = self._linked[id(tag)] = self._titled[id(tag)] = self._lettered[id(tag)] = 0

    def _add_to(self, parent: Tag, tag: Tag) -> None:
        if tag.name == "a":
            self._linked[id(tag)] = self._lengths[id(tag)]
        elif tag.name in HEADINGS:
            self._titled[id(tag)] = self._lengths[id(tag)]
        for measure in (self._lengths, self._linked, self._titled, self._lettered):
            measure[id(parent)] += measure[id(tag)]
        if tag.name == "h1" or is_main(tag) or id(tag) in self._around_main:
            self._around_main.add(id(parent))

    def length(self, element: Tag) -> int:
        return self._lengths[id(element)]

    def length_of_links(self, element: Tag) -> int:
        return self._linked[id(element)]

    def length_of_headings(self, element: Tag) -> int:
        return self._titled[id(element)]

    def has_letters(self, element: Tag) -> bool:
        """Whether the element holds more than numbers and signs."""
        return self._lettered[id(element)] > 0

    def is_in_main(self, element: Tag) -> bool:
        return id(element) in self._in_main

    def is_around_main(self, element: Tag) -> bool:
        """Whether the title or the main content is in it."""
        return id(element) in self._around_main


def is_main(element: Tag) -> bool:
    return element.name in MAIN_NAMES or element.get("role") == "main"


def outermost(root: Tag, is_wanted: Callable[[Tag], bool]) -> list[Tag]:
    """The elements below it that are wanted, in their order; but none that is within another."""
    found: list[Tag] = []
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root and is_wanted(element):
            found.append(element)
        else:
            waiting.extend(child for child in reversed(element.contents) if isinstance(child, Tag))
    return found


def take_out(nodes: Iterable[PageElement]) -> None:
    unwanted: set[int] = set()
    parents: dict[int, Tag] = {}
    for node in nodes:
        if node.parent is not None:
            unwanted.add(id(node))
            parents[id(node.parent)] = node.parent
    for parent in parents.values():
        for index in range(len(parent.contents) - 1, -1, -1):
            if id(parent.contents[index]) in unwanted:
                parent.contents[index].extract(index)


def common_parent(elements: list[Tag]) -> Tag:
    """The innermost element that all of them are in; of a single one, itself."""
    if len(elements) == 1:
        return elements[0]
    shared = [id(ancestor) for ancestor in elements[0].parents]
    for element in elements[1:]:
        others = {id(ancestor) for ancestor in element.parents}
        shared = [ancestor for ancestor in shared if ancestor in others]
    return next(ancestor for ancestor in elements[0].parents if id(ancestor) == shared[0])


def check_depth(root: Tag) -> None:
    """Raises RecursionError if the page is nested too deeply for what follows."""
    depths = {id(root): 0}
    for node in root.descendants:
        if isinstance(node, Tag) and node.parent is not None:
            depth = depths[id(node)] = depths[id(node.parent)] + 1
            if depth > DEEPEST:
                raise RecursionError


# --- what is content

NO_CONTENT = frozenset(
    {
        *("script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed", "audio", "video"),
        *("dialog", "title", "meta", "link", "base", "noframes"),
    }
)
AROUND_IT = frozenset({"nav", "footer", "menu"})
CONTROLS = frozenset({"button", "select", "input", "textarea"})
ROLES_AROUND_IT = frozenset({"navigation", "banner", "search", "dialog", "alertdialog", "complementary", "contentinfo"})
SHARE_OF_MAIN = 1 / 3
"""A part of the page is its main content only if it has at least this much of the text."""
MOST_OF_IT = 1 / 2
"""What has more of the text than this is no mere addition, whatever it is called."""
ENOUGH_SHARE = 1 / 4
ENOUGH_PROSE = 200
"""A smaller share would be left of the page, and not even so many characters that are no links: then what seems to
stand around the content may be the content."""
NEARLY_NOTHING = 1 / 10
"""A smaller share can be seen: then the page is hidden until its scripts have run."""
ADDITIONS = frozenset(
    {
        *("sidebar", "left-sidebar", "right-sidebar", "toc", "table-of-contents", "breadcrumb", "breadcrumbs"),
        *("skip-link", "skip-nav", "skip-to-content", "prev-next", "pagination", "site-nav", "site-footer"),
        *("cookie-banner", "cookie-consent", "cookie-notice", "cookie-bar", "cookies", "consent", "gdpr"),
        *("share", "sharing", "share-buttons", "share-links", "social-share", "social-links"),
        *("newsletter", "newsletter-signup", "newsletter-form", "subscribe-form", "related-posts", "related-articles"),
        *("headerlink", "hash-link", "header-anchor", "heading-anchor", "mw-editsection"),  # beside a heading
    }
)
"""Classes of what stands around the content, or beside it, on many pages. Some are used as ids as well."""
LINE_NUMBERS = frozenset(
    {"linenos", "linenodiv", "line-numbers-rows", "line-number", "lineno", "gutter", "rouge-gutter"}
)
"""Classes of numbers beside code. Some are also used for columns of text."""
CALLOUTS = frozenset(
    {
        *("admonition", "callout", "alert", "markdown-alert", "notice"),
        *("note", "tip", "hint", "important", "warning", "caution", "danger"),
    }
)
"""Classes of remarks that belong to the content; some pages write them as <aside>."""
MARKS = frozenset(("¶", "#", "§", "🔗", "↩", "↩︎", "^", "⚓", "\u200b", ""))
"""What links to a place in the same page look like if they are no part of the text."""


def take_out_unseen(soup: BeautifulSoup) -> None:
    """Takes out what is no content, and what a reader of the page would not see."""
    take_out(node for node in soup.descendants if isinstance(node, PreformattedString))  # comments and the like
    take_out(outermost(soup, lambda element: element.name in NO_CONTENT))
    outline = Outline(soup)
    unseen = outermost(soup, _is_unseen)
    hidden = sum(outline.length(element) for element in unseen)
    around = outermost(soup, lambda element: _is_unseen(element) or _stands_around(element, outline))
    seen = outline.whole - sum(outline.length(element) for element in around)
    if seen >= (seen + hidden) * NEARLY_NOTHING or _has_text_in_main(soup, outline, unseen):
        take_out(unseen)


def take_out_surroundings(soup: BeautifulSoup) -> None:
    """Takes out what stands around the content or beside it, such as menus, forms and links to share a page."""
    _take_out_unless_it_is_all(soup, _stands_around)
    _take_out_unless_it_is_all(soup, _is_addition)
    take_out(outermost(soup, _is_a_mark))


def main_part(soup: BeautifulSoup) -> Tag:
    """What the page calls its main content, if that is long enough; else all of it."""
    outline = Outline(soup)
    mains = outermost(soup, _is_called_main)
    articles = outermost(soup, lambda element: element.name == "article")
    for group in (mains, articles):
        # A list of posts, or a question with its answers, is several articles.
        part = common_parent([element for element in group if outline.length(element)] or [soup])
        if part is not soup and outline.length(part) >= outline.whole * SHARE_OF_MAIN:
            return part
    return soup


def _is_called_main(element: Tag) -> bool:
    return is_main(element) and element.name != "article"


def classes_of(element: Tag) -> set[str]:
    return {str(name).lower() for name in element.get_attribute_list("class") if name}


def _is_unseen(element: Tag) -> bool:
    if element.name in ("html", "body") or _will_be_seen(element):
        return False
    if "hidden" in element.attrs or element.get("aria-hidden") == "true":
        return True
    style = str(element.get("style", "")).replace(" ", "").lower()
    return "display:none" in style or "visibility:hidden" in style


def _will_be_seen(element: Tag) -> bool:
    """Whether a hidden element appears by a click on its tab, a search in the page, or a script that moves it."""
    if element.get("role") == "tabpanel" or element.get("hidden") == "until-found":
        return True
    return re.fullmatch("S:[0-9a-f]+", str(element.get("id", ""))) is not None


def _take_out_unless_it_is_all(soup: BeautifulSoup, is_unwanted: Callable[[Tag, Outline], bool]) -> None:
    outline = Outline(soup)
    unwanted = outermost(soup, lambda element: is_unwanted(element, outline))

    def left_of(measure: Callable[[Tag], int]) -> int:
        return measure(soup) - sum(measure(element) for element in unwanted)

    text = left_of(outline.length) - left_of(outline.length_of_headings)
    is_much = text - left_of(outline.length_of_links) >= ENOUGH_PROSE
    has_main = _has_text_in_main(soup, outline, unwanted)

    def is_clearly_around(element: Tag) -> bool:
        if element.name in CONTROLS or (has_main and not outline.is_in_main(element)):
            return bool(text)
        return is_much and _is_list_of_links(element, outline)

    doubtful = [element for element in unwanted if not is_clearly_around(element)]
    if text >= (text + sum(map(outline.length, doubtful))) * ENOUGH_SHARE:
        doubtful = []
    staying = {id(element) for element in doubtful}
    take_out(element for element in unwanted if id(element) not in staying)


def _has_text_in_main(soup: BeautifulSoup, outline: Outline, unwanted: list[Tag]) -> bool:
    """Whether what the page calls its main content has more than headings in it, without what is unwanted."""

    def text_of(elements: Iterable[Tag]) -> int:
        return sum(outline.length(element) - outline.length_of_headings(element) for element in elements)

    # A main part within what is unwanted is not counted, and what is unwanted within a main part is taken off.
    marked = {id(element) for element in unwanted}
    parts = outermost(soup, lambda element: id(element) in marked or _is_called_main(element))
    mains = [element for element in parts if id(element) not in marked]
    within = [found for element in mains for found in outermost(element, lambda inner: id(inner) in marked)]
    return text_of(mains) > text_of(within)


def _is_list_of_links(element: Tag, outline: Outline) -> bool:
    return outline.length_of_links(element) >= outline.length(element) / 2


def _stands_around(element: Tag, outline: Outline) -> bool:
    if element.name == "aside" and not outline.is_in_main(element):
        return not classes_of(element) & CALLOUTS
    return element.name in AROUND_IT or element.name in CONTROLS or element.get("role") in ROLES_AROUND_IT


def _is_addition(element: Tag, outline: Outline) -> bool:
    """Whether an element is called an addition, and does not hold the title, the main content or most of the page."""
    if element.name in ("html", "body", "main", "article", "pre", "code", "h1"):
        return False
    if not _is_called_an_addition(element, outline) or outline.is_around_main(element):
        return False
    return outline.length(element) <= outline.whole * MOST_OF_IT


def _is_called_an_addition(element: Tag, outline: Outline) -> bool:
    if element.name == "form":
        return True
    if element.name == "header" and not outline.is_in_main(element):
        return _is_list_of_links(element, outline) or not outline.length_of_headings(element)
    if not element.attrs:
        return False
    names = classes_of(element)
    if names & ADDITIONS or (names & LINE_NUMBERS and not outline.has_letters(element)):
        return True
    # A plain word as an id may just as well be the place of a section that is about it.
    id = str(element.get("id", "")).lower()
    return element.name == "div" and "-" in id and id in ADDITIONS


def _is_a_mark(element: Tag) -> bool:
    if element.name != "a" or not str(element.get("href", "")).startswith("#"):
        return False
    return element.find("img") is None and element.get_text(strip=True) in MARKS
