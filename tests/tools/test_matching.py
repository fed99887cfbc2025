"""Where an edit applies: exact before tolerant, one place or none, and what the new text becomes there."""

import pytest

from crow.diff import common_beginning
from crow.errors import WorkspaceError
from crow.tools.editing.matching import FileReplacement, TextEdit, apply, plan_edits
from crow.tools.editing.replacements import follow
from tests.support.work import counted, lines_run


def edited(text: str, *edits: TextEdit) -> str:
    return apply(text, plan_edits(text, edits).replacements)


def overlooked(text: str, edit: TextEdit) -> str:
    [note] = plan_edits(text, [edit]).overlooked
    return note


def refusal(text: str, *edits: TextEdit, reveal: bool = True) -> str:
    with pytest.raises(WorkspaceError) as refused:
        apply(text, plan_edits(text, edits, reveal=reveal).replacements)
    return str(refused.value)


# --- exact


def test_an_exact_match_is_taken_though_others_are_similar():
    text = "  x = 1\nx = 1 \n\tx = 1\n"
    assert edited(text, TextEdit("\tx = 1\n", "y\n")) == "  x = 1\nx = 1 \ny\n"
    assert plan_edits(text, [TextEdit("\tx = 1\n", "y\n")]).overlooked == ()


def test_several_matches_are_refused_with_their_lines():
    told = refusal("a\nb\na\n\na\n", TextEdit("a\n", "c\n"))
    assert told == (
        "The edit is ambiguous: its old text occurs 3 times, at lines 1, 3, 5. "
        "Add lines around it until it is unique, or set `all` to replace every one.\n"
        "     1\ta\n     2\tb\n     3\ta\n     4\t\n     5\ta"
    )
    assert "at lines 1, 1." in refusal("aaa", TextEdit("aa", "b"))  # overlapping ones can be meant, too
    assert "19, 20 and 80 more." in refusal("a\n" * 100, TextEdit("a\n", "c\n"))
    assert "1000 or more" in refusal("a" * 200_000, TextEdit("a" * 20_000, "c"))


def test_all_replaces_every_one():
    assert edited("a b a\r\na", TextEdit("a", "c", all=True)) == "c b c\r\nc"
    assert edited("aaaa", TextEdit("aa", "b", all=True)) == "bb"
    assert edited("a," * 10_000, TextEdit("a", "b", all=True)) == "b," * 10_000


def test_what_differs_only_in_its_line_ends_is_the_same_to_the_model():
    assert "at lines 1, 3" in refusal("a\nb\na\r\nb\r\n", TextEdit("a\nb", "c"))


def test_lines_are_counted_as_they_are_read():
    assert "at lines 1, 2" in refusal("1%\r2%\rx\nx\n", TextEdit("x", "y"))
    assert "The nearest match starts at line 2:\n     2\tvalue = 1" in refusal(
        "1%\r2%\r\nvalue = 1\r\n", TextEdit("valu = 1", "y")
    )


# --- several edits


def test_all_edits_refer_to_the_text_as_it_is():
    assert edited("one two", TextEdit("one", "two"), TextEdit("two", "three")) == "two three"


def test_all_edits_are_made_or_none():
    assert "Edit 2 " in refusal("one two", TextEdit("one", "1"), TextEdit("three", "3"))


def test_edits_may_share_surroundings_but_not_what_they_change():
    assert edited("a\nb\nc\n", TextEdit("a\nb\n", "A\nb\n"), TextEdit("b\nc\n", "b\nC\n")) == "A\nb\nC\n"
    told = refusal("a\nb\nc\n", TextEdit("a\nb\n", "A\nB\n"), TextEdit("b\nc\n", "x\nc\n"))
    assert told == (
        "Edits 1 and 2 overlap at line 2, and each makes something else of it. Nothing was changed. Make one edit of "
        "them."
    )


def test_insertions_at_one_place_keep_their_order():
    assert edited("a\nb\n", TextEdit("a\n", "a\n1\n"), TextEdit("\nb", "\n2\nb")) == "a\n1\n2\nb\n"


