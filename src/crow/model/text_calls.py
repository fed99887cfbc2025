"""Turns tool calls that a model wrote as text into calls: follows the stream, holds back what may be calls, and leaves
quoted code alone.

A server that knows its model's syntax (a chat template, a parser flag) sends real calls; one that does not sends what
the model wrote. `TextCalls` follows the text of a reply and holds back what may be calls. They are believed only at the
very end of a reply and outside quoted code; everything else is text, and shown as such.

A text without `<` and `[` is passed on as it is, which is all that an ordinary stream costs. Nothing is looked for once
the provider has made a real call, and what the model has read somewhere is a quotation, however it is written.
"""

import re
from collections.abc import Iterator, Sequence

from crow.messages import Message, StopReason, Text, ToolMessage, ToolSpec, UserMessage
from crow.model.base import (
    CallBegan,
    CallGrew,
    Done,
    ModelEvent,
    Said,
    Usage,
)
from crow.model.text_call_readers import TextCall
from crow.model.text_call_syntaxes import (
    END_TOKENS,
    TAGGED,
    Syntax,
    parse,
    without_end_tokens,
)

LONGEST_HELD = 4 * 1024 * 1024
"""Characters that are held back: more is shown as text."""
_BLANK = re.compile(r"\s*")


_OPENINGS = tuple(dict.fromkeys(opening for syntax in TAGGED for opening in syntax.openings))
_STARTS = (*_OPENINGS, *END_TOKENS)
_START = re.compile("|".join(re.escape(start) for start in sorted(_STARTS, key=len, reverse=True)))
_LONGEST_START = max(map(len, _STARTS))
_OBJECT_BEGUN = r'\{\s*"(?:name|function|tool|tool_name|type|id|arguments|parameters|tool_calls)"'
_OBJECT = r'\{\s*(?:$|"\w{0,10}$)'
_BARE_BEGUN = re.compile(
    rf"{_OBJECT_BEGUN}|\[\s*(?:{_OBJECT_BEGUN}|[\w.]+\()|(?:```+|~~~+)[ \t]*+\w*+\s*+{_OBJECT_BEGUN}"
)
"""The beginning of a reply that may be calls without tags."""
_BARE_START = re.compile(
    rf"{_OBJECT}|\[\s*(?:$|{_OBJECT}|[\w.]+(?:$|\())|[`~]{{1,3}}$"
    rf"|(?:```+|~~~+)[ \t]*+\w*+\s*+(?:$|{_OBJECT})"
)
"""What may become such a beginning."""
LONGEST_UNDECIDED = 1000
"""Characters that are held back because they may become the beginning of calls, or the end of the reply."""
MOST_FALSE_STARTS = 20
"""Times that a reply begins something like calls and goes on as text, after which nothing more is looked for."""
MOST_END_TOKENS = 8
"""Tokens in a row that may end a reply."""
_PLAUSIBLE = 200
"""Characters within which something that an argument is written with must come after an opening."""


