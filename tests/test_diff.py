"""The diff engine: applied to the old text it gives the new one, whatever the two are, and at a bounded cost."""

import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from crow import diff
from crow.diff import Change, Statistics, changes, compare_lines, display, hunks, split_lines, statistics, unified
from crow.results import DiffBlock
from tests.support.work import lines_run


def applied(old: str, new: str) -> str:
    """The new text, made of the old one and of what the changes say."""
    old_lines, new_lines = split_lines(old), split_lines(new)
    built: list[str] = []
    position = 0
    for change in changes(old, new):
        built += old_lines[position : change.old_start] + new_lines[change.new_start : change.new_end]
        position = change.old_end
    return "".join(built + old_lines[position:])


def random_text(dice: random.Random, kinds: int, length: int) -> str:
    ends = ["\n"] * 6 + ["\r\n", "\r", "\x0c", "\u2028", ""]
    return "".join(f"{dice.randrange(kinds)}{dice.choice(ends)}" for _ in range(length))


def edited(dice: random.Random, text: str) -> str:
    """A few lines removed, moved, repeated or made anew."""
    lines = split_lines(text)
    for _ in range(dice.randrange(6)):
        at = dice.randrange(len(lines) + 1)
        match dice.randrange(5):
            case 0:
                del lines[at : at + dice.randrange(4)]
            case 1:
                lines[at:at] = [f"new {dice.randrange(9)}\n" for _ in range(dice.randrange(4))]
            case 2:
                lines[at:at] = lines[dice.randrange(len(lines) + 1) :][:3]
            case 3 if lines:
                lines.append(lines.pop(dice.randrange(len(lines))))
            case _:
                lines[at:at] = ["\r\n"]
    changed = "".join(lines)
    return changed.removesuffix("\n") if dice.randrange(4) == 0 else changed


@pytest.mark.parametrize("seed", range(8))
def test_applied_to_the_old_text_it_gives_the_new_one(seed):
    dice = random.Random(seed)
    for _ in range(150):
        old = random_text(dice, dice.choice([2, 5, 40, 1000]), dice.randrange(60))
        new = edited(dice, old) if dice.randrange(3) else random_text(dice, dice.choice([2, 5, 40]), dice.randrange(60))
        assert applied(old, new) == new
        assert applied(new, old) == old
        found = changes(old, new)
        assert (found == []) == (old == new)
        for before, after in pairwise(found):
            assert after.old_start - before.old_end == after.new_start - before.new_end > 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", []),
        ("a\n", "a\n", []),
        ("", "a\n", [(0, 0, 0, 1)]),
        ("a\n", "", [(0, 1, 0, 0)]),
        ("a", "a\n", [(0, 1, 0, 1)]),
        ("a\n", "a\r\n", [(0, 1, 0, 1)]),
        ("a\rb", "a\rc", [(0, 1, 0, 1)]),
        ("a\nb\nc\n", "a\nx\nc\n", [(1, 2, 1, 2)]),
        ("a\nb\nc\n", "b\n", [(0, 1, 0, 0), (2, 3, 1, 1)]),
        ("a\na\na\n", "a\na\n", [(2, 3, 2, 2)]),
        ("1\n}\n2\n}\n", "0\n}\n1\n}\n2\n}\n", [(0, 0, 0, 2)]),
    ],
)
def test_small_changes(old, new, expected):
    assert changes(old, new) == [Change(*places) for places in expected]


def test_repeated_lines_between_anchors_are_compared_exactly():
    old = [*"A", *"xyxyxyxyx", *"B"]
    new = [*"A", *"yxxyxyyx", *"B"]
    kept = len(old) - sum(change.old_end - change.old_start for change in compare_lines(old, new))
    assert kept == 2 + 7


def test_a_moved_function_keeps_the_rest_in_place():
    old = "def a():\n    pass\n\ndef b():\n    return 1\n\ndef c():\n    pass\n"
    new = "def b():\n    return 1\n\ndef c():\n    pass\n\ndef a():\n    pass\n"
    assert applied(old, new) == new
    assert statistics(old, new) == Statistics(3, 3)


@pytest.mark.parametrize("limit", ["MOST_CELLS", "MOST_LINES"])
def test_what_would_cost_too_much_is_replaced_as_a_whole(monkeypatch, limit):
    dice = random.Random(1)
    old, new = ("".join(f"{dice.randrange(3)}\n" for _ in range(50)) for _ in range(2))
    assert len(changes(old, new)) > 1
    monkeypatch.setattr(diff, limit, 10)
    [change] = changes(f"same\n{old}same\n", f"same\n{new}same\n")
    assert change.old_start >= 1
    assert applied(old, new) == new


def test_the_bound_is_on_all_gaps_together(monkeypatch):
    gap_old, gap_new = "a\nb\na\nb\n", "b\na\nb\na\n"
    old = "".join(f"anchor {number}\n{gap_old}" for number in range(10))
    new = "".join(f"anchor {number}\n{gap_new}" for number in range(10))
    fine = statistics(old, new).added
    monkeypatch.setattr(diff, "MOST_CELLS", 16 * 5)
    assert fine < statistics(old, new).added < 40
    assert applied(old, new) == new


# --- hunks, statistics, unified, display


