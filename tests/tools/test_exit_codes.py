"""An exit code of 1 is an answer of some programs, and a failure of all others."""

import pytest

from crow.results import CommandEnd
from crow.tools.terminal import answers_no
from tests.tools.test_terminal import Session, in_a_session


@pytest.mark.parametrize(
    "command",
    [
        "grep foo a.txt",
        "rg foo src",
        "/usr/bin/grep -r 'a b' .",
        "LC_ALL=C grep foo a.txt",
        "cat a.txt | grep foo",
        "echo one; grep foo a.txt",
        "cd src && grep foo a.txt",
        "test -e a.txt",
        "[ -e a.txt ]",
        "git diff --quiet",
        "git --no-pager grep foo",
        "make\ngrep foo log",
    ],
)
def test_an_answer(command):
    assert answers_no(command, 1, "")
    assert not answers_no(command, 2, "")


@pytest.mark.parametrize(
    "command",
    ["make", "grep foo a.txt; make", "grep foo a.txt | tee log", "git commit -m grep", "echo 'a", "", "x" * 10_000],
)
def test_a_failure(command):
    assert not answers_no(command, 1, "")


def test_what_differs_is_printed_and_no_failure_but_what_a_condition_prints_may_be_one():
    assert answers_no("diff a b", 1, "< one\n> two\n")
    assert not answers_no("cd missing && grep foo a.txt", 1, "bash: cd: missing: No such file or directory")


def test_a_search_without_a_match_has_not_failed(tmp_path):
    async def story(session: Session) -> None:
        result = await session.run("grep foo /dev/null")
        assert (result.ok, result.brief, result.command) == (True, "exit 1", CommandEnd(0, 1))
        result = await session.run("echo out; exit 3")
        assert (result.ok, result.brief, result.command) == (False, "exit 3", CommandEnd(4, 3))
        assert result.text[:4] == "out\n"
        result = await session.run("true")
        assert (result.ok, result.brief) == (True, "")

    in_a_session(tmp_path, story)


def test_reading_a_line_costs_little():
    """A reader that goes back would not come to an end."""
    for line in ("(" * 3999, "'" * 3999, "a;" * 1999, "\\" * 3999):
        assert not answers_no(line, 1, "")
        assert not answers_no(f"{line}; make", 1, "")
    assert answers_no("a;" * 1900 + "grep foo a.txt", 1, "")
