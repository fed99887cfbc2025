"""What a person sees: whole outputs, in a file and on a small terminal that the tests play themselves."""

import io
import os
import pty
import re
import termios

import pytest

from crow.acp.wire import (
    AgentMessageChunk,
    AgentThoughtChunk,
    AudioContent,
    ContentToolContent,
    DiffToolContent,
    EmbeddedResource,
    ImageContent,
    Notice,
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
    UsageUpdate,
    UserMessageChunk,
)
from crow.cli.render import Renderer
from crow.cli.render_prose import prose
from crow.cli.render_question import choices_of, rejection
from crow.cli.render_screen import Screen
from crow.cli.render_text import cells, clean_prose, cut, duration


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Paper(io.StringIO):
    """A terminal as simple as we need it: understands line feeds, cursor left, erase to the end of line, colours."""

    def picture(self) -> list[str]:
        lines, column = [""], 0
        for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|\n|[^\x1b\n]+", self.getvalue()):
            if piece == "\n":
                lines.append("")
                column = 0
            elif piece.startswith("\x1b"):
                match piece[-1]:
                    case "K":
                        lines[-1] = lines[-1][:column]
                    case "D":
                        column -= int(piece[2:-1])
                    case "m":
                        pass
                    case other:
                        raise AssertionError(f"unexpected sequence {other}")
            else:
                lines[-1] = lines[-1][:column].ljust(column) + piece + lines[-1][column + len(piece) :]
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
    renderer.answered("Allow once")
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

✓ done (end_turn) · 1 min 2 s · 1,234 of 100,000 tokens
"""
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_tokens", "■ stopped: the length limit was reached (max_tokens)\n"),
        ("max_turn_requests", "■ stopped: too many requests to the model in one turn (max_turn_requests)\n"),
        ("refusal", "■ stopped: the model refused to answer (refusal)\n"),
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


def test_a_plan_is_shown_once_and_then_what_changes() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())

    def plan(**entries: str) -> Plan:
        return Plan(
            entries=[PlanEntry(content=name, priority="low", status=status) for name, status in entries.items()]
        )

    renderer.update(plan(look="in_progress", think="pending", write="pending"))
    renderer.update(plan(look="completed", think="in_progress", write="pending"))
    renderer.update(plan(look="completed", think="in_progress", write="pending"))
    assert paper.getvalue() == "◐ look\n☐ think\n☐ write\n☑ look\n◐ think\n"


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
        "[image/png][audio/wav][a.py](file:///a.py)[file:///b.py]\n\n✓ Edit a.py · changes /a.py\n"
    )


def test_a_long_failure_is_cut_and_says_so() -> None:
    paper = io.StringIO()
    renderer = Renderer(Screen(paper), clock=Clock())
    lines = "\n".join(f"line {number}" for number in range(20))
    renderer.update(ToolCall(tool_call_id="c1", title="`make`", status="failed", content=shown(lines)))
    assert paper.getvalue().splitlines()[:2] == ["✗ `make`", "  line 0"]
    assert paper.getvalue().endswith("  line 7\n  (12 more lines)\n")


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
    renderer.update(Notice(severity="warning", title="503. Trying again in 4 s."))
    assert picture_after(1) == "trying again in 3 s"
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


def test_while_a_question_is_open_only_its_hint_moves() -> None:
    renderer, clock, paper = live_renderer()
    renderer.begin_turn()
    renderer.ask(question(), [("y", "Yes")])
    clock.now += 5
    renderer.tick()
    assert paper.picture()[-1] == "  → "
    renderer.hint("in 3 s")
    assert paper.picture()[-1] == "  → in 3 s"
    renderer.answered("Yes")
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
        renderer.ask(question(evil, evil), [("y", evil)])
        renderer.answered(evil)
        renderer.fail(evil)
        renderer.scene("Scene")
        renderer.tick()
        renderer.close()
        written = re.sub(r"\x1b\[[0-9;]*m", "", paper.getvalue()) if screen.colours else paper.getvalue()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0041]", written)
        assert "\x1b[2J" not in paper.getvalue()
        written.encode()


def test_prose_keeps_what_languages_need() -> None:
    family, devanagari = "👩\u200d👧", "क\u200dष"
    assert clean_prose(f"{family} {devanagari}\r\n\tx") == f"{family} {devanagari}\n    x"


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
    options = [*OPTIONS, PermissionOption(option_id="x", name="Allow for ever", kind="allow_always")]
    assert [choice.key for choice in choices_of(options)] == ["y", "a", "n", "4"]


def test_the_gentlest_no_is_found() -> None:
    never = PermissionOption(option_id="never", name="Never", kind="reject_always")
    assert rejection(choices_of([never, *OPTIONS])) == OPTIONS[2]
    assert rejection(choices_of([never])) == never
    assert rejection(choices_of(OPTIONS[:2])) is None
