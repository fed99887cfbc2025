"""What the person allowed for a project: kept on their side, in `$CROW_HOME/grants.json`, never in the repository.

The file belongs to every Crow that runs: it is read again when another one changed it, and written as a whole.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from crow.config.locking import locked
from crow.config.settings import PermissionRule
from crow.config.versioned_json import Versioned, read_versioned, write_versioned
from crow.errors import ConfigError

GRANTS_NAME = "grants.json"
_VERSION = 1


class _Grants(Versioned, frozen=True):
    projects: dict[str, list[PermissionRule]]


_Stamp = tuple[int, int, int]


class _Known(NamedTuple):
    """The grants as they were read at one moment: one value, since several threads judge at a time."""

    stamp: _Stamp | None = None
    rules: tuple[PermissionRule, ...] = ()
    warning: str = ""


def is_superseded(rule: PermissionRule, by: Sequence[PermissionRule]) -> bool:
    """By the same rule, or by the same one for what a tool has become."""
    return any(msgspec.structs.replace(rule, digest=other.digest) == other for other in by)


class Grants:
    """The grants of one project. A file that cannot be read grants nothing, and `warning` says so."""

    def __init__(self, home: str, project: str) -> None:
        self._path = os.path.join(home, GRANTS_NAME)
        self._project = os.path.realpath(project)
        self._known = _Known()

    @property
    def warning(self) -> str:
        return self._known.warning

    def rules(self, *, anew: bool = True) -> tuple[PermissionRule, ...]:
        """What is granted now: one look at the file's date, unless it changed. Not `anew`: as it was at the last look,
        for whoever may not touch a disk.
        """
        known = self._known
        if anew and (stamp := self._look()) != known.stamp:
            known = self._known = self._load(stamp)
        return known.rules

    def add(self, rules: tuple[PermissionRule, ...]) -> None:
        """ConfigError if it cannot be kept."""
        self._change(lambda kept: [*(rule for rule in kept if not is_superseded(rule, rules)), *rules])

    def remove(self, rule: PermissionRule) -> bool:
        if rule not in self.rules():
            return False
        self._change(lambda kept: [other for other in kept if other != rule])
        return True

    def _load(self, stamp: _Stamp | None) -> _Known:
        try:
            granted = self._read().projects.get(self._project, [])
        except ConfigError as error:
            return _Known(stamp, warning=str(error))
        # The file can only grant: what refuses or asks is written in a config, where a person looks for it.
        return _Known(stamp, tuple(rule for rule in granted if rule.decision == "allow"))

    def _look(self) -> _Stamp | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size

    def _read(self) -> _Grants:
        return read_versioned(self._path, _Grants(_VERSION, {}), "nothing is allowed by it")

    def _change(self, change: Callable[[list[PermissionRule]], list[PermissionRule]]) -> None:
        with locked(self._path):
            grants = self._read()
            rules = change(grants.projects.get(self._project, []))
            projects = {**grants.projects, self._project: rules}
            write_versioned(self._path, _Grants(_VERSION, {root: kept for root, kept in projects.items() if kept}))
        self._known = self._load(self._look())
