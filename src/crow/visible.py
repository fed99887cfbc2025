"""Makes hidden and deceiving characters visible in what a person approves (titles, paths, commands, plans), and in text
of the web, servers and projects.

What hides, and the visible form that it gets: control, bidirectional and invisible characters (`⟨U+202E⟩`); runs of
blanks and of empty lines that push the rest out of sight (`⟨400 blanks⟩`); letters of another script inside a word,
and words that only look Latin (`⟨т U+0442⟩`); in titles and plans what Markdown would swallow. `warning` says it in a
sentence. Diffs are shown as they are, with `warning_about_change` beside them; text of the web is `sanitised`, and what
a project or a server tells the model is `made_visible`. Where a script or a picture needs a joiner, prose keeps it.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache


@cache
def _re(source: str) -> re.Pattern[str]:
    """Compiled when it is first needed: all of them together take 30 ms, and plain texts need hardly one."""
    return re.compile(source)


# --- characters that hide: by their category in Unicode, with a few exceptions

CONTROLS = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
"""All but tabs and what ends a line."""
JOINERS = "\u200c\u200d"
"""They belong to the writing of some languages, and to some pictures."""
UNSEEN_WHEN_COPIED = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Characters that nobody sees and so nobody copies on purpose: a name or a text is the same without them."""
SEPARATORS = "\u2028\u2029"
"""Ends of lines and paragraphs."""
BIDI = "\u202a-\u202e\u2065-\u206f"
"""They change the direction of writing, so that text is read in another order than it has."""
TAGS = "\U000e0000-\U000e00ff"
"""Copies of ASCII that are never drawn: a model reads them, and no person does."""
BYTE_ORDER_MARK = "\ufeff"
"""At the beginning of a text it says how the text is encoded; elsewhere nobody sees it."""
SURROGATES = "\ud800-\udfff"
"""Halves of characters, which cannot be written as UTF-8."""

_FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0"
_SELECTORS = "\ufe00-\ufe0f"
_VARIATION_SELECTORS = "\U000e0100-\U000e01ef"
_UNDRAWN = f"{_FILLERS}{_SELECTORS}\u2065\ufff0-\ufff8\U00013430-\U0001343f\U000e0000-\U000e0fff"
"""Drawn as a blank or not at all, although their category does not say so."""
_SHAPED = "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
"""Format characters that their script needs: signs around a number, or how two signs are put together."""
_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_IDEOGRAPHS = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JOINED_SCRIPTS = (
    "\u0590-\u061b\u061d-\u10ff\u1700-\u17b3\u17b6-\u180a\u1820-\u1cff\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00011fff\U0001e800-\U0001eeff"
)
_AT_TIMES = f"[{JOINERS}{_FILLERS}{_SELECTORS}{_VARIATION_SELECTORS}{BYTE_ORDER_MARK}]"
"""What some text needs; and where no script and no picture does, and a byte order mark but at the beginning:"""
_OUT_OF_PLACE = "|".join(
    (
        "(?<!^)\ufeff",
        # One may join letters of some scripts, or two pictures; a row of them can carry any text.
        f"[{JOINERS}](?=[{JOINERS}{_FILLERS}{_SELECTORS}{_VARIATION_SELECTORS}])",
        f"(?<![{_JOINED_SCRIPTS}{_PICTURES}\ufe0f])[{JOINERS}]",
        f"(?<=[{_PICTURES}\ufe0f])(?:\u200c|\u200d(?![{_PICTURES}]))",
        # One may choose how the sign before it is drawn.
        f"(?<![{_PICTURES}{_IDEOGRAPHS}\u1000-\u109f\u3001-\u30ff\ua840-\ua877\uff01-\uff600-9#*])[{_SELECTORS}]",
        f"(?<=[0-9#*])[{_SELECTORS}](?!\u20e3)",
        f"(?<![{_IDEOGRAPHS}])[{_VARIATION_SELECTORS}]",
        "(?<![\u1820-\u18aa])[\u180b-\u180d\u180f]",
        "(?<![\u0590-\u05ff])\u034f",
        # Blanks between braille, and what stands for a missing half of a Korean syllable.
        "(?<![\u2801-\u28ff])\u2800|\u2800(?![\u2801-\u28ff])",
        "\u115f(?![\u1161-\u11a7])|(?<![\u1100-\u115e])\u1160|[\u17b4\u17b5\u3164\uffa0]",
    )
)


