"""What the person allowed for a project: kept on their side, in `$CROW_HOME/grants.json`, never in the repository.

The file belongs to every Crow that runs: it is read again when another one changed it, and written as a whole.
"""

import os
from collections.abc import Callable

import msgspec

from crow.config.home import reason, write_file
from crow.config.locking import locked
from crow.config.settings import PermissionRule
from crow.errors import ConfigError

GRANTS_NAME = "grants.json"
_VERSION = 1
_LARGEST = 4 * 1024 * 1024


class _Grants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    projects: dict[str, list[PermissionRule]]


_Stamp = tuple[int, int, int]


class Grants:
    """The grants of one project. A file that cannot be read grants nothing, and `warning` says so."""

    def __init__(self, home: str, project: str) -> None:
        self.warning = ""
        self._path = os.path.join(home, GRANTS_NAME)
        self._project = os.path.realpath(project)
        self._stamp: _Stamp | None = None
        self._rules: tuple[PermissionRule, ...] = ()

    def rules(self) -> tuple[PermissionRule, ...]:
        """What is granted now: one look at the file's date, unless it changed."""
        stamp = self._look()
        if stamp != self._stamp:
            self._stamp = stamp
            self._load()
        return self._rules

    def add(self, rules: tuple[PermissionRule, ...]) -> None:
        """ConfigError if it cannot be kept."""
        self._change(lambda kept: [*kept, *(rule for rule in rules if rule not in kept)])

    def remove(self, rule: PermissionRule) -> bool:
        if rule not in self.rules():
            return False
        self._change(lambda kept: [other for other in kept if other != rule])
        return True

    def _load(self) -> None:
        self._rules, self.warning = (), ""
        try:
            granted = self._read().projects.get(self._project, [])
        except ConfigError as error:
            self.warning = str(error)
            return
        # The file can only grant: what refuses or asks is written in a config, where a person looks for it.
        self._rules = tuple(rule for rule in granted if rule.decision == "allow")

    def _look(self) -> _Stamp | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _read(self) -> _Grants:
        try:
            with open(self._path, "rb") as file:
                content = file.read(_LARGEST + 1)
        except FileNotFoundError:
            return _Grants(_VERSION, {})
        except OSError as error:
            raise ConfigError(f"{self._path} cannot be read: {reason(error)}. Nothing is allowed by it.") from error
        try:
            grants = msgspec.json.decode(content[:_LARGEST], type=_Grants)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            remedy = "Mend it or delete it; until then nothing that was allowed for a project is remembered."
            raise ConfigError(f"{self._path} is damaged: {error}.", remedy=remedy) from error
        if grants.version != _VERSION:
            raise ConfigError(f"{self._path} was written by another version of Crow. Nothing is allowed by it.")
        return grants

    def _change(self, change: Callable[[list[PermissionRule]], list[PermissionRule]]) -> None:
        with locked(self._path):
            grants = self._read()
            rules = change(grants.projects.get(self._project, []))
            projects = {**grants.projects, self._project: rules}
            write_file(self._path, _encoded(_Grants(_VERSION, {root: kept for root, kept in projects.items() if kept})))
        self._stamp = self._look()
        self._load()


def _encoded(grants: _Grants) -> bytes:
    try:
        return msgspec.json.format(msgspec.json.encode(grants, order="sorted"), indent=1) + b"\n"
    except UnicodeEncodeError:
        raise ConfigError("A path that is no UTF-8 cannot be kept.") from None
