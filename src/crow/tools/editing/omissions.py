"""Placeholders in a text that is to be written, for what a model left out of it: "... existing code ...".

Written into a file, they would replace what they are short for; so would line numbers, and a code fence around it all.
Whatever the file says already is no placeholder.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

from crow.errors import WorkspaceError
from crow.tools.editing.readings import inside_fence, numbers_of

_DOTS = r"(?:\.{3,}|…|\[\.\.\.\]|\[…\])"
_THINGS = (
    r"(?:code|contents?|files?|functions?|class(?:es)?|methods?|implementations?|imports?|tests?|lines?|modules?|body|"
    r"logic|components?|definitions?|documents?|scripts?|sections?|parts?|text|config(?:uration)?|settings?|fields?|"
    r"properties|props|cases|entries|items|rules|styles|handlers?|routes?|statements?|declarations?|stuff|things?|"
    r"variables|types|markup|html|css|json|jsx|data|elements?|options|dependencies|steps?|page|program|source|block|"
    r"loop)"
)
_STATE = (
    r"(?:unchanged|the same|same as (?:before|above|original)|as (?:before|is|it was|above|in the original)|intact|"
    r"untouched|unmodified|omitted|truncated|not shown|for brevity|here|goes here|continues|follows|below|above)"
)
_BE = r"(?:is|are|stays?|remains?|left|kept|goes|go)"
_STATES = rf"(?:,? (?:{_BE} )*(?:all )?{_STATE}| {_BE})*"


@cache
def _phrases() -> re.Pattern[str]:
    """What is said in the place of what was left out: the whole of a comment."""
    rest_of = r"(?:and |keep |with )?(?:all )?(?:the |my |your )?(?:rest|remainder) of (?:the |this |your |my |its )?"
    kept = r"(?:existing|remaining|unchanged|unmodified|original|previous)"
    return re.compile(
        "|".join(
            (
                rf"{rest_of}(?:[\w`'./()-]+ ){{0,4}}?{_THINGS}{_STATES}",
                rf"{rest_of}[\w`'./()-]+(?:,? (?:{_BE} )*{_STATE})+",
                rf"(?:and |keep )?(?:the )?rest(?: of it)?(?: {_BE})* {_STATE}",
                rf"(?:keep |with )?(?:all )?(?:the |your |my )?(?:other )?{kept} (?:\w+ )?{_THINGS}{_STATES}",
                rf"(?:all )?(?:the )?other (?:\w+ )?{_THINGS}(?:,? (?:{_BE} )*{_STATE})+",
                rf"(?:the )?(?:\w+ )?{_THINGS} (?:{_BE} )*(?:omitted|unchanged|elided|truncated)(?: for brevity)?",
                r"(?:unchanged|no changes?(?: here| needed)?|omitted(?: for brevity)?|snip(?:ped)?|truncated|elided)",
                r"(?:as before|same as (?:before|above)|etc|continues? (?:as before|unchanged|below))",
                rf"everything else(?: {_BE})* (?:unchanged|the same|as before|as is)",
                r"keep (?:the rest|everything else|as is|existing)(?: (?:unchanged|the same|as is|as before))?",
                rf"(?:unchanged|existing|previous|original) (?:from|until|up to|lines?|{_THINGS}) .{{0,40}}",
                r"lines? \d+ ?(?:-|to|through) ?\d+(?: (?:are |is )?(?:unchanged|omitted|the same|as before))?",
            )
        )
    )


@cache
def _hints() -> re.Pattern[str]:
    """Words that make a placeholder of dots beside them."""
    return re.compile(
        r"\b(?:existing|rest|remaining|remainder|unchanged|same|previous|original|omitted|truncated|snip|as before|"
        rf"other (?:\w+ )?{_THINGS}|more {_THINGS}|code|keep|continues?|{_THINGS} here|elided|until|implementation)\b"
    )


_LINE_COMMENT = re.compile(r"(?:#+|//+|--+|;+|%+|\*|REM\b|'(?= ))\s*(.*)", re.DOTALL)
_BLOCK_COMMENT = re.compile(
    r"\{?\s*(?:/\*+(.*?)\*+/|<!--+(.*?)-+->|\(\*(.*?)\*\)|\{#(.*?)#\}|\{-(.*?)-\})\s*\}?", re.DOTALL
)
_BRACKETS = re.compile(r"[\[(<{](.*)[\])>}]", re.DOTALL)
_TRAILING = re.compile(r"\S.*?\s(?:#|//|--)\s*(.*)")
_ENCLOSED = re.compile(r"\{\s*(?:/\*+(.*?)\*+/|//\s*(.*?))\s*\}")
_DOTTED_BODY = re.compile(rf"[)\w>\]]\s*\{{\s*{_DOTS}\s*\}}\s*;?,?\s*$")
_ONLY_DOTS = re.compile(rf"{_DOTS}")

_PROSE = (
    ".md",
    ".markdown",
    ".mdx",
    ".rst",
    ".txt",
    ".adoc",
    ".org",
    ".tex",
    ".yaml",
    ".yml",
    ".html",
    ".htm",
    ".xml",
    ".diff",
    ".patch",
)
_MARKDOWN = (".md", ".markdown", ".mdx", ".rmd", ".qmd")
_TABLES = (".tsv", ".csv", ".txt", ".dat", ".log", ".tab", ".md", ".markdown", ".yaml", ".yml")
_PYTHON = (".py", ".pyi", ".pyx", ".ipynb")


def check_nothing_left_out(path: str, before: str, text: str, name: str, part: str, remedy: str) -> None:
    """WorkspaceError, in words for the model, if the text has a placeholder for what it does not spell out.

    `name` is who is to blame, such as "Edit 2", `part` the argument that holds the text, and `remedy` what can be done
    instead of spelling it out.
    """
    if (line := left_out(path, before, text)) is not None:
        raise WorkspaceError(
            f"{name} leaves something out: line {line[0]} of its {part} is `{line[1][:100]}`, which would stand in the "
            "file instead of what it is short for. Nothing was changed.",
            remedy=f"Write out in full what is to stand there. {remedy}",
        )


def check_no_wrapper(path: str, before: str, text: str, name: str, part: str, *, old: str = "") -> None:
    """WorkspaceError if the whole text is in a code fence, numbered or a diff, where the file has nothing like it.

    `old` is the text that an edit replaces: what is around that too is known to be no part of it.
    """
    suffix = _suffix(path)
    may_have_fences = suffix in _MARKDOWN or "```" in before or "~~~" in before or inside_fence(old) is not None
    if not may_have_fences and inside_fence(text) is not None:
        raise WorkspaceError(
            f"{name} has a code fence around its {part}, and {_base(path)} is no Markdown. Nothing was changed.",
            remedy="Leave out the first and the last line with the fence.",
        )
    if not numbers_of(old) and _has_numbers_of_read(suffix, before, text):
        raise WorkspaceError(
            f"{name} has line numbers in its {part}, as they are shown when a file is read: they are no part of it. "
            "Nothing was changed.",
            remedy="Leave out the numbers and the tab after each.",
        )
    if suffix not in (*_MARKDOWN, ".diff", ".patch") and _is_diff_of(old, text):
        raise WorkspaceError(
            f"{name} has a diff as its {part}: lines that begin with `-` and `+`. Nothing was changed.",
            remedy="Write the lines as they are to be, without those that go and without the marks.",
        )


def _is_diff_of(old: str, new: str) -> bool:
    """Whether the new text takes lines of the old one away by a `-` and adds others by a `+`."""
    lines = [line for line in new.split("\n") if line.strip()]
    if not old.strip() or not all(line[0] in "+- @" for line in lines):
        return False
    taken = {line[1:].strip() for line in lines if line[0] == "-"}
    mine = {line.strip() for line in old.split("\n") if line.strip()}
    return bool(taken) and taken <= mine and not any(line.startswith("-") for line in mine)


def left_out(path: str, before: str, text: str) -> tuple[int, str] | None:
    """The first line of a text that stands for what was left out, with its number; None if there is none."""
    if "..." not in text and "…" not in text and not _MAY_BE.search(text):
        return None
    known: set[str] | None = None
    for number, line in _suspects(_suffix(path), text):
        if known is None:
            known = {one.strip() for one in before.split("\n")}
        if line.strip() not in known:
            return number, line.strip()
    return None


_MAY_BE = re.compile(
    r"(?i)rest|remain|existing|unchanged|omitted|same|before|snip|truncated|elided|no change|everything else|keep|etc|"
    r"previous|original|continue|lines? \d|not shown"
)
"""What every phrase has a part of: most texts have none."""


def _suspects(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    previous = ""
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare and len(bare) <= 300 and _is_placeholder(suffix, bare, previous):
            yield number, line
        previous = bare or previous


def _is_placeholder(suffix: str, line: str, previous: str) -> bool:
    if _ONLY_DOTS.fullmatch(line):
        return _are_no_code(suffix, previous, line)
    if (comment := _comment(line, suffix)) is not None:
        return _stands_for_more(comment, dots_alone=suffix not in _MARKDOWN)
    if ((found := _BRACKETS.fullmatch(line)) and suffix not in _PYTHON) or _begins_with_dots(line):
        inner = found[1] if found else line
        return (_has_dots(inner) and _stands_for_more(inner, dots_alone=False)) or _names_the_rest(inner, bool(found))
    if suffix not in _PROSE and suffix not in _PYTHON and _DOTTED_BODY.search(line):
        return True
    if found := _ENCLOSED.search(line):
        return _stands_for_more(found[1] or found[2] or "", dots_alone=True)
    if suffix not in _PROSE and (found := _TRAILING.fullmatch(line)):
        return _has_dots(found[1]) and _stands_for_more(found[1], dots_alone=False)
    return False


def _are_no_code(suffix: str, previous: str, line: str) -> bool:
    """Dots alone in a line: a body of Python, an end in YAML, a pause in prose; elsewhere something is left out."""
    if suffix in _PROSE or not suffix:
        return False
    if suffix in _PYTHON and line == "...":
        begins = not previous or previous.endswith((":", ",", "(", "[", '"""', "'''"))
        return not begins and not previous.startswith(("...", ">>>"))
    return True


