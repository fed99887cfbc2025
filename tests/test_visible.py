"""Nothing shown for approval can hide."""

import pytest

from crow.visible import one_line


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
        ("", ""),
    ],
)
def test_one_line(text, shown):
    assert one_line(text) == shown


def test_what_is_long_is_cut_and_says_so():
    assert one_line("x" * 300) == "x" * 300
    assert one_line("x" * 301) == "x" * 300 + "…"
    assert one_line("abcdef", longest=3) == "abc…"
