"""A session as a document: everything in its place, nothing that breaks out of its fence, and JSON that is whole."""

import json
import re
from collections.abc import Sequence

import msgspec

from crow.events import (
    CallOpened,
    CallSettled,
    CommandGiven,
    CompactionEnded,
    CrowSaid,
    Event,
    HistoryCleared,
    PlanChanged,
    PlanEntry,
    Remark,
    SentLink,
    SentMedia,
    SentResource,
    SentText,
    SubagentDid,
    TextDelta,
    ThoughtDelta,
    TurnEnded,
    TurnStarted,
    TurnUndone,
    UserSaid,
)
from crow.messages import Image, StopReason
from crow.results import DiffBlock, HiddenOutput, ImageBlock, TextBlock, ToolKind, ToolResult
from crow.session.export import as_json, markdown
from crow.store.base import RECORD_VERSION, SessionEntry

ENTRY = SessionEntry("0123-abc", "/home/place", ("/more`ticks",), "Mend the nest", 1_700_000_000_000, 1_700_000_060_000)
ENDED = TurnEnded("t1", StopReason.END_TURN)


def document(*events: Event) -> str:
    return markdown(ENTRY, events)


def asked(text: str = "go", *more: object) -> list[Event]:
    said = UserSaid("t1-m1", (SentText(text), *more), ())  # pyright: ignore[reportArgumentType] -- also what is none
    return [TurnStarted("t1"), said]


def called(call_id: str, title: str, result: ToolResult | None, kind: ToolKind = ToolKind.EDIT) -> list[Event]:
    opened = CallOpened(call_id, "tool", kind, title)
    return [opened] if result is None else [opened, CallSettled(call_id, result)]


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


def test_it_begins_with_what_the_session_is():
    head = document()
    assert head.startswith("# Mend the nest\n\n- Folder: `/home/place`\n- Also: ``/more`ticks``\n- Begun: 2023-11-1")
    assert "- Session: `0123-abc`\n" in head


def test_who_said_what_is_told_by_headings():
    text = document(
        *asked("hello"),
        ThoughtDelta("t1-m2", "secret musings", "p"),
        TextDelta("t1-m3", "Let "),
        TextDelta("t1-m3", "me."),
        *called("t1-c1", "Edit a", ToolResult(ok=True, text="for the model", message="+1")),
        *called("t1-c2", "Edit b", None),
        TextDelta("t1-m4", "Done."),
        ENDED,
        TurnStarted("t2"),
        CommandGiven("t2-m1", (SentText("/help"),)),
        CrowSaid("t2-m2", "No help."),
    )
    assert headings(text)[1:] == [
        *("## You", "## Model", "### Edit a (done)", "### Edit b (cut off)", "## Model"),
        *("## You", "## Crow"),
    ]
    assert "\n\nLet me.\n\n" in text
    assert "musings" not in text
    assert "for the model" not in text
    assert text.endswith("/help\n\n## Crow\n\nNo help.\n")


def test_diffs_outputs_and_failures():
    text = document(
        *asked(),
        *called(
            "c1", "Edit a", ToolResult(ok=True, text="", display=(DiffBlock("/home/place/a", "modify", "x\n", "y\n"),))
        ),
        *called("c2", "Remove b", ToolResult(ok=True, text="", display=(DiffBlock("/b", "delete", "x\n", ""),))),
        *called("c3", "`make`", ToolResult(ok=False, text="", message="exit 2", display=(TextBlock("no rule\n"),))),
        *called(
            "c4", "`ls`", ToolResult(ok=True, text="", message="exit 0", display=(HiddenOutput("seen elsewhere"),))
        ),
        *called("c5", "Look", ToolResult(ok=True, text="", display=(ImageBlock(Image("QUJD", "image/png")),))),
    )
    assert "### Edit a (done)\n\n```diff\n--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-x\n+y\n```\n" in text
    assert "### Remove b (done)\n\n```diff\n--- a/b\n+++ b/b\n@@ -1,1 +0,0 @@\n-x\n```\n" in text
    assert "### `make` (failed)\n\nexit 2\n\n```text\nno rule\n```\n" in text
    assert "```text\nseen elsewhere\n```\n" in text
    assert "*Image (image/png)*" in text
    assert "QUJD" not in text


