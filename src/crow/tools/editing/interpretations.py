"""What a model may have meant by an edit that is not in the file: without a code fence, line numbers, diff marks or
escapes.

An interpretation is about the whole of an edit: what was taken from the old text is taken from the new one likewise.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from crow.errors import WorkspaceError
from crow.files.text import with_line_feeds
from crow.tools.editing import EditInterpretation
from crow.tools.editing.forms import ENTITY, ESCAPE, STRIPPED, is_word, unescaped
from crow.tools.editing.soundness import compiles, ending_of, is_python
from crow.visible import join_surrogates

# --- line numbers that a model copied

WHAT = "line numbers"
_BLANKS_UNCLEAR = "how many blanks belong to its line numbers cannot be told"
_NEW_UNCLEAR = "whether its new text has line numbers too, and which lines of it, cannot be told"

_NUMBER = re.compile(r"([ \t]*L?)(\d{1,7})(.*)", re.DOTALL)
_MARK = re.compile(r"\t|[ ]?[|│→:]|-")
_SEPARATOR = re.compile(r"\t|[ ]{0,2}[|│→:-][ ]{0,2}|[ ]{1,4}")
_LONGEST_SEPARATOR = 5


class _NumberedLine(NamedTuple):
    """A line with a number before it."""

    lead: str
    number: int
    rest: str
    """All that follows the number: a separator and what the line of the file holds."""
    width: int
    """Characters of the number, with what is before it."""

    @classmethod
    def of(cls, line: str) -> "_NumberedLine | None":
        found = _NUMBER.fullmatch(line)
        return None if found is None else cls(found[1], int(found[2]), found[3], found.end(2))

    def begins_with(self, separator: str) -> bool:
        return _alike(self.rest[: len(separator)]) == separator or _alike(self.rest.rstrip()) == separator.rstrip()

    def without(self, separator: str) -> str:
        return self.rest[len(separator) :]


def _alike(separator: str) -> str:
    """`grep` and `search` have `:` behind the number of a line that matches, and `-` behind those around it."""
    return separator.replace("-", ":")


# --- marks that no file can have by chance in all of its lines


class _Marked(NamedTuple):
    number: int
    mark: str
    rest: str


def numbers_of(text: str) -> list[int]:
    """The numbers that all lines of a text begin with, as `read` writes them; empty if they do not."""
    return [line.number for line in _marked_lines(text)]


def numbered_rests(text: str) -> list[str]:
    """What stands behind these numbers."""
    return [line.rest for line in _marked_lines(text)]


def _marked_lines(text: str) -> list[_Marked]:
    """The lines that are not blank, if all of them are numbered in one way and upwards; else none."""
    marked: list[_Marked] = []
    for line in text.split("\n"):
        if line.strip():
            if (found := _NumberedLine.of(line)) is None or (mark := _MARK.match(found.rest)) is None:
                return []
            marked.append(_Marked(found.number, mark[0], found.rest[mark.end() :]))
    upwards = all(one.number < other.number for one, other in pairwise(marked))
    marks = {line.mark for line in marked}
    one_way = marks == {":", "-"} or len(marks) == 1  # `search` has the one and the other
    if marks == {"-"} and not all(line.rest.startswith(" ") or not line.rest for line in marked):
        one_way = len(marked) > 1  # `1-2` is a range
    return marked if upwards and one_way else []


# --- what an edit is without them


def without_numbers(old: str, new: str, file: Sequence[str]) -> EditInterpretation | None:
    """What an edit is without the line numbers of its old text, for a file of these lines."""
    lines = old.split("\n")
    numbered = [_NumberedLine.of(line) for line in lines]
    if (there := _separator_there(numbered, lines, file)) is not None:
        first, separator = there
        return _without(numbered, separator, new, line=first, only_there=True)
    if not (marked := _marked_lines(old)):
        return None
    mark = _alike(marked[0].mark)
    readings = [mark]
    if mark != "\t" and all(not line.rest or line.rest.startswith(" ") for line in marked):
        readings.append(f"{mark} ")
    found = [_without(numbered, separator, new, line=marked[0].number) for separator in readings]
    if len(found) > 1:
        text = "\n".join(["", *file])
        exact = [one for one in found if f"\n{one.old}" in text]
        found = exact if len(exact) == 1 else [found[-1]._replace(problem=_BLANKS_UNCLEAR)]
    return found[0]


def _separator_there(
    numbered: Sequence[_NumberedLine | None], lines: Sequence[str], file: Sequence[str]
) -> tuple[int, str] | None:
    """The number of the first line, and what stands behind the numbers, if they and the text are those of the file."""
    if numbered[0] is None:
        return None
    first = numbered[0].number
    separators: list[str] | None = None
    for number, (line, written) in enumerate(zip(numbered, lines, strict=True), first):
        if not 0 < number <= len(file):  # behind the file's last line only its own line end may stand
            return (first, separators[0]) if separators and not "".join(lines[number - first :]).strip() else None
        actual = file[number - 1]
        if line is None:
            if written.strip() or (actual.strip() and number - first < len(lines) - 1):
                return None
            continue
        if line.number != number:
            return None
        if not actual.strip():
            if line.rest.strip() and not _SEPARATOR.fullmatch(line.rest.rstrip()):
                return None
            continue
        found = [one for one in _separators(line.rest) if separators is None or _alike(one) in separators]
        separators = [_alike(one) for one in found if _is_line(line.rest[len(one) :], actual)]
        if not separators:
            return None
    return (first, separators[0]) if separators else None


def _separators(rest: str) -> Iterator[str]:
    for length in range(1, _LONGEST_SEPARATOR + 1):
        if _SEPARATOR.fullmatch(rest[:length]) and len(rest) >= length:
            yield rest[:length]


def _is_line(text: str, actual: str) -> bool:
    """Whether a text is a line of the file, but for blanks at its end."""
    return text.rstrip(STRIPPED) == actual.rstrip(STRIPPED)


def _without(
    numbered: Sequence[_NumberedLine | None], separator: str, new: str, *, line: int, only_there: bool = False
) -> EditInterpretation:
    known = [one for one in numbered if one is not None]
    old = "\n".join("" if one is None else one.without(separator) for one in numbered)
    meant, problem = _new_without(new, known, separator)
    return EditInterpretation(WHAT, old, meant, line, only_there, problem)


def _new_without(new: str, known: Sequence[_NumberedLine], separator: str) -> tuple[str, str]:
    """The new text without numbers like those of the old one, and why it cannot be told what it is without them."""
    lines = new.split("\n")
    found = [_like(line, known[0], separator) for line in lines]
    numbers = [one.number for one in found if one is not None]
    if not numbers:
        return new, ""
    meant = "\n".join(
        line if one is None else one.without(separator)
        for line, one in ((line if line.strip() else "", one) for line, one in zip(lines, found, strict=True))
    )
    all_numbered = all(one is not None for line, one in zip(lines, found, strict=True) if line.strip())
    copied = any(one in known for one in found if one is not None)
    is_clear = all(one < other for one, other in pairwise(numbers)) and (
        copied if not all_numbered else copied or numbers[0] == known[0].number
    )
    if not all_numbered and not separator.strip(" "):
        is_clear = False  # nothing but blanks: a number may as well be the line's own
    if not all(one is None or one.begins_with(separator) for one in found):
        is_clear = False
    if any(_like(one.without(separator), known[0], separator) for one in known):  # the file has such numbers itself
        is_clear = all_numbered and all(_like(line, known[0], separator) for line in meant.split("\n") if line.strip())
    return meant, "" if is_clear else _NEW_UNCLEAR


def _like(line: str, known: _NumberedLine, separator: str) -> _NumberedLine | None:
    """A line that begins with a number in the way of a known one."""
    found = _NumberedLine.of(line)
    if found is None or (found.lead and found.width != known.width):
        return None
    mark = separator.strip(" ")
    if not mark:
        return found if not found.rest or found.rest[0] == " " else None
    return found if _alike(found.rest.lstrip(" ")).startswith(mark) else None


AS_READ = re.compile(r"(?m)^(?=.{6}\t) *(\d{1,6})\t")
"""A number as `read` writes it."""


MOST_READ = 1024 * 1024
"""Characters of an edit that is read in any other way than as it is."""


def other_interpretations(old: str, new: str, plain: str) -> Iterator[EditInterpretation]:
    """The likelier before the others; none of them is the edit as it is. `plain` is the file's text."""
    if len(old) + len(new) > MOST_READ:
        return
    bare = EditInterpretation("", old, new)

    def unnumbered(edit: EditInterpretation) -> EditInterpretation | None:
        has_numbers = any(character.isdigit() for character in edit.old)
        return without_numbers(edit.old, edit.new, plain.split("\n")) if has_numbers else None

    for unwrap in (_without_fence, unnumbered, _without_diff_marks):
        if (found := unwrap(bare)) is not None:
            bare = found._replace(
                what=f"{bare.what} and {found.what}" if bare.what else found.what,
                line=found.line or bare.line,
                only_there=found.only_there or bare.only_there,
                problem=found.problem or bare.problem,
            )
            yield bare
    for what, unescape in _UNESCAPES:
        meant = with_line_feeds(unescape(bare.old))
        if meant != bare.old and meant:
            yield _unescaped(bare, meant, what, unescape)


