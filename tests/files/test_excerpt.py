"""Some lines of a text, taken slice by slice: always what splitting the whole text would give."""

import io
import random

import pytest

from crow.errors import WorkspaceError
from crow.files import text as texts
from crow.files.text import Excerpt, Line, LineRange, excerpt_of, excerpt_of_file


def expected(text: str, wanted: LineRange) -> tuple[list[Line], int]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    bare = [line.removesuffix("\r") for line in lines]
    chosen = bare[wanted.first - 1 : wanted.first - 1 + wanted.most]
    return [Line(line[: wanted.longest], len(line)) for line in chosen], len(lines)


@pytest.mark.parametrize("seed", range(20))
def test_lines_are_those_of_the_split_text_wherever_slices_end(monkeypatch, seed):
    chance = random.Random(seed)
    for _ in range(200):
        monkeypatch.setattr(texts, "SLICE", chance.randint(1, 12))
        text = "".join(chance.choice(["a", "é", "🐦", "\n", "\n", "\r\n", "\r"]) for _ in range(chance.randint(0, 40)))
        wanted = LineRange(chance.randint(1, 12), chance.randint(1, 6), chance.randint(1, 5))
        assert excerpt_of(text, wanted) == Excerpt(*expected(text, wanted), text)
        for encoding in ("utf-8", "utf-8-sig", "utf-16"):
            found = excerpt_of_file(io.BytesIO(text.encode(encoding)), "a", wanted)
            assert (found.lines, found.total) == expected(text, wanted)


def test_what_is_no_unicode_is_read_as_latin_1_and_what_is_no_text_is_refused():
    found = excerpt_of_file(io.BytesIO(b"a" * 1000 + b"\nbr\xfccke\n"), "a", LineRange(2, 5, 100))
    assert found == Excerpt([Line("brücke", 6)], 2)
    with pytest.raises(WorkspaceError, match=r"a .*binary.*1,002 bytes"):
        excerpt_of_file(io.BytesIO(b"a" * 1000 + b"\0\n"), "a", LineRange(1, 5, 100))
