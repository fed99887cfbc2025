"""What a person sees: whole outputs, in a file and on a small terminal that the tests play themselves."""

import io
import os
import pty
import re
import termios
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from crow.acp import translate
from crow.acp.wire import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AudioContent,
    ContentToolContent,
    DiffToolContent,
    EmbeddedResource,
    ImageContent,
    Notice,
    NoticeFacts,
    NoticeMeta,
    PermissionOption,
    Plan,
    PlanEntry,
    RequestPermissionRequest,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolCall,
    ToolCallFields,
    ToolCallUpdate,
    ToolContent,
    Update,
    UsageUpdate,
    UserMessageChunk,
)
from crow.cli.answer_keys import choices_of, rejection
from crow.cli.render import Renderer, is_wait
from crow.cli.render_inline import pieces
from crow.cli.render_prose import prose
from crow.cli.render_screen import Screen, cells, clean_prose, cut, duration, folded
from crow.events import Retrying, StillWaiting
from tests.support.work import lines_run


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Paper(io.StringIO):
    """A terminal as simple as we need it: line feeds, cursor up and left, erasing forwards, colours (not kept)."""

    def picture(self) -> list[str]:
        lines, row, column = [""], 0, 0
        for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", self.getvalue()):
            if piece == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif piece == "\r":
                column = 0
            elif piece.startswith("\x1b"):
                match piece[-1]:
                    case "K":
                        lines[row] = lines[row][:column]
                    case "J":
                        lines[row:] = [lines[row][:column]]
                    case "A":
                        row -= int(piece[2:-1])
                    case "D":
                        column -= int(piece[2:-1])
                    case "m":
                        pass
                    case other:
                        raise AssertionError(f"unexpected sequence {other}")
            else:
                lines[row] = lines[row][:column].ljust(column) + piece + lines[row][column + len(piece) :]
                column += len(piece)
        return lines


def text(words: str, message: str = "m1") -> AgentMessageChunk:
    return AgentMessageChunk(content=TextContent(text=words), message_id=message)


def thought(words: str, message: str = "m0") -> AgentThoughtChunk:
    return AgentThoughtChunk(content=TextContent(text=words), message_id=message)


def shown(words: str) -> list[ToolContent]:
    return [ContentToolContent(content=TextContent(text=words))]


def question(title: str = "Read /etc/hosts", why: str = "It lies outside.") -> RequestPermissionRequest:
    call = ToolCallFields(tool_call_id="c1", title=title, content=shown(why))
    return RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS)


OPTIONS = [
    PermissionOption(option_id="once", name="Allow once", kind="allow_once"),
    PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
]


def written(markdown: str, *, size: int, width: int = 40, colours: bool = True) -> str:
    """The text as it looks after it came in pieces of that size."""
    paper = Paper()
    renderer = Renderer(Screen(paper, width=width, colours=colours))
    for start in range(0, len(markdown), size):
        renderer.update(text(markdown[start : start + size]))
    renderer.close()
    return "\n".join(paper.picture()).rstrip("\n")


# --- without a terminal