def _comment(line: str, suffix: str) -> str | None:
    """What a line says that is nothing but a comment; None for any other."""
    if found := _BLOCK_COMMENT.fullmatch(line):
        return next((group for group in found.groups() if group is not None), "")
    if suffix in _MARKDOWN and not line.startswith(("//", "# ...", "# …")):
        return None  # a heading or an item of a list
    found = _LINE_COMMENT.fullmatch(line)
    return found[1] if found else None


def _begins_with_dots(line: str) -> bool:
    return bool(re.match(rf"{_DOTS}\s", line))


def _has_dots(text: str) -> bool:
    return "..." in text or "…" in text


def _stands_for_more(comment: str, *, dots_alone: bool) -> bool:
    """Whether a comment is short for something: dots with a hint, dots alone, or one of the usual phrases."""
    text = " ".join(comment.lower().strip(" \t*-=~.…:;!()[]{}<>/#").split())
    if not text:
        return dots_alone and bool(_has_dots(comment))
    if _phrases().fullmatch(text):
        return True
    return bool(_outer_dots(comment) and _hints().search(text)) and len(text.split()) <= 12


def _outer_dots(text: str) -> bool:
    bare = text.strip(" \t*-=~:;!()[]{}<>/#")
    return bool(re.match(_DOTS, bare) or re.search(rf"{_DOTS}$", bare))


