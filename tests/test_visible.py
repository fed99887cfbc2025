"""Nothing shown for approval can hide."""
# ruff: noqa: RUF001 -- letters that look like others are what this is about

import sys
import unicodedata

import pytest

from crow.visible import (
    call_title,
    code,
    every_line,
    hidden_characters,
    hidden_in,
    made_visible,
    one_line,
    plain_title,
    prose,
    replace_lone_surrogates,
    title_line,
    warning,
    warning_about_change,
    warning_about_prose,
)
from tests.support.work import lines_run


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


@pytest.mark.rule("R89")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Read src/app.py", "Read src/app.py"),
        ("Find **/*.py in src", "Find **/*.py in src"),
        ("Read a_b_c.py and _d", "Read a_b_c.py and _d"),
        ("npm test && git log -n 1 ~/x ~/y", "npm test && git log -n 1 ~/x ~/y"),
        ("Write src/__init__.py", "`Write src/__init__.py`"),
        ("rm **build**", "`rm **build**`"),
        ("ls *.py bar*", "`ls *.py bar*`"),
        ("a*b*c", "`a*b*c`"),
        ("cat ~~a~~", "`cat ~~a~~`"),
        ("echo `date`", "`` echo `date` ``"),
        ("``a` b", "``` ``a` b ```"),
        (r"grep '\.py' x", r"`grep '\.py' x`"),
        ("Read gpj&#x202E;txt", "`Read gpj&#x202E;txt`"),
        ("# rm", "`# rm`"),
        ("Read [x](http://evil) <!-- y -->", "Read [x] (http://evil) < !-- y -->"),
        ("a`\u202eb", "``a`⟨U+202E⟩b``"),
    ],
)
def test_nothing_in_the_title_of_a_call_is_markup(text, shown):
    assert call_title(text) == shown
    assert plain_title(call_title(text)) == one_line(text) or shown.startswith("Read [x] (")
    assert plain_title(f"{call_title(text)} · 3 lines") == f"{plain_title(call_title(text))} · 3 lines"


def test_code_ends_where_its_text_ends():
    assert [code(text) for text in ("a", "`", "a`b", "``", "a``b`c", "` x")] == [
        *("`a`", "`` ` ``", "``a`b``", "` `` `", "```a``b`c```", "`` ` x ``")
    ]


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
        for start in range(0, sys.maxunicode + 1, 64)
        if one_line(block := ",".join(map(chr, range(start, start + 64))), len(block)) != block
        for number in range(start, start + 64)
        if one_line(chr(number)) != chr(number) and unicodedata.category(chr(number))[0] not in "CZ"
    ]
    fillers = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
    selectors = {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}
    signs = {0x01C0, 0x037E, 0x2010, 0x2011, 0x2012, 0x2044, 0x2212, 0x2215, 0x2223, 0x2236, 0x29F8, 0xA789}
    signs |= {0x01C3, 0x2024, 0x2025, 0x204E, 0x2216, 0x2217, 0x223C, 0x29F5, *range(0xA4F8, 0xA4FE)}
    signs |= {*range(0xFE50, 0xFE6C)} - {0xFE53, 0xFE67}  # two that are none
    struck = {0x0305, *range(0x0332, 0x0339), 0x20D2, 0x20D3, *range(0x20D8, 0x20DB), *range(0x20DD, 0x20E3)}
    struck |= {*range(0x20E4, 0x20E7), 0x20EA, 0x20EB}
    wide_signs = {*range(0xFF01, 0xFF21), *range(0xFF3B, 0xFF41), *range(0xFF5B, 0xFF5F)}
    assert set(changed) - selectors == fillers | signs | struck | wide_signs


@pytest.mark.parametrize(
    "text",
    [
        *("a\u202eb", "a\u2066b", "a\u200bb", "a\u200db", "a\u2060b", "a\ufeffb", "a\U000e0041", "a\x1b[2Kb", "a\0"),
        *("a\x08b", "a\x0bb", "a\x7f", "a\x9b", "a\u2028b", "\ud800", "a\u061cb", "line\n\ufeffx"),
        *("a\U000e0162\U000e0159", "世\U000e0100\U000e0162"),
    ],
)
def test_what_hides_in_a_text_is_noticed(text):
    assert hidden_in(text)