@pytest.mark.parametrize("fence", ["```\n1\tvm\n```", "vm\n"])
def test_what_was_read_is_counted_and_not_repeated(fence: str) -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="Read /etc/hostname", kind="read", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed", content=shown(fence)))
    renderer.update(ToolCall(tool_call_id="c2", title="Run make", kind="execute", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c2", status="completed", content=shown("all done")))
    assert paper.getvalue() == "✓ Read /etc/hostname · 1 line\n✓ Run make · all done\n"


def test_a_whole_conversation_as_plain_text() -> None:
    clock, paper = Clock(), io.StringIO()
    renderer = Renderer(Screen(paper), clock=clock)
    renderer.wait("starting")
    renderer.begin_turn()
    for word in ("The README ", "should know.\n", "I will read it."):
        renderer.update(thought(word))
    renderer.update(text("\n\nLet me **look**."))
    renderer.update(ToolCall(tool_call_id="c1", title="Read", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c1", title="Read README.md"))
    renderer.update(ToolCall(tool_call_id="c2", title="Read missing.md", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="in_progress"))
    clock.now += 2.4
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed", content=shown("```\n1\tx\n2\ty\n```")))
    renderer.update(ToolCallUpdate(tool_call_id="c2", status="failed", content=shown("There is no missing.md.")))
    renderer.ask(question(), [(choice.key, choice.option.name) for choice in choices_of(OPTIONS)])
    clock.now += 60
    renderer.show_answer("Allow once")
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed", content=shown("127.0.0.1 localhost")))
    renderer.update(Notice(severity="warning", title="local answered 503. Trying again in 4 s.", description="Slow."))
    renderer.update(text("It is a `README`.\n\n```python\nx = 1\n```\n", "m2"))
    renderer.update(text("And that is all.", "m3"))
    renderer.update(UsageUpdate(used=1234, size=100_000))
    renderer.tick()
    renderer.stop("end_turn")
    assert paper.getvalue() == (
        """\
… The README should know.
  I will read it.

Let me **look**.

✓ Read README.md · 2 lines · 2 s
✗ Read missing.md · 2 s
  There is no missing.md.

? Permission needed: Read /etc/hosts
  It lies outside.
  y  Allow once
  a  Allow for this session
  n  Reject
  → Allow once

✓ Read /etc/hosts · 127.0.0.1 localhost

! local answered 503. Trying again in 4 s.
  Slow.

It is a `README`.

```python
x = 1
```

And that is all.

✓ done · 1 min 2 s · 1,234 of 100,000 tokens
"""
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_tokens", "■ stopped: the length limit was reached\n"),
        ("max_turn_requests", "■ stopped: too many requests to the model in one turn\n"),
        ("refusal", "■ stopped: the model refused to answer\n"),
        ("cancelled", "■ cancelled\n"),
        ("bored\x1b", "■ stopped: bored⟨U+001B⟩\n"),
    ],
)
def test_the_stop_reason_in_words(reason: str, words: str) -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.begin_turn()
    renderer.stop(reason)
    assert paper.getvalue() == words


def test_the_last_line_of_a_turn_is_broken_between_words() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=40), clock=Clock())
    renderer.begin_turn()
    renderer.update(UsageUpdate(used=1_560, size=100_000))
    renderer.stop("max_tokens")
    assert (
        paper.getvalue()
        == """\
■ stopped: the length limit was reached
  · 1,560 of 100,000 tokens
"""
    )


def test_calls_that_were_interrupted_are_named() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.begin_turn()
    renderer.update(ToolCall(tool_call_id="c1", title="Read a"))
    renderer.update(ToolCallUpdate(tool_call_id="c2", status="in_progress"))  # never announced
    renderer.stop("cancelled")
    assert paper.getvalue() == "■ Read a · not finished\n■ Tool call · not finished\n\n■ cancelled\n"


def test_an_error_is_a_block_of_its_own() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(text("Half an ans"))
    renderer.fail("The provider hung up.")
    assert paper.getvalue() == "Half an ans\n\n✗ The provider hung up.\n"


def plan(*steps: str) -> Plan:
    """`x look`: completed; `~ think`: in progress; `. write`: pending."""
    statuses = {"x": "completed", "~": "in_progress", ".": "pending"}
    return Plan(entries=[PlanEntry(content=step[2:], priority="low", status=statuses[step[0]]) for step in steps])


def test_a_plan_is_shown_once_and_then_what_changes() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(plan("~ test", ". mend", ". test"))
    renderer.update(ToolCall(tool_call_id="c1", title="Plan: 0 of 3 done", kind="think", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed", content=[]))  # says nothing more
    renderer.update(plan("x test", "~ mend", ". test"))
    renderer.update(plan("x test", "~ mend", ". test"))
    renderer.update(plan("x test", "x mend", "~ test", ". rest"))
    renderer.update(plan())
    assert paper.getvalue() == (
        """\
Plan · 0 of 3 done
  ◐ test
  ☐ mend
  ☐ test

Plan · 1 of 3 done
  ☑ test
  ◐ mend

Plan · 2 of 4 done
  ☑ mend
  ◐ test
  ☐ rest

Plan · cleared
"""
    )


def test_a_plan_in_colours() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=40, colours=True), clock=Clock())
    renderer.update(plan("x look", "~ think", ". write"))
    assert paper.getvalue() == (
        "\x1b[0;2mPlan · 1 of 3 done\n\x1b[0;32m  ☑ \x1b[0;2mlook\n\x1b[0;1m  ◐ think\n\x1b[0;0m  ☐ write\n\x1b[0m"
    )


def test_other_content_is_named() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    for content in (
        ImageContent(data="", mime_type="image/png"),
        AudioContent(data="", mime_type="audio/wav"),
        ResourceLink(uri="file:///a.py", name="a.py"),
        EmbeddedResource(resource=ResourceContents(uri="file:///b.py", text="x")),
    ):
        renderer.update(AgentMessageChunk(content=content, message_id="m1"))
    renderer.update(UserMessageChunk(content=TextContent(text="not shown"), message_id="m2"))
    diff = DiffToolContent(path="/a.py", new_text="x")
    renderer.update(ToolCall(tool_call_id="c1", title="Edit a.py", status="completed", content=[diff]))
    renderer.close()
    assert paper.getvalue() == (
        "[image/png][audio/wav][a.py](file:///a.py)[file:///b.py]\n\n"
        "✓ Edit a.py\n  /a.py (new) · +1 −0\n  + x\n    (no newline at end of file)\n"  # noqa: RUF001 -- a minus sign
    )


def test_a_long_failure_is_cut_and_says_so() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    lines = "\n".join(f"line {number}" for number in range(20))
    renderer.update(ToolCall(tool_call_id="c1", title="`make`", status="failed", content=shown(lines)))
    assert paper.getvalue().splitlines()[:2] == ["✗ `make`", "  line 0"]
    assert paper.getvalue().endswith("  line 7\n  … 12 more lines\n")


# --- changes to files


def edited(old: str | None, new: str, path: str = "/w/a.py") -> DiffToolContent:
    return DiffToolContent(path=path, old_text=old, new_text=new)


def diff_of(change: DiffToolContent, **screen: Any) -> list[str]:
    """The lines below `✓ Edit`, of a call that nobody was asked about."""
    paper = Paper()
    renderer = Renderer(Screen(paper, **screen), folder="/w", clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="Edit", kind="edit", status="completed", content=[change]))
    first, *rest = paper.picture()
    assert first == "✓ Edit"
    assert rest.pop() == ""
    return rest


NUMBERS = "".join(f"line {number}\n" for number in range(1, 41))