def _is_unseen(character: str) -> bool:
    """Whether it is a control, a format character, half of a character, or the end of a line or paragraph."""
    from unicodedata import category

    return category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


@lru_cache(4096)
def _is_hidden(character: str) -> bool:
    """Whether it cannot be seen in a line, or is drawn as a blank and is none."""
    is_blank = character.isspace() and character not in " \u3000"
    return is_blank or _is_unseen(character) or _re(f"[{_UNDRAWN}]").match(character) is not None


@lru_cache(4096)
def _is_never_in_place(character: str) -> bool:
    """Whether it makes a text look like another wherever it stands."""
    if _is_unseen(character):
        return character not in "\t\n\f\r" and not _re(f"{_AT_TIMES}|[{_SHAPED}]").match(character)
    return _re(f"[{TAGS}\u2065]").match(character) is not None


def _deceiving(text: str) -> set[str]:
    """The characters of a text that make it look like another."""
    found = set(filter(_is_never_in_place, set(text)))
    is_out_of_place = _re(_OUT_OF_PLACE).match
    found.update(joint[0] for joint in _re(_AT_TIMES).finditer(text) if is_out_of_place(text, joint.start()))
    return found


def _without_deceiving(text: str, instead: Callable[[str], str]) -> str:
    is_out_of_place = _re(_OUT_OF_PLACE).match

    def replaced(joint: re.Match[str]) -> str:
        return instead(joint[0]) if is_out_of_place(text, joint.start()) else joint[0]

    table = {ord(character): instead(character) for character in set(text) if _is_never_in_place(character)}
    text_in_place = _re(_AT_TIMES).sub(replaced, text)
    return text_in_place.translate(table) if table else text_in_place


# --- characters that look like others

_HOMOGLYPHS = (
    "аеорсухіјѕһԁԛԝӏкѵАВЕЅІЈКМНОРСТУХԚԜ"  # Cyrillic
    "ονρατικυχγϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "օսոցհյզ"  # Armenian
    "\u0261\u0251\u0262\u0269\u026a\u0274\u0280\u028f\u0299\u029c\u029f"  # phonetic
    "\u1d00\u1d04\u1d05\u1d07\u1d0a\u1d0b\u1d0d\u1d0f\u1d18\u1d1b\u1d1c\u1d20-\u1d22\ua730\ua731"  # small capitals
)
_WIDE = (
    "\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u2160-\u217f\u017f"
    "\u2102\u210a-\u2113\u2115\u2119-\u211d\u2124\u2128\u212a\u212c\u212d\u212f-\u2131\u2133\u2134\u2139\u2145-\u2149"
)
"""Wide letters, those of mathematics, Roman numerals: ASCII in another dress."""
_OTHER_SCRIPTS = (
    f"\u0400-\u052f\u1c80-\u1c8f\u0531-\u0587\u13a0-\u13ff\uab70-\uabbf\ua4d0-\ua4f7\u2c80-\u2cee{_HOMOGLYPHS}{_WIDE}"
)
_MIXED = f"[A-Za-z][{_OTHER_SCRIPTS}]|[{_OTHER_SCRIPTS}][A-Za-z]"
_FOREIGN = f"[{_OTHER_SCRIPTS}]"
_IN_DISGUISE = f"[{_HOMOGLYPHS}{_WIDE}]{{2,}}"
_WORD = r"[^\W\d_]+"
_SIGNS = (
    "[\uff01-\uff20\uff3b-\uff40\uff5b-\uff5e\ufe50-\ufe6b\u2215\u2044\u29f8\u2216\u29f5\u037e\ua789\u2236\u2010-\u2012\u2212"
    "\u2223\u01c0\u01c3\u2024\u2025\ua4f8-\ua4fd\u2217\u204e\u223c]"
    # A dash of prose where an option begins, and two letters drawn as one.
    "|(?<!\\S)[\u2013-\u2015\u2043]+(?=[A-Za-z])|(?<=[A-Za-z])[\ufb00-\ufb06]|[\ufb00-\ufb06](?=[A-Za-z])"
)
"""Signs that look like one that means something to a shell or in a path."""
_SIGNS_BUT_COUNTS = rf"(?P<count>\+\d+ \u2212\d+)|{_SIGNS}"
"""The same, and lines added and removed as Crow itself counts them, which are left as they are."""
_MARKS = (
    "[\u0305\u0332\u0333-\u0338\u20d2\u20d3\u20d8-\u20da\u20dd-\u20e2\u20e4-\u20e6\u20ea\u20eb]"
    "|(?<=[\\x20-\\x40\\x5b-\\x60\\x7b-\\x7e])[\u0300-\u036f]|(?<=[\u0300-\u036f]{2})[\u0300-\u036f]"
)
"""What strikes a letter through or encloses it, stands on no letter, or on two others: no script is written so."""
_WITH_I = (
    "git id ip pip find kill killall pkill vi vim which mkdir rmdir unlink diff dig tail file zip unzip gzip gunzip "
    "nice time timeout install uninstall origin main build publish commit wipefs script"
)
_EITHER_I = "|".join(_WITH_I.split()).replace("i", "[i\u0131]")
_DOTLESS = rf"(?<![^\W_])(?=[a-z]*\u0131)(?:{_EITHER_I})(?![^\W_])"
"""The dotless letter of Turkish in words that are commands, and not Turkish."""
_WRITTEN_WIDE = "[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"


