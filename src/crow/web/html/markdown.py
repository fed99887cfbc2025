"""From a cleaned part of a page to Markdown."""

import re

from bs4 import Tag
from markdownify import MarkdownConverter

from crow.markdown import fence
from crow.web.html.code import code_text, language
from crow.web.html.links import absolute
from crow.web.html.shapes import number

_FENCE = re.compile(r"[\s>:-]*(?:\d+\.\s+)?(`{3,})")
_BLANKS = re.compile(r"\s+")


class Markdown(MarkdownConverter):
    """Its options; code in fences that hold it, with its language; cells that stay in their row."""

    def __init__(self, url: str) -> None:
        """The address that links start from."""
        super().__init__(
            heading_style="ATX",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            escape_misc=False,
        )
        self._url = url

    def convert_a(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """A link that leads nowhere from here is its text."""
        address = absolute(str(element.get("href", "")), self._url)
        if not address or not text.strip() or "_noformat" in parent_tags:
            return text
        words = text.strip()
        before, after = _gap(text[: len(text) - len(text.lstrip())]), _gap(text[len(text.rstrip()) :])
        if "\n\n" in words:  # headings and paragraphs, which no brackets can hold
            return f"{before}{words}\n\n<{address}>\n\n"
        return f"{before}<{address}>{after}" if words == address else f"{before}[{words}]({address}){after}"

    def convert_img(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        address = absolute(str(element.get("src", "")), self._url)
        alternative = str(element.get("alt", ""))
        return f"![{alternative}]({address})" if address and "_inline" not in parent_tags else alternative

    def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        code = code_text(element)
        if not code.strip():
            return ""
        if parent_tags & {"td", "th"}:
            return f" `{' '.join(code.split())}` "
        return f"\n\n{fence(code, language(element))}\n\n"

    def convert_td(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_th(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        return _cell(element, text)

    def convert_sup(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """`x^2` is another number than `x2`."""
        text = text.strip()
        if not text or parent_tags & {"pre", "code"}:
            return text
        return f"^{text}" if text.isalnum() or text.startswith("[") else f"^({text})"


def without_blank_runs(text: str) -> str:
    """At most one empty line in a row, and nothing at the end of a line; code stays as it is."""
    lines: list[str] = []
    marks = ""
    for line in text.split("\n"):
        opening = _FENCE.match(line)
        if opening is not None and not marks:
            marks = opening[1]
        elif marks and line.strip(" >\t") == marks:
            marks = ""
        elif marks:
            lines.append(line)
            continue
        kept = line.rstrip()
        if kept or (lines and lines[-1].strip(" >")):
            lines.append(kept)
    return "\n".join(lines).strip("\n")


def _gap(blanks: str) -> str:
    return "\n\n" if blanks.count("\n") > 1 else " " if blanks else ""


def _cell(element: Tag, text: str) -> str:
    """In one line, and with no bar that would end it; one that spans columns takes as many."""
    line = _BLANKS.sub(" ", text.strip()).replace("|", "\\|")
    return f" {line} |" + " |" * (number(element, "colspan") - 1)