def test_a_diff_has_three_lines_around_each_change() -> None:
    change = edited(NUMBERS, NUMBERS.replace("line 5\n", "five\n").replace("line 20\n", ""))
    assert diff_of(change) == [
        "  a.py · +1 −2",  # noqa: RUF001 -- a minus sign
        "    line 2",
        "    line 3",
        "    line 4",
        "  - line 5",
        "  + five",
        "    line 6",
        "    line 7",
        "    line 8",
        "  ⋮",
        "    line 17",
        "    line 18",
        "    line 19",
        "  - line 20",
        "    line 21",
        "    line 22",
        "    line 23",
    ]


def test_a_diff_in_colours() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=40, colours=True), clock=Clock())
    renderer.update(
        ToolCall(tool_call_id="c1", title="Edit a", status="completed", content=[edited("a\nb\n", "a\nc\n")])
    )
    assert paper.getvalue().split("\n", 1)[1] == (
        "  \x1b[0;1m/w/a.py \x1b[0;2m· +1 −1\n    a\n"  # noqa: RUF001 -- a minus sign
        "\x1b[0;31m  - b\n\x1b[0;32m  + c\n\x1b[0m"
    )


def test_a_long_diff_is_cut_and_says_so() -> None:
    lines = diff_of(edited(None, NUMBERS))
    assert lines[:2] == ["  a.py (new) · +40 −0", "  + line 1"]  # noqa: RUF001 -- a minus sign
    assert lines[-2:] == ["  + line 30", "  … 10 more lines"]
    assert len(diff_of(edited(None, NUMBERS * 5000))) == 32


def test_long_lines_of_a_diff_are_folded_on_a_terminal() -> None:
    change = edited("", "    " + "abcdefghij" * 4 + "\n")
    assert diff_of(change, width=24)[1:] == ["  +     abcdefghijabcdef", "    ghijabcdefghijabcdef", "    ghij"]
    assert diff_of(change)[1:] == ["  +     " + "abcdefghij" * 4]
    assert len(diff_of(edited("", "x" * 1_000_000))[1]) < 500


def test_a_change_of_blanks_alone_can_be_seen() -> None:
    assert diff_of(edited("\ta \nb\n", "    a\nb\n"))[1:] == ["  - →   a·", "  +     a", "    b"]
    assert diff_of(edited("a\n", "a\r\n"))[1:] == ["  - a", "  + a␍"]
    assert diff_of(edited("a\r\n", "b\r\n"))[1:] == ["  - a", "  + b"]
    assert diff_of(edited("a", "a\n"))[1:] == ["  - a", "    (no newline at end of file)", "  + a"]


def test_nothing_hides_in_a_diff() -> None:
    change = edited("x\n\x1b[2J\u202e\n", "y\u200b\n\x1b[2J\u202e\n", "/w/\x1b[8m.py")
    for screen in ({}, {"width": 40}):
        assert diff_of(change, **screen) == [
            "  ⟨U+001B⟩[8m.py · +1 −1",  # noqa: RUF001 -- a minus sign
            "  - x",
            "  + y⟨U+200B⟩",
            "    ␛[2J⟨U+202E⟩",
        ]


def test_a_diff_that_was_asked_about_is_not_shown_again() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), folder="/w", clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="Edit a.py", kind="edit", status="pending"))
    change = edited("a\n", "b\n")
    call = ToolCallFields(tool_call_id="c1", title="Edit a.py", content=[change, *shown("a.py would be changed.")])
    renderer.ask(RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS), [("y", "Allow once")])
    renderer.show_answer("Allow once")
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="in_progress"))
    done = {"ok": True, "message": "+1 −1"}  # noqa: RUF001 -- a minus sign
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed", content=[change], raw_output=done))
    assert paper.getvalue() == (
        """\
? Permission needed: Edit a.py
  a.py · +1 −1
  - a
  + b
  a.py would be changed.
  y  Allow once
  → Allow once

✓ Edit a.py · +1 −1
"""  # noqa: RUF001 -- a minus sign
    )


@pytest.mark.parametrize("screen", [{}, {"width": 80}])
def test_all_of_a_change_is_shown_where_it_is_asked_about(screen: dict[str, Any]) -> None:
    line = "safe " * 100 + "unseen"
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, **screen), folder="/w", clock=Clock())
    change = edited(f"{line} and stays\n", f"{line} and stays\n{line} and new\n{NUMBERS}")
    call = ToolCallFields(tool_call_id="c1", title="Edit a.py", content=[change])
    renderer.ask(RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS))
    shown = " ".join(paper.getvalue().split())
    assert f"{line} and stays" in shown
    assert f"+ {line} and new" in shown
    assert "+ line 40" in shown


def test_a_change_that_nobody_could_read_is_cut_and_says_so() -> None:
    paper = io.StringIO()
    change = edited(None, ("twig " * 1000 + "\n") * 1500)
    call = ToolCallFields(tool_call_id="c1", title="Edit a.py", content=[change])
    Renderer(Screen(paper), clock=Clock()).ask(
        RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS)
    )
    assert len(paper.getvalue()) < 1_100_000
    assert paper.getvalue().endswith("\n  … 1300 more lines\n")


# --- commands


def command_question(command: str, title: str) -> RequestPermissionRequest:
    content = [*shown(f"```bash\n{command}\n```"), *shown("A rule wants it.")]
    call = ToolCallFields(tool_call_id="c1", title=title, kind="execute", content=content)
    return RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS)