def _homoglyph(match: re.Match[str]) -> str:
    if match.groupdict().get("count"):
        return match[0]
    return "".join(f"⟨{character} U+{ord(character):04X}⟩" for character in match[0])


def _homoglyphs_named(text: str, *, strict: bool = False) -> str:
    """`strict`: also where the text is in a language that is written with wide letters and signs."""
    if text.isascii():
        return text
    text = _re(_MARKS).sub(lambda mark: _name(mark[0]), text)
    text = _re(_DOTLESS).sub(lambda word: word[0].replace("\u0131", "⟨\u0131 U+0131⟩"), text)
    if not strict and _re(_WRITTEN_WIDE).search(text):
        return _mixed_named(text)
    text = _re(_SIGNS if strict else _SIGNS_BUT_COUNTS).sub(_homoglyph, text)
    if not _re(_FOREIGN).search(text):
        return text
    foreign = [word for word in _re(_WORD).findall(text) if _re(_FOREIGN).search(word)]
    # Where whole words are of another script, that is the language; alone, a word in disguise is no word.
    is_language = any(not _re(_MIXED).search(word) and not _re(_IN_DISGUISE).fullmatch(word) for word in foreign)
    return _mixed_named(text, disguised=not is_language)


def _mixed_named(text: str, *, disguised: bool = False) -> str:
    """`disguised`: words that only look Latin, too."""

    def named(word: re.Match[str]) -> str:
        suspicious = _re(_MIXED).search(word[0]) or (disguised and _re(_IN_DISGUISE).fullmatch(word[0]))
        return _re(_FOREIGN).sub(_homoglyph, word[0]) if suspicious else word[0]

    if text.isascii() or not (disguised or _re(_MIXED).search(text)):
        return text
    return _re(_WORD).sub(named, text)


# --- the visible form

_MANY_BLANKS = 32
_MANY_BLANKS_IN_TEXT = 60
"""In prose and files, where tables are aligned with blanks."""
_GAP = rf"(?<=\S)[ \t\u3000]{{{_MANY_BLANKS},}}"
_GAP_IN_TEXT = rf"(?<=\S)[ \t\u3000]{{{_MANY_BLANKS_IN_TEXT},}}(?=\S)"
_DEEP = rf"(?m)^[ \t\u3000]{{{_MANY_BLANKS_IN_TEXT},}}(?=\S)"
_EMPTY_LINES = r"\n(?:[ \t\u3000]*(?:[\\#:;][ \t]*)?\r?\n){5,}"
"""Also those on which a shell finds nothing to do: a backslash that joins them, a mark of a comment."""


