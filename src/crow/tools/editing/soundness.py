"""Whether a text can be meant as it is written: asked only where there is another way to read it.

An exact match is replaced literally. The usual slips (an indent left off, a line end written out, a blank of another
kind) are taken back only where the file was sound before, would be broken by the literal text, and is sound without
the slip. For Python its own compiler decides, for languages with braces and YAML what their indents say.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from crow.tools.editing.forms import STRIPPED
from crow.tools.editing.indents import indent_of
from crow.tools.editing.places import Match

LARGEST_COMPILED = 256 * 1024
"""Characters of a file that is compiled to be judged."""
MOST_AFTER = 2000
"""Characters after a place in which the next line is looked for."""
_ONLY_AST = 0x400
"""`ast.PyCF_ONLY_AST`, without the module, which takes long to import."""
_PYTHON = ("py", "pyi")
_BRACES = (
    *("js", "jsx", "mjs", "cjs", "ts", "tsx", "go", "rs", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "php"),
    *("swift", "scala", "css", "scss", "less", "json", "dart"),
)
_YAML = ("yaml", "yml")
_OPENS = ("{", "(", "[", ":", "=>", "->")
_CLOSES = ("}", ")", "]", "</", ".", "?", ":", "&&", "||", "case ", "default", "#", "public:", "private:", "protected:")
_LONG_STRING = re.compile(r"`|\"\"\"|'''|<<")


def ending_of(path: str) -> str:
    """The ending of a file's name, in small letters and without the point; empty if there is none."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[-1].lower() if "." in name[1:] else ""


def is_python(path: str) -> bool:
    return ending_of(path) in _PYTHON


def is_code(path: str) -> bool:
    """Whether a file is known to be one of code, by its name."""
    return ending_of(path) in (*_PYTHON, *_BRACES, "rb", "sh", "bash", "lua", "sql", "toml", "pl", "r", "ex", "hs")


def has_braces(path: str) -> bool:
    """Whether a file is one of a language in which indents say nothing that braces do not."""
    return ending_of(path) in _BRACES


def compiles(text: str) -> bool:
    """Whether a text is Python."""
    return parsed(text) is not None


def parsed(text: str) -> Any:
    """The syntax tree of a text of Python; None if it is none, or too long."""
    if len(text) > LARGEST_COMPILED:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compile(text, "<edit>", "exec", _ONLY_AST, dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def first_sound(path: str, text: str, literal: Match, others: Iterator[tuple[str, Match]]) -> tuple[str, Match] | None:
    """The first of other matches that leaves a text sound, where the literal one breaks it; None if there is none."""
    for number, other in enumerate(others):
        if number == 0 and (_is_sound(path, text, literal) or (is_python(path) and not compiles(text))):
            return None
        if _is_sound(path, text, other[1]):
            return other
    return None


def _is_sound(path: str, text: str, match: Match) -> bool:
    """Whether what a text becomes can be meant, for all that can be told."""
    if is_python(path):
        return compiles(text[: match.start] + match.new + text[match.end :])
    first, end = text.rfind("\n", 0, match.start) + 1, text.find("\n", match.end)
    end = len(text) if end < 0 else end
    following = next((line for line in text[end : end + MOST_AFTER].split("\n") if line.strip(STRIPPED)), "")
    lines = (text[first : match.start] + match.new + text[match.end : end]).split("\n")
    return _is_indented_soundly(path, [*lines, following])


def _is_indented_soundly(path: str, lines: Sequence[str]) -> bool:
    """Whether lines that follow each other can be indented as they are, for all that can be told."""
    ending = ending_of(path)
    if not (has_braces(path) or ending in _YAML) or any(_LONG_STRING.search(line) for line in lines):
        return True
    worded = [line for line in lines if line.strip(STRIPPED)]
    return all(_can_follow(one, other, is_braced=has_braces(path)) for one, other in pairwise(worded))


def _can_follow(one: str, other: str, *, is_braced: bool) -> bool:
    first, second = indent_of(one), indent_of(other)
    opens = one.rstrip(STRIPPED).endswith(_OPENS)
    closes = other.lstrip(STRIPPED).startswith(_CLOSES)
    if len(second) > len(first):
        return opens or closes or not one.rstrip(STRIPPED).endswith((";", "}", ",") if is_braced else "")
    if not is_braced:
        return True
    return closes or not (opens or len(second) < len(first))