@pytest.mark.parametrize(
    ("command", "title", "asked"),
    [
        ("make test", "make test", "make test\n  A rule wants it.\n"),
        ("echo `date`", "echo `date`", "echo `date`\n  A rule wants it.\n"),
        ("one\ntwo", "one⏎two", "one⏎two\n  │ one\n  │ two\n  A rule wants it.\n"),
        (
            "echo " + "x" * 500 + "; rm -rf .",
            "echo xxx…",
            "echo xxx…\n  │ echo " + "x" * 500 + "; rm -rf .\n  A rule wants it.\n",
        ),
    ],
)
def test_a_question_shows_the_whole_command(command: str, title: str, asked: str) -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.ask(command_question(command, title))
    assert paper.getvalue() == f"? Permission needed: {asked}"


def test_a_question_of_the_model_is_no_permission() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.ask(question("Tabs or blanks?", "Tabs or blanks?"), [("y", "Tabs")])
    assert paper.getvalue() == "? Tabs or blanks?\n  y  Tabs\n"
    renderer.show_answer("Tabs")
    renderer.close()  # nothing has begun that had to end
    assert paper.getvalue() == "? Tabs or blanks?\n  y  Tabs\n  → Tabs\n"


def ended(output: str, message: str, *, ok: bool) -> ToolCallUpdate:
    return ToolCallUpdate(
        tool_call_id="c1",
        status="completed" if ok else "failed",
        content=shown(f"```\n{output}{message}\n```"),
        raw_output={"ok": ok, "message": message, "exitCode": 0 if ok else 2},
    )


def test_a_command_ends_with_its_exit_and_its_last_lines() -> None:
    paper = io.StringIO()
    clock = Clock()
    renderer = Renderer(Screen(paper), clock=clock)
    renderer.update(ToolCall(tool_call_id="c1", title="true", kind="execute", status="in_progress"))
    renderer.update(ended("", "exit 0 · 0.1 s", ok=True))
    renderer.update(ToolCall(tool_call_id="c1", title="make", kind="execute", status="in_progress"))
    clock.now += 0.2
    renderer.update(replace(ended(NUMBERS, "exit 2 · 0.2 s", ok=False), title="make · exit 2"))
    lines = paper.getvalue().splitlines()
    assert lines == [
        "✓ true · exit 0 · 0.1 s",
        "✗ make · exit 2 · 0.2 s",
        "  │ … 30 earlier lines",
        *(f"  │ line {number}" for number in range(31, 41)),
    ]


@pytest.mark.parametrize(
    ("end", "message", "line"),
    [
        ("killed by SIGKILL", "killed by SIGKILL · 5.0 s", "✗ sleep 9 · killed by SIGKILL · 5.1 s"),
        ("timed out after 5 s", "timed out after 5 s", "✗ sleep 9 · timed out after 5 s"),
    ],
)
def test_what_the_title_says_of_a_commands_end_is_not_said_again(end: str, message: str, line: str) -> None:
    paper, clock = io.StringIO(), Clock()
    renderer = Renderer(Screen(paper), clock=clock)
    renderer.update(ToolCall(tool_call_id="c1", title="sleep 9", kind="execute", status="in_progress"))
    clock.now += 5.1
    raw = {"ok": False, "message": message, "exitCode": None, "signal": "SIGKILL"}
    renderer.update(replace(ended("", message, ok=False), title=f"sleep 9 · {end}", raw_output=raw))
    assert paper.getvalue().splitlines() == [line]


def test_the_end_of_a_command_in_the_background_is_said_by_its_notice_alone() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="serve", kind="execute", status="in_progress"))
    renderer.update(ended("", "running in the background as b1", ok=True))
    renderer.update(replace(ended("", "exit 3", ok=False), title="serve · exit 3"))
    assert paper.getvalue().splitlines() == ["✓ serve · running in the background as b1"]


def test_a_call_that_is_told_again_after_its_end_is_shown_once() -> None:
    """As the calls of a turn are, where another process goes on with its session."""
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="make", kind="execute", status="in_progress"))
    renderer.update(ended("", "exit 0 · 0.1 s", ok=True))
    renderer.update(ToolCall(tool_call_id="c1", title="make", kind="execute", status="completed"))
    renderer.update(ended("", "exit 0 · 0.1 s", ok=True))
    assert paper.getvalue().splitlines() == ["✓ make · exit 0 · 0.1 s"]


def test_what_was_rejected_is_not_shown_again() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    content = shown("```bash\nrm x\n```")
    call = ToolCallFields(tool_call_id="c1", title="rm x", kind="execute", content=content)
    renderer.ask(RequestPermissionRequest(session_id="s1", tool_call=call, options=OPTIONS))
    renderer.show_answer("Reject")
    rejected = {"ok": False, "message": "rejected"}
    renderer.update(
        ToolCallUpdate(
            tool_call_id="c1", title="rm x · rejected", status="failed", content=content, raw_output=rejected
        )
    )
    assert paper.getvalue().splitlines() == ["? Permission needed: rm x", "  → Reject", "", "✗ rm x · rejected"]


def test_a_turn_that_is_joined_names_the_call_that_runs() -> None:
    renderer, _, paper = live_renderer()
    renderer.update(ToolCall(tool_call_id="c1", title="Run make", status="in_progress"))
    renderer.begin_turn()
    renderer.tick()
    assert paper.picture()[0][2:] == "Run make"


def test_a_notice_leaves_the_call_that_runs_in_the_live_line() -> None:
    renderer, _, paper = live_renderer()
    renderer.begin_turn()
    renderer.update(ToolCall(tool_call_id="c1", title="Run make", status="in_progress"))
    renderer.update(Notice(severity="warning", title="Somebody watches."))
    renderer.tick()
    assert paper.picture()[-1][2:] == "Run make"


