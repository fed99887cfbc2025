"""Plays hostile repeats to every regular expression that Crow compiles, in a process of its own.

From each expression texts are made that are hard for it: for each part that may repeat, what comes before it and then
that part many times, with an end that does not match; each literal text and pair of them many times. An expression
that goes back over what it has read takes four times as long for each doubling of such a text, a linear one twice.
"""

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from re import _constants as codes  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any, NamedTuple

import crow
from crow import visible

SOURCES = Path(crow.__file__).parent
SHORT, GROWTH = 3000, 4
TRIES = 3
MOST_GROWTH = 9.0
"""How many times as long a text takes that is four times as long: 4 for what is linear, 16 for what is quadratic."""
WORTH_A_LOOK = 6
"""Times the reference below which nothing is measured again."""
MOST_TEXTS = 60
"""That are played to one expression."""
LONGEST_PART = 300
SHORTEST = (20, 30, 45, 70, 100, 150)

Place = tuple[str, int]
"""A file and a line."""
Compiled = dict[tuple[Any, int], list[Place]]
METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
FLAGS = re.compile(r"re\.[A-Z]+(?: \| re\.[A-Z]+)*")
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
REPRESENTATIVES = "a <\"'`[({*_:\n\t.-/=1"
CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda one: one.isalnum() or one == "_",
    codes.CATEGORY_NOT_DIGIT: lambda one: not one.isdigit(),
    codes.CATEGORY_NOT_SPACE: lambda one: not one.isspace(),
    codes.CATEGORY_NOT_WORD: lambda one: not (one.isalnum() or one == "_"),
}


# --- which expressions there are, and how they are used


