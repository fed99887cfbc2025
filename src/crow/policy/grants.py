"""What an "always" offers to allow, in which words, and the grants of a project, which are stored in `grants.json`.

An offer is sensibly general, and never more than its label says. What was allowed for a project is stored on the
person's side, in `$CROW_HOME/grants.json`, never in the repository.

The file belongs to every Crow that runs: it is read again when another one changed it, and written as a whole.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from crow.actions import Deed
from crow.config.home import Versioned, locked, read_versioned, write_versioned
from crow.config.settings import PermissionRule
from crow.errors import ConfigError
from crow.paths import is_inside, relative_to, shown
from crow.policy.base import GLOB_CHARACTERS, Scope, Where
from crow.visible import title_line

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

    def rules(self, *, reread: bool = True) -> tuple[PermissionRule, ...]:
        """What is granted now: a look at the file's date, unless it changed. Not `reread`: as it was at the last look,
        for whoever may not touch a disk.
        """
        known = self._known
        if reread and (stamp := self._look()) != known.stamp:
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


LONGEST_LABEL = 300
"""Characters that a client can be expected to show."""
_READING = ("read", "find", "search")
_EDITING = ("write", "edit")
_PLACES: dict[Where, str] = {"session": "for this session", "project": "in this project"}


def command_scope(tool: str, commands: tuple[str, ...] | None, where: Where) -> Scope | None:
    """For what `crow.policy.shell.suggest` found."""
    if commands is None:
        return None
    rules = tuple(PermissionRule(tool, "allow", command=command) for command in commands)
    spoken = " and ".join(f"`{_spoken(command)}`" for command in commands)
    return _in_full(f"Allow {spoken} {_PLACES[where]}", rules)


def _spoken(command: str) -> str:
    return command.removesuffix(" *") + " …" if command.endswith(" *") else command


def write_scope(tool: str, path: str, roots: Sequence[str], where: Where) -> Scope | None:
    """The top-level folder that the file lies in, or the file alone; outside the workspace nothing."""
    root = next((root for root in roots if is_inside(path, root)), None)
    if root is None or path == root:
        return None
    top, _, rest = relative_to(path, root).partition("/")
    if root != roots[0]:
        top = os.path.join(root, top)
    glob, place = (f"{top}/**", f"below {shown(top)}/") if rest else (top, f"of {shown(top)}")
    return _path_scope(tool, glob, f"Allow edits {place} {_PLACES[where]}", _EDITING)


def read_scope(tool: str, path: str, where: Where) -> Scope | None:
    """The folder, or the file's folder, unless that is the whole disk or a home: too much to say yes to in passing."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if folder in ("/", os.path.expanduser("~"), "/home", "/root", "/Users"):
        return None
    return _path_scope(tool, f"{folder}/**", f"Allow reading in {shown(folder)} {_PLACES[where]}", _READING)


def _path_scope(tool: str, glob: str, label: str, family: tuple[str, ...]) -> Scope | None:
    name = glob.removesuffix("/**")
    if GLOB_CHARACTERS & set(name) or name.startswith("~"):
        return None  # a name that would be taken for a glob: the rule could cover more than the label says
    tools = family if tool in family else (tool,)
    return _in_full(label, tuple(PermissionRule(tool, "allow", path=glob) for tool in tools))


def host_scope(deed: Deed, where: Where) -> Scope | None:
    if not deed.host or "*" in deed.host:
        return None
    rule = PermissionRule(deed.tool, "allow", host=deed.host)
    return _in_full(f"Allow {deed.tool} to ask {deed.host} {_PLACES[where]}", (rule,))


def tool_scope(deed: Deed, where: Where) -> Scope | None:
    """One tool of a server. A rule for all of them (`mcp__server__*`) is for the person to write."""
    if "*" in deed.tool:
        return None
    rule = PermissionRule(deed.tool, "allow", digest=deed.digest or None)
    return _in_full(f"Allow {deed.tool} {_PLACES[where]}", (rule,))


def _in_full(label: str, rules: tuple[PermissionRule, ...]) -> Scope | None:
    """What is granted is shown in full and as it is, or it is not on offer."""
    return Scope(label, rules) if title_line(label, LONGEST_LABEL) == label else None