def test_output_grows_below_the_live_line_and_is_replaced() -> None:
    renderer, clock, paper = live_renderer()
    renderer.begin_turn()
    renderer.ask(command_question("make", "make"), [("y", "Allow once")])
    renderer.show_answer("Allow once")
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="in_progress"))
    before = ["? Permission needed: make", "  A rule wants it.", "  y  Allow once", "  → Allow once"]

    def grown_to(output: str) -> list[str]:
        renderer.update(ToolCallUpdate(tool_call_id="c1", content=shown(f"```\n{output}```")))
        clock.now += 1
        renderer.tick()
        picture = paper.picture()
        assert picture[:4] == before
        return [picture[4][2:], *picture[5:]]

    renderer.tick()
    assert paper.picture()[4][2:] == "make"  # the question's content is not taken for output
    assert grown_to("one\n") == ["make 1 s", "  │ one"]
    assert grown_to("one\ntwo \x1b[2J" + "x" * 50 + "\n") == ["make 2 s", "  │ one", "  │ two ␛[2J" + "x" * 26 + "…"]
    assert grown_to(NUMBERS) == ["make 3 s", *(f"  │ line {number}" for number in range(35, 41))]
    assert grown_to("less\n") == ["make 4 s", "  │ less"]
    renderer.update(ended("less\nmore\n", "exit 0 · 4.0 s", ok=True))
    assert paper.picture() == [*before, "", "✓ make · exit 0 · 4.0 s", "  │ less", "  │ more", ""]


def test_without_a_terminal_output_is_printed_once() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.update(ToolCall(tool_call_id="c1", title="`make`", kind="execute", status="in_progress"))
    for output in ("one\n", "one\ntwo\n"):
        renderer.update(ToolCallUpdate(tool_call_id="c1", content=shown(f"```\n{output}```")))
        renderer.tick()
    assert paper.getvalue() == ""
    renderer.update(ended("one\ntwo\n", "exit 0 · 0.2 s", ok=True))
    assert paper.getvalue() == "✓ `make` · exit 0 · 0.2 s\n  │ one\n  │ two\n"


def test_the_live_lines_fit_into_a_low_window() -> None:
    renderer, _, paper = live_renderer()
    renderer._screen.height = 4  # pyright: ignore[reportPrivateUsage]
    renderer.update(ToolCall(tool_call_id="c1", title="`make`", kind="execute", status="in_progress"))
    renderer.update(ToolCallUpdate(tool_call_id="c1", content=shown(f"```\n{NUMBERS}```")))
    renderer.tick()
    assert len(paper.picture()) == 3


# --- Markdown on a terminal

MARKDOWN = """\
# A heading

Some **bold words** and `inline code` (as in `x`), 2 ** 3, *stars*, and a line that is too long.

- an item that needs a second line to fit
  - **`deeper`** down
1. one

```python
def f():

    return `x`, "**y**", 'a line that is never wrapped'
```
After. 日本語の文章はどこでも改行できるので、幅に合わせて折り返す。
An open `tick and **stars
"""

RENDERED = """\
A heading

Some bold words and inline code (as in
x), 2 ** 3, *stars*, and a line that is
too long.

• an item that needs a second line to
  fit
  • deeper down
1. one

  def f():

      return `x`, "**y**", 'a line that is never wrapped'
After. 日本語の文章はどこでも改行できる
ので、幅に合わせて折り返す。
An open `tick and **stars"""


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 1000])
def test_markdown_looks_the_same_however_it_is_cut_into_pieces(size: int) -> None:
    assert written(MARKDOWN, size=size) == RENDERED


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_without_colours_no_marker_is_lost(size: int) -> None:
    def squeeze(markdown: str) -> str:
        return "".join(markdown.split())

    assert squeeze(written(MARKDOWN, size=size, colours=False)) == squeeze(MARKDOWN)


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**a**", "\x1b[0;1ma\n\x1b[0m"),
        ("a `b c` d", "a \x1b[0;36mb c \x1b[0md\n"),
        ("## T\nx", "\x1b[0;1;36mT\n\x1b[0mx\n"),
        ("```\nx\n```", "  \x1b[0;2mx\n\x1b[0m"),
        ("``a ` b``", "\x1b[0;36ma ` b\n\x1b[0m"),
        ("***a***", "***a***\n"),
        ("f(**kwargs) and g(**kwargs)", "f(**kwargs) and g(**kwargs)\n"),
        ("f(**k), then **b `**k` b**.", "f(**k), then \x1b[0;1mb \x1b[0;36m**k \x1b[0;1mb\x1b[0m.\n"),
        ("src/**/*.py, tests/**/*.py", "src/**/*.py, tests/**/*.py\n"),
        ("2**(3) and 4**(5)", "2**(3) and 4**(5)\n"),
        ("**a `**k` b**.", "\x1b[0;1ma \x1b[0;36m**k \x1b[0;1mb\x1b[0m.\n"),
        ("`` `x` ``.", "\x1b[0;36m`x`\x1b[0m.\n"),
        ("**太字「強調」**です", "\x1b[0;1m太字「強調」\x1b[0mです\n"),
        ("#hash -dash 1.5", "#hash -dash 1.5\n"),
        ("```", ""),
        ("-", "-\n"),
        ("   ", ""),
    ],
)
def test_markdown_styles(markdown: str, expected: str) -> None:
    paper = io.StringIO()
    screen = Screen(paper, width=80, colours=True)
    stream = prose(screen)
    for character in markdown:
        stream.feed(character)
    stream.end()
    screen.end_line()
    screen.flush()
    assert paper.getvalue() == expected