def _is_plain(text: str) -> bool:
    """Whether nothing can hide in a text, as in nearly all of them: then nothing has to be searched."""
    return text.isascii() and text.isprintable() and " " * _MANY_BLANKS not in text


def _name(character: str) -> str:
    return {"\n": "⏎", "\t": " "}.get(character) or f"⟨U+{ord(character):04X}⟩"


def _hidden_named(text: str, but: str = "") -> str:
    hidden = {ord(character): _name(character) for character in set(text) - set(but) if _is_hidden(character)}
    return text.translate(hidden) if hidden else text


def _shortened(text: str, gap: str, lines: str) -> str:
    """Runs of blanks and of empty lines by their number, so that what follows them stays in sight."""

    def counted(run: re.Match[str]) -> str:
        return f"⟨{len(run[0])} blanks⟩"

    text = _re(_EMPTY_LINES).sub(lambda run: lines.format(f"⟨{run[0].count(chr(10)) - 1} empty lines⟩"), text)
    return _re(_DEEP).sub(counted, _re(gap).sub(counted, text))


def one_line(text: str, longest: int = 300) -> str:
    """A title, a path, a command: on one line, everything in it to be seen, cut if need be."""
    if _is_plain(text):
        return text if len(text) <= longest else text[:longest] + "…"
    beginning = text[: 8 * longest + 1]  # what is pushed out of sight is brought back in
    shown = _hidden_named(_shortened(_homoglyphs_named(beginning), _GAP, "⏎{}⏎"))
    is_whole = len(text) <= longest or (len(shown) <= longest and len(beginning) == len(text))
    return shown if is_whole else shown[:longest] + "…"


def every_line(text: str) -> str:
    """A command or a file of any number of lines, everything in it to be seen."""
    named = _shortened(_homoglyphs_named(text, strict=True), _GAP, "\n{}\n")
    return _hidden_named(named.replace("\t", "    "), but="\n")


def prose(text: str) -> str:
    """Markdown that a person approves, such as a plan: joiners stay, line ends too; what would hide is shown."""
    named = _shortened(_mixed_named(text), _GAP_IN_TEXT, "\n\n{}\n\n")
    return _inert(made_visible(named))


def made_visible(text: str) -> str:
    """Prose for the model, with its line ends, in which only what cannot be seen is changed."""
    return _without_deceiving(text, _name)


def sanitised(text: str) -> str:
    """Text from the web as a reader sees it: nothing in it hides, turns the writing round or drives a terminal."""
    text = _re("\r\n?|[\f\x85\u2028\u2029]").sub("\n", _re(r"\x1b\[[0-9;:]*m").sub("", text))
    is_named = _re(f"[{CONTROLS}{BIDI}{TAGS}]")  # of the others nothing is lost
    return _without_deceiving(
        text.lstrip(BYTE_ORDER_MARK), lambda character: _name(character) if is_named.match(character) else ""
    )


def join_surrogates(text: str) -> str:
    """The text with the two halves of a character (surrogates) as one, and U+FFFD for a half that is alone."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def replace_lone_surrogates(json: bytes) -> bytes:
    """JSON with U+FFFD for each escape of half a character: JavaScript writes those, and strict parsers refuse them.

    Only those escapes are touched, so that everything else stays as it was written.
    """

    def without_half(escape: re.Match[bytes]) -> bytes:
        start = at = escape.start()
        while at and json[at - 1] == 0x5C:
            at -= 1
        if (start - at) % 2:  # an escaped backslash: the first half is plain text, and a second one stands alone
            return escape[0][:6] + rb"\ufffd" if escape["second"] else escape[0]
        return escape[0] if escape["second"] else rb"\ufffd"

    half = rb"[0-9a-fA-F]{2}"
    return re.sub(
        rb"\\u[dD](?:[89abAB]" + half + rb"(?P<second>\\u[dD][c-fC-F]" + half + rb")|[89a-fA-F]" + half + rb")",
        without_half,
        json,
    )


def capitalised(text: str) -> str:
    """As a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


# --- warnings

