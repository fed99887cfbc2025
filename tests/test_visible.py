"""Nothing shown for approval can hide."""

import sys
import unicodedata

import pytest

from crow.visible import hidden_in, one_line


@pytest.mark.rule("R89")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Read src/app.py", "Read src/app.py"),
        ("grüße 世界 🐦", "grüße 世界 🐦"),
        ("a\nb", "a⏎b"),
        ("a\tb", "a b"),
        ("a\rb", "a⟨U+000D⟩b"),
        ("\x1b[31mred", "⟨U+001B⟩[31mred"),
        ("gpj.\u202etxt", "gpj.⟨U+202E⟩txt"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\ufeffmark", "⟨U+FEFF⟩mark"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("half \ud800", "half ⟨U+D800⟩"),
        ("nul\0", "nul⟨U+0000⟩"),
        ("note\U0001d173", "note⟨U+1D173⟩"),
        ("short\U0001bca0", "short⟨U+1BCA0⟩"),
        ("hiero\U00013430\U00013438", "hiero⟨U+13430⟩⟨U+13438⟩"),
        ("number\u0600", "number⟨U+0600⟩"),
        ("blank\u2800\u3164\uffa0\u115f\u1160", "blank⟨U+2800⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+115F⟩⟨U+1160⟩"),
        ("no\xa0break", "no⟨U+00A0⟩break"),
        ("", ""),
    ],
)
def test_one_line(text, shown):
    assert one_line(text) == shown


def test_what_is_long_is_cut_and_says_so():
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 300 + "…"
    assert one_line("abcdef", longest=3) == "abc…"


def test_every_character_that_cannot_be_seen_is_made_visible():
    unseen = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]
    assert len(unseen) > 2000
    assert [f"U+{ord(character):04X}" for character in unseen if one_line(character) == character] == []


def test_letters_marks_and_signs_are_left_alone():
    changed = [
        number
        for number in range(sys.maxunicode + 1)
        if one_line(chr(number)) != chr(number) and unicodedata.category(chr(number))[0] not in "CZ"
    ]
    fillers = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    selectors = {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
    assert set(changed) - selectors == fillers


@pytest.mark.parametrize(
    "text",
    [
        *("a\u202eb", "a\u2066b", "a\u200bb", "a\u200db", "a\u2060b", "a\ufeffb", "a\U000e0041", "a\x1b[2Kb", "a\0"),
        *("a\x08b", "a\x0bb", "a\x7f", "a\x9b", "a\u2028b", "\ud800", "a\u061cb", "line\n\ufeffx"),
    ],
)
def test_what_hides_in_a_text_is_noticed(text):
    assert hidden_in(text)


@pytest.mark.parametrize("text", ["", "plain\ttext\r\nwith\flines\n", "grüße 世界 🐦 ❤\ufe0f", "\ufeffmark", "a\xa0b"])
def test_usual_texts_hide_nothing(text):
    assert not hidden_in(text)
