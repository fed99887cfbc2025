"""Writes the section "Every file" of docs/architecture.md: each file with the first sentence of its docstring.

`make format` runs this script, and a test compares the page with what it makes.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "crow"
PAGE = ROOT / "docs" / "architecture.md"
HEADING = "## Every file"
INTRODUCTION = """\
Paths are below `src/crow`; each sentence is the first one of the file's docstring, and says what is decided there.
`scripts/file_index.py` makes this list: change the docstring, then run `make format`.
"""
_SENTENCE = re.compile(r".*?[.?!](?=\s+[A-Z`]|\s*$)", re.DOTALL)


def first_sentence(path: Path) -> str:
    """The first sentence of a file's docstring, on one line; empty if the file has no docstring."""
    paragraph = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0].split())
    found = _SENTENCE.match(paragraph)
    return found[0] if found else paragraph


def section() -> str:
    """The section as it should be, from its heading to the end of the page."""
    return "\n".join([HEADING, "", INTRODUCTION, *_rooms()])


def _rooms() -> Iterator[str]:
    for folder in (SOURCE, *sorted(path.parent for path in SOURCE.glob("*/**/__init__.py"))):
        files = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        if folder != SOURCE:
            yield f"### `{folder.relative_to(SOURCE)}/`\n\n{first_sentence(folder / '__init__.py')}\n"
        yield from (f"- `{path.relative_to(SOURCE)}`: {first_sentence(path)}" for path in files)
        yield from [""] if files else []


def refreshed(page: str) -> str:
    """The text of the page with the section as it should be at its end."""
    before, _, _ = page.partition(f"{HEADING}\n")
    return before.rstrip("\n") + "\n\n" + section().rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(refreshed(PAGE.read_text()))
