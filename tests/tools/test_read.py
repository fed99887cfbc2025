"""`read`, apart from any conversation: what it gives for lines, limits and images."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crow.errors import WorkspaceError
from crow.files.local import LocalWorkspace
from crow.files.text import Line
from crow.messages import ToolCall
from crow.results import TextBlock, ToolResult
from crow.tools.read import MOST_LINES, Read, image_type, number_lines
from tests.support.recording import RecordingJournal


def read(folder: Path, **arguments: Any) -> ToolResult:
    async def run() -> ToolResult:
        call = ToolCall("c1", "read", msgspec.json.encode(arguments).decode())
        action = await Read().prepare(call, LocalWorkspace([str(folder)]))
        return await action.perform(RecordingJournal())

    return asyncio.run(run())


def test_lines_are_numbered_and_those_left_are_counted(tmp_path):
    (tmp_path / "a").write_text("".join(f"{number}\n" for number in range(1, 2501)))
    result = read(tmp_path, path="a")
    assert result.text.startswith("     1\t1\n     2\t2\n")
    assert result.text.endswith(f"  2000\t2000\n(500 more lines: go on with offset {MOST_LINES + 1})")
    assert result.message == "lines 1-2000 of 2500"
    assert read(tmp_path, path="a", offset=2499).text == "  2499\t2499\n  2500\t2500"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "(empty file)"),
        ("\n", "     1\t"),
        ("a", "     1\ta"),
        ("a\n\n", "     1\ta\n     2\t"),
        ("a\x0cb", "     1\ta\x0cb"),
    ],
)
def test_small_files(tmp_path, content, text):
    (tmp_path / "a").write_text(content)
    assert read(tmp_path, path="a").text == text


def test_a_line_behind_the_end_is_an_error_that_says_so(tmp_path):
    (tmp_path / "a").write_text("one\n")
    with pytest.raises(WorkspaceError, match=r"ends at line 1: .*line 2"):
        read(tmp_path, path="a", offset=2)


def test_long_lines_and_many_bytes_are_cut_and_say_so():
    text, last = number_lines([Line("x" * 2000, 5000), Line("y", 1)], 1)
    assert "… (line of 5000 characters, cut)" in text
    assert last == 2
    text, last = number_lines([Line("é" * 1000, 1000)] * 1000, 1)
    assert len(text.encode()) <= 256 * 1024
    assert last < 1000


def test_names_in_a_folder_cannot_hide_anything(tmp_path):
    for name in ("plain", "two\nlines", "\x1b[31mred", "exe\u202etxt"):
        (tmp_path / name).touch()
    result = read(tmp_path, path=".")
    assert sorted(result.text.split("\n")) == ["exe⟨U+202E⟩txt", "plain", "two⏎lines", "⟨U+001B⟩[31mred"]
    assert result.display == (TextBlock(result.text),)


def test_a_folder_with_very_many_names_is_listed_piece_by_piece(tmp_path):
    for number in range(1003):
        (tmp_path / f"{number:04}").touch()
    first = read(tmp_path, path=".")
    assert first.text.endswith("0999\n(3 more entries: go on with offset 1001)")
    assert first.message == "entries 1-1000 of 1003"
    assert read(tmp_path, path=".", offset=1001).text == "1000\n1001\n1002"
    assert read(tmp_path, path=".", offset=2, limit=1).text == "0001\n(1001 more entries: go on with offset 3)"
    with pytest.raises(WorkspaceError, match=r"1003 entries: .*entry 1004"):
        read(tmp_path, path=".", offset=1004)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"<svg", None),
        (b"", None),
    ],
)
def test_images_are_known_by_their_first_bytes(head, kind):
    assert image_type(head) == kind


def test_an_image_that_is_too_large_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * (5 * 1024 * 1024))
    with pytest.raises(WorkspaceError, match="too large for models"):
        read(tmp_path, path="a.png")
