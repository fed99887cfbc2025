"""Whether a text that arrives in pieces is quoting something at its end: code, a line of another text, an example."""

import re

LONGEST_LINE = 64 * 1024
"""Characters of a line in whose middle calls are believed."""
_FENCE_LINE = re.compile(r"[ ]{0,3}(```+|~~~+)")
_PAIRS = (("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("<!--", "-->"), ("(", ")"))
_MARKED_LINE = re.compile(r"\s*([#+|(<>*-]|//|--|\d+[.:)]|[\w./-]+:\d+:)")
"""How comments, differences, tables, lists and the results of searches begin."""
_SENTENCE_END = re.compile(r"[.!?\u2026)*_\u3002\uff01\uff1f]$|\w:$")
_LONE_TAG = re.compile(r"</?[\w:.-]+[^<>]*>|```.*|~~~.*")
LONGEST_PARAGRAPH = 200
"""Lines of a paragraph that are looked at."""


class Quotation:
    """Whether a text stands in code or in a line that is quoted, at its end so far.

    What is added costs nothing until it is asked about, and is looked at once.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._paragraph: list[str] = []
        """The lines before this one, since the last that was blank."""
        self._fence = ""
        self._line: list[str] = []
        self._length = 0
        self._backticks = 0
        self._mark = ""
        """The first character of the line that is not blank."""

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def is_open(self) -> bool:
        first, *lines = "".join(self._pieces).split("\n")
        self._pieces.clear()
        self._extend(first)
        for line in lines:
            self._end_line()
            self._extend(line)
        return bool(self._fence) or self._length > LONGEST_LINE or self._backticks % 2 == 1 or self._mark == ">"

    def _extend(self, text: str) -> None:
        self._line.append(text)
        self._length += len(text)
        self._backticks += text.count("`")
        self._mark = self._mark or text.lstrip()[:1]

    def may_quote(self) -> bool:
        """Whether what follows may be a quotation of which cannot be told where it ends: asked after `is_open`.

        Who calls a tool begins a line with it, or has ended a sentence before it. Whoever writes it behind a mark of
        any kind, indents it, or puts it below such a line without a blank one between them, may be showing it.
        """
        line, before = "".join(self._line), self._paragraph
        if line[:1].isspace() and (before or len(line.expandtabs(4)) >= 4):
            return True
        line = line.rstrip()
        if line and (_MARKED_LINE.match(line) or not _SENTENCE_END.search(line)):
            return True
        text = "\n".join([*before, line])
        opened = any(text.count(opening) > text.count(closing) for opening, closing in _PAIRS)
        return (
            opened
            or text.count('"') % 2 == 1
            or text.count("`") % 2 == 1
            or any(row.lstrip()[:1] == ">" for row in before)
            or bool(before and _LONE_TAG.fullmatch(before[-1].strip()))
        )

    def _end_line(self) -> None:
        line = "".join(self._line)
        self._line, self._length, self._backticks, self._mark = [], 0, 0, ""
        if not line.strip() or len(self._paragraph) > LONGEST_PARAGRAPH:
            self._paragraph.clear()
        else:
            self._paragraph.append(line[:LONGEST_LINE])
        if (found := _FENCE_LINE.match(line)) is None:
            return
        if not self._fence:
            self._fence = found[1]
        elif found[1].startswith(self._fence) and not line[found.end() :].strip():
            self._fence = ""
