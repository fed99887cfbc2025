"""Files of every kind, an edit for each, and the bytes that it must give. Worked out apart from the code under test."""

from typing import NamedTuple


class FileCase(NamedTuple):
    content: bytes
    old: str
    new: str
    expected: bytes


ENCODINGS = {
    "utf-8": (b"", "utf-8"),
    "utf-8 with mark": (b"\xef\xbb\xbf", "utf-8"),
    "utf-16 le": (b"\xff\xfe", "utf-16-le"),
    "utf-16 be": (b"\xfe\xff", "utf-16-be"),
    "utf-32 le": (b"\xff\xfe\0\0", "utf-32-le"),
    "utf-32 be": (b"\0\0\xfe\xff", "utf-32-be"),
    "latin-1": (b"", "latin-1"),
}
LINES = ("def größe():", "    return 1", "", "# ende", "last")
ENDINGS = {
    "lf": ("\n",) * 5,
    "crlf": ("\r\n",) * 5,
    "cr": ("\r",) * 5,
    "mixed": ("\r\n", "\n", "\r", "\r\n", "\n"),
    "crlf, one lf": ("\r\n", "\n", "\r\n", "\r\n", "\r\n"),
}


def _systematic() -> dict[str, FileCase]:
    """Every encoding with every line ending, with and without the last one; a line changed and one put in."""
    cases: dict[str, FileCase] = {}
    for encoding, (mark, codec) in ENCODINGS.items():
        for ending, ends in ENDINGS.items():
            for final in (True, False):
                used = ends if final else (*ends[:-1], "")
                before = "".join(map("".join, zip(LINES, used, strict=True)))
                # The new line replaces the first two: each keeps its end, the third gets that of the last replaced.
                changed = ("def größe():", used[0], "    return 2", used[1], "    # é", used[1])
                after = "".join(changed) + "".join(map("".join, zip(LINES[2:], used[2:], strict=True)))
                name = f"{encoding}, {ending}{'' if final else ', no last line end'}"
                cases[name] = FileCase(
                    mark + before.encode(codec),
                    "def größe():\n    return 1\n",
                    "def größe():\n    return 2\n    # é\n",
                    mark + after.encode(codec),
                )
    return cases


def _one(content: bytes, old: str = "old", new: str = "new") -> FileCase:
    return FileCase(content, old, new, content.replace(old.encode(), new.encode(), 1))