def test_text_appears_word_by_word_and_not_only_at_the_end() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=40, colours=True))
    renderer.update(text("One two thr"))
    assert paper.getvalue() == "One two"
    renderer.update(text("ee four *is* not "))
    assert paper.getvalue() == "One two three four *is* not"


def test_what_is_held_back_of_a_line_stands_below_the_line_before_it() -> None:
    shown = prose(Screen(io.StringIO(), width=40, colours=True))
    said = ("It is:\n\n```python\n", "one\n", "tw", "o\n\n", "thr", "ee\n```\n", "Aft", "er\n| a |\n|--", "-|\n| b")
    held = [shown.feed(piece) or shown.held for piece in said]
    assert held == ["", "", "\n  tw", "", "\n\n  thr", "", "\nAft", "\n|--", "\n| b"]


def test_a_marker_that_never_closes_does_not_hold_the_text_back_for_ever() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=40, colours=True))
    renderer.update(text("`" + "word " * 100))
    assert "`word word" in paper.getvalue()


# --- the live line


def live_renderer() -> tuple[Renderer, Clock, Paper]:
    clock, paper = Clock(), Paper()
    return Renderer(Screen(paper, width=40, colours=True, live=True), clock=clock), clock, paper


def test_the_live_line_says_what_is_waited_for_and_how_long() -> None:
    renderer, clock, paper = live_renderer()

    def picture_after(seconds: float) -> str:
        clock.now += seconds
        renderer.tick()
        return paper.picture()[-1][2:]

    renderer.wait("starting")
    assert picture_after(0) == "starting"
    renderer.begin_turn()
    assert picture_after(0) == "waiting for the model"
    assert picture_after(2) == "waiting for the model 2 s"
    renderer.update(ToolCall(tool_call_id="c1", title="Read README.md"))
    assert picture_after(0.5) == "Read README.md"
    assert picture_after(3) == "Read README.md 4 s"
    renderer.update(ToolCall(tool_call_id="c2", title="Read " + "x" * 100))
    assert picture_after(0) == "Read " + "x" * 31 + "…"
    renderer.update(ToolCallUpdate(tool_call_id="c2", status="completed"))
    assert picture_after(0) == "Read README.md"
    renderer.update(ToolCallUpdate(tool_call_id="c1", status="completed"))
    assert picture_after(0) == "waiting for the model"
    renderer.update(
        Notice(severity="warning", title="503. Trying again in 4 s.", meta=NoticeMeta(crow=NoticeFacts(retry_in=4)))
    )
    assert picture_after(1) == "retrying in 3 s"
    assert picture_after(3) == "waiting for the model 4 s"
    renderer.interrupted()
    assert picture_after(0) == "stopping"
    renderer.stop("cancelled")
    renderer.tick()
    assert [line for line in paper.picture() if line] == [
        "✓ Read",
        "  " + "x" * 100,
        "✓ Read README.md · 4 s",
        "! 503. Trying again in 4 s.",
        "■ cancelled · 10 s",
    ]


def test_text_replaces_the_live_line_and_silence_brings_it_back() -> None:
    renderer, clock, paper = live_renderer()
    renderer.begin_turn()
    renderer.tick()
    renderer.update(text("Hello wor"))
    renderer.tick()
    assert paper.picture() == ["Hello"]
    clock.now += 3
    renderer.tick()
    assert paper.picture()[-1].endswith(" 3 s")
    renderer.update(text("ld, hello "))
    assert paper.picture() == ["Hello world, hello"]


def working(id: str, title: str, steps: str) -> ToolCall:
    return ToolCall(
        tool_call_id=id, title=title, name="task", status="in_progress", content=shown(f"```\n{steps}\n```")
    )


def test_subagents_that_work_at_once_are_all_to_be_seen() -> None:
    renderer, clock, paper = live_renderer()
    renderer.update(working("c1", "Work: Pears", "✓ Read a\n✓ Read b\n✓ Read c\n… Edit d"))
    renderer.update(working("c2", "Explore: Apples", "… Find"))
    clock.now += 2
    renderer.tick()
    first, *below = paper.picture()
    assert first[2:] == "2 subagents running 2 s"
    assert below == [
        *("  Work: Pears", "  │ ✓ Read b", "  │ ✓ Read c", "  │ … Edit d"),
        *("  Explore: Apples", "  │ … Find"),
    ]
    renderer.update(ToolCallUpdate(tool_call_id="c2", status="completed"))
    renderer.tick()
    assert paper.picture()[2][2:] == "Work: Pears"
    assert paper.picture()[3:] == ["  │ ✓ Read a", "  │ ✓ Read b", "  │ ✓ Read c", "  │ … Edit d"]


def test_what_a_subagents_command_prints_stands_above_its_steps() -> None:
    renderer, _, paper = live_renderer()
    renderer.update(working("c1", "Work: Pears", "… `make`"))
    command = ToolCall(tool_call_id="c1_t1-c1", title="Subagent “Pears”: make", kind="execute", status="in_progress")
    renderer.update(command)
    renderer.update(ToolCallUpdate(tool_call_id="c1_t1-c1", content=shown("```\none\n```")))
    renderer.tick()
    first, *below = paper.picture()
    assert first[2:] == "Subagent “Pears”: make"
    assert below == ["  │ one", "  Work: Pears", "  │ … `make`"]