_UNSEEN = "invisible characters"
HIDES_SOMETHING = f"Careful: the new text contains {_UNSEEN}."
"""Said beside a server's diff or text that is shown as it is, if `hidden_in` it."""
_SEEN_IN_ASCII = bytes((*b"\t\n\f\r", *range(0x20, 0x7F)))
_MOST_NAMED = 5


def is_plainly_seen(text: str) -> bool:
    """Whether each character of one line can be seen."""
    return not any(map(_is_hidden, set(text)))


def can_be_seen(text: str) -> bool:
    """Whether there is anything in a text but blanks, line ends and what is drawn as a blank or not at all."""
    return any(not character.isspace() and not _is_hidden(character) for character in text)


def hidden_in(text: str) -> bool:
    """Whether a text that is shown as it is, such as a diff, holds what could make it look like another.

    Controls but line ends, tabs and form feeds; what has no width; tags; what turns the direction of writing; joiners,
    fillers and selectors where nothing needs them.
    """
    if text.isascii():  # many times faster than an expression, in a text of a megabyte
        return bool(text.encode().translate(None, _SEEN_IN_ASCII))
    return bool(_deceiving(text))


def hidden_characters(text: str) -> list[str]:
    """The characters of a server's or a project's words that cannot be seen."""
    return sorted(_deceiving(text), key=text.index)


def warning(*texts: str) -> str:
    """A sentence for the person about what hides in texts that they are to approve; empty if nothing does."""
    found: dict[str, None] = {}
    for text in texts:
        if _is_plain(text):
            continue
        if hidden_in(text) or any(map(_looks_blank, set(text))):
            found[_UNSEEN] = None
        if _re(_GAP).search(text.rstrip()) or _re(_DEEP).search(text):
            found["a long run of blanks"] = None
        if _re(_EMPTY_LINES).search(text):
            found["many empty lines"] = None
        if _homoglyphs_named(text) != text:
            found["look-alike letters or signs"] = None
    return f"Careful: contains {_and(list(found))}." if found else ""


def _looks_blank(character: str) -> bool:
    """Whether it is a joiner, or is drawn as a blank and is none."""
    return character in f"{JOINERS}\u115f\u1160\u2800\u3164\uffa0" or (
        character.isspace() and character not in " \t\n\f\r\u3000"
    )


def warning_about_prose(text: str) -> str:
    """The same for Markdown that `prose` has made visible, where a language of its own is no disguise."""
    return warning(text) if prose(text) != text else ""


def warning_about_change(text: str) -> str:
    """The same for the new text of a diff, which is shown as it is."""
    blanks = text.replace("\t", " ").replace("\u3000", " ")
    has_gap = " " * _MANY_BLANKS_IN_TEXT in blanks and _re(_GAP_IN_TEXT).search(text)
    found = [
        _UNSEEN if hidden_in(text) else "",
        "code far to the right, behind a long run of blanks" if has_gap else "",
        "letters of another script inside words" if not text.isascii() and _re(_MIXED).search(text) else "",
    ]
    found = list(filter(None, found))
    return f"Careful: the new text contains {_and(found)}." if found else ""


def remark_on(characters: list[str]) -> str:
    """A sentence for the person; empty if there are none."""
    if not characters:
        return ""
    names = ", ".join(f"U+{ord(character):04X}" for character in characters[:_MOST_NAMED])
    more = ", …" if len(characters) > _MOST_NAMED else ""
    return f"It used {_UNSEEN} ({names}{more}), which are now shown like {one_line(characters[0])}."


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# --- Markdown: what it would swallow, and text that stays text in it

_FENCE = r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})"
_SWALLOWED = r"\](?=[(\[])|<(?=[A-Za-z/!?])"
_CODE_OR_SWALLOWED = rf"(?P<code>(?<![\\`])`[^`]+`(?!`))|{_SWALLOWED}"
_CODE_TITLE = r"(`+)(?!`)( ?)(.+?)\2(?<!`)\1(?!`)"
_DELIMITERS = r"\*+|_+|~+"
_MARKUP = (
    r"`|\\[!-/:-@\[-`{-~]|&(?:#|[A-Za-z])[0-9A-Za-z]*;"  # code, escapes and entities
    r"|^\s*(?:#{1,6}(?:\s|$)|>|[-+*](?:\s|$)|\d{1,9}[.)](?:\s|$)|(?:[-*_]\s*){3,}$)"  # what makes a block
)


