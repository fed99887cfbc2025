"""The built-in tools give advice in the names of their neighbours; here the neighbours are commands of one tool."""

import re

from crow.errors import WorkspaceError

_PHRASES = {
    ", or set `all` to replace every one.": ".",
    "Read the file first.": "View the file first.",
    "Read it again.": "View it again.",
    "Read it first.": "View it first.",
    "Read the whole of it first, or change a part of it with `edit`.": (
        "View the whole of it first, or change a part of it with `str_replace`."
    ),
    "Change it with `edit`.": "Change it with `str_replace`.",
    "To make a new file use `write`.": "To make a new file use `create`.",
}
_GO_ON = re.compile(r"^\((\d+) more lines: go on with offset (\d+)\)\Z", re.MULTILINE)
"""The last line of a file that was read in part; a line of the file itself begins with its number."""


def reworded(error: WorkspaceError) -> WorkspaceError:
    """The same error, with advice that can be followed here."""
    return WorkspaceError(_in_our_words(error.message), remedy=_in_our_words(error.remedy))


def reworded_view(text: str) -> str:
    return _GO_ON.sub(r"(\1 more lines: go on with view_range [\2, -1])", text)


def _in_our_words(text: str) -> str:
    for phrase, ours in _PHRASES.items():
        if text.endswith(phrase):
            return text.removesuffix(phrase) + ours
    return text