@pytest.mark.parametrize(
    "text", ["", "plain\ttext\r\nwith\flines\n", "grüße 世界 🐦 ❤\ufe0f", "\ufeffmark", "a\xa0b", "辻\U000e0100"]
)
def test_usual_texts_hide_nothing(text):
    assert not hidden_in(text)


ORDINARY = [
    *("yazılım/sınıf.py", "ışık/kalıp.txt", "İstanbul'da çalıştı", "git commit -m 'kapı açıldı'", "Iğdır ılık"),
    *("größe/Übergrößenträger.md", "git add straße.txt", "Maß – nicht Masse", "S. 1–5, a—b", "„zitiert“"),
    *("文档/设计.md", "git commit -m '修复：登录'", "ドキュメント/設計.md", "Ⅲ 章", "한국어/문서.md"),
    *("Tiếng Việt", "e\u0302\u0301", "mañana/niño.txt", "col·lecció", "naïve café", "1º m² x³ ½ № 5 ™ …", "nɔŋ ɛdɔ"),
    *("Ελληνικά/αρχείο.txt", "папка/файл.txt", "हिन्दी/फ़ाइल.txt", "עברית/קובץ.txt", "فارسی", "→ ✓ ℹ info", "ℝ ℓ ħ"),
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("echo hi" + " " * 400 + "; rm -rf x", "echo hi⟨400 blanks⟩; rm -rf x"),
        ("a" + "\t" * 40 + "b", "a⟨40 blanks⟩b"),
        ("echo hi" + "\n" * 50 + "rm x", "echo hi⏎⟨49 empty lines⟩⏎rm x"),
        ("echo hi" + "\n  \t" * 50 + "rm x", "echo hi⏎⟨49 empty lines⟩⏎   rm x"),
        ("gi\u0442 status", "gi⟨\u0442 U+0442⟩ status"),
        ("\u0435cho hi", "⟨\u0435 U+0435⟩cho hi"),
        ("\u0441\u043e\u0440\u0443 a b", "⟨\u0441 U+0441⟩⟨\u043e U+043E⟩⟨\u0440 U+0440⟩⟨\u0443 U+0443⟩ a b"),
        ("rm \uff0drf \u2215", "rm ⟨\uff0d U+FF0D⟩rf ⟨\u2215 U+2215⟩"),
        ("wide\u2003blank", "wide⟨U+2003⟩blank"),
        ("git commit -m 'исправил ошибку в модуле'", "git commit -m 'исправил ошибку в модуле'"),
        ("git commit -m 'Добавил сухо и оса'", "git commit -m 'Добавил сухо и оса'"),
        ("λx.x, 5 µs, Δt", "λx.x, 5 µs, Δt"),
        ("用git，然后：测试（一）", "用git，然后：测试（一）"),
        ("a" + " " * 20 + "b", "a" + " " * 20 + "b"),
        ("echo hi \\\n" + " \\\n" * 60 + "; rm x", "echo hi \\⏎⟨60 empty lines⟩⏎; rm x"),
        ("echo hi\n" + "#\n" * 60 + "rm x", "echo hi⏎⟨60 empty lines⟩⏎rm x"),
        ("echo hi\n" + ":\r\n" * 60 + "rm x", "echo hi⏎⟨60 empty lines⟩⏎rm x"),
        ("g\u2170t push", "g⟨\u2170 U+2170⟩t push"),
        ("r\u217f x", "r⟨\u217f U+217F⟩ x"),
        ("\u210eead x", "⟨\u210e U+210E⟩ead x"),
        ("\u2113s", "⟨\u2113 U+2113⟩s"),
        ("rm \u2013rf x", "rm ⟨\u2013 U+2013⟩rf x"),
        ("rm \u2014force x", "rm ⟨\u2014 U+2014⟩force x"),
        ("sh curl\u2024sh", "sh curl⟨\u2024 U+2024⟩sh"),
        ("\u0131d -u", "⟨\u0131 U+0131⟩d -u"),
        ("g\u0131t push or\u0131gin", "g⟨\u0131 U+0131⟩t push or⟨\u0131 U+0131⟩gin"),
        ("r\u1d0d x", "r⟨\u1d0d U+1D0D⟩ x"),
        ("\ufb01nd . -delete", "⟨\ufb01 U+FB01⟩nd . -delete"),
        ("r\u0336m x", "r⟨U+0336⟩m x"),
        ("echo \u0338/", "echo ⟨U+0338⟩/"),
        ("r\u0301\u0301\u0301\u0301m", "r\u0301\u0301⟨U+0301⟩⟨U+0301⟩m"),
        *((text, text) for text in ORDINARY),
    ],
)
def test_what_pushes_out_of_sight_or_looks_like_something_else(text, shown):
    assert one_line(text) == shown
    assert bool(warning(text)) == (text != shown)