def numbered(count: int) -> str:
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def test_hunks_have_their_surroundings_and_neighbours_are_one():
    old = numbered(40)
    new = old.replace("line 10\n", "ten\n").replace("line 17\n", "").replace("line 30\n", "thirty\nand more\n")
    first, second = hunks(old, new)
    assert (first.old_start, first.new_start, second.old_start, second.new_start) == (7, 7, 27, 26)
    assert split_lines(first.old_text) == [f"line {number}\n" for number in range(7, 21)]
    assert second.new_text == "line 27\nline 28\nline 29\nthirty\nand more\nline 31\nline 32\nline 33\n"
    assert len(hunks(old, new, context=2)) == 3
    assert hunks(old, new, context=0)[0] == (10, 10, "line 10\n", "ten\n")
    assert hunks(old, old) == []


def test_statistics_are_said_with_a_real_minus():
    assert str(statistics("a\nb\n", "a\nc\nd\n")) == "+2 \N{MINUS SIGN}1"


def test_unified_is_what_git_writes(tmp_path):
    old, new = "a\nb\nc\nd\ne\nf\n", "a\nb\nC\nd\ne\nf\ng"
    assert unified(old, new, "x.txt") == (
        "--- a/x.txt\n+++ b/x.txt\n@@ -1,6 +1,7 @@\n a\n b\n-c\n+C\n d\n e\n f\n+g\n\\ No newline at end of file\n"
    )
    assert unified(old, old, "x.txt") == ""


@pytest.mark.parametrize("seed", range(6))
def test_git_can_apply_it(tmp_path: Path, seed):
    dice = random.Random(seed)
    file = tmp_path / "x"
    for _ in range(5):
        old = "".join(f"{dice.randrange(30)}{dice.choice(['', chr(13)])}\n" for _ in range(dice.randrange(1, 60)))
        new = edited(dice, old) or "not empty\n"
        if old == new:
            continue
        file.write_bytes(old.encode())
        patch = unified(old, new, "x").encode()
        subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], cwd=tmp_path, input=patch, check=True)
        assert file.read_bytes().decode() == new


def test_unified_is_bounded_and_says_so():
    text = unified("", numbered(10_000), "x", limit=1000)
    assert len(text) < 1100
    assert text.endswith("more lines of the diff left out)\n")
    assert unified("", "x" * 1_000_000, "x").count("x") < 1000


def test_small_files_are_shown_whole_and_large_ones_in_hunks():
    small, large = numbered(10), numbered(20_000)
    assert display("/a", small, small + "x") == (DiffBlock("/a", "modify", small, small + "x"),)
    changed = large.replace("line 7\n", "seven\n").replace("line 15000\n", "many\n")
    first, second = display("/a", large, changed)
    assert first.operation == "modify"
    assert first.new_text == "line 4\nline 5\nline 6\nseven\nline 8\nline 9\nline 10\n"
    assert second.old_text.startswith("line 14997\n")
    assert display("/a", large, large) == ()


def test_the_size_that_counts_is_in_bytes():
    old = "é" * 60_000 + "\n"
    assert len(display("/a", old, old + "x")[0].old_text) == len(old)
    wide = "a\n" * 10 + "é" * 70_000 + "\n" * 20
    [block] = display("/a", wide, wide + "x")
    assert len(block.old_text) == 3


def test_new_and_removed_files():
    assert display("/a", None, "text") == (DiffBlock("/a", "add", "", "text"),)
    assert display("/a", None, "") == (DiffBlock("/a", "add", "", ""),)
    assert display("/a", "text", None) == (DiffBlock("/a", "delete", "text", ""),)
    assert display("/a", "", "text") == (DiffBlock("/a", "modify", "", "text"),)


# --- the cost

LINES = 8_000


def code() -> list[str]:
    """As code is: half of the lines are like no other, the rest is to be found everywhere."""
    blocks = (
        (f"def f{number}():\n", f"    value = {number % 100}\n", f"    return value + {number}\n", "\n")
        for number in range(LINES // 4)
    )
    return [line for block in blocks for line in block]


def cases() -> dict[str, tuple[list[str], list[str]]]:
    dice = random.Random(4)
    old = code()
    few = set(dice.sample(range(LINES), LINES // 100))
    repeats = [f"{dice.randrange(100)}\n" for _ in range(LINES)]
    return {
        "1 % changed": (old, [f"new {n}\n" if n in few else line for n, line in enumerate(old)]),
        "every second": (old, [f"new {n}\n" if n % 2 else line for n, line in enumerate(old)]),
        "reversed": (old, old[::-1]),
        "all new": (old, [f"new {n}\n" for n in range(LINES)]),
        "shuffled repeats": (repeats, dice.sample(repeats, LINES)),
    }


def test_any_change_to_a_large_file_costs_some_steps_for_each_of_its_lines():
    """The standard library's takes seven thousand for each where one line in a hundred has changed."""
    for name, (old_lines, new_lines) in cases().items():
        old, new = "".join(old_lines), "".join(new_lines)
        assert lines_run(lambda: changes(old, new)) < 50 * LINES, name  # noqa: B023 -- called at once
        assert applied(old, new) == new, name


MEMORY = """
import random, resource, sys
from crow.diff import changes
dice = random.Random(4)
repeats = [f"{dice.randrange(100)}\\n" for _ in range(int(sys.argv[1]))]
old, new = "".join(repeats), "".join(dice.sample(repeats, len(repeats)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
changes(old, new)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("lines", [20_000, 200_000])
def test_memory_is_bounded(lines):
    done = subprocess.run([sys.executable, "-c", MEMORY, str(lines)], capture_output=True, text=True, check=True)
    unit = 1024 if sys.platform != "darwin" else 1
    assert int(done.stdout) * unit < 120 * 1024 * 1024