def test_what_a_subagent_did_stands_below_the_call_that_it_worked_for():
    report = TextBlock("# Report\n\nAll done.", prose=True)
    text = document(
        *asked(),
        CallOpened("c1", "task", ToolKind.OTHER, "Work: Pears"),
        CallOpened("c2", "task", ToolKind.OTHER, "Explore: Apples"),
        SubagentDid("c1", CallOpened("c1_t1-c1", "edit", ToolKind.EDIT, "Edit")),
        CallOpened("c1_t1-c1", "edit", ToolKind.EDIT, "Subagent “Pears”: Edit a", own=True),
        CallSettled("c1_t1-c1", ToolResult(ok=True, text="", display=(DiffBlock("/a", "modify", "x\n", "y\n"),))),
        CallSettled("c1", ToolResult(ok=True, text="", display=(TextBlock("✓ Edit a"), report))),
        CallSettled("c2", ToolResult(ok=False, text="", message="It failed.", display=(TextBlock("It failed."),))),
        TextDelta("t1-m2", "Well."),
        *called("u1", "Undo", ToolResult(ok=True, text="", message="gone")),
        ENDED,
    )
    assert headings(text)[1:] == [
        *("## You", "## Model", "### Work: Pears (done)", "#### Subagent “Pears”: Edit a (done)"),
        *("### Explore: Apples (failed)", "## Model", "### Undo (done)"),
    ]
    assert "```text\n✓ Edit a\n```\n\n> # Report\n>\n> All done.\n\n#### Subagent" in text
    assert text.count("It failed.") == 1


def test_what_was_attached_is_named_and_text_of_it_is_shown():
    text = document(
        *asked(
            "see",
            SentMedia("image", "QUJD", "image/png", "file:///a.png"),
            SentMedia("audio", "QUJD", "audio/wav"),
            SentLink("file:///b.py", "b.py"),
            SentResource("file:///c.py", "c = 1\n"),
            SentResource("file:///d.bin", None, "QUJD"),
        )
    )
    assert "QUJD" not in text
    for name in ("image (image/png) `file:///a.png`", "audio (audio/wav)", "`file:///b.py`", "`file:///d.bin`"):
        assert f"*Attached: {name}*" in text
    assert "*Attached: `file:///c.py`*\n\n```py\nc = 1\n```\n" in text


def test_nothing_breaks_out_of_its_fence_or_heading():
    evil = "```\n# Owned\n````\n<script>"
    text = document(
        *asked("go", SentResource("file:///x", evil)),
        *called("c1", "Run\n# Owned", ToolResult(ok=True, text="", display=(TextBlock(evil),))),
        *called(
            "c2", "Edit", ToolResult(ok=True, text="", display=(DiffBlock("/a\n# Owned", "modify", evil, evil + "x"),))
        ),
        CompactionEnded("k", "completed", evil),
    )
    outside = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "\n# Owned" not in outside
    assert "<script>" not in outside


def test_long_outputs_are_cut_and_say_so_and_messages_are_not():
    long = "start " + "x" * 100_000 + " end"
    text = document(*asked(long), *called("c1", "Run", ToolResult(ok=True, text="", display=(TextBlock(long),))))
    assert long in text
    _, output = text.split("### Run (done)")
    assert len(output) < 5000
    assert "start " in output
    assert " end" in output
    assert "96,010 characters left out" in output


def test_how_turns_ended_and_what_became_of_them():
    text = document(
        *asked("one"),
        Remark("info", "The background command b1 has ended."),
        TurnEnded("t1", StopReason.CANCELLED),
        *asked("two"),
        TurnEnded("t1", None, "The key\nis wrong."),
        PlanChanged((PlanEntry("look", "completed"), PlanEntry("mend", "in_progress"), PlanEntry("test"))),
        CompactionEnded("k", "completed", "the story so far"),
        CompactionEnded("k", "failed"),
        HistoryCleared(),
        TurnUndone("t1"),
    )
    assert "> The background command b1 has ended.\n\n> Cancelled.\n" in text
    assert "> The turn failed: The key\n> is wrong.\n" in text
    assert "- [x] look\n- [~] mend\n- [ ] test\n" in text
    assert "```text\nthe story so far\n```" in text
    assert "could not be summed up" in text
    assert "> From here on the model knew nothing" in text
    assert "> The turn before was taken back." in text


def test_a_call_of_crows_own_is_crows():
    undone: Sequence[Event] = (
        TurnStarted("t2"),
        CommandGiven("t2-m1", (SentText("/undo"),)),
        CallOpened("t1-u1", "undo", ToolKind.EDIT, "Restore a", own=True),
        CallSettled("t1-u1", ToolResult(ok=True, text="", message="+1 −1")),  # noqa: RUF001
    )
    assert headings(document(*undone))[1:] == ["## You", "## Crow", "### Restore a (done)"]


def test_the_json_holds_every_record_as_it_is():
    events = [*asked("hällo"), ThoughtDelta("t1-m2", "hm", "p"), TextDelta("t1-m3", "ja"), ENDED]
    text = as_json(ENTRY, events)
    whole = json.loads(text)
    assert (whole["format"], whole["version"]) == ("crow-session", RECORD_VERSION)
    assert msgspec.convert(whole["session"], SessionEntry) == ENTRY
    kinds = type(events[0]) | UserSaid | ThoughtDelta | TextDelta | TurnEnded
    assert [msgspec.convert(event, kinds) for event in whole["events"]] == events
    assert "hällo" in text


def test_a_file_name_that_is_no_utf8_survives():
    entry = SessionEntry("1", "/a\udcff", (), "t", 0, 0)
    assert json.loads(as_json(entry, []))["session"]["cwd"] == "/a\udcff"
    assert markdown(entry, []).encode()
