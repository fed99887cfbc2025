"""Edits whose old text was copied with line numbers: what is accepted is what was meant, to the byte."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest

from crow.errors import WorkspaceError
from crow.tools.editing.matching import TextEdit, apply, plan_edits

FILES = {
    "python": "import os\n\n\nclass A:\n    def f(self):\n        if x:\n            return 1\n\n        return 2\n",
    "go": 'package a\n\nfunc f() {\n\tif x {\n\t\treturn "a|b: c"\n\t}\n\n\treturn\n}\n',
    "one blank": " a\n  b\n   c\n d\n  e\n\n f\n g\n  h\n i\n j\n   k\n",
    "two blanks in": "root:\n  a: 1\n  b:\n    - 2\n    - 3\n  c:\n    d: 4\n\n  e: 5\nend:\n  f: 6\n  g: 7\n",
    "markdown": "# T\n\n1. one\n2. two\n   more of two\n\n10. ten\n11. eleven\n\n    code\n\n- a\n  - b\n",
    "table": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n|x|y|\n|-|-|\n|5|6|\n  | 7 | 8 |\n| 9 | 0 |\nend\n",
    "numbered": "11: a\n 12: b\n13  c\n   14\td\n15-e\n16|f\n 17 | g\n1: h\n2: i\n3: j\n 11: k\n",
    "yaml keys": "m:\n  1: a\n  2: b\n3: c\n4: d\n  5: e\nn:\n 6: f\n  7: g\n8: h\n 9: i\n",
    "alike": "}\n}\n  }\n  }\n x\n x\nx\n}\n  }\n x\n    }\n  }\n",
    "dashes": "- a\n - b\n  - c\n-- d\n->e\n-f\n\t- g\n\n-- h\n - i\n-  j\n",
    "marks": "→a\n →b\n| →c\n: d\n :e\n│f\n │ g\n|h\n | i\n  | j\n-k\n",
}

SEPARATORS = {
    "read": (6, "\t"),
    "trimmed read": (0, "\t"),
    "arrow": (6, "→"),
    "narrow arrow": (4, "→"),
    "bar": (0, "|"),
    "bar and blank": (4, "| "),
    "blanks around a bar": (4, " | "),
    "line of a box": (3, "│"),
    "colon": (0, ":"),
    "colon and blank": (0, ": "),
    "one blank": (6, " "),
    "two blanks": (6, "  "),
}


class Trial(NamedTuple):
    file: str
    edit: TextEdit
    meant: str
    is_of_the_file: bool
    """The numbers are those of the lines."""


def numbered(lines: Sequence[str], first: int, width: int, separator: str) -> str:
    return "\n".join(f"{number:>{width}}{separator}{line}" for number, line in enumerate(lines, first))


def as_grep(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number}{':' if number % 3 else '-'}{line}" for number, line in enumerate(lines, first))


def as_nl(lines: Sequence[str], first: int) -> str:
    """Blank lines are neither numbered nor counted."""
    written: list[str] = []
    for line in lines:
        written.append(f"{first:>6}\t{line}" if line.strip() else " " * 7)
        first += bool(line.strip())
    return "\n".join(written)


FORMS: dict[str, Callable[[Sequence[str], int], str]] = {
    **{
        name: (lambda lines, first, width=width, separator=separator: numbered(lines, first, width, separator))
        for name, (width, separator) in SEPARATORS.items()
    },
    "grep": as_grep,
    "nl": as_nl,
}


def changed(lines: Sequence[str], chance: random.Random) -> list[str]:
    """Other lines for these: one is written anew, and perhaps one comes after it or goes."""
    new = list(lines)
    at = chance.randrange(len(new))
    indent = new[at][: len(new[at]) - len(new[at].lstrip())]
    new[at] = f"{indent}changed"
    match chance.randrange(4):
        case 0:
            new.insert(at + 1, f"{indent}  added")
        case 1 if len(new) > 1:
            del new[at - 1]
        case _:
            pass
    return new


def trials(form: Callable[[Sequence[str], int], str], chance: random.Random) -> Iterator[Trial]:
    for text in FILES.values():
        lines = text.removesuffix("\n").split("\n")
        for count in (1, 1, 2, 3, 4):
            start = chance.randrange(len(lines) - count + 1)
            old = lines[start : start + count]
            if not old[0].strip() or not old[-1].strip():
                continue
            new = changed(old, chance)
            meant = "\n".join([*lines[:start], *new, *lines[start + count :]]) + "\n"
            for shift in (0, 0, 3):
                first = start + 1 + shift
                there = lines[start + shift : start + shift + count]
                if shift and [line.strip() for line in there] == [line.strip() for line in old]:
                    continue  # these numbers are those of another place that fits
                for written in ("\n".join(new), form(new, first)):
                    yield Trial(text, TextEdit(form(old, first), written), meant, not shift)


def outcome(trial: Trial) -> str | None:
    try:
        return apply(trial.file, plan_edits(trial.file, [trial.edit], path="a.txt").replacements)
    except WorkspaceError:
        return None


@pytest.mark.parametrize("form", FORMS)
def test_what_is_accepted_is_what_was_meant(form: str) -> None:
    found = [(trial, outcome(trial)) for seed in range(3) for trial in trials(FORMS[form], random.Random(seed))]
    wrong = [(trial, after) for trial, after in found if after not in (None, trial.meant)]
    assert not [one for one in wrong if one[0].edit.old not in one[0].file], f"{len(wrong)} of {len(found)}"
    sure = [after for trial, after in found if trial.is_of_the_file]
    assert sum(after is not None for after in sure) > 0.85 * len(sure)


def test_what_cannot_be_told_is_refused_in_words() -> None:
    text = "if x:\n    a\n   b\n"
    with pytest.raises(WorkspaceError, match="how many blanks belong to its line numbers"):
        plan_edits(text, [TextEdit("9|      a", "    c")])
    with pytest.raises(WorkspaceError, match="whether its new text has line numbers too"):
        plan_edits(text, [TextEdit("1:if x:\n2:    a", "1:if y:\n    a\n9:b")])
