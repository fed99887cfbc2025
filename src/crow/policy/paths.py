"""Decides which paths are secret (they may hold credentials) and which are protected (they could make something run):
both ask in every mode.

The names are in `risky_names.toml`. Paths are absolute. Names are compared case-folded, since on many disks `.ENV` is
the same file as `.env`. The caller gives paths with symbolic links resolved; a spelling that is not resolved may be
judged beside it, and then both count. No rule and no "always" lifts what is said here.
"""

import os
import re
from collections.abc import Sequence

from crow.paths import is_inside
from crow.policy.repositories import is_in_git_directory, is_obeyed_by_git
from crow.policy.risky_names import what_secret_name, why_protected_name

_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Some disks leave these out when they compare names, so that `.g\\u200cit` is `.git`. That is a fact about disks,
which has nothing to do with what a person can see."""


def what_secret(path: str, private: Sequence[str] = ()) -> str:
    """What reading the path may show that nobody else should see; empty if nothing. `private` names folders that are
    secret as a whole."""
    folded = _folded(path)
    if any(is_inside(folded, _folded(root)) for root in private):
        return "Crow's own keys and sessions"
    return what_secret_name(folded)


def what_secret_in(path: str, private: Sequence[str], readable: Sequence[str]) -> str:
    """The same; reading what lies in a `readable` folder within a private one shows no secret."""
    plain = os.path.normpath(path)
    return what_secret(plain, () if any(is_inside(plain, folder) for folder in readable) else private)


def why_protected(path: str, private: Sequence[str] = ()) -> str:
    """Why writing the path could make something run later, or change what Crow may do; secrets count too. Empty if it
    could not."""
    if why := why_protected_name(_folded(path)):
        return why
    if what := what_secret(path, private):
        return f"it may hold {what}"
    path = os.path.normpath(path)
    if is_in_git_directory(path) or is_obeyed_by_git(path):
        return "git obeys it, and runs what it names"
    return ""


def _folded(path: str) -> str:
    return _INVISIBLE.sub("", os.path.normpath(path)).casefold()
