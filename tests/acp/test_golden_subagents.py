"""Whole conversations with subagents, kept in files: see test_golden.py.

How often a subagent's steps are shown, and how those of two are interleaved, is a matter of time. So of its live
pictures only that is kept which the person has before them when they are asked, and two subagents' lines stand one
after the other.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.support.editor import FILES, TERMINAL, Editor, Json, chose
from tests.support.golden import assert_golden, is_live_output, loaded_again, tools_transcript
from tests.support.scripts import DONE, call, edit, reply, run, say
from tests.support.zed import Zed

FRUIT = "apple\npear\n"
SPENT = "{ usage = { input_tokens = 1000, output_tokens = 50 } }"
PRICED = "context_window = 50000\nprice_input = 3.0\nprice_output = 15.0"


@pytest.fixture
def open_editor(open_editor: Callable[..., Editor]) -> Iterator[Callable[..., Editor]]:
    yield from loaded_again(open_editor)


def pears(*last: str) -> str:
    """A subagent that reads, then changes what it has read."""
    return (
        reply(say("I look at it first."), call("read", path="fruit.txt"), SPENT, when="no pears")
        + reply(say("Now I change it."), edit("fruit.txt", "pear", "plum"), when="no pears")
        + reply(*last, when="no pears")
    )


def as_asked(lines: list[Json]) -> list[Json]:
    """Without live pictures, but for the one after which the subagent asks."""
    following = [*lines[1:], lines[-1]]
    return [
        line
        for line, after in zip(lines, following, strict=True)
        if not is_live_output(line["message"]) or _is_asked_about(after)
    ]


def one_after_the_other(lines: list[Json]) -> list[Json]:
    """The lines about the first subagent, then those about the second."""
    working = [number for number, line in enumerate(lines) if _call_of(line)]
    first, end = working[0], working[-1] + 1
    between = lines[first:end]
    questions = {
        line["message"]["id"]: call for line in between if "id" in line["message"] and (call := _call_of(line))
    }

    def whose(line: Json) -> str:
        call = _call_of(line) or questions[line["message"]["id"]]  # else it is the answer to a question
        return call.partition("_")[0]

    between.sort(key=whose)
    return as_asked([*lines[:first], *between, *lines[end:]])


def _is_asked_about(line: Json) -> bool:
    """A call of a subagent's that becomes one of the session's."""
    update = line["message"].get("params", {}).get("update", {})
    return update.get("sessionUpdate") == "tool_call" and "_" in update["toolCallId"]


def _call_of(line: Json) -> str:
    params = line["message"].get("params", {})
    return (params.get("update") or params.get("toolCall") or {}).get("toolCallId", "")


@pytest.mark.rule("R101", "R103")
def test_one_that_reads_edits_and_runs_a_command(open_editor):
    """All of it through the editor, and each change asked about; what it costs is added up."""
    script = (
        reply(say("I send someone."), call("task", title="Pears", kind="work", prompt="no pears"), SPENT)
        + pears(run("cat fruit.txt"))
        + reply(say("Pear is **plum** now."), SPENT, when="no pears")
        + DONE
    )
    offered = FILES | TERMINAL
    zed = open_editor(Zed, script=script, config=PRICED, capabilities=offered, permit=lambda request: chose("once"))
    (zed.workspace / "fruit.txt").write_text(FRUIT)
    zed.new_session()
    zed.prompt("no pears, please")
    zed.wait_until(lambda: len(zed.terminals.released) == 1, "the release")
    assert_golden("subagent", tools_transcript(zed, offered, as_asked))


def test_one_that_needs_no_permission(open_editor):
    """What was not asked about is shown in the subagent's own call: its changes as diffs."""
    script = (
        reply(call("task", title="Pears", kind="work", prompt="no pears")) + pears(say("Pear is **plum** now.")) + DONE
    )
    crow = open_editor(script=script)
    (crow.workspace / "fruit.txt").write_text(FRUIT)
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "edit"})
    crow.prompt("no pears, please")
    assert_golden("subagent-unasked", tools_transcript(crow, {}, as_asked))


@pytest.mark.rule("R105")
def test_one_that_is_told_no(open_editor):
    script = (
        reply(call("task", title="Pears", kind="work", prompt="no pears")) + pears(say("You keep your pear.")) + DONE
    )
    zed = open_editor(Zed, script=script, capabilities={}, permit=lambda request: chose("reject"))
    (zed.workspace / "fruit.txt").write_text(FRUIT)
    zed.new_session()
    zed.prompt("no pears, please")
    assert_golden("subagent-rejected", tools_transcript(zed, {}, as_asked))


def test_two_at_once(open_editor):
    """One changes a file, the other only looks."""
    script = (
        reply(
            say("Two at once."),
            call("task", title="Pears", kind="work", prompt="no pears"),
            call("task", title="Apples", kind="explore", prompt="count the apples"),
        )
        + pears(say("Pear is plum now."))
        + reply(call("search", pattern="apple"), when="count the apples")
        + reply(say("There is one apple."), when="count the apples")
        + DONE
    )
    crow = open_editor(script=script, permit=lambda request: chose("once"))
    (crow.workspace / "fruit.txt").write_text(FRUIT)
    crow.new_session()
    crow.prompt("no pears, and how many apples?")
    assert_golden("subagents", tools_transcript(crow, {}, one_after_the_other))
