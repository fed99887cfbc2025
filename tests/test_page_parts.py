"""What the page computes by itself: rows of a diff, differing words, hidden characters."""

import random
import unicodedata
from pathlib import Path
from typing import Any

from crow import diff
from crow.visible import fence, hidden_characters
from tests.support.page_parts import evaluate

ROWS = """
import { itemOf, piecesOf, rowAt, slices, withoutBlanks } from "page/diff/model";
function sides(item, parts, beside) {
  const old = [], now = [], marks = new Set();
  for (const piece of piecesOf(0, parts, beside)) {
    const shown = piece.kind === "fold" ? slices(0, piece.part, piece.at, piece.count, -1) : [piece];
    for (const slice of shown) for (let index = 0; index < slice.count; index += 1) {
      const row = rowAt(slice.part, slice.at + index, beside);
      if (row.old >= 0) old.push(item.old[row.old]);
      if (row.new >= 0) now.push(item.new[row.new]);
      if (row.kind !== "same") marks.add(slice.change);
    }
  }
  return [old.join(""), now.join(""), [...marks]];
}
function main(cases) {
  return cases.map((diff) => {
    const item = itemOf(diff, 7);
    return [sides(item, item.parts, false), sides(item, item.parts, true), sides(item, withoutBlanks(item), false)];
  });
}
"""


def texts(seed: int) -> tuple[str, str]:
    """Two texts with lines in common, also without a line feed at their ends, with carriage returns, or empty."""
    chance = random.Random(seed)
    old = [f"{chance.choice('abcdef')}{chance.choice(['', ' ', chr(9)])}\n" for _ in range(chance.randrange(0, 60))]
    new = [line for line in old if chance.random() > 0.1]
    for _ in range(chance.randrange(0, 6)):
        new.insert(chance.randrange(len(new) + 1), chance.choice(["x\n", "a \n", "y\r\n", "\n"]))
    ends = chance.choice(["", "end", "end\r\n"]), chance.choice(["", "end", "end \r\n"])
    return "".join(old) + ends[0], "".join(new) + ends[1]


def item(old: str, new: str, *, told: bool) -> dict[str, Any]:
    changes = [
        (c.old_start, c.old_end - c.old_start, c.new_start, c.new_end - c.new_start) for c in diff.changes(old, new)
    ]
    meta = {"crow": {"diff": {"oldLine": 1, "newLine": 1, "changes": changes}}}
    return {"type": "diff", "path": "a", "oldText": old, "newText": new, "_meta": meta if told else None}


def test_the_rows_of_a_diff_are_both_texts_whole(tmp_path: Path) -> None:
    """One below the other, side by side, with changes of blanks left out; whether Crow told the changes or not."""
    pairs = [texts(seed) for seed in range(300)]
    cases = [item(old, new, told=told) for old, new in pairs for told in (True, False)]
    for (old, new), shown in zip(
        [pair for pair in pairs for _ in range(2)], evaluate(ROWS, cases, tmp_path), strict=True
    ):
        for one, other, _ in shown:
            assert (one, other) == (old, new)


def test_each_change_of_crow_has_its_own_number(tmp_path: Path) -> None:
    """By these a person accepts single changes; they are counted over all items, here from 7 on."""
    pairs = [texts(seed) for seed in range(50)]
    for (old, new), shown in zip(
        pairs, evaluate(ROWS, [item(*pair, told=True) for pair in pairs], tmp_path), strict=True
    ):
        expected = list(range(7, 7 + len(diff.changes(old, new))))
        assert shown[0][2] == expected
        assert shown[1][2] == expected


def test_changes_that_do_not_fit_the_texts_are_not_believed(tmp_path: Path) -> None:
    broken = item("a\nb\nc\n", "a\nB\nc\n", told=True)
    for changes in (
        [[0, 9, 0, 9]],
        [[1, 1, 2, 1]],
        [[2, 1, 2, 1], [0, 1, 0, 1]],
        [[-1, 1, -1, 1]],
        [[0.5, 1, 0.5, 1]],
        ["x"],
    ):
        broken["_meta"]["crow"]["diff"]["changes"] = changes
        for one, other, _ in evaluate(ROWS, [broken], tmp_path)[0]:
            assert (one, other) == ("a\nb\nc\n", "a\nB\nc\n")


WORDS = """
import { differingWords } from "page/diff/words";
const main = (pairs) => pairs.map(([old, now]) => differingWords(old, now));
"""


def marked(line: str, spans: list[tuple[int, int]]) -> str:
    for start, end in reversed(spans):
        line = f"{line[:start]}[{line[start:end]}]{line[end:]}"
    return line


def test_words_that_differ_are_found_and_unlike_lines_are_left_alone(tmp_path: Path) -> None:
    pairs = [
        ("    return load(path, mode)", "    return load(folder / path, mode)"),
        ("way = ways.pop()", "way = ways.pop(0)  # the oldest one is the shortest one"),
        ("import os", "from pathlib import Path"),
        ("a" * 2000, "b" * 2000),
    ]
    [inserted, lengthened, *unlike] = evaluate(WORDS, pairs, tmp_path)
    assert marked(pairs[0][0], inserted[0]) == pairs[0][0]
    assert marked(pairs[0][1], inserted[1]) == "    return load([folder / ]path, mode)"
    assert marked(pairs[1][1], lengthened[1]) == "way = ways.pop([0])[  # the oldest one is the shortest one]"
    assert unlike == [None, None]