def test_the_last_word_before_a_call_does_not_wait_for_its_end() -> None:
    renderer, _, paper = live_renderer()
    renderer.update(text("I send two."))
    renderer.update(working("c1", "Work: Pears", "… Read"))
    renderer.tick()
    first, second, *_ = paper.picture()
    assert (first, second[2:]) == ("I send two.", "Work: Pears")


def test_a_subagents_command_is_shown_once_in_the_question() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    renderer.ask(command_question("make", "Subagent “Pears”: make"), [("y", "Yes")])
    assert paper.getvalue().count("make") == 1


def test_while_a_question_is_open_only_its_hint_moves() -> None:
    renderer, clock, paper = live_renderer()
    renderer.begin_turn()
    renderer.ask(question(), [("y", "Yes")])
    clock.now += 5
    renderer.tick()
    renderer.invite()
    assert paper.picture()[-1] == "  → "
    renderer.invite("in 3 s")
    assert paper.picture()[-1] == "  → in 3 s"
    renderer.show_answer("Yes")
    assert paper.picture()[-2:] == ["  → Yes", ""]


# --- nothing that others wrote reaches the terminal as a command


def test_escape_sequences_and_overrides_become_visible() -> None:
    evil = "a\x1b[2J\x1b]0;title\x07b\x9b5n\u202ec\x7f\x00\ud800 x\u2066y \U000e0041"
    for screen in (Screen(paper := io.StringIO()), Screen(paper := io.StringIO(), width=40, colours=True, live=True)):
        renderer = Renderer(screen, clock=Clock())
        renderer.update(text(evil))
        renderer.update(thought(evil))
        renderer.update(ToolCall(tool_call_id="c1", title=evil, status="failed", content=shown(evil)))
        renderer.update(Notice(severity="error", title=evil, description=evil))
        renderer.update(Plan(entries=[PlanEntry(content=evil, priority="low", status="pending")]))
        renderer.update(ToolCall(tool_call_id="c2", title=evil, kind="execute", status="in_progress"))
        renderer.update(ToolCallUpdate(tool_call_id="c2", content=shown(evil)))
        renderer.tick()
        renderer.update(ToolCallUpdate(tool_call_id="c2", status="completed", raw_output={"message": evil}))
        renderer.ask(command_question(evil, evil), [("y", evil)])
        renderer.show_answer(evil)
        renderer.ask(question(evil, evil), [("y", evil)])
        renderer.show_answer(evil)
        renderer.fail(evil)
        renderer.scene("Scene")
        renderer.tick()
        renderer.close()
        ours = r"\x1b\[([0-9;]*m|K|J|\d+[AD])|\r"  # colours, and what moves the live lines
        written = re.sub(ours, "", paper.getvalue()) if screen.colours else paper.getvalue()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0041]", written)
        assert "\x1b[2J" not in paper.getvalue()
        written.encode()


def test_prose_keeps_what_languages_need() -> None:
    family, devanagari = "👩\u200d👧", "क\u200dष"
    assert clean_prose(f"{family} {devanagari}\r\n\tx") == f"{family} {devanagari}\n    x"


def test_prose_is_as_strict_with_what_turns_text_round_as_the_texts_that_are_approved() -> None:
    assert clean_prose("a\u206ab \U000e00ff") == "a⟨U+206A⟩b ⟨U+E00FF⟩"


def test_columns_durations_and_cuts() -> None:
    assert (cells("abc"), cells("日本"), cells("e\u0301"), cells("→")) == (3, 4, 1, 1)
    assert (cut("日本語", 6), cut("日本語", 5), cut("abcdef", 4), cut("ab cd", 4)) == ("日本語", "日本…", "abc…", "ab…")
    assert [duration(seconds) for seconds in (0.01, 0.42, 1.2, 59.7, 185)] == [
        "",
        "0.4 s",
        "1 s",
        "1 min 0 s",
        "3 min 5 s",
    ]


# --- what a stream can do


def test_a_file_is_plain_and_a_terminal_is_not() -> None:
    plain = Screen.of(io.StringIO(), {"TERM": "xterm"})
    assert (plain.width, plain.colours, plain.live) == (None, False, False)
    master, slave = pty.openpty()
    with open(slave, "w") as stream:
        screen = Screen.of(stream, {"TERM": "xterm"})
        assert (screen.width, screen.colours, screen.live) == (80, True, True)
        screen = Screen.of(stream, {"TERM": "xterm", "NO_COLOR": "1"})
        assert (screen.width, screen.colours, screen.live) == (80, False, True)
        for variables in ({"TERM": "dumb"}, {}):
            screen = Screen.of(stream, variables)
            assert (screen.width, screen.colours, screen.live) == (None, False, False)
        screen = Screen.of(stream, {"TERM": "xterm"})
        for columns, width in ((60, 60), (5, 20), (300, 100)):
            termios.tcsetwinsize(slave, (24, columns))
            screen.measure()
            assert screen.width == width
    os.close(master)


# --- keys for answers


def test_each_option_has_a_key_of_its_own() -> None:
    in_project = PermissionOption(option_id="x", name="Allow in this project", kind="allow_always")
    options = [*OPTIONS[:2], in_project, *OPTIONS[2:]]
    assert [choice.key for choice in choices_of(options)] == ["y", "a", "p", "n"]


