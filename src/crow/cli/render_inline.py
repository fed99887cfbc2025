"""Code and bold within one line of Markdown: where such a span ends, and the line in pieces, each with its style.

Code binds tighter than bold, so stars in code are stars. Stars that stand as in `f(**kwargs)` or `src/**/*.py` are
no markers. Reading is linear, whatever the line is made of.
"""

import re
from collections.abc import Iterator, Sequence

from crow.cli.render_screen import BOLD, CODE

_RUN = re.compile(r"`+|\*+")

Runs = Sequence[re.Match[str]]


def span_length(text: str, before: str = "") -> int:
    """The length of the span that begins with the text, which begins with a marker; 0 if none does.

    `before` is the character before the text, if there is one on its line.
    """
    runs = list(_RUN.finditer(text))
    code = _ends_of_code(runs)
    ends = code if text[0] == "`" else _ends_of_bold(text, runs, code, before)
    return runs[ends[0]].end() if 0 in ends else 0


def pieces(text: str, style: str = "", *, keep_markers: bool) -> Iterator[tuple[str, str]]:
    """The text in pieces with their styles. The markers of spans go, unless they are all that shows the spans."""
    runs = list(_RUN.finditer(text))
    code = _ends_of_code(runs)
    bold = _ends_of_bold(text, runs, code)
    closing = set(bold.values())
    at, number, depth = 0, 0, 0
    while number < len(runs):
        start, end = runs[number].span()
        inside = BOLD if depth else style
        if number in code:
            yield text[at:start], inside
            number = code[number]
            closed = runs[number]
            yield (text[start : closed.end()] if keep_markers else _code(text[end : closed.start()])), CODE
            at = closed.end()
        elif number in bold:
            yield text[at:start], inside
            at = start if keep_markers else end
            depth += 1
        elif number in closing:
            yield text[at : end if keep_markers else start], inside
            at = end
            depth -= 1
        number += 1
    yield text[at:], style


def _ends_of_code(runs: Runs) -> dict[int, int]:
    """The numbers of the runs that end code, by those of the runs that begin it: the next ones of their length."""
    ends: dict[int, int] = {}
    next_of: dict[str, int] = {}
    for number in range(len(runs) - 1, -1, -1):
        run = runs[number][0]
        if run[0] == "`":
            if run in next_of:
                ends[number] = next_of[run]
            next_of[run] = number
    return ends


def _ends_of_bold(text: str, runs: Runs, code: dict[int, int], before: str = "") -> dict[int, int]:
    """The same of bold: what ends belongs to what began last, so that a star that is none leaves the others alone."""
    ends: dict[int, int] = {}
    begun: list[int] = []
    number = 0
    while number < len(runs):
        if number in code:
            number = code[number]
        elif begun and _closes(text, runs[number]):
            ends[begun.pop()] = number
        elif _opens(text, runs[number], before):
            begun.append(number)
        number += 1
    return ends


def _opens(text: str, run: re.Match[str], before: str = "") -> bool:
    before = text[run.start() - 1] if run.start() else before
    after = text[run.end() : run.end() + 1]
    glued = before.isascii() and before.isalnum() and after.isascii() and not after.isalnum()  # as in 2**(3)
    return run[0] == "**" and bool(after) and not after.isspace() and after != "/" and not glued


def _closes(text: str, run: re.Match[str]) -> bool:
    before, after = text[run.start() - 1], text[run.end() : run.end() + 1]
    glued = before.isascii() and not before.isalnum() and after.isascii() and after.isalnum()  # as in f(**kwargs)
    return run[0] == "**" and not before.isspace() and before != "/" and not glued


def _code(inner: str) -> str:
    """What stands in code, without the blank on both sides that keeps a backtick from the markers."""
    return inner[1:-1] if inner[:1] == inner[-1:] == " " and inner.strip() else inner
