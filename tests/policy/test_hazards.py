"""The option table: the examples that its entries carry, and that each is known to the documentation."""

import shlex
from pathlib import Path

import pytest

from crow.policy.hazard_table import TABLE
from crow.policy.hazards import hazard

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "permissions.md"


def examples(kind: str) -> list[str]:
    return [line for entry in TABLE for line in getattr(entry, kind)]


@pytest.mark.parametrize("line", examples("found"))
def test_found(line):
    assert hazard(tuple(shlex.split(line)), 1) is not None


@pytest.mark.parametrize("line", examples("harmless"))
def test_harmless(line):
    assert hazard(tuple(shlex.split(line)), 1) is None


@pytest.mark.parametrize("line", examples("found"))
def test_what_a_rule_spells_out_is_not_looked_at(line):
    words = tuple(shlex.split(line))
    assert hazard(words, len(words)) is None


@pytest.mark.parametrize("name", ["gfind . -delete", "/usr/bin/find . -delete", "SORT -o x", "git-2.40 -c a=b log"])
def test_other_names_of_a_program(name):
    assert hazard(tuple(shlex.split(name)), 1) is not None


def test_every_program_is_in_the_documentation():
    text = DOCUMENT.read_text()
    assert [entry.program for entry in TABLE if f"`{entry.program}`" not in text] == []
