"""What the person trusted: kept on their side, in `$CROW_HOME/trust.json`, never in the repository.

A project is trusted as it was: by its real path and by the content of what it brings.
"""

import os

import msgspec

from crow.config.home import reason, write_file
from crow.config.locking import locked
from crow.errors import ConfigError

TRUST_NAME = "trust.json"
_VERSION = 1
_LARGEST = 4 * 1024 * 1024


class _Trusted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
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
            try:
                content = msgspec.json.encode(_Trusted(_VERSION, projects), order="sorted")
            except UnicodeEncodeError:
                raise ConfigError("A path that is no UTF-8 cannot be kept.") from None
            write_file(self._path, msgspec.json.format(content, indent=1) + b"\n")

    def _read(self) -> _Trusted:
        try:
            with open(self._path, "rb") as file:
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return _Trusted(_VERSION, {})
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read: {reason(error)}. No project is trusted by it.") from error
        try:
            trusted = msgspec.json.decode(content[:_LARGEST], type=_Trusted)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            remedy = "Mend it or delete it; until then no project is trusted by it."
            raise ConfigError(f"{self._path} is damaged: {error}.", remedy=remedy) from error
        if trusted.version != _VERSION:
            raise ConfigError(f"{self._path} was written by another version of Crow. No project is trusted by it.")
        return trusted