def test_where_letters_do_not_suffice_all_keys_are_numbers() -> None:
    further = [PermissionOption(option_id=str(number), name="x", kind="allow_always") for number in range(3)]
    assert [choice.key for choice in choices_of(further)] == ["1", "2", "3"]
    answers = [PermissionOption(option_id=str(number), name="x", kind="allow_once") for number in range(2)]
    assert [choice.key for choice in choices_of([*answers, OPTIONS[2]])] == ["1", "2", "3"]


def test_the_gentlest_no_is_found() -> None:
    never = PermissionOption(option_id="never", name="Never", kind="reject_always")
    assert rejection(choices_of([never, *OPTIONS])) == OPTIONS[2]
    assert rejection(choices_of([never])) == never
    assert rejection(choices_of(OPTIONS[:2])) is None


# --- tables


def table(text: str, width: int | None = 60, *, colours: bool = False) -> str:
    stream = io.StringIO()
    screen = Screen(stream, width=width, colours=colours)
    shown = prose(screen)
    for character in text:
        shown.feed(character)
    shown.end()
    screen.end_line()
    return stream.getvalue()


def test_a_table_is_laid_out_in_columns() -> None:
    assert table("So:\n\n| what | tokens |\n|:---|---:|\n| `tools` | 12 |\n| you \\| me | 1,234 |\nAfter.") == (
        "So:\n\nwhat      tokens\n────────  ──────\n`tools`       12\nyou | me   1,234\nAfter.\n"
    )


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("`**kwargs`", "**kwargs"),
        ("f(**kwargs), g(**kw)", "f(**kwargs), g(**kw)"),
        ("an **open one", "an **open one"),
        ("a ` tick", "a ` tick"),
        ("`` `x` ``", "`x`"),
        ("`a \\| b`", "a | b"),
        ("**bold `**`** and `**`", "bold ** and **"),
        ("[**words**](http://x)", "[words](http://x)"),
    ],
)
def test_a_cell_of_a_table_loses_markers_and_nothing_else(cell: str, shown: str) -> None:
    rows = table(f"| a |\n|---|\n| {cell} |\n", colours=True).splitlines()
    assert rows[2].removeprefix("\x1b[0m") == shown


@pytest.mark.parametrize("piece", ["**a ", " **a", "`", "a**b ", "`a``b```c", "**a `b**` ", "** `` "])
def test_a_line_of_markers_is_read_once(piece: str) -> None:
    def reading(times: int) -> int:
        return lines_run(lambda: list(pieces(piece * times, keep_markers=True)))

    assert reading(4000) <= 5 * reading(1000)


def test_a_wide_table_goes_on_below() -> None:
    shown = table("|a|b|\n|-|-|\n|one two three four five six seven|x|\n", width=20)
    assert shown == "a                  b\n─────────────────  ─\none two three      x\nfour five six\nseven\n"
    assert max(map(len, table("|a|b|\n|-|-|\n|" + "x" * 99 + "|" + "y" * 99 + "|\n", width=20).splitlines())) <= 20


@pytest.mark.parametrize("text", ["| no table\n", "| no\n| table\n", "a | b\n", "| a |\n", "|\n|\n", "| x"])
def test_what_is_no_table_is_left_as_it_is(text: str) -> None:
    assert table(text) == text.rstrip("\n") + "\n"


def test_a_file_gets_a_table_as_it_was_written() -> None:
    text = "| a |\n|---|\n| 1 |\n"
    assert table(text, width=None) == text


def test_what_a_notice_is_about_is_told_beside_its_sentence_and_not_read_from_it() -> None:
    wait, retry = translate.wait(StillWaiting("the model", 5)), translate.notice(Retrying("warning", "503.", seconds=4))
    assert is_wait(msgspec.json.decode(msgspec.json.encode(wait), type=Update))
    assert not is_wait(retry)
    assert not is_wait(Notice(severity="info", title="Waiting for the model (5 s)"))
    assert msgspec.to_builtins(retry)["_meta"] == {"crow": {"retryIn": 4}}


@pytest.mark.parametrize("width", [40, 80])
def test_no_word_is_broken_where_there_is_a_blank(width: int) -> None:
    """In output, in a command that is asked about and in a diff as well, whose blanks are all kept."""
    words = "the configuration_option  of src/crow/render.py was (re)considered, as https://example.org/x says; " * 3
    paper = io.StringIO()
    renderer = Renderer(Screen(paper, width=width), clock=Clock())
    fenced = ContentToolContent(content=TextContent(text=f"```bash\n{words}\n```"))
    diff = DiffToolContent(path="/a", old_text="", new_text=f"{words}\n")
    renderer.update(ToolCall(tool_call_id="c", title="make", kind="execute", status="pending"))
    renderer.update(ToolCallUpdate(tool_call_id="c", status="completed", content=[fenced]))
    asked = ToolCallFields(tool_call_id="d", title="Do it", kind="edit", content=[fenced, diff])
    renderer.ask(RequestPermissionRequest(session_id="s", tool_call=asked, options=[]))
    lines = paper.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    shown = [word for line in lines for word in line.split()]
    assert [shown.count(word) for word in set(words.split())] == [9] * len(set(words.split()))


def test_what_has_no_blanks_is_cut_where_the_line_is_full() -> None:
    assert folded("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert folded("a " + "x" * 12, 10) == ["a xxxxxxxx", "xxxx"]
    assert folded(" " * 5 + "x" * 9, 10) == [" " * 5 + "x" * 5, "x" * 4]
    assert folded("one two  three", 10) == ["one two  ", "three"]
    assert folded("", 10) == [""]
