"""What the person trusted: kept on their side, in `$CROW_HOME/trust.json`, never in the repository.

A project is trusted as it was: by its real path and by the content of what it brings.
"""

import os

from crow.config.locking import locked
from crow.config.versioned_json import Versioned, read_versioned, write_versioned

TRUST_NAME = "trust.json"
_VERSION = 1


class _Trusted(Versioned, frozen=True):
    projects: dict[str, str]
    """The digest of what was trusted, by the project's real path."""


class TrustFile:
    """Read each time it is asked, as another Crow may have written it. One that cannot be read trusts nothing."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, TRUST_NAME)

    def trusts(self, root: str, digest: str) -> bool:
        """ConfigError if the file cannot be understood."""
        return self._read().projects.get(os.path.realpath(root)) == digest

    def trust(self, root: str, digest: str) -> None:
        """ConfigError if it cannot be kept."""
        with locked(self._path):
            projects = {**self._read().projects, os.path.realpath(root): digest}
            write_versioned(self._path, _Trusted(_VERSION, projects))

    def _read(self) -> _Trusted:
        return read_versioned(self._path, _Trusted(_VERSION, {}), "no project is trusted by it")
