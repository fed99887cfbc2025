"""Where an edit applies in a text, and what is put there.

matching.py    all edits of a call: where each applies, in words where one does not, and what the file becomes
places.py      a file's text as edits are looked for in it, and the places that are found
tolerant.py    a place for what is not in the text as it was written, by overlooking something
readings.py    what such an edit may have been meant to be: without wrappers and escapes
soundness.py   whether a text can be meant as it is written, where there is another way to read it
methods.py     methods that were written from the first column, in the midst of their class
forms.py       what is overlooked: texts without the differences that mean nothing
fitting.py     new lines for the place of old ones: what did not change keeps its characters
indents.py     the file's indents for those of a model
restyling.py   the file's blanks, quotes and escapes for those of a model
line_ends.py   the file's line ends for those of a model
following.py   replacements in a text that somebody has changed meanwhile
nearest.py     what may be meant by a text that is nowhere
leftovers.py   what a model copied along: numbers, fences, markers, which are never written
omissions.py   placeholders for what a model left out, which are never written
"""

from typing import Annotated

import msgspec

from crow.tools.schemas import UNLISTED


class TextEdit(msgspec.Struct, frozen=True):
    old: Annotated[str, msgspec.Meta(description="text to be replaced, with enough around it to be unique")]
    new: Annotated[str, msgspec.Meta(description="what takes its place")]
    all: Annotated[bool, msgspec.Meta(description="replace every occurrence")] = False
    expected_replacements: Annotated[int, UNLISTED] = 0
    """How many places `all` must have, as the tools of others ask for; 0 for any number."""
