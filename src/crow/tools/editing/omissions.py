"""Refuses a new text with placeholders for what a model left out ("... existing code ..."), with line numbers, or in a
code fence.

Written into a file, placeholders would replace what they are short for; so would line numbers, and a code fence around
it all. Whatever the file says already is no placeholder.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

from crow.diff import compare_lines
from crow.errors import WorkspaceError
from crow.tools.editing.interpretations import inside_fence, numbers_of

_DOTS = r"(?:\.{3,}|…+|[⋮⋯︙]|\[\.\.\.\]|\[…\])"
_THINGS = (
    r"(?:code|contents?|files?|functions?|class(?:es)?|methods?|implementations?|imports?|tests?|lines?|modules?|body|"
    r"logic|components?|definitions?|documents?|scripts?|sections?|parts?|text|config(?:uration)?|settings?|fields?|"
    r"properties|props|cases|entries|items|rules|styles|handlers?|routes?|statements?|declarations?|stuff|things?|"
    r"variables|types|markup|html|css|json|jsx|data|elements?|options|dependencies|steps?|page|program|source|block|"
    r"loop)"
)
_CODE_THINGS = (
    r"(?:code|contents?|files?|functions?|class(?:es)?|methods?|implementations?|imports?|tests|modules?|body|logic|"
    r"components|definitions|routes|handlers|styles|markup|source|properties|fields)"
)
"""Of these, what is seldom spoken of in a comment but to leave it out."""
_CHINESE = (
    r"(?:(?:其余|其他|其它|剩余|余下|原有|现有|已有|之前的|原来的).{0,6}(?:代码|内容|部分|函数|方法|逻辑|实现|不变|省略)|"
    r"(?:代码|内容|部分|函数|方法|逻辑|实现).{0,4}(?:保持不变|不变|省略|同上|如上)|保持不变|此处省略|省略.{0,6}代码|与之前相同)"
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
                rf"{rest_of}(?:[\w`'./()-]+ ){{0,4}}?(?!lines?$){_THINGS}{_STATES}",
                rf"{rest_of}[\w`'./()-]+(?:,? (?:{_BE} )*{_STATE})+",
                rf"(?:and |keep )?(?:the )?rest(?: of it)?(?: {_BE})* {_STATE}",
                rf"(?:keep |with )?(?:all )?(?:the |your |my )?(?:other )?{kept} (?:\w+ )?{_CODE_THINGS}{_STATES}",
                rf"(?:keep |with )?(?:all |other )*(?:the |your )?{kept} (?:\w+ )?{_THINGS}(?:,? (?:{_BE} )*{_STATE})+",
                rf"(?:all )?(?:the )?other (?:\w+ )?{_THINGS}(?:,? (?:{_BE} )*{_STATE})+",
                rf"(?:the )?(?:\w+ )?{_THINGS} (?:{_BE} )*(?:omitted|unchanged|elided|truncated)(?: for brevity)?",
                rf"(?:the )?{_THINGS} (?:above|below|here) {_BE} {_STATE}",
                r"(?:no changes?(?: here| needed| below| above)?|omitted(?: for brevity)?)",
                r"(?:snip(?:ped)?|truncated|elided)",
                r"(?:as before|same as (?:before|above|(?:the )?original)|continues? (?:as before|unchanged|below))",
                rf"(?:the )?same {_THINGS} as (?:before|above|in the original)",
                rf"everything else(?: {_BE})* (?:unchanged|the same|as before|as is)",
                r"keep (?:the rest|everything else|as is|existing)(?: (?:unchanged|the same|as is|as before))?",
                rf"(?:insert|paste|copy|put) (?:the )?(?:{kept}|rest|old)\b.{{0,40}}",
                r"(?:unchanged|existing|previous|original) (?:from|until|up to|lines? \d) .{0,40}",
                r"lines? \d+ ?(?:-|to|through) ?\d+(?: (?:are |is )?(?:unchanged|omitted|the same|as before))?",
                rf".{{0,12}}?{_CHINESE}.{{0,12}}",
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
_BLOCK_COMMENTS = (("/*", "*/"), ("<!--", "-->"), ("(*", "*)"), ("{#", "#}"), ("{-", "-}"))
_TRAILING = re.compile(r"\S.*?\s(?:#|//|--)\s*(.*)")
_DOTTED_BODY = re.compile(rf"[)\w>\]]\s*\{{\s*{_DOTS}\s*\}}\s*;?,?$")
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


def check_nothing_left_out(
    path: str, before: str, text: str, name: str, part: str, remedy: str, *, replaced: str = ""
) -> None:
    """WorkspaceError, in words for the model, if the text has a placeholder for what it does not spell out.

    `name` is who is to blame, such as "Edit 2", `part` the argument that holds the text, and `remedy` what can be done
    instead of spelling it out. `replaced` is what the text takes the place of.
    """
    if (line := left_out(path, before, text, replaced)) is not None:
        raise WorkspaceError(
            f"{name} leaves something out: line {line[0]} of its {part} is `{line[1][:100]}`, a placeholder that would "
            "replace the real text. Nothing was changed.",
            advice=f"Write out in full what belongs there. {remedy}",
        )


def check_no_wrapper(path: str, before: str, text: str, name: str, part: str, *, old: str = "") -> None:
    """WorkspaceError if the whole text is in a code fence, numbered or a diff, where the file has nothing like it.

    `old` is the text that an edit replaces: what is around that too is known to be no part of it.
    """
    suffix = _suffix(path)
    may_have_fences = suffix in _MARKDOWN or "```" in before or "~~~" in before or inside_fence(old) is not None
    if not may_have_fences and inside_fence(text) is not None:
        raise WorkspaceError(
            f"{name} has a code fence around its {part}, but {_base(path)} is not Markdown. Nothing was changed.",
            advice="Leave out the first and the last line with the fence.",
        )
    if not numbers_of(old) and _has_numbers_of_read(suffix, before, text):
        raise WorkspaceError(
            f"{name} has line numbers in its {part}, which are not part of the file. Nothing was changed.",
            advice="Leave out the numbers and the tab after each.",
        )
    if suffix not in (*_MARKDOWN, ".diff", ".patch") and _is_diff_of(old, text):
        raise WorkspaceError(
            f"{name} has a diff as its {part}: lines that begin with `-` and `+`. Nothing was changed.",
            advice="Write the final lines, without the removed ones and without the marks.",
        )


def _is_diff_of(old: str, new: str) -> bool:
    """Whether the new text takes lines of the old one away by a `-` and adds others by a `+`."""
    if not old.strip():
        return False
    lines = [line for line in new.split("\n") if line.strip()]
    if not all(line[0] in "+- @" for line in lines):
        return False
    taken = {line[1:].strip() for line in lines if line[0] == "-"}
    mine = {line.strip() for line in old.split("\n") if line.strip()}
    return bool(taken) and taken <= mine and not any(line.startswith("-") for line in mine)


def left_out(path: str, before: str, text: str, replaced: str = "") -> tuple[int, str] | None:
    """The first line of a text that stands for what was left out, with its number; None if there is none.

    `replaced` is what the text takes the place of: where most of that goes, fewer words are enough, and where all of it
    stays, nothing was left out.
    """
    if not _may_be_placeholder(text) or _keeps_all(replaced, text):
        return None
    known: set[str] | None = None
    much_goes = _goes_for_the_most_part(replaced, text)
    goes = cache(partial(_more_goes_than_comes, replaced, text))
    for number, line in _suspects(_suffix(path), text, goes, much_goes=much_goes):
        if known is None:
            known = {one.strip() for one in before.split("\n")}
        if line.strip() not in known and (much_goes or goes(number) or not _may_be_an_example(path, line)):
            return number, line.strip()
    return None


def _keeps_all(replaced: str, text: str) -> bool:
    """Whether a text only adds to what it replaces: it has all lines of it, in their order."""
    lines = iter([line.strip() for line in text.split("\n")])
    old = [line.strip() for line in replaced.split("\n") if line.strip()]
    return bool(old) and all(line in lines for line in old)


def _more_goes_than_comes(replaced: str, text: str, number: int) -> bool:
    """Whether more lines go than come where this line of the new text comes."""
    return any(
        change.old_end - change.old_start > change.new_end - change.new_start
        for change in compare_lines(replaced.split("\n"), text.split("\n"))
        if change.new_start < number <= change.new_end
    )


def _may_be_an_example(path: str, line: str) -> bool:
    """Whether it is a comment of code in Markdown, which a reader is shown."""
    return _suffix(path) in _MARKDOWN and line.strip().startswith(("//", "#", "/*"))


_PARTS = (
    *("...", "…", "so on", "as is", "insert", "paste", "copy", "rest", "remain", "existing", "unchanged", "omitted"),
    *("same", "before", "snip", "truncated", "elided", "no change", "everything else", "keep", "etc", "previous"),
    *("original", "continue", "not shown"),
)
"""Every phrase has one of these, or a sign or a range of lines: most lines have none."""
_SIGNS = re.compile(r"[⋮⋯︙\u4e00-\u9fff]")
_RANGE = re.compile(r"lines? \d+ ?(?:-|to|through) ?\d")


def _may_be_placeholder(text: str) -> bool:
    lowered = text.lower()  # looking for each part in turn is many times faster than one expression for all of them
    if any(part in lowered for part in _PARTS) or _RANGE.search(lowered):
        return True
    return not text.isascii() and _SIGNS.search(text) is not None


def _goes_for_the_most_part(replaced: str, text: str) -> bool:
    """Whether a text is shorter than what it replaces, and has less than half of its lines."""
    old = [line.strip() for line in replaced.split("\n") if line.strip()]
    new = {line.strip() for line in text.split("\n") if line.strip()}
    return len(old) > 3 and len(new) < len(old) and sum(line in new for line in old) * 2 < len(old)


def _suspects(suffix: str, text: str, goes: Callable[[int], bool], *, much_goes: bool) -> Iterator[tuple[int, str]]:
    previous = ""
    lines = text.split("\n")
    documented = _documentation(suffix, lines)
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if bare and len(bare) <= 300 and _may_be_placeholder(bare) and number not in documented:
            stands_alone = _is_placeholder(suffix, bare, previous) or (
                _is_dotted_comment(suffix, bare) and goes(number)
            )
            if stands_alone or (much_goes and _speaks_of_the_rest(suffix, bare)):
                yield number, line
        previous = bare or previous


def _documentation(suffix: str, lines: Sequence[str]) -> set[int]:
    """The numbers of the lines that are in a docstring of Python."""
    found: set[int] = set()
    inside = ""
    for number, line in enumerate(lines, 1):
        if suffix in _PYTHON:
            if inside:
                found.add(number)
                inside = "" if inside in line else inside
            elif (quotes := re.search(r"\"{3}|'{3}", line)) and line.count(quotes[0]) % 2:
                inside = quotes[0]
    return found


_REST = re.compile(
    r"\b(?:existing|rest|remaining|remainder|unchanged|same|original|omitted|truncated|elided|snip|as before|as is|"
    r"as above|and so on|no changes?|previous(?:ly)?)\b|[⋮⋯︙]"
)


def _speaks_of_the_rest(suffix: str, line: str) -> bool:
    """Whether a comment, or a line in brackets, has one of the words that stand for what is there already."""
    said = _comment(line, suffix)
    if said is None and (found := _WRAPPED.fullmatch(line) or _TRAILING.fullmatch(line)):
        said = found[1]
    text = " ".join((said or "").lower().split())
    return bool(_REST.search(text)) and len(text.split()) <= 10


_WRAPPED = re.compile(r"""(?:"{3}|'{3}|[\[(<{])([^\[\](){}<>"'=,]*)(?:"{3}|'{3}|[\])>}])""")
"""A line in brackets or long quotes, with words and nothing else inside."""


def _is_placeholder(suffix: str, line: str, previous: str) -> bool:
    if _ONLY_DOTS.fullmatch(line):
        return _are_no_code(suffix, previous, line)
    if (comment := _comment(line, suffix)) is not None:
        return _stands_for_more(comment, dots_alone=suffix not in (*_MARKDOWN, ".rst", ".adoc", ".tex", ".txt"))
    if _begins_with_dots(line):
        return _stands_for_more(line, dots_alone=False)
    return suffix not in _PROSE and suffix not in _PYTHON and _DOTTED_BODY.search(line) is not None


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
    inner = line.removeprefix("{").lstrip()
    for text in (line, inner.removesuffix("}").rstrip()):
        for opening, closing in _BLOCK_COMMENTS:
            if text.startswith(opening) and text[len(opening) :].endswith(closing):
                return text[len(opening) : -len(closing)]
    if suffix in _MARKDOWN and not line.startswith(("//", "# ...", "# …")):
        return None  # a heading or an item of a list
    found = _LINE_COMMENT.fullmatch(line)
    return found[1] if found else None


def _begins_with_dots(line: str) -> bool:
    return bool(re.match(rf"{_DOTS}\s", line))


def _is_dotted_comment(suffix: str, line: str) -> bool:
    """`// ... other columns ...`: whatever it names."""
    bare = _bare(_comment(line, suffix) or "")
    return _begins_with_dots(bare) and len(bare.split()) <= 8


def _has_dots(text: str) -> bool:
    return "..." in text or "…" in text


def _stands_for_more(comment: str, *, dots_alone: bool) -> bool:
    """Whether a comment is short for something: dots with a hint, dots alone, or one of the usual phrases."""
    text = " ".join(comment.lower().strip(" \t*-=~.…:;!()[]{}<>/#").split())
    if not text:
        return dots_alone and bool(_has_dots(comment))
    if _phrases().fullmatch(text):
        return True
    hint = _hints().search(text)
    if hint is None or not _outer_dots(comment):
        return False
    return len(text.split()) <= 8 and len(text[: hint.start()].split()) < 2


def _bare(comment: str) -> str:
    return comment.strip(" \t*-=~:;!()[]{}<>/#")


def _outer_dots(text: str) -> bool:
    bare = _bare(text)
    return bool(re.match(_DOTS, bare) or re.search(rf"{_DOTS}$", bare))


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
