"""The key `dev.crow/display`: what was encoded is decoded, and nothing that is not well-formed is shown."""

from typing import Any

import pytest

from crow.mcp import display
from crow.messages import Image
from crow.results import DiffBlock, DisplayBlock, ImageBlock, TextBlock, ToolResult

DIFF = DiffBlock("/project/a.txt", "modify", "one\n", "1\n")


def sent(*blocks: DisplayBlock, ok: bool = True, message: str = "+1 -1") -> display.Display | None:
    encoded = display.encode(ToolResult(ok=ok, text="told", message=message, display=blocks))
    return display.decode({"other": 1, display.KEY: encoded} if encoded is not None else {})


def test_diffs_and_short_texts_come_through():
    note = TextBlock("a short note")
    assert sent(DIFF, note) == display.Display("+1 -1", (DIFF, note))
    added, deleted = DiffBlock("/a", "add", "", "new\n"), DiffBlock("/b", "delete", "old\n", "")
    assert sent(added, deleted) == display.Display("+1 -1", (added, deleted))


def test_what_the_result_says_anyway_is_left_out():
    image = ImageBlock(Image("aGk=", "image/png"))
    assert sent(TextBlock("told"), TextBlock("x" * 3000), image) == display.Display("+1 -1")
    assert sent(message="told") is None
    assert sent(ok=False, message="why it failed") is None


def test_a_change_that_is_too_large_is_told_in_words():
    large = DiffBlock("/a", "add", "", "x" * (display.LARGEST + 1))
    assert sent(large) == display.Display("+1 -1")


def block(**changes: Any) -> dict[str, Any]:
    good = {"type": "diff", "path": "/a", "operation": "modify", "oldText": "a", "newText": "b"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def test_what_the_documentation_shows_is_understood():
    value = {"version": 1, "message": "+1 -1", "blocks": [block(), {"type": "text", "text": "note"}]}
    shown = display.decode({display.KEY: value})
    assert shown == display.Display("+1 -1", (DiffBlock("/a", "modify", "a", "b"), TextBlock("note")))


WRONG: list[Any] = [
    None,
    "text",
    [],
    [block()],
    {},
    {"version": 2, "blocks": []},
    {"version": "1", "blocks": []},
    {"version": 1, "blocks": {}},
    {"version": 1, "blocks": [5]},
    {"version": 1, "blocks": [{"type": "terminal", "terminalId": "t"}]},
    {"version": 1, "blocks": [block(path="relative.txt")]},
    {"version": 1, "blocks": [block(path="/a\0b")]},
    {"version": 1, "blocks": [block(path=None)]},
    {"version": 1, "blocks": [block(operation="destroy")]},
    {"version": 1, "blocks": [block(oldText=None)]},
    {"version": 1, "blocks": [block(newText=5)]},
    {"version": 1, "blocks": [block(newText="x" * (3 * display.LARGEST))]},
    {"version": 1, "message": 5},
]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:60])
def test_what_is_not_well_formed_is_not_shown(value: Any):
    assert display.decode({display.KEY: value}) is None


def test_no_key_is_nothing():
    assert display.decode(None) is None
    assert display.decode({}) is None