HIDDEN = """
import { hiddenIn, plainly } from "page/hidden";
const main = (texts) => texts.map((text) => [hiddenIn(text).length, plainly(text)]);
"""


def test_the_page_names_every_character_that_crow_takes_for_hidden(tmp_path: Path) -> None:
    """The set is written down twice, in two languages: this keeps the page's from falling behind."""
    everything = [chr(point) for point in range(0x20000) if not 0xD800 <= point < 0xE000]
    tags = [chr(point) for point in range(0xE0000, 0xE0200)]
    hidden = [f"a{c}b" for c in (*everything, *tags) if c not in "\t\n\r\f" and hidden_characters(f"a{c}b")]
    assert len(hidden) > 300
    missed = [text for text, (count, _) in zip(hidden, evaluate(HIDDEN, hidden, tmp_path), strict=True) if not count]
    assert [f"U+{ord(text[1]):04X}" for text in missed] == []


def test_letters_of_all_scripts_are_left_as_they_are(tmp_path: Path) -> None:
    letters = [
        chr(c) for c in range(0x20, 0x3000) if unicodedata.category(chr(c))[0] in "LN" and chr(c) not in "\u115f\u1160"
    ]
    for letter, (count, shown) in zip(letters, evaluate(HIDDEN, letters, tmp_path), strict=True):
        assert (count, shown) == (0, letter)


VISIBLE = """
import { plainly, visible } from "page/hidden";
const main = (texts) => texts.map((text) => [visible(text), plainly(text)]);
"""


def test_a_tab_is_one_in_a_line_and_hidden_in_a_title(tmp_path: Path) -> None:
    """Whatever else is there; and a joiner behind it joins nothing."""
    assert evaluate(VISIBLE, ["a\tb", "ä\tb", "a\t\u200db"], tmp_path) == [
        ["a\tb", "a⟨U+0009⟩b"],
        ["ä\tb", "ä⟨U+0009⟩b"],
        ["a\t⟨U+200D⟩b", "a⟨U+0009⟩⟨U+200D⟩b"],
    ]


ANSI = """
import { PLAIN, styleAfter } from "page/terminal/ansi";
const main = (texts) => texts.map((text) => styleAfter(text, PLAIN));
"""


def test_colours_of_output_are_read(tmp_path: Path) -> None:
    shown = evaluate(
        ANSI,
        ["\x1b[1;31mx", "\x1b[31mx\x1b[0m", "\x1b[38;5;196m", "\x1b[48;2;1;2;300m", "\x1b[91;7m", "\x1b[38m"],
        tmp_path,
    )
    assert (shown[0]["fg"], shown[0]["bold"]) == (1, True)
    assert shown[1]["fg"] is None
    assert shown[2]["fg"] == "#ff0000"
    assert shown[3]["bg"] == "#0102ff"
    assert (shown[4]["fg"], shown[4]["inverse"]) == (9, True)
    assert shown[5]["fg"] is None


FENCES = """
import { BlockReader, linesOf } from "page/markdown/blocks";
function main(texts) {
  return texts.map((text) => new BlockReader(linesOf(text)).read().map((block) => [block.is, block.text]));
}
"""
BITS = (
    "`",
    "```",
    "````",
    "\n",
    "\n\n",
    " ",
    "\t",
    "    ",
    "~~~",
    "x",
    "- ",
    "> ",
    "#",
    "\\",
    "é",
    "<b>",
    "\n```\n",
    "1. ",
)


def test_a_command_between_fences_is_shown_to_its_last_character(tmp_path: Path) -> None:
    """What a question shows is what will run, whatever the command has in it that Markdown knows."""
    chance = random.Random(7)
    drawn = ["".join(chance.choices(BITS, k=chance.randrange(1, 30))) for _ in range(500)]
    commands = [text.rstrip("\n") for text in drawn if text.strip()]
    shown = evaluate(FENCES, [fence(command, "sh") for command in commands], tmp_path)
    assert shown == [[["code", command]] for command in commands]


HARD = """
import { BlockReader, cellsOf, linesOf } from "page/markdown/blocks";
import { lastPart } from "page/paths";
const readers = [(text) => new BlockReader(linesOf(text)).read(), cellsOf, lastPart];
function cost(work) {
  const begun = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(begun);
  return user + system;
}
const least = (work) => Math.min(cost(work), cost(work), cost(work));
function main(parts) {
  return parts.filter(([part, after]) => readers.some((read) => {
    const of = (count) => least(() => read(part.repeat(count) + after));
    return of(5000) > 2000 && of(20000) > 9 * of(5000); // a fiftieth of what is quadratic takes
  }));
}
"""


def test_what_reads_texts_of_models_is_linear(tmp_path: Path):
    parts = [
        "`",
        "~",
        "``` ",
        "- ",
        "-",
        "* ",
        "_ ",
        "|",
        "| :-",
        "\t",
        " ",
        "1. ",
        "> ",
        "/",
        "/a",
        "\r",
        "#",
        "[",
        "\\",
    ]
    assert evaluate(HARD, [[part, after] for part in parts for after in ("", "x", " x`")], tmp_path) == []
