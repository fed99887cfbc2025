"""Walks over a page that cost no more than the page is long, however it is built.

The library's own ways to search and to remove look at ancestors and siblings again for each element.
"""

from collections.abc import Callable, Iterable

from bs4 import Tag
from bs4.element import NavigableString, PageElement

MAIN_NAMES = frozenset({"main", "article"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
DEEPEST = 2000
"""Levels. What follows goes down the page by recursion."""


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
        """Or is it numbers and signs only?"""
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
    """RecursionError if it is nested too deeply for what follows."""
    depths = {id(root): 0}
    for node in root.descendants:
        if isinstance(node, Tag) and node.parent is not None:
            depth = depths[id(node)] = depths[id(node.parent)] + 1
            if depth > DEEPEST:
                raise RecursionError
