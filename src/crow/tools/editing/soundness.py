"""Decides whether an edit taken literally would break the file (Python, braces, YAML), so that a slip of the model's is
corrected.

An exact match is replaced literally. The usual slips (an indent left off, a line end written out, a blank of another
kind) are taken back only where the file was sound before, would be broken by the literal text, and is sound without
the slip. For Python its own compiler decides, for languages with braces and YAML what their indents say.
"""

import re
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from crow.errors import WorkspaceError
from crow.tools.editing.forms import STRIPPED
from crow.tools.editing.indents import indent_of
from crow.tools.editing.replacements import PlainMatch

LARGEST_COMPILED = 256 * 1024
"""Characters of a file that is compiled to be judged."""
_ONLY_AST = 0x400
"""`ast.PyCF_ONLY_AST`, without the module, which takes long to import."""
_PYTHON = ("py", "pyi")
_BRACES = (
    *("js", "jsx", "mjs", "cjs", "ts", "tsx", "go", "rs", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "php"),
    *("swift", "scala", "css", "scss", "less", "json", "dart"),
)


def ending_of(path: str) -> str:
    """The ending of a file's name, in small letters and without the point; empty if there is none."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[-1].lower() if "." in name[1:] else ""


def is_python(path: str) -> bool:
    return ending_of(path) in _PYTHON


def is_code(path: str) -> bool:
    """Whether a file is known to be one of code, by its name."""
    return ending_of(path) in (*_PYTHON, *_BRACES, "rb", "sh", "bash", "lua", "sql", "toml", "pl", "r", "ex", "hs")


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


def first_sound(
    path: str, text: str, literal: PlainMatch, others: Iterator[tuple[str, PlainMatch]]
) -> tuple[str, PlainMatch] | None:
    """The first of other matches that leaves a text of Python sound, where the literal one breaks it."""
    if not is_python(path):
        return None
    for number, other in enumerate(others):
        if number == 0 and (_is_sound(text, literal) or not compiles(text)):
            return None
        if _is_sound(text, other[1]):
            return other
    return None


def _is_sound(text: str, match: PlainMatch) -> bool:
    return compiles(text[: match.start] + match.new + text[match.end :])


# --- methods that a model writes from the first column, in the midst of the class that they belong to
#
# Python reads them as functions behind the class, and what follows of the class as a part of them: the file stays
# sound, so that no compiler tells. What tells is the syntax tree: methods of the file that are methods no more.

_STARTS = ("def ", "async def ", "@")
_BEGINS = re.compile(r"(?m)^(?=(?:async )?def |@)")
_FUNCTION = re.compile(r"(?m)^(?:async )?def ")
_METHOD = re.compile(r"(?m)^(?:async )?def \w+\(\s*(?:self|cls)\b")
_OTHER = re.compile(r"(?m)^(?!(?:async )?def |[@)#])\S")
"""A line that begins in the first column and that no method has there."""


class _Function(NamedTuple):
    """A function of a text, with the lines that it begins and ends with."""

    name: str
    parent: str
    """The names of the classes and functions that it is in."""
    is_method: bool
    has_self: bool
    line: int
    last: int


def has_functions(path: str, old: str, new: str) -> bool:
    """Whether an edit of Python writes functions from the first column, and replaces none there."""
    written = new.startswith(_STARTS) or any(f"\n{start}" in new for start in _STARTS)
    return written and is_python(path) and not ("\n" in old and _BEGINS.search(old, old.find("\n") + 1))


def match_of_methods(text: str, place: int, old: str, new: str) -> PlainMatch | None:
    """What an edit is to be that adds methods to the end of one: they are indented as that. None for any other."""
    found = _BEGINS.search(new, new.find("\n") + 1)
    begins, end = text.rfind("\n", 0, place) + 1, place + len(old)
    if found is None or text[begins:place].strip(STRIPPED) or not indent_of(text[begins : end + 1]):
        return None
    head, added = new[: found.start()], new[found.start() :]
    if len(_FUNCTION.findall(added)) != len(_METHOD.findall(added)) or _OTHER.search(added):
        return None
    functions = _functions_of(text)
    line = _line_of(text, place + len(old.rstrip()))
    method = next((one for one in reversed(functions) if one.is_method and one.last == line), None)
    if method is None:
        return None
    indent = indent_of(text.split("\n")[method.line - 1])
    literal = _functions_of(text[:place] + new + text[end:])
    if begins == place and not _taken_over(functions, literal):  # the line has its indent, and the class ends with it
        return None
    actual = indent_of(text[begins : end + 1])
    if not all(line.startswith(actual) for line in head.split("\n")[1:] if line.strip(STRIPPED)):
        first, _, rest = head.partition("\n")
        head = f"{first}\n{_shifted(rest, text[begins:place])}"
    match = PlainMatch(place, end, head + _shifted(added, indent))
    return match if _functions_of(text[:place] + match.new + text[end:]) else None


def _shifted(text: str, indent: str) -> str:
    return "\n".join(indent + line if line.strip(STRIPPED) else line for line in text.split("\n"))


def check_classes(text: str, match: PlainMatch, name: str, *, is_shifted: bool) -> None:
    """WorkspaceError if methods of the file become a part of a function, or a shifted match adds some to a method."""
    if not indent_of(text[text.rfind("\n", 0, match.start) + 1 : match.end + 1]):
        return
    before, after = _functions_of(text), _functions_of(text[: match.start] + match.new + text[match.end :])
    moved = _taken_over(before, after) or (_nested(before, after, _line_of(text, match.start)) if is_shifted else None)
    if moved is not None:
        raise WorkspaceError(
            f"{name} is unclear: as its new text is indented, the method `{moved.name}` would become a part of "
            f"`{moved.parent}`. Nothing was changed.",
            advice="Copy the old text exactly, and write each line of the new one with the indent it is to have.",
        )


def _taken_over(before: list[_Function], after: list[_Function]) -> _Function | None:
    """A function that was a method before, and is a part of another function now."""
    left = {(one.parent, one.name) for one in after}
    lost = {one.name for one in before if one.is_method and (one.parent, one.name) not in left}
    known = {(one.parent, one.name) for one in before}
    new = (one for one in after if (one.parent, one.name) not in known)
    return next((one for one in new if one.name in lost and one.parent and not one.is_method), None)


def _nested(before: list[_Function], after: list[_Function], line: int) -> _Function | None:
    """A new function with `self`, below a line, that is a part of a method which was there before."""
    known = {(one.parent, one.name) for one in before}
    methods = {f"{one.parent}.{one.name}" for one in before if one.is_method}
    new = (one for one in after if (one.parent, one.name) not in known and one.has_self and one.line > line)
    return next((one for one in new if one.parent in methods), None)


def _functions_of(text: str) -> list[_Function]:
    """The functions of a text in their order; none if it is not sound."""
    tree = parsed(text)
    return [] if tree is None else list(_functions_in(tree, "", in_class=False))


def _functions_in(node: Any, parent: str, *, in_class: bool) -> Iterator[_Function]:
    for part in ("body", "orelse", "handlers", "finalbody"):
        inner: Any = getattr(node, part, ())
        for one in cast("list[Any]", inner) if isinstance(inner, list) else ():
            kind = type(one).__name__
            if kind in ("FunctionDef", "AsyncFunctionDef"):
                arguments = [argument.arg for argument in (*one.args.posonlyargs, *one.args.args)]
                has_self = arguments[:1] in (["self"], ["cls"])
                yield _Function(one.name, parent, in_class, has_self, one.lineno, one.end_lineno)
            is_named = kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef")
            path = f"{parent}.{one.name}".lstrip(".") if is_named else parent
            yield from _functions_in(one, path, in_class=kind == "ClassDef" or (in_class and not is_named))


def _line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
