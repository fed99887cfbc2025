"""Where an edit applies in a text, and what is put there. `matching` is where it begins.

Where is …?
- how an edit finds its place in a file: `matching.py` (exactly, and the plan), `tolerant.py` (by overlooking
  something), `forms.py` (what is overlooked), `interpretations.py` (what may have been meant,
  without the numbers of lines)
- what an edit puts there: `replacements.py` (what the file becomes), `indents.py` (indents), `forms.py` (quotes
  and blanks), `soundness.py` (whether that breaks the file)
- why an edit is refused: `refusals.py` (no place, or several), `omissions.py` (a text that leaves something out)
"""

from typing import Annotated, NamedTuple

import msgspec


class TextEdit(msgspec.Struct, frozen=True):
    old: Annotated[str, msgspec.Meta(description="text to be replaced, with enough around it to be unique")]
    new: Annotated[str, msgspec.Meta(description="what takes its place")]
    all: Annotated[bool, msgspec.Meta(description="replace every occurrence")] = False


class EditInterpretation(NamedTuple):
    """An edit as it may have been meant."""

    what: str
    """What was taken away, in words; empty for the edit as it is."""
    old: str
    new: str
    line: int | None = None
    """The number of its first line in the file, if the model copied it."""
    only_there: bool = False
    """Whether it is an interpretation of the edit only if its first line has that number."""
    problem: str = ""
    """Why the new text cannot be read in the same way, in a sentence."""
