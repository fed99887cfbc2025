"""What a person reads: sentences.txt lists two hundred of them, for somebody to read aloud, and each is still said."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
LISTED = Path(__file__).with_name("sentences.txt")
SENTENCES = [line for line in LISTED.read_text().splitlines() if line and not line.startswith("#")]


def texts_of(source: str) -> Iterator[str]:
    """The texts in a file of Python; what is put into one when it runs is `{}`."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.JoinedStr(values=values):
                yield "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in values)
            case _:
                pass


def folded(text: str) -> str:
    """A text in which neither line ends nor the names of what is put into it count."""
    return re.sub(r"\$?\{[^{}]*\}", "{}", " ".join(text.split()))


@functools.cache
def said() -> str:
    python = (text for path in (ROOT / "src").rglob("*.py") for text in texts_of(path.read_text()))
    data = (path.read_text() for path in (ROOT / "src").rglob("*.toml"))
    page = (path.read_text() for path in (ROOT / "page" / "src").rglob("*.ts*"))
    return "\n".join(folded(text) for text in (*python, *data, *page))


def test_every_listed_sentence_is_still_said() -> None:
    assert [sentence for sentence in SENTENCES if folded(sentence) not in said()] == []


def test_the_list_is_long_enough_to_judge_by() -> None:
    assert len(set(SENTENCES)) == len(SENTENCES) >= 200


def test_a_sentence_is_found_whatever_is_put_into_it_and_however_its_lines_are_broken() -> None:
    found = {folded(text) for text in texts_of('say(f"No file {name} in " f"{folder}.")')}
    assert folded("No file {path} in\n {}.") in found
    assert folded("No file {} there.") not in found
