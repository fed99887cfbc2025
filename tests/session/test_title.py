"""What a session is called."""

import pytest

from crow.events import Sent, SentLink, SentMedia, SentResource, SentText
from crow.session.journal import LONGEST, title_of

WORDS = "Please mend the parser so that it takes every line, however long it may be, and add the tests for that"
LINK = SentLink("file:///a/b.py", "b.py")
RESOURCE = SentResource("file:///a/c.py", "x = 1")


@pytest.mark.parametrize(
    ("sent", "title"),
    [
        ([SentText("Mend it")], "Mend it"),
        ([SentText("\n\n  Mend \t it \r\nnow")], "Mend it"),
        ([SentText("```\ncode\n```\nWhat is this?")], "What is this?"),
        ([SentText("~~~py\nx = 1")], "x = 1"),
        ([SentText("   "), SentText("Second")], "Second"),
        ([LINK, SentText("Look at this")], "Look at this"),
        ([LINK], "b.py"),
        ([SentLink("file:///a/b.py", "b.py", title="The page")], "The page"),
        ([SentText(" "), RESOURCE], "c.py"),
        ([SentMedia("image", "AA==", "image/png")], "Image"),
        ([SentMedia("image", "AA==", "image/png", "file:///a/shot.png")], "shot.png"),
        ([SentText("a\u202eb")], "a⟨U+202E⟩b"),
        ([SentText("# Fix **the** `parser`")], "Fix the parser"),
        ([SentText("---\n- [ ] see [the docs](https://example.org)")], "see the docs"),
        ([SentText("> 1. quoted")], "quoted"),
        ([SentText("`__init__.py` uses *args and snake_case * 2")], "__init__.py uses *args and snake_case * 2"),
        ([SentText("???")], "???"),
        ([SentText("\n")], "Untitled"),
        ([], "Untitled"),
    ],
)
def test_the_first_line_or_the_name_of_what_was_attached(sent: list[Sent], title: str):
    assert title_of(sent) == title


def test_a_long_line_is_cut_between_two_words():
    title = title_of([SentText(WORDS)])
    assert title.endswith("…")
    assert WORDS.startswith(title[:-1] + " ")
    assert len(title) <= LONGEST


def test_a_line_without_words_is_cut_anyway():
    assert len(title_of([SentText("x" * 1_000_000)])) <= LONGEST
