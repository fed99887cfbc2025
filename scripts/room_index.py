"""Writes docs/index.md: which file to open for a question, from the rows "Where is …?" in each room's `__init__.py`.

`make format` runs this script, and a test compares the page with what it makes.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "crow"
PAGE = ROOT / "docs" / "index.md"
HEADING = "Where is …?"
INTRODUCTION = """\
# Where is …?

Which file to open, room by room; paths are below `src/crow`. How the rooms fit together is in
[architecture.md](architecture.md). `scripts/room_index.py` generates this page from the rooms' docstrings: edit those,
then run `make format`.
"""
_SENTENCE = re.compile(r".*?[.?!](?=\s+[A-Z`]|\s*$)", re.DOTALL)


def first_sentence(path: Path) -> str:
    """The first sentence of a file's docstring, on one line; empty if the file has no docstring."""
    paragraph = " ".join(_docstring(path).partition("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found[0] if found else paragraph


def rows(path: Path) -> list[tuple[str, str]]:
    """The rows of a room's docstring: what somebody looks for, and the files that have it."""
    text = _docstring(path).partition(f"\n{HEADING}\n")[2]
    entries = [" ".join(entry.split()) for entry in re.split(r"(?m)^- ", text)[1:]]
    return [(question, f"`{files}") for question, _, files in (entry.partition(": `") for entry in entries)]


def page() -> str:
    """The page as it should be."""
    return INTRODUCTION + "".join(_rooms())


def _rooms() -> Iterator[str]:
    for path in sorted(SOURCE.glob("*/**/__init__.py")):
        if found := rows(path):
            yield f"\n## `{path.parent.relative_to(SOURCE)}/`\n\n{first_sentence(path)}\n\n"
            yield "| you look for | it is in |\n|---|---|\n"
            yield from (f"| {question} | {files} |\n" for question, files in found)


def _docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text())) or ""


if __name__ == "__main__":
    PAGE.write_text(page())
