"""Matches glob patterns with relative paths, for `find`, `search` and .gitignore files.

A path is matched name by name, and every name by an expression without backtracking: a pattern comes from a model or
from a stranger's repository, and none of them may take long.
"""

import fnmatch
import re
from collections.abc import Sequence

from crow.errors import WorkspaceError

ANY_FOLDERS = "**"
MOST_ALTERNATIVES = 200
LONGEST_WITH_CLASSES = 512
"""Characters of a name in which `[:alpha:]` has its meaning: looking for it may take the square of them."""


class Glob:
    """`*.py` and `README.md` fit names anywhere; `src/*.py` fits from the root; `**` stands for any folders.

    `{a,b}` gives alternatives, and a `!` in front turns the meaning round.
    """

    def __init__(self, pattern: str) -> None:
        self._inverted = pattern.startswith("!")
        self._alternatives = [PathPattern(each) for each in expand_braces(pattern.removeprefix("!"))]

    def fits(self, path: str) -> bool:
        names = path.split("/")
        return any(pattern.fits(names) for pattern in self._alternatives) != self._inverted


class PathPattern:
    """One glob without alternatives. `*` and `?` do not reach over a slash."""

    def __init__(self, pattern: str) -> None:
        names = [name for name in pattern.split("/") if name not in ("", ".")]
        self.only_name = len(names) == 1 and "/" not in pattern.removeprefix("./")
        """A pattern without a slash speaks of the last name of a path, wherever that lies."""
        if pattern.endswith(("/", "/**")):
            names += [ANY_FOLDERS, "*"]  # all that is in the folder, but not the folder itself
        self._steps = [None if name == ANY_FOLDERS else re.compile(name_expression(name)) for name in names]

    def fits(self, names: Sequence[str]) -> bool:
        if self.only_name:
            step = self._steps[0]
            return step is None or step.match(names[-1]) is not None
        return _fits(self._steps, names)


def _fits(steps: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    """Wildcard matching with whole names for letters, None being the star.

    On a mismatch the last star takes one more name. An earlier star never has to: what it could gain, the last one
    can too.
    """
    step = at = 0
    star, star_at = -1, 0
    while at < len(names):
        expected = steps[step] if step < len(steps) else _NOTHING
        if expected is None:
            star, star_at = step, at
            step += 1
        elif expected.match(names[at]):
            step += 1
            at += 1
        elif star >= 0:
            star_at += 1
            step, at = star + 1, star_at
        else:
            return False
    return all(rest is None for rest in steps[step:])


_NOTHING = re.compile("(?!)")
_SET = re.compile(r"\[[!^]?\]?(?:[^\[\]]|\[:[a-z]+:\]|\[)*\]")
_CLASSES = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": '"-~!',  # none begins with what would turn a set round
    "lower": "a-z",
    "print": " -~",
    "punct": ":-@[-`{-~!-/",
    "space": " \t\n\r\v\f",
    "upper": "A-Z",
    "xdigit": "A-Fa-f0-9",
}
_CLASS = re.compile(rf"\[:({'|'.join(_CLASSES)}):\]")
"""`[:alpha:]` and the like, inside a set."""
_QUOTED = re.compile(r"\\(.)", re.DOTALL)


def name_expression(name: str) -> str:
    """The expression for one name of a path. `fnmatch` makes atomic groups, so that it cannot backtrack."""
    if "[:" in name and len(name) <= LONGEST_WITH_CLASSES:
        name = _SET.sub(lambda found: "[" + _CLASS.sub(lambda it: _CLASSES[it[1]], found[0][1:]), name)
    literal = _QUOTED.sub(lambda quoted: f"[{quoted[1]}]" if quoted[1] in "*?[" else quoted[1], name)
    return fnmatch.translate(literal.replace("[^", "[!"))


def expand_braces(pattern: str) -> list[str]:
    """`*.{py,pyi}` as `*.py` and `*.pyi`; nested braces too. A brace that is never closed is an ordinary character."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        if len(done) + len(waiting) > MOST_ALTERNATIVES:
            raise WorkspaceError(f"The pattern has more than {MOST_ALTERNATIVES} alternatives.")
        current = waiting.pop()
        braces = _first_braces(current)
        if braces is None:
            done.append(current)
            continue
        start, end = braces
        waiting += [current[:start] + choice + current[end + 1 :] for choice in _choices(current[start + 1 : end])]
    return done


def _first_braces(pattern: str) -> tuple[int, int] | None:
    """The first pair of braces with a comma between them."""
    for start, character in enumerate(pattern):
        if character == "{":
            depth = 0
            for end in range(start, len(pattern)):
                depth += {"{": 1, "}": -1}.get(pattern[end], 0)
                if depth == 0:
                    if len(_choices(pattern[start + 1 : end])) > 1:
                        return start, end
                    break
    return None


def _choices(inside: str) -> list[str]:
    """What the commas outside of inner braces separate."""
    choices = [""]
    depth = 0
    for character in inside:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            choices.append("")
        else:
            choices[-1] += character
    return choices