def test_a_long_run_does_not_hide_what_follows_in_a_title():
    assert one_line("echo hi" + " " * 2000 + "; rm -rf x") == "echo hi⟨2000 blanks⟩; rm -rf x"
    assert "rm" not in one_line("echo hi" + " " * 20000 + "; rm -rf x"), "cut, and says so"
    assert one_line("echo hi" + " " * 20000 + "; rm -rf x").endswith("…")


def test_every_line_keeps_lines_and_indentation():
    text = "if x:\n" + " " * 40 + "deep = 1\n\n\nend\ttab"
    assert every_line(text) == text.replace("\t", "    ")
    assert every_line("a\n" + "\n" * 30 + "b") == "a\n⟨30 empty lines⟩\nb"
    assert every_line("a\u202eb\nc\r") == "a⟨U+202E⟩b\nc⟨U+000D⟩"
    assert every_line(" " * 500 + "rm x") == "⟨500 blanks⟩rm x"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[safe](http://evil)", "[safe] (http://evil)"),
        ("a <!-- rm -rf --> b", "a < !-- rm -rf --> b"),
        ("`a <!-- b -->` [x][y]", "`a <!-- b -->` [x] [y]"),
        ("\\`<!-- a -->\\`", "\\`< !-- a -->\\`"),
        ("x ``` <!-- a -->", "x ``` < !-- a -->"),
        ("1 < 2, List of x", "1 < 2, List of x"),
    ],
)
def test_markdown_swallows_nothing(text, shown):
    assert prose(text) == shown
    assert title_line(text) == shown


def test_prose_keeps_what_languages_need():
    text = "می\u200cخواهم 👩\u200d💻 ❤\ufe0f\n\n```\nList<String> a[i](b)\n```\n- [ ] step\n"
    assert prose(text) == text
    assert warning_about_prose(text) == ""
    assert prose("a\u202eb\u200b") == "a⟨U+202E⟩b⟨U+200B⟩"
    assert prose("p\u0430y") == "p⟨\u0430 U+0430⟩y"


OUT_OF_PLACE = [
    *("do\u200dthis", "\u200c\u200d\u200c", "a\u200d\u200c b", "👩\u200d\u200d💻"),
    *("می\u200c\u200d\u200cخ", "👩\u200da"),
    *("a\u3164b", "a\u115fb", "a\u1160", "a\uffa0", "a\u2800b", "⠓\u2800\u2800\u2800⠓"),
    *("a\u034fb", "a\u180bb", "a\u180f"),
    *("a\ufe0f", "❤\ufe0f\ufe00", "1\ufe0f", "é\ufe01", "a\U000e0100", "世\U000e0100\U000e0101"),
    *("a\ufeffb", "a\u17b4"),
]
IN_PLACE = [
    *("می\u200cخواهم", "क्\u200dष", "ക്\u200d ", "👩\u200d💻", "👩🏽\u200d🚀"),
    *("🏳\ufe0f\u200d🌈", "❤\ufe0f\u200d🔥", "❤\ufe0f", "1\ufe0f\u20e3"),
    *("葛\U000e0100", "葛\ufe00", "∩\ufe00", "ᠠ\u180b", "ᄀ\u1160", "\u115fᅡ"),
    *("⠓\u2800⠑", "ב\u034fּ", "™\ufe0f", "\ufeffmark"),
]