def _names_the_rest(text: str, in_brackets: bool) -> bool:
    """`[rest of the code]`: in brackets, and nothing else in the line."""
    bare = " ".join(text.lower().strip(" \t.…:").split())
    return (
        in_brackets
        and bool(re.match(r"(?:the )?(?:rest|remainder|remaining|existing|unchanged) ", bare))
        and bool(_phrases().fullmatch(bare))
    )


# --- what stands around a text


_PADDED = re.compile(r" {0,5}\d{1,6}\t")


def _has_numbers_of_read(suffix: str, before: str, text: str) -> bool:
    """All lines are numbered one by one, as `read` does it, in a file that is no table."""
    numbers = numbers_of(text)
    if not numbers or any(other - one > 3 for one, other in pairwise(numbers)):
        return False
    lines = [line for line in text.split("\n") if line.strip()]
    if any(numbers_of(line) for line in before.split("\n", 200)[:200] if line.strip()):
        return False
    as_read = all(_PADDED.match(line) and len(line.split("\t", 1)[0]) >= 6 for line in lines)
    return as_read or (suffix not in _TABLES and bool(suffix) and "\t" in lines[0] and len(lines) > 1)


def _suffix(path: str) -> str:
    name = _base(path)
    return name[name.rindex(".") :].lower() if "." in name[1:] else ""


def _base(path: str) -> str:
    return path.replace("\\", "/").rsplit("/", 1)[-1]