# --- tolerant


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "what"),
    [
        pytest.param(
            "say(\u201cit\u2019s\u201d) \u2014 now\n",
            'say("it\'s") - now',
            'say("it\'s fine") - now',
            "say(\u201cit\u2019s fine\u201d) \u2014 now\n",
            "look-alike characters",
            id="quotes and dashes of the file are kept",
        ),
        pytest.param(
            "say('x')\n",
            "say(\u2018x\u2019)",
            "say(\u2018y\u2019)",
            "say('y')\n",
            "look-alike characters",
            id="or those of the model",
        ),
        pytest.param("a\u00a0b\n", "a b", "a c", "a\u00a0c\n", "blanks inside lines", id="no-break space"),
        pytest.param("\x93x\x94\n", '"x"', '"y"', "\x93y\x94\n", "look-alike characters", id="windows quotes"),
        pytest.param(
            "one  \ntwo\t\nthree\n",
            "one\ntwo\nthree",
            "one\nTWO\nthree",
            "one  \nTWO\t\nthree\n",
            "blanks at the ends of lines",
            id="blanks of the file at line ends",
        ),
        pytest.param(
            "one\ntwo\n", "one \ntwo \n", "one \n2 \n", "one\n2\n", "blanks at the ends of lines", id="of the model"
        ),
        pytest.param(
            "def f():\n    a\n    b\n",
            "a\nb\n",
            "a\nif x:\n    c\nb\n",
            "def f():\n    a\n    if x:\n        c\n    b\n",
            "indentation",
            id="a block written without its indentation",
        ),
        pytest.param(
            "a\n  b\n",
            "    a\n      b",
            "    a\n      c\n        d",
            "a\n  c\n    d\n",
            "indentation",
            id="with too much",
        ),
        pytest.param(
            "\tif x:\n\t\ty\n",
            "    if x:\n        y\n",
            "    if x:\n        y\n            z\n    w\n",
            "\tif x:\n\t\ty\n\t\t\tz\n\tw\n",
            "indentation",
            id="blanks for tabs",
        ),
        pytest.param(
            "    if x:\n        y\n",
            "\tif x:\n\t\ty\n",
            "\tif x:\n\t\ty\n\t\t\tz\n",
            "    if x:\n        y\n            z\n",
            "indentation",
            id="tabs for blanks",
        ),
        pytest.param(
            "    a\n\n    b\n", "a\n\nb", "a\n\n\nb\nc", "    a\n\n\n    b\n    c\n", "indentation", id="blank lines"
        ),
        pytest.param(
            "x\r\n    a\r\n    b\r\n", "a\nb\n", "a\nc\n", "x\r\n    a\r\n    c\r\n", "indentation", id="line ends kept"
        ),
        pytest.param("x\n  last", "last\n", "end\n", "x\n  end", "indentation", id="no last line end"),
        pytest.param("  a\n  b\n", "a\nb\n", "", "", "indentation", id="taken away"),
        pytest.param(
            "        x = “a”  \n",
            'x = "a"\n',
            'x = "b"\n',
            "        x = “b”  \n",
            "look-alike characters, blanks at the ends of lines and indentation",
            id="all at once",
        ),
    ],
)
def test_what_is_overlooked_and_what_becomes_of_it(text, old, new, after, what):
    edit = TextEdit(old, new)
    assert edited(text, edit) == after
    assert overlooked(text, edit).endswith(f" by overlooking {what}.")


def test_a_tolerant_match_must_be_the_only_one():
    told = refusal("  a\nx\n    a\n", TextEdit("\ta\n", "b\n"))
    assert told == (
        "The edit is ambiguous: its old text is not there exactly, and by overlooking indentation it could be meant at "
        "lines 1, 3. Copy it exactly, with enough around it to be unique.\n"
        "     1\t  a\n     2\tx\n     3\t    a"
    )


def test_indents_that_do_not_fit_each_other_are_no_match():
    assert "does not apply" in refusal("  a\n      b\n", TextEdit("a\nb\n", "c\n"))


def test_blanks_alone_are_never_guessed():
    assert "does not apply" in refusal("a\n\nb\n", TextEdit("   \n", "x"))


# --- no match


def test_what_is_nearest_is_shown():
    text = "import os\n\ndef total(items):\n    return sum(items)\n\ndef other():\n    pass\n"
    assert refusal(text, TextEdit("def total(item):\n    return sum(item)\n", "x")) == (
        "The edit does not apply: its old text is not in the file. The nearest match starts at line 3:\n"
        "     3\tdef total(items):\n   old\tdef total(item):\n      \t              ^\n"
        "     4\t    return sum(items)\n   old\t    return sum(item)\n      \t                   ^\n"
        "Copy it from the file, without the numbers, and try again."
    )
    assert refusal(text, TextEdit("quite another thing altogether", "x")).endswith(
        "Nothing similar was found. Read it again."
    )


def test_a_file_that_was_never_read_is_not_quoted():
    told = refusal("SECRET=hunter2\n", TextEdit("SECRET=hunter3", "x"), reveal=False)
    assert told == "The edit does not apply: its old text is not in the file. Read it first."


def test_line_numbers_are_recognised():
    assert "leave them out" in refusal("one\ntwo\n", TextEdit("     1\tthree\n     2\tfour", "x"))
    assert edited("one\ntwo\n", TextEdit("     1\tone\n     2\ttwo", "     1\tone\n     2\t2")) == "one\n2\n"


