"""Which paths are secrets: reading one asks the person, wherever it lies and whatever the mode."""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from crow.paths import is_inside

_SECRET_NAMES = (
    ".env*",
    "*.pem",
    "*.key",
    ".netrc",
    ".npmrc",
    ".pypirc",
)
_HARMLESS_NAMES = (".env.example",)
_SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".kube")
_SECRET_ENDINGS = ("/.docker/config.json", "/etc/shadow")


def is_secret(path: str, private: Sequence[str] = ()) -> bool:
    """Whether a resolved, absolute path holds credentials. `private` names folders that are secret as a whole.

    Names are compared without regard to case: on many disks `.ENV` is the same file as `.env`.
    """
    folded = path.casefold()
    folder, name = os.path.split(folded)
    if name not in _HARMLESS_NAMES and any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES):
        return True
    if any(part in _SECRET_FOLDERS for part in folder.split("/")) or folded.endswith(_SECRET_ENDINGS):
        return True
    if folded.startswith("/proc/") and name == "environ":
        return True
    return any(is_inside(path, root) for root in private)
