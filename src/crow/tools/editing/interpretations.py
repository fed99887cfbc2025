"""What a model may have meant by an edit that is not in the file: without a code fence, line numbers, diff marks or
escapes.

An interpretation is about the whole of an edit: what was taken from the old text is taken from the new one likewise.
"""

import re
from collections.abc import Callable, Iterator

from crow.errors import WorkspaceError
from crow.files.text import with_line_feeds
from crow.tools.editing import EditInterpretation
from crow.tools.editing.forms import ENTITY, ESCAPE, is_word, unescaped
from crow.tools.editing.line_numbers import without_numbers
from crow.tools.editing.soundness import compiles, ending_of, is_python
from crow.visible import join_surrogates

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