def compiled_by_crow() -> Compiled:
    """All that is compiled while all modules are imported, and all literal expressions inside functions."""
    found: Compiled = {}
    compile_it = re._compile  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]

    def note(pattern: Any, flags: Any) -> Any:
        compiled = compile_it(pattern, flags)
        frame = sys._getframe(2)
        if Path(frame.f_code.co_filename).is_relative_to(SOURCES):
            place = (_name(frame.f_code.co_filename), frame.f_lineno)
            found.setdefault((compiled.pattern, compiled.flags), []).append(place)
        return compiled

    re._compile = note  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    for module in pkgutil.walk_packages(crow.__path__, "crow."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    re._compile = compile_it  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    return found


def _name(path: str) -> str:
    return str(Path(path).relative_to(SOURCES))


class Uses(ast.NodeVisitor):
    """How each name of an expression is used in its file, and which literal ones are compiled where they are used."""

    def __init__(self, file: str, literal: Compiled, methods: dict[str, set[str]]) -> None:
        self._file, self._literal, self._methods = file, literal, methods
        self.names: dict[int, str] = {}
        """The name that a line compiles an expression for."""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = node.value
        if node.attr in METHODS and isinstance(owner, ast.Name | ast.Attribute):
            name = owner.id if isinstance(owner, ast.Name) else owner.attr
            self._methods.setdefault(f"{self._file}:{name}", set()).add(node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re"), attr=method),
                args=[ast.Constant(value=str() | bytes() as text), *_],
            ) if method in METHODS:
                options = [ast.unparse(one) for one in (*node.args, *(word.value for word in node.keywords))]
                named = [name for one in options if FLAGS.fullmatch(one) for name in re.findall("[A-Z]+", one)]
                compiled = re.compile(text, sum(re.RegexFlag[name] for name in named))
                place = (f"{self._file}\0{method}", node.lineno)
                self._literal.setdefault((compiled.pattern, compiled.flags), []).append(place)
            case _:
                pass
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assigned(node, node.targets[0])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._assigned(node, node.target)

    def _assigned(self, node: ast.Assign | ast.AnnAssign, target: ast.expr) -> None:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        for one, value in zip(targets, values, strict=False):
            if value is not None and "re.compile" in ast.unparse(value):
                name = one.id if isinstance(one, ast.Name) else one.attr if isinstance(one, ast.Attribute) else ""
                self.names |= dict.fromkeys(range(value.lineno, (value.end_lineno or value.lineno) + 1), name)
        self.generic_visit(node)


@cache
def uses() -> tuple[Compiled, dict[str, dict[int, str]], dict[str, set[str]]]:
    literal: Compiled = {}
    names: dict[str, dict[int, str]] = {}
    methods: dict[str, set[str]] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        visitor = Uses(_name(str(path)), literal, methods)
        visitor.visit(ast.parse(path.read_text()))
        names[_name(str(path))] = visitor.names
    return literal, names, methods


# --- texts that are hard for an expression


def one_of(code: Any, value: Any) -> list[str] | None:
    """Characters that a part of an expression for one character matches."""
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.NOT_LITERAL:
        return [one for one in REPRESENTATIVES if one != chr(value)][:5]
    if code is codes.ANY:
        return ["a", " ", "<"]
    if code is not codes.IN:
        return None
    if value[0][0] is not codes.NEGATE:
        named = [chr(one) for what, one in value if what is codes.LITERAL]
        named += [chr(one[0]) for what, one in value if what is codes.RANGE]
        return list(dict.fromkeys([*named, *(one for one in REPRESENTATIVES if _is_in(value, one))]))[:6]
    return [one for one in REPRESENTATIVES if not _is_in(value[1:], one)][:6] or ["\u4e00"]


def _is_in(members: Any, one: str) -> bool:
    return any(
        (what is codes.LITERAL and ord(one) == value)
        or (what is codes.RANGE and value[0] <= ord(one) <= value[1])
        or (what is codes.CATEGORY and value in CATEGORIES and CATEGORIES[value](one))
        for what, value in members
    )


class Hostile:
    def __init__(self, tree: Any) -> None:
        self._groups: dict[int, str] = {}
        self._repeats: list[tuple[list[str], list[str]]] = []
        self._literals: dict[str, None] = {}
        self._wholes = self._walk(tree, [""])
        self._read_literals(tree)

    def texts(self) -> dict[tuple[str, str, str], None]:
        """What comes first, what is repeated, and what comes last; none for an expression that repeats nothing."""
        if not self._repeats:
            return {}
        found: dict[tuple[str, str, str], None] = {}
        for before, parts in self._repeats:
            for part in filter(None, dict.fromkeys(parts)):
                for prefix in before:
                    found |= dict.fromkeys([(prefix, part, "\0"), (prefix, part, ""), ("", prefix + part, "\0")])
            found |= dict.fromkeys(("", prefix, "\0") for prefix in before if prefix)
        found |= dict.fromkeys(("", text, "\0") for whole in self._wholes for text in (whole, whole[:-1]) if text)
        literals = list(self._literals)[:8]
        found |= dict.fromkeys(("", one + more, "\0") for one in literals for more in ("", " ", "\n", *literals[:4]))
        return found | dict.fromkeys([("", " ", "\0"), ("", "\n", "\0"), ("", "a", "\0"), ("", "1", "\0")])

    def _samples(self, parts: Any, most: int = 5) -> list[str]:
        found = [""]
        for code, value in parts:
            found = [one + more for one in found for more in self._samples_of(code, value, most)][:most]
        return found

    def _samples_of(self, code: Any, value: Any, most: int) -> list[str]:
        if (characters := one_of(code, value)) is not None:
            return characters[:most]
        if code in REPEATS:
            least, greatest, inner = value
            found = [one * max(least, 1) for one in self._samples(inner, most)] if greatest else [""]
            return found if least else [*found[: most - 1], ""]
        if code is codes.SUBPATTERN:
            found = self._samples(value[3], most)
            self._groups[value[0] or 0] = found[0]
            return found
        if code is codes.BRANCH:
            branches = [self._samples(branch, 2) for branch in value[1]]
            return list(dict.fromkeys(one for rank in (0, 1) for branch in branches for one in branch[rank : rank + 1]))
        if code is codes.ATOMIC_GROUP:
            return self._samples(value, most)
        return [self._groups.get(value, "")] if code is codes.GROUPREF else [""]

    def _walk(self, parts: Any, before: list[str]) -> list[str]:
        for code, value in parts:
            for inner in _inner(code, value):
                self._walk(inner, before[:2])
            if code in REPEATS and value[1] >= 16:
                self._repeats.append((before[:2], self._samples(value[2], 6)))
            before = [one + more for one in before for more in self._samples_of(code, value, 4)][:4]
        return before

    def _read_literals(self, parts: Any) -> None:
        run = ""
        for code, value in parts:
            if code is codes.LITERAL:
                run += chr(value)
                continue
            self._literals |= {run: None} if run else {}
            run = ""
            for inner in _inner(code, value):
                self._read_literals(inner)
        self._literals |= {run: None} if run else {}


def _inner(code: Any, value: Any) -> Iterator[Any]:
    if code in REPEATS:
        yield value[2]
    elif code is codes.SUBPATTERN:
        yield value[3]
    elif code is codes.BRANCH:
        yield from value[1]
    elif code is codes.ATOMIC_GROUP:
        yield value
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield value[1]


# --- what they cost


def cost(call: Callable[[Any], object], text: Any) -> float:
    """Seconds of processor time."""
    begun = time.process_time()
    call(text)
    return time.process_time() - begun


def grows_too_fast(call: Callable[[Any], object], make: Callable[[int], Any], reference: float) -> bool:
    """What grows exponentially is found by texts so short that it still comes to an end."""
    for length in SHORTEST:
        if all(cost(call, make(length)) > WORTH_A_LOOK * reference for _ in range(TRIES)):
            return True
    short, long = make(SHORT), make(SHORT * GROWTH)
    quick = float("inf")
    for _ in range(TRIES):
        quick = min(quick, cost(call, short))
        if quick < WORTH_A_LOOK * reference:
            return False
    return all(cost(call, long) > MOST_GROWTH * quick for _ in range(TRIES))


def linear_cost() -> float:
    """Of reading a text once, with a choice at each character."""
    plain, text = re.compile("(?:a|bb)*c"), "a" * SHORT
    return min(cost(lambda text: [plain.match(text) for _ in range(50)], text) for _ in range(TRIES)) / 50


class Expression(NamedTuple):
    name: str
    """The file, and the name that it has there."""
    pattern: str | bytes
    flags: int
    ways: frozenset[str]


def of_modules() -> Iterator[Expression]:
    literal, names, methods = uses()
    for (pattern, flags), places in [*compiled_by_crow().items(), *literal.items()]:
        for place, line in dict(places).items():
            file, _, used = place.partition("\0")
            name = used or names[file].get(line, "")
            ways = {used} if used else methods.get(f"{file}:{name}") or {"match", "search"}
            plain = frozenset(way if way in ("match", "fullmatch") else "search" for way in ways)
            yield Expression(f"{file}:{name or line}", pattern, flags, plain)


def of_tables() -> Iterator[Expression]:
    """Those that are compiled when they are needed for the first time, from tables and by functions."""
    from crow.model.facts import families
    from crow.model.provider_errors import REMEDIES
    from crow.policy.wildcard import option_table
    from crow.tools.editing import omissions

    def one(name: str, pattern: str, way: str, flags: int = 0) -> Expression:
        return Expression(name, pattern, flags, frozenset([way]))

    yield one("omissions:_phrases", omissions._phrases().pattern, "fullmatch")  # pyright: ignore[reportPrivateUsage]
    yield one("omissions:_hints", omissions._hints().pattern, "search")  # pyright: ignore[reportPrivateUsage]
    yield from (one("provider_errors:REMEDIES", pattern, "search", re.IGNORECASE) for pattern, _ in REMEDIES)
    yield from (one("facts:families", pattern, "search", re.IGNORECASE) for pattern in families())
    for entry in option_table().values():
        yield one(f"wildcard:{entry.program}:shapes", entry.shapes, "fullmatch")
        yield one(f"wildcard:{entry.program}:refused", entry.refused, "fullmatch", re.DOTALL)
    for name, way in sorted(set(re.findall(r"\b_re\((_[A-Z_]+)\)\.(\w+)", inspect.getsource(visible)))):
        yield one(f"visible.py:{name}", getattr(visible, name), way if way in ("match", "fullmatch") else "search")


PLANTED = {
    "nested": r"(?:a+)+b",
    "neighbours": r"\s*x?\s*y",
    "comment": r"<!--+((?s:.*?))-+->",
    "links": r"\[[^\]]*\]\([^)]*\)",
}
"""What must be found: else nothing would be."""


def faults(excepted: Sequence[str]) -> dict[str, str]:
    """The expressions that are not linear, by their file and name, each with a text that shows it; under "" how many
    there are. Those that are excepted are only named."""
    found: dict[str, str] = {}
    reference = linear_cost()
    planted = [Expression(f"planted:{name}", text, 0, frozenset(["search"])) for name, text in PLANTED.items()]
    expressions = [*planted, *of_modules(), *of_tables()]
    for expression in expressions:
        if expression.name in excepted:
            found[expression.name] = "excepted"
            continue
        is_text = isinstance(expression.pattern, str)
        source = expression.pattern if isinstance(expression.pattern, str) else expression.pattern.decode("latin-1")
        hard = Hostile(parser.parse(source, expression.flags & ~re.UNICODE)).texts()
        texts = [text for text in hard if sum(map(len, text)) < LONGEST_PART]
        compiled = re.compile(expression.pattern, expression.flags)
        for way in sorted(expression.ways):
            if (text := _hard_for(compiled, way, texts, is_text, reference)) is not None:
                found[expression.name] = f"{way}: {text[0][:30]!r} + {text[1][:30]!r} * n + {text[2]!r}"
    return found | {"": str(len(expressions) - len(planted))}


def _hard_for(expression: Any, way: str, texts: Any, is_text: bool, reference: float) -> tuple[str, str, str] | None:
    call = getattr(expression, way)
    if way == "search":
        call = lambda text: [None for _ in expression.finditer(text)]  # noqa: E731

    for before, part, after in texts[:: max(1, len(texts) // MOST_TEXTS)]:

        def make(length: int, before: str = before, part: str = part, after: str = after) -> Any:
            text = before + part * max(1, length // len(part)) + after
            return text if is_text else text.encode("utf-8", "replace")

        if grows_too_fast(call, make, reference):
            return before, part, after
    return None


if __name__ == "__main__":
    print(json.dumps(faults(sys.argv[1:])))