SPECIAL: dict[str, FileCase] = {
    "one line without end": _one(b"old"),
    "one line": _one(b"old\n"),
    "one line, crlf": _one(b"old\r\n"),
    "only mark and text": _one(b"\xef\xbb\xbfold"),
    "two marks": _one(b"\xef\xbb\xbf\xef\xbb\xbfold\n"),
    "a mark in the middle": _one(b"a\xef\xbb\xbfb old\n"),
    "form feed": _one(b"a\x0cb\nold\n\x0c\n"),
    "vertical tab": _one(b"a\x0bb\nold\n"),
    "next line": _one("a\x85b\nold\x85\n".encode()),
    "line separator": _one("a\u2028b\nold\u2029\n".encode()),
    "file and group separators": _one(b"a\x1cb\x1dc\x1ed\nold\n"),
    "escape sequences": _one(b"\x1b[31mred\x1b[0m old\n"),
    "delete and bell": _one(b"\x7f\x07 old\n"),
    "blanks at line ends": _one(b"a   \t\nold  \nb \n"),
    "blank lines at the end": _one(b"old\n\n\n\n"),
    "blank lines at the beginning": _one(b"\n\n\nold\n"),
    "tabs": _one(b"\tif old:\n\t\tpass\n"),
    "no-break space": _one("a\u00a0b\nold\n".encode()),
    "zero width": _one("a\u200bb\u200d\nold\n".encode()),
    "right to left": _one("\u202eabc\u202c old \u05d0\n".encode()),
    "astral": _one("\U0001f426\U0001f468\u200d\U0001f33e old\n".encode()),
    "combining": _one("e\u0301 \u00e9 old\n".encode()),
    "replacement characters": _one("a\ufffdb\nold\n".encode()),
    "private use": _one("\ue000 old\n".encode()),
    "carriage returns within lines": _one(b"10%\r20%\rdone\nold\n"),
    "carriage return before crlf": _one(b"a\r\r\nold\r\n"),
    "line feed before carriage return": _one(b"a\n\rb\n\rold\n\r"),
    "crlf in the middle of lf": _one(b"a\nb\r\nold\nc\n"),
    "lf in the middle of crlf": _one(b"a\r\nb\nold\r\nc\r\n"),
    "last line without end, crlf": _one(b"a\r\nold"),
    "windows quotes": _one(b"\x93quoted\x94 \x80 5\nold\n"),
    "all bytes but null": _one(bytes(range(1, 256)) + b"\nold\n"),
    "one byte that is no utf-8": _one("grüße ".encode() + b"\xff\nold\n"),
    "half a character at the end": _one(b"old\n\xc3"),
    "overlong and surrogate bytes": _one(b"\xc0\x80\xed\xa0\x80 old\n"),
    "shift-jis": _one("日本語\n".encode("shift-jis") + b"old\n"),
    "koi8-r": _one("привет\n".encode("koi8-r") + b"old\n"),
    "euc-kr, crlf": _one("안녕\r\n".encode("euc-kr") + b"old\r\n"),
    "a mark of utf-16 before latin-1": _one(b"\xff\xfeold"),
    "a line of a megabyte": _one(b"x" * 1_000_000 + b" old " + b"y" * 1000 + b"\n"),
    "a hundred thousand lines": _one(b"line\n" * 50_000 + b"old\n" + b"line\n" * 50_000),
    "many crlf lines": _one(b"line\r\n" * 20_000 + b"old\r\n" + b"line\r\n" * 20_000),
    "at the very beginning": _one(b"old tail\nmore\n"),
    "at the very end": _one(b"more\nhead old"),
    "the whole file": FileCase(b"one\r\ntwo\r\n", "one\ntwo\n", "three\n", b"three\r\n"),
    "everything taken away": FileCase(b"one\ntwo\n", "one\ntwo\n", "", b""),
    "everything but the mark taken away": FileCase(b"\xef\xbb\xbfone\n", "one\n", "", b"\xef\xbb\xbf"),
    "a line taken out": FileCase(b"one\r\ntwo\nthree\r\n", "two\n", "", b"one\r\nthree\r\n"),
    "two lines joined": FileCase(b"one\r\ntwo\r\n", "one\ntwo", "one two", b"one two\r\n"),
    "a line put in first": FileCase(b"one\r\ntwo\r\n", "one\n", "zero\none\n", b"zero\r\none\r\ntwo\r\n"),
    "a line put in last": FileCase(b"one\r\ntwo", "two", "two\nthree", b"one\r\ntwo\r\nthree"),
    "one line becomes three": FileCase(b"a\r\nold\r\nz", "old", "1\n2\n3", b"a\r\n1\r\n2\r\n3\r\nz"),
    "three lines become one": FileCase(b"a\r\n1\n2\r\n3\nz", "1\n2\n3", "new", b"a\r\nnew\nz"),
    "old text written with crlf": FileCase(b"a\nb\nc\n", "a\r\nb", "a\nB", b"a\nB\nc\n"),
    "both texts written with crlf": FileCase(b"a\r\nb\r\nc\r\n", "a\r\nb", "a\r\nB", b"a\r\nB\r\nc\r\n"),
    "crlf into a file of lf, on purpose": FileCase(b"a\nb\n", "a\n", "A\r\n", b"A\r\nb\n"),
    "crlf in the new text alone, into a file of lf": FileCase(b"a\nb\n", "a", "1\r\n2", b"1\n2\nb\n"),
    "both texts written with crlf, in a file of lf": FileCase(b"a\nb\nc\n", "a\r\nb", "a\r\nB", b"a\nB\nc\n"),
    "crlf into a file of both": FileCase(b"a\r\nb\nc\n", "c", "1\r\n2", b"a\r\nb\n1\r\n2\n"),
    "crlf into a file of one line": FileCase(b"a", "a", "1\r\n2", b"1\r\n2"),
    "a lone carriage return is meant": FileCase(b"10%\r20%\n", "10%\r20%", "10%\r30%", b"10%\r30%\n"),
    "surroundings of mixed ends": FileCase(b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nb\nC\nd", b"a\r\nb\nC\r\nd\n"),
}

CASES: dict[str, FileCase] = {**_systematic(), **SPECIAL}
