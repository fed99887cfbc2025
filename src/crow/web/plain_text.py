"""Takes the text out of HTML in one pass and without a tree: for pages that are too large or too deep for Markdown.

Its time grows with the length of the page and with nothing else. So every pattern here matches once it has begun, at
the latest with the end of the page, and none goes back.
"""

import html
import re

from crow.web.conversion_process import Converted

NOTE = "too complex: shown as plain text, without links and headings"

_MARKUP = re.compile(
    r"""
      <!--(?:-?>|.*?(?:--!?>|\Z))                       # a comment
    | <(?:[!?]|/(?![a-z]))[^>]*+(?:>|\Z)                # a declaration, or nonsense
    | <(?P<end>/?)(?P<name>[a-z][^\s/>]*+)
      (?:[^>=]++|=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))?+)*+
      (?:>|\Z)                                          # a tag, with attributes that may hold a >
    """,
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_SOURCE = frozenset({"script", "style"})
_NO_TEXT = _SOURCE | {
    "title",
    "noscript",
    "template",
    "svg",
    "canvas",
    "iframe",
    "object",
    "audio",
    "video",
    "textarea",
}
_CLOSING = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _NO_TEXT}
_LINES = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "br", "caption", "dd", "details", "div", "dl", "dt"),
        *("figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li"),
        *("main", "nav", "ol", "option", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr"),
        "ul",
    }
)
"""What begins and ends a line."""
_CELLS = frozenset({"td", "th"})
_BLANKS = re.compile(r"\s+")
_ENDLESS_NUMBER = re.compile(r"&#[0-9]{9,}+;?")
"""No character; and Python refuses to read numbers that are long enough."""


def html_to_plain_text(source: str) -> Converted:
    lines = _Lines()
    title = ""
    never_closed: set[str] = set()
    preformatted = False
    position = 0
    while (markup := _MARKUP.search(source, position)) is not None:
        lines.add(_characters(source[position : markup.start()]), preformatted)
        position = markup.end()
        name = (markup["name"] or "").lower()
        if name in _LINES:
            lines.end()
        elif name in _CELLS and not markup["end"]:
            lines.next_cell()
        if name == "pre":
            preformatted = not markup["end"]
        if name not in _NO_TEXT or markup["end"] or name in never_closed:
            continue
        closing = _CLOSING[name].search(source, position)
        if closing is not None:
            if name == "title" and not title:
                title = " ".join(_characters(source[position : closing.start()]).split())[:300]
            position = closing.start()
        elif name in _SOURCE:
            position = len(source)
        else:
            never_closed.add(name)  # or each of them would be looked for to the end of the page
    lines.add(_characters(source[position:]), preformatted)
    return Converted(lines.text(), title, "", NOTE)


class _Lines:
    """Puts text together, with one blank for any number of them."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._at_start = True
        """Whether the next piece begins a line."""

    def add(self, text: str, preformatted: bool) -> None:
        if not preformatted:
            text = _BLANKS.sub(" ", text)
            text = text.lstrip(" ") if self._at_start else text
        if text:
            self._pieces.append(text)
            self._at_start = text.endswith("\n")

    def end(self) -> None:
        if not self._at_start:
            self._pieces.append("\n")
            self._at_start = True

    def next_cell(self) -> None:
        if not self._at_start:
            self._pieces[-1] = self._pieces[-1].rstrip(" ")
            self._pieces.append(" | ")

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in "".join(self._pieces).split("\n")).strip("\n")


def _characters(written: str) -> str:
    return html.unescape(_ENDLESS_NUMBER.sub("\ufffd", written)) if "&" in written else written