def title_line(text: str, longest: int = 300) -> str:
    """One line for clients that read Markdown, such as a step of a plan: nothing in it hides or becomes a link."""
    return _inert(one_line(text, longest))


def call_title(text: str, longest: int = 300) -> str:
    """The title of a call, a command or a path for example: it is code where Markdown would swallow a part of it."""
    shown = one_line(text, longest)
    return code(shown, longest + 1) if _is_markup(shown) else _inert(shown)


def _inert(text: str) -> str:
    """Markdown in which no comment, tag or address is hidden: a blank makes them text. Code is left as it is."""

    def with_blank(found: re.Match[str]) -> str:
        return found[0] if found["code"] else f"{found[0]} "

    if _re(_SWALLOWED).search(text) is None:
        return text
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = found[1] if (found := _re(_FENCE).match(line)) else ""
        if fence:
            fence = "" if mark.startswith(fence) and line.strip() == mark else fence
        elif mark:
            fence = mark
        lines.append(line if fence or mark else _re(_CODE_OR_SWALLOWED).sub(with_blank, line))
    return "\n".join(lines)


def plain_title(title: str) -> str:
    """A title that may be such code, for where it is no Markdown."""
    found = _re(_CODE_TITLE).match(title)
    return found[3] + title[found.end() :] if found and _is_markup(found[3]) else title


def _is_markup(line: str) -> bool:
    """Whether Markdown would swallow characters of a line, apart from links and tags."""
    return _re(_MARKUP).search(line) is not None or _has_emphasis(line)


def _has_emphasis(line: str) -> bool:
    """Whether a run of `*`, `_` or `~` has another that closes it, as CommonMark pairs them."""
    open_runs: dict[str, list[tuple[int, bool]]] = {}
    for run in _re(_DELIMITERS).finditer(line):
        sign, length = run[0][0], len(run[0])
        before, after = line[run.start() - 1 : run.start()] or " ", line[run.end() : run.end() + 1] or " "
        opens = not after.isspace() and (after.isalnum() or not before.isalnum())
        closes = not before.isspace() and (before.isalnum() or not after.isalnum())
        if sign == "_":
            opens, closes = opens and not (closes and before.isalnum()), closes and not (opens and after.isalnum())
        both = opens and closes
        earlier = open_runs.setdefault(sign, [])
        if closes and any(_is_pair(other, was_both, length, both) for other, was_both in earlier):
            return True
        if opens:
            earlier.append((length, both))
    return False


def _is_pair(length: int, both: bool, other: int, other_both: bool) -> bool:
    return not (both or other_both) or (length + other) % 3 != 0 or (length % 3 == 0 and other % 3 == 0)


_SUFFIX = re.compile(r"\.([A-Za-z0-9_+-]{1,12})$")
_FENCES = re.compile("`{3,}")
_TICKS = re.compile("`+")


def fence(text: str, language: str = "") -> str:
    """The text between two fences that it cannot contain itself, so that nothing in it can pass for the end."""
    ticks = "`" * (max((len(run) for run in _FENCES.findall(text)), default=2) + 1)
    newline = "" if text.endswith("\n") or not text else "\n"
    return f"{ticks}{language}\n{text}{newline}{ticks}"


def language_of(path: str) -> str:
    """What the fence of a file's text is marked with: its suffix, which editors and highlighters know languages by."""
    suffix = _SUFFIX.search(path)
    return suffix[1].lower() if suffix else ""


def code(text: str, longest: int = 1000) -> str:
    """One line of a path, a command or a name, between ticks that it does not contain."""
    shown = one_line(text, longest)
    lengths = {len(run) for run in _TICKS.findall(shown)}
    ticks = "`" * next(length for length in range(1, len(lengths) + 2) if length not in lengths)
    blank = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{blank}{shown}{blank}{ticks}"
