"""What is left to be seen of output that rewrites itself: single lines, several lines, whole screens."""

import pytest

from crow.commands.terminal_text import EscapeFilter, without_escapes
from tests.support.work import lines_run


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        # one line
        ("[    ] Starting\r[ ok ]\n", "[ ok ] Starting\n"),
        ("0% [Working]\r            \rDone\n", "Done\n"),
        ("50%\r\x1b[K100%\r\x1b[K\n", "\n"),
        ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 3 packages\n", "added 3 packages\n"),
        ("a long line\x1b[5G\x1b[Kend\n", "a loend\n"),
        ("abcdef\x1b[3D__\n", "abc__f\n"),
        ("ab\x1b[3Ccd\n", "ab   cd\n"),
        ("xxxx\x1b[2Kyy\r\n", "    yy\n"),
        ("12345\x1b[2G\x1b[1K\n", "  345\n"),
        ("kept   \n", "kept   \n"),
        # several lines
        ("a 10%\nb 10%\n\x1b[2Aa done\nb done\n", "a done\nb done\n"),
        ("web: pull\ndb: pull\n\x1b[2A\x1b[2K\rweb: done\x1b[1B\x1b[1A\x1b[2B\r", "web: done\ndb: pull\n"),
        ("one\ntwo\nthree\n\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2K\x1b[Gsum\n", "one\nsum\n\n"),
        ("a\nb\nc\x1b[2;1Hx\x1b[Jy\n", "a\nxy\n"),
        ("a\nb\x1b[1FA\x1b[1EB\n", "A\nB\n"),
        ("head\n\x1b7first\x1b8second\n", "head\nsecond\n"),
        ("head\n\x1b[sfirst\x1b[u2nd\n", "head\n2ndst\n"),
        ("a\nb\x1bMA\n", "aA\nb"),
        ("a\nb\x1b[1dA\n", "aA\nb"),
        # screens
        ("before\n\x1b[H\x1b[2Jafter\n", "before\nafter\n"),
        ("\x1b[?1049h\x1b[2J\x1b[Hpage\x1b[?1049l", "page"),
        ("\x1b[3;4Hx\n", "\n\n   x\n"),
        # what is out of reach has scrolled off
        ("first\n" + "line\n" * 100 + "\x1b[200A\rlast", "first\n" + "line\n" * 61 + "last\n" + "line\n" * 38),
    ],
)
def test_the_final_state_is_what_a_person_would_see(written, seen):
    assert without_escapes(written) == seen


TICKS = "".join(f"\x1b[3A\x1b[2K\rinstall {n}%\n\x1b[2K\rbuild {n}%\n\x1b[2K\rtest {n}%\n" for n in range(101))


def test_a_list_that_is_redrawn_a_hundred_times_is_its_last_state():
    text = without_escapes("begin\n\n\n\n" + TICKS + "end\n")
    assert text == "begin\ninstall 100%\nbuild 100%\ntest 100%\nend\n"


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[A",
        "\x1b[999Gx\n",
        "\x1b[40;200Hx",
        "\x1b[2J\x1b[40;1Hx",
        "\x1b[1K",
        "\x1b[2Ky",
        "\x1b[1J",
        "\x1b[H\x1b[Ja\n",
        "\x1b7\x1b8",
        "\x1b[40H\n",
        "\ry",
        "\x01\r",
        "ab\b\b",
    ],
)
def test_whatever_is_moved_and_erased_costs_no_more_than_its_length(hostile):
    """Behind a long line, which none of it may go over each time, and twice as often: at most twice the work."""
    length = 20_000 // len(hostile)
    once, twice = (lambda n=n: without_escapes("x" * 50_000 + hostile * n) for n in (length, 2 * length))
    assert lines_run(twice) <= 2.2 * lines_run(once) + 500
    assert len(twice()) <= 3 * (50_000 + 2 * len(hostile * length)), "what is written grows no further than this"


def test_escape_sequences_are_taken_out_of_pieces_however_they_are_cut():
    written = (
        b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ 10%\r20%\x1b(B\x1b=\n\xff\n"
    )
    for size in range(1, len(written)):
        escapes = EscapeFilter()
        pieces = [written[start : start + size] for start in range(0, len(written), size)]
        assert b"".join(map(escapes.feed, pieces)) == b"red link 10%\r20%\n\xff\n", size


def test_what_only_begins_like_an_escape_sequence_is_not_held_for_ever():
    escapes = EscapeFilter()
    assert escapes.feed(b"\x1b]" + b"x" * 3000) == b""
    assert escapes.feed(b"y" * 3000 + b"\nnext") != b""
