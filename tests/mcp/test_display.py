"""The key `dev.crow/display`: what was encoded is decoded, and nothing that is not well-formed is shown."""

from pathlib import Path
from typing import Any

import pytest

from crow.mcp import results
from crow.messages import Image
from crow.results import DiffBlock, DisplayBlock, ImageBlock, TextBlock, ToolResult
from crow.visible import HIDES_SOMETHING

ROOTS = ["/"]
DIFF = DiffBlock("/project/a.txt", "modify", "one\n", "1\n")


def sent(*blocks: DisplayBlock, ok: bool = True, message: str = "+1 -1") -> results.Display | None:
    encoded = results.encode(ToolResult(ok=ok, text="told", message=message, display=blocks))
    return results.decode({"other": 1, results.KEY: encoded} if encoded is not None else {}, ROOTS)


def test_diffs_and_short_texts_come_through():
    note = TextBlock("a short note")
    assert sent(DIFF, note) == results.Display("+1 -1", (DIFF, note))
    added, deleted = DiffBlock("/a", "add", "", "new\n"), DiffBlock("/b", "delete", "old\n", "")
    assert sent(added, deleted) == results.Display("+1 -1", (added, deleted))


def test_what_the_result_says_anyway_is_left_out():
    image = ImageBlock(Image("aGk=", "image/png"))
    assert sent(TextBlock("told"), TextBlock("x" * 3000), image) == results.Display("+1 -1")
    assert sent(message="told") is None
    assert sent(ok=False, message="why it failed") is None


def test_a_change_that_is_too_large_is_told_in_words():
    large = DiffBlock("/a", "add", "", "x" * (results.LARGEST + 1))
    assert sent(large) == results.Display("+1 -1")


def block(**changes: Any) -> dict[str, Any]:
    good = {"type": "diff", "path": "/a", "operation": "modify", "oldText": "a", "newText": "b"}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def test_what_the_documentation_shows_is_understood():
    value = {"version": 1, "message": "+1 -1", "blocks": [block(), {"type": "text", "text": "note"}]}
    shown = results.decode({results.KEY: value}, ROOTS)
    assert shown == results.Display("+1 -1", (DiffBlock("/a", "modify", "a", "b"), TextBlock("note")))


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
    {"version": 1, "blocks": [block(path="/a\u202eb")]},
    {"version": 1, "blocks": [block(path="/a\n")]},
    {"version": 1, "blocks": [block(path=None)]},
    {"version": 1, "blocks": [block(operation="destroy")]},
    {"version": 1, "blocks": [block(oldText=None)]},
    {"version": 1, "blocks": [block(newText=5)]},
    {"version": 1, "blocks": [block(newText="x" * (3 * results.LARGEST))]},
    {"version": 1, "blocks": [block(path="/" + "a/" * 100_000)]},
    {"version": 1, "blocks": [block(operation="delete")]},
    {"version": 1, "blocks": [block()] * (results.MOST_BLOCKS + 1)},
    {"version": 1, "message": 5},
]


@pytest.mark.parametrize("value", WRONG, ids=lambda value: repr(value)[:60])
def test_what_is_not_well_formed_is_not_shown(value: Any):
    assert results.decode({results.KEY: value}, ROOTS) is None


def test_no_key_is_nothing():
    assert results.decode(None, ROOTS) is None
    assert results.decode({}, ROOTS) is None


def decoded(root: Path, *blocks: dict[str, Any], message: str = "") -> results.Display | None:
    return results.decode({results.KEY: {"version": 1, "message": message, "blocks": blocks}}, [str(root)])


def test_a_diff_of_what_lies_outside_the_sessions_folders_is_left_out(tmp_path: Path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "out").symlink_to("/etc")
    outside = [str(root), "/etc/passwd", f"{root}/../secret", f"{root}-2/a", f"{root}/out/passwd"]
    note = {"type": "text", "text": "note"}
    shown = decoded(root, note, *(block(path=path) for path in outside))
    assert shown == results.Display("", (TextBlock("note"),))


def test_a_path_is_shown_without_detours(tmp_path: Path):
    shown = decoded(tmp_path, block(path=f"{tmp_path}/a/../b/./c"))
    assert shown == results.Display("", (DiffBlock(f"{tmp_path}/b/c", "modify", "a", "b"),))


def test_what_deceives_the_eye_is_shown_as_it_is_and_that_is_said(tmp_path: Path):
    path = f"{tmp_path}/a"
    shown = decoded(tmp_path, block(path=path, newText="b\u202e"), message="+1\u202e")
    assert shown == results.Display(
        "+1⟨U+202E⟩", (DiffBlock(path, "modify", "a", "b\u202e"), TextBlock(HIDES_SOMETHING))
    )
    assert decoded(tmp_path, {"type": "text", "text": "\u200b"}) == results.Display(
        "", (TextBlock("\u200b"), TextBlock(HIDES_SOMETHING))
    )