@pytest.mark.parametrize("kind", ["different lines", "equal lines", "one long line", "blank lines"])
def test_large_files_take_bounded_time(kind):
    old = "".join(f"valeu_{number} = computed({number})\n" for number in range(1000, 1100))

    def refused(lines: int) -> str:
        text = {
            "different lines": "".join(f"value_{number} = compute({number * 7919})\n" for number in range(lines)),
            "equal lines": "value = compute(1)\n" * lines,
            "one long line": "value = compute(1) " * lines,
            "blank lines": "\n" * lines,
        }[kind]
        return refusal(text, TextEdit(old, "x"))

    assert lines_run(lambda: refused(8000)) < 5 * lines_run(lambda: refused(2000))
    assert "does not apply" in refused(20_000)


# --- in a text that has changed


def spot(text: str, old: str, new: str = "NEW") -> FileReplacement:
    start = text.index(old)
    return FileReplacement(start, start + len(old), new, 1)


def test_replacements_are_followed_by_their_lines():
    before = "a\nx\nb\nx\nc\n"
    replacements = [FileReplacement(2, 3, "1", 1), FileReplacement(6, 7, "2", 1)]
    now = "new\na\nx\nb, changed\nx\nc\n"
    moved = follow(replacements, before, now)
    assert moved is not None
    assert apply(now, moved) == "new\na\n1\nb, changed\n2\nc\n"
    assert follow(replacements, before, "a\nx, changed\nb\nx\nc\n") is None


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ("first\nbefore old after\nlast\nmore\n", "first\nbefore NEW after\nlast\nmore\n"),
        ("first\nBEFORE old AFTER\nlast\n", "first\nBEFORE NEW AFTER\nlast\n"),
        ("last\nbefore old after\nfirst\n", "last\nbefore NEW after\nfirst\n"),
        ("before old after", "before NEW after"),
        ("first\nbefore OLD after\nlast\n", None),
        ("old\nfirst\nbefore old after\nlast\n", None),
        ("", None),
    ],
)
def test_a_unique_text_is_followed_wherever_it_goes(now, after):
    before = "first\nbefore old after\nlast\n"
    moved = follow([spot(before, "old")], before, now)
    assert (None if moved is None else apply(now, moved)) == after


def test_replacements_that_changed_places_are_given_up():
    before = "one\ntwo\n"
    assert follow([spot(before, "one"), spot(before, "two")], before, "two\none\n") is None


@pytest.mark.parametrize(("one", "other"), [("", ""), ("a", ""), ("abc", "abd"), ("abc", "abc"), ("abc", "abcd")])
def test_common_beginnings(one, other):
    length = common_beginning(one, other)
    assert one[:length] == other[:length]
    assert one[length : length + 1] != other[length : length + 1] or length == min(len(one), len(other))


# --- bounded work


def test_lines_that_are_all_alike_take_linear_time():
    def refused(lines: int) -> None:
        assert "does not apply" in refusal("\n" * 3 * lines, TextEdit("\n" * lines + "z", "x"))
        assert "does not apply" in refusal("x\n" * 2 * lines, TextEdit("x \n" * lines + "z", "x"))
        assert "overlooking blanks at the ends of lines it" in refusal("x\n" * 2 * lines, TextEdit("x \n" * lines, "y"))

    assert lines_run(lambda: refused(800)) < 5 * lines_run(lambda: refused(200))
    refused(10_000)


def test_indents_that_never_fit_are_not_compared_for_ever():
    text, edit = "  x\n x\n" * 5000, TextEdit("\tx\n" * 5000, "y\n")
    with counted() as work:
        assert "too similar" in refusal(text, edit)
    assert work.lines < 1000 * 5000, "each line was compared with each"


def test_one_place_among_many_alike_lines_is_found():
    text = "\tx\n" * 2000 + "\ty\n" + "\tx\n" * 2000
    assert edited(text, TextEdit("x\ny\nx\n", "x\nz\nx\n")) == text.replace("y", "z")


def test_a_file_or_a_change_that_is_too_large_is_refused_in_words():
    assert "too large" in refusal("a" * (16 * 2**20 + 1), TextEdit("b", "c"))
    assert "more than 10,000 places" in refusal("a " * 10_001, TextEdit("a", "b", all=True))
    many = refusal("a b " * 6000, TextEdit("a", "c", all=True), TextEdit("b", "d", all=True))
    assert many.startswith("Edit 2 ")
    assert edited("a " * 10_000, TextEdit("a", "b", all=True)) == "b " * 10_000


def test_many_places_of_one_text_are_followed_at_once():
    def followed(places: int) -> int:
        text = "x" * 8_000_000 + "\n" + "a\n" * places
        plan = plan_edits(text, [TextEdit("a", "b", all=True)])
        with counted() as work:
            moved = follow(plan.replacements, text, "new\n" + text)
        assert moved is not None
        assert apply("new\n" + text, moved) == "new\n" + text.replace("a", "b")
        return work.lines

    assert followed(10_000) < 15 * followed(1000)
