"""Where an edit applies in a text, and what is put there. `matching` is where it begins."""

from typing import Annotated

import msgspec

from crow.tools.arguments import UNLISTED


class TextEdit(msgspec.Struct, frozen=True):
    old: Annotated[str, msgspec.Meta(description="text to be replaced, with enough around it to be unique")]
    new: Annotated[str, msgspec.Meta(description="what takes its place")]
    all: Annotated[bool, msgspec.Meta(description="replace every occurrence")] = False
    expected_replacements: Annotated[int, UNLISTED] = 0
    """How many places `all` must have, as the tools of others ask for; 0 for any number."""
