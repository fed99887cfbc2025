"""The corpus of tool calls: what is clear lands, what is not is refused in words that help, and nothing lands wrong.

The table in docs/models.md is what these tests see. `CROW_WRITE_TABLE=1 pytest tests/corpus` writes it anew.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.corpus.playing import FAMILIES, Case, Outcome, play, read_family
from tests.support.editor import Editor

DOCUMENT = Path(__file__).parents[2] / "docs" / "models.md"
ROW = re.compile(r"(?m)^\| ([\w-]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$")
LEAST_CALLS = 300
LEAST_LANDED = 0.95
"""Of the clear calls of all families."""


def row(family: str, outcomes: Sequence[Outcome]) -> str:
    """The family's row: all calls, the clear ones, those of them that landed, the refused, those that went wrong."""
    clear = [outcome for outcome in outcomes if outcome.case.clear]
    counts = (
        len(outcomes),
        len(clear),
        sum(outcome.landed for outcome in clear),
        sum(outcome.refused for outcome in outcomes),
        sum(outcome.wrong for outcome in outcomes),
    )
    return f"| {family} | {' | '.join(str(count) for count in counts)} |"


def written_rows() -> dict[str, str]:
    """The rows of the document, by family."""
    return {found[1]: found[0] for found in ROW.finditer(DOCUMENT.read_text())}


def write_row(family: str, new: str) -> None:
    text, rows = DOCUMENT.read_text(), written_rows()
    total = rows.pop("all")
    beginning = text.index(next(iter(rows.values())))
    rows[family] = new
    counts = [[int(count) for count in found.groups()[1:]] for line in rows.values() if (found := ROW.match(line))]
    summed = " | ".join(str(sum(column)) for column in zip(*counts, strict=True))
    lines = [*(rows[name] for name in sorted(rows)), f"| all | {summed} |"]
    DOCUMENT.write_text(text[:beginning] + "\n".join(lines) + text[text.index(total) + len(total) :])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_of_calls(open_editor: Callable[..., Editor], family: str) -> None:
    outcomes = play(open_editor, read_family(family))
    complaints = [complaint for outcome in outcomes if (complaint := outcome.complaint())]
    assert not complaints, f"{len(complaints)} of {len(outcomes)}:\n" + "\n".join(complaints)
    if os.environ.get("CROW_WRITE_TABLE"):
        write_row(family, row(family, outcomes))
    assert written_rows()[family] == row(family, outcomes)


def test_the_table_is_about_every_family_and_adds_up() -> None:
    families = {found[1]: [int(count) for count in found.groups()[1:]] for found in ROW.finditer(DOCUMENT.read_text())}
    total = families.pop("all")
    assert tuple(sorted(families)) == FAMILIES
    assert total == [sum(counts) for counts in zip(*families.values(), strict=True)]


def test_what_was_promised_of_all_of_them() -> None:
    cases = [case for family in FAMILIES for case in read_family(family)]
    clear = [case for case in cases if case.clear]
    assert len(cases) >= LEAST_CALLS
    assert sum(not case.refused for case in clear) >= LEAST_LANDED * len(clear)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_case_says_what_must_become_of_it(family: str) -> None:
    cases = read_family(family)
    assert [case.name for case in cases if not _is_complete(case)] == []
    names = [case.name for case in cases]
    assert sorted(names) == sorted(set(names))


def _is_complete(case: Case) -> bool:
    """A refusal has words for the mistake and for the remedy; a call that may land is clear."""
    if case.refused:
        return len(case.refused) > 1 and case.lands is None and not case.told
    return case.clear and (case.lands is not None or bool(case.told))


# --- the judge itself


def judged(case: Case, *, ok: bool, told: str, text: str) -> Outcome:
    return Outcome(case, ok, told, {"CASE/app.py": text})


def test_the_judge_tells_landed_refused_and_wrong_apart() -> None:
    lands = Case("lands", file="a\n", old="a", new="b", lands="b\n")
    assert judged(lands, ok=True, told="Edited.", text="b\n").landed
    assert judged(lands, ok=True, told="Edited.", text="c\n").wrong
    assert judged(lands, ok=False, told="No.", text="a\n").complaint()
    refused = Case("refused", file="a\n", old="x", new="b", clear=False, refused=["mistake", "remedy"])
    assert judged(refused, ok=False, told="The mistake. The remedy.", text="a\n").refused
    assert judged(refused, ok=False, told="The mistake.", text="a\n").complaint()
    assert judged(refused, ok=True, told="The mistake. The remedy.", text="b\n").wrong
    assert judged(refused, ok=True, told="The mistake. The remedy.", text="b\n").complaint()
