"""A session's title: the beginning of the first prompt that went to the model, until the person gives it another.

No model is asked for it.
"""

import re
from collections.abc import Sequence

from crow.events import Event, Journal, Sent, SentLink, SentMedia, SentResource, SentText, TitleChanged
from crow.visible import one_line

LONGEST = 80
LONGEST_LINE = 300
"""Characters of a line that are looked at for marks of Markdown."""
LOOKED_AT = 20_000
"""Characters of a text in which its first line is looked for."""
_FENCED = re.compile(r"^(```|~~~).*?(^\1|\Z)", re.DOTALL | re.MULTILINE)
_LINE_MARK = re.compile(r"^(?:[>\s]*(?:#{1,6}|[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|>+\s*)+")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_CODE = re.compile(r"(`+) ?(.+?) ?\1")
_MARK = re.compile(r"^(```|~~~).*$", re.MULTILINE)


class Title:
    """The title of a session of which `past` is what happened before it was opened. Empty until there is one."""

    def __init__(self, journal: Journal, past: Sequence[Event]) -> None:
        self._journal = journal
        self.text = next((event.title for event in reversed(past) if isinstance(event, TitleChanged)), "")

    def begin_with(self, prompt: Sequence[Sent]) -> None:
        """Takes the title from the prompt, unless there is one."""
        if not self.text:
            self.text = title_of(prompt)
            self._journal.append(TitleChanged(self.text))

    async def change(self, wish: str) -> None:
        """Gives the session the title that the person wants, as a title can be shown."""
        self.text = title_of((SentText(wish),))
        await self._journal.record(TitleChanged(self.text))


def title_of(sent: Sequence[Sent]) -> str:
    """The first line of what was typed, cut between two words; else the name of what was attached. Never empty."""
    for block in sent:
        if isinstance(block, SentText) and (line := _plain(_FENCED.sub("", block.text[:LOOKED_AT]))):
            return one_line(_cut(line), LONGEST + 1)
    for block in sent:
        if name := _name(block):
            return one_line(_cut(name), LONGEST + 1)
    return "Untitled"


def _plain(text: str) -> str:
    """The first line that says something, without the marks of Markdown: no client renders a title."""
    for line in text.splitlines():
        plain = _LINE_MARK.sub("", " ".join(line.split())[:LONGEST_LINE])
        plain = _CODE.sub(r"\2", _EMPHASIS.sub(r"\2", _LINK.sub(r"\1", plain)))
        if any(map(str.isalnum, plain)):
            return plain.strip()
    return _first_line(text)


def _first_line(text: str) -> str:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return next((line for line in lines if line), "")


def _cut(line: str) -> str:
    if len(line) <= LONGEST:
        return line
    whole_words = line[:LONGEST].rpartition(" ")[0]
    return (whole_words or line[: LONGEST - 1]) + "…"


def _name(block: Sent) -> str:
    match block:
        case SentLink():
            return _first_line(block.title or block.name) or _last_part(block.uri)
        case SentResource():
            return _last_part(block.uri)
        case SentMedia():
            return _last_part(block.uri) or block.kind.capitalize()
        case SentText():
            return _first_line(_MARK.sub("", block.text[:LOOKED_AT]))


def _last_part(uri: str) -> str:
    return _first_line(uri.rstrip("/").rpartition("/")[2])