# --- wrappers

_OPENING = re.compile(r"\s*(`{3,}+|~{3,}+)[\w+.#-]*[ \t]*\n")


def inside_fence(text: str) -> str | None:
    """What a code fence around the whole of a text holds; None if there is none."""
    opening, ended = _OPENING.match(text), text.rstrip()
    if opening is None or not ended.endswith(opening[1]) or len(ended) < opening.end() + len(opening[1]):
        return None
    inside = ended[opening.end() : -len(opening[1])].rstrip(" \t").removesuffix("\n")
    return None if f"\n{opening[1]}" in inside else inside


def _without_fence(interpretation: EditInterpretation) -> EditInterpretation | None:
    old, new = inside_fence(interpretation.old), inside_fence(interpretation.new)
    return None if old is None else EditInterpretation("a code fence", old, interpretation.new if new is None else new)


_HUNK = re.compile(r"^@@ (?:(?!@@)[^\n])*@@[^\n]*\n", re.MULTILINE)


def _without_diff_marks(interpretation: EditInterpretation) -> EditInterpretation | None:
    old, new = _HUNK.sub("", interpretation.old, count=1), _HUNK.sub("", interpretation.new, count=1)
    if not _is_marked(old, "-") or not (_is_marked(new, "+") or not new.strip()):
        return None
    return EditInterpretation("the marks of a diff", _unmarked(old), _unmarked(new))