class TextCalls:
    """Takes the events of one reply in the order they come, and gives back what can be shown by now."""

    def __init__(self, tools: Sequence[ToolSpec], messages: Sequence[Message] = ()) -> None:
        """`messages` are all that the model has been given to read."""
        self._messages = messages
        self._false_starts = 0
        self.syntax: Syntax | None = None
        """How the calls of this reply were written, if it had any."""
        self._tools = tools
        self._off = not tools
        """Nothing is looked for: the reply has real calls, or none can be made."""
        self._spoke = False
        """Something that is not blank was passed on."""
        self._quotation = Quotation()
        self._held = ""
        self._more: list[str] = []
        """What came after the held text began like calls."""
        self._length = 0
        """Of both."""
        self._opened = False
        """What is held begins like calls; else it may become their beginning, or a token that ends the reply."""

    def passes(self, text: str) -> bool:
        """Whether the text can be shown as it is, which most can; if so, it counts as shown."""
        if self._off:
            return True
        if self._spoke and not self._held and "<" not in text and "[" not in text:
            self._quotation.add(text)
            return True
        return False

    def take(self, event: ModelEvent) -> list[ModelEvent]:
        match event:
            case Said(text=text):
                if self._opened:
                    return self._hold(text)
                if self.passes(text):
                    return [event]
                self._held += text
                return self._read()
            case Done():
                return [*self._end(event.stop_reason), event]
            case CallBegan():
                self._off = True
                return [*self._released(), event]
            case Usage():
                return [event]
            case _:
                return [*self._released(), event]

    def _read(self) -> list[ModelEvent]:
        """What of the held text can be shown by now."""
        if not self._spoke:
            start = self._held.lstrip()
            if _BARE_BEGUN.match(start):
                self._opened = True
                return self._hold("")
            if _BARE_START.match(start):
                return self._released() if len(self._held) > LONGEST_UNDECIDED else []
        text, place = self._held, 0
        for found in _START.finditer(text):
            self._quotation.add(text[place : found.start()])
            place = found.start()
            if not self._quotation.is_open():
                if found[0] in _OPENINGS:
                    self._off = self._quotation.may_quote()
                    self._opened = not self._off
                    break
                if len(text) - place <= LONGEST_UNDECIDED and _may_end(text, place):
                    break
            self._quotation.add(found[0])
            place = found.end()
        else:
            end = max(place, len(text) - _possible_start(text))
            self._quotation.add(text[place:end])
            place = end
        return self._pass_on(len(text) if self._off else place)

    def _hold(self, text: str) -> list[ModelEvent]:
        """More of what begins like calls; all of it, as text, if it cannot be calls."""
        self._more.append(text)
        before, self._length = self._length, self._length + len(text)
        if self._length > LONGEST_HELD:
            self._off = True
            return self._released()
        if before <= _PLAUSIBLE < self._length and not re.search(r"[{\[<(]", self._joined()[1:_PLAUSIBLE]):
            return self._released()
        return []

    def _joined(self) -> str:
        self._held += "".join(self._more)
        self._more.clear()
        return self._held

    def _pass_on(self, length: int) -> list[ModelEvent]:
        text, self._held = self._held[:length], self._held[length:]
        self._length = len(self._held)
        self._spoke = self._spoke or bool(text and not text.isspace())
        return [Said(text)] if text else []

    def _released(self) -> list[ModelEvent]:
        """What is held was no call: it is text."""
        self._false_starts += self._opened
        self._off = self._off or self._false_starts >= MOST_FALSE_STARTS
        self._opened = False
        self._quotation.add(self._joined())
        return self._pass_on(len(self._held))

    def _end(self, stop_reason: StopReason) -> list[ModelEvent]:
        if not self._joined():
            return []
        # Half a call is never run, and what a model is told to write in a real call is not looked for beside one.
        found = None
        if not self._off and stop_reason is StopReason.END_TURN:
            found = parse(self._held, self._tools, whole_reply=not self._spoke)
        if found is None or (found.calls and _is_quoted(without_end_tokens(self._held), self._messages)):
            self._held = without_end_tokens(self._held)
            return self._released()
        self._held = ""
        self.syntax = found.syntax
        return [*found.before, *_as_events(found.calls)]


def _as_events(calls: Sequence[TextCall]) -> Iterator[ModelEvent]:
    for index, call in enumerate(calls):
        yield CallBegan(index, call.name, from_text=True)
        yield CallGrew(index, call.arguments)


_LINE_NUMBER = re.compile(r"^ *\d{1,7}[\t:-]", re.MULTILINE)
MOST_LINES = 100
"""Lines of calls that are looked for in what the model has read."""


def _is_quoted(text: str, messages: Sequence[Message]) -> bool:
    """Whether a text stands in a file, a page, an output or a prompt that the model was given: it repeats what it read.

    Blanks do not count, nor what stands between its lines.
    """
    whole = "".join(text.split())
    lines = list(dict.fromkeys("".join(line.split()) for line in text.split("\n") if line.strip()))[:MOST_LINES]
    given = ("".join(_LINE_NUMBER.sub("", read).split()) for message in messages for read in _texts(message))
    return any(whole in read or all(line in read for line in lines) for read in given)


def _texts(message: Message) -> Iterator[str]:
    match message:
        case ToolMessage(text=text):
            yield text
        case UserMessage(parts=parts):
            yield from (part.text for part in parts if isinstance(part, Text))
        case _:
            pass


def _may_end(text: str, place: int) -> bool:
    """Whether the text from there, which begins with a token that ends replies, may be the end of this one."""
    for _ in range(MOST_END_TOKENS):
        if (found := _START.match(text, place)) is None or found[0] not in END_TOKENS:
            break
        blank = _BLANK.match(text, found.end())
        place = blank.end() if blank else found.end()
    rest = text[place : place + _LONGEST_START]
    return any(start.startswith(rest) for start in _STARTS) or rest.startswith(_OPENINGS)


def _possible_start(text: str) -> int:
    """How many characters at the end of the text may be the beginning of calls, or of a token that ends the reply."""
    tail = text[-_LONGEST_START:]
    for place, character in enumerate(tail):
        if character in "<[" and any(start.startswith(tail[place:]) for start in _STARTS):
            return len(tail) - place
    return 0


LONGEST_LINE = 64 * 1024
"""Characters of a line in whose middle calls are believed."""
_FENCE_LINE = re.compile(r"[ ]{0,3}(```+|~~~+)")
_PAIRS = (("\u201c", "\u201d"), ("\u2018", "\u2019"), ("\u00ab", "\u00bb"), ("<!--", "-->"), ("(", ")"))
_MARKED_LINE = re.compile(r"\s*([#+|(<>*-]|//|--|\d+[.:)]|[\w./-]+:\d+:)")
"""How comments, differences, tables, lists and the results of searches begin."""
_SENTENCE_END = re.compile(r"[.!?\u2026)*_\u3002\uff01\uff1f]$|\w:$")
_LONE_TAG = re.compile(r"</?[\w:.-][^<>]*>|```.*|~~~.*")
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