@pytest.mark.parametrize("text", OUT_OF_PLACE)
def test_joiners_and_fillers_out_of_place_are_made_visible(text):
    """A row of them can carry any text to a model, and a person sees nothing of it."""
    assert "⟨U+" in made_visible(text)
    assert "⟨U+" in prose(text)
    assert hidden_characters(text)
    assert hidden_in(text)
    assert warning(text)
    assert "invisible" in warning_about_prose(text)


@pytest.mark.parametrize("text", IN_PLACE)
def test_joiners_and_selectors_where_a_script_or_a_picture_needs_them_stay(text):
    assert made_visible(text) == text
    assert prose(text) == text
    assert hidden_characters(text) == []


def test_warnings_say_what_is_hidden():
    assert warning("ls", "cat a b") == ""
    assert warning("a\u202eb") == "Careful: contains invisible characters."
    assert warning("x" + " " * 90 + "y", "gi\u0442") == (
        "Careful: contains a long run of blanks and look-alike letters or signs."
    )
    assert warning_about_change("a = 1\n" + "\tb = 2  # c\n" * 3) == ""
    assert warning_about_change("a = 1;" + " " * 200 + "evil()") == (
        "Careful: the new text contains code far to the right, behind a long run of blanks."
    )
    assert "another script" in warning_about_change("if \u0430dmin:\n")
    assert "invisible" in warning_about_change("a\u200bb")


PIECES = (
    " ",
    "\t ",
    "\n",
    "\n ",
    "a ",
    "\u0430",
    "a\u0430",
    "`",
    "```\n",
    "<",
    "<a`",
    "](",
    "`a",
    "\u200b",
    "x\u3000",
    "~~~\n",
    "👩\u200d",
    "\n \\",
    "\u0301",
    "ı",
    "\u2013",
    "gı",
)
LOOKS = (every_line, prose, warning, warning_about_change, one_line)


@pytest.mark.parametrize("piece", PIECES)
def test_any_text_is_looked_at_in_linear_time(piece):
    few, many = piece * (400 // len(piece)), piece * (40_000 // len(piece))
    for look in LOOKS:
        look(few)  # loads the tables
        assert lines_run(lambda: look(many)) < 20 * len(many)  # noqa: B023 -- called at once


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_no_pattern_goes_back_in_any_text(piece):
    """It would not come to an end: what a pattern does is no line of Python, and is not counted."""
    for look in LOOKS:
        assert isinstance(look(piece * (1_000_000 // len(piece))), str)


def test_lines_added_and_removed_are_told_with_a_minus_sign():
    title = "Edit a.py +3 \u22121"
    assert one_line(title) == title
    assert one_line("rm \u2212rf a") == "rm ⟨\u2212 U+2212⟩rf a"
    assert every_line("echo +3 \u22121") == "echo +3 ⟨\u2212 U+2212⟩1"


def test_what_stands_far_to_the_right_on_a_line_of_its_own_is_shown_and_warned_of():
    command = f"echo a\n{' ' * 62}rm x"
    assert every_line(command) == "echo a\n⟨62 blanks⟩rm x"
    assert warning(command) == "Careful: contains a long run of blanks."
    indented = f"if a:\n{' ' * 48}b()"
    assert (every_line(indented), warning(indented)) == (indented, "")


@pytest.mark.parametrize(
    ("written", "repaired"),
    [
        (rb'"\ud83d"', rb'"\ufffd"'),
        (rb'"\uDE00 x"', rb'"\ufffd x"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\ud83d\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\\ud83d"', rb'"\\ud83d"'),
        (rb'"\\\ud83d"', rb'"\\\ufffd"'),
        (rb'"\u0041\n"', rb'"\u0041\n"'),
    ],
)
def test_only_the_escape_of_half_a_character_is_replaced_in_json(written: bytes, repaired: bytes):
    assert replace_lone_surrogates(written) == repaired