def _is_marked(text: str, mark: str) -> bool:
    """Whether each line begins with a mark or with the blank that stands for none, and some with the mark."""
    lines = [line for line in text.split("\n") if line]
    return all(line[0] in (mark, " ") for line in lines) and any(line[0] == mark for line in lines)


def _unmarked(text: str) -> str:
    return "\n".join(line[1:] for line in text.split("\n"))


# --- escapes

_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _replacing(pattern: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def unescape(text: str) -> str:
        meant = compiled.sub(lambda found: unescaped(found[0]), text)
        return _SURROGATES.sub(lambda found: join_surrogates(found[0]), meant)

    return unescape


_UNESCAPES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("escapes that are too many", _replacing(ESCAPE)),
    ("escapes that are too many", _replacing(r"\\[_*#\[\]()<>$&|~!{}.+`-]")),
    ("HTML entities", _replacing(ENTITY)),
)


def _unescaped(
    interpretation: EditInterpretation, old: str, what: str, unescape: Callable[[str], str]
) -> EditInterpretation:
    """The new text is unescaped in the same way, unless it is written in another one than the old."""
    what = f"{interpretation.what} and {what}" if interpretation.what else what
    new = with_line_feeds(unescape(interpretation.new))
    added = new.count("\n") > interpretation.new.count("\n")
    problem = ""
    if added and "\n" in interpretation.new and "\n" not in interpretation.old:
        problem = "its new text has line ends both as they are and written as `\\n`"
    elif added and _cuts_a_string(new, interpretation.new):
        problem = "its new text has a `\\n` inside quotes, which may be meant as two characters or as a line end"
    return interpretation._replace(what=what, old=old, new=new, problem=problem or interpretation.problem)


_CODE = (
    *("py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "go", "rs", "java", "kt", "c", "h", "cc", "cpp", "hpp"),
    *("cs", "rb", "scala", "json", "toml"),
)
"""Endings of files in which a backslash has no place outside quotes, but in a regular expression."""
_COMMENT = re.compile(r"#|//|/\*")


def with_line_ends_meant(path: str, text: str, around: tuple[str, str] | None = None) -> str | None:
    """A text of code in one line whose line ends were written as `\\n`: as it was meant. None for any other.

    `around` is what stands before and after it in the file, if that is known: Python that is sound as it is written is
    meant so. WorkspaceError if it cannot be told which of them are line ends.
    """
    if "\n" in text or "\\n" not in text or ending_of(path) not in _CODE:
        return None
    judged = around is not None and is_python(path)
    before, after = around or ("", "")
    if judged and compiles(before + text + after):
        return None
    pieces = re.split(r"(?<!\\)\\n", text)
    if not any(_ends_outside(piece) and (judged or "/" not in piece) for piece in pieces[:-1]):
        return None
    meant = with_line_feeds(_replacing(ESCAPE)(text))
    if _cuts_a_string(meant, text):
        raise WorkspaceError(
            "The text has line ends written as `\\n`, outside quotes and inside them: it is unclear which are meant as "
            "line ends. Nothing was changed.",
            advice="Write the text as it is to stand in the file, escaped no more than JSON needs it.",
        )
    return None if judged and not compiles(before + meant + after) else meant


def _ends_outside(piece: str) -> bool:
    """Whether a part of a line ends outside quotes and comments."""
    return not _is_open(piece) and not _COMMENT.search(piece) and piece.count("`") % 2 == 0


def _cuts_a_string(text: str, written: str) -> bool:
    """Whether a line ends inside quotes that was not written as a line."""
    kept = set(written.split("\n"))
    return any(_is_open(line) for line in text.split("\n")[:-1] if line not in kept)


def _is_open(line: str) -> bool:
    if '"""' in line or "'''" in line:
        return False
    quote, before = "", ""
    escaped = False
    for character in line:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character == '"' or (character == "'" and (before in "fFrRbBuU" or not is_word(before))):
            quote = character
        before = character
    return bool(quote)
