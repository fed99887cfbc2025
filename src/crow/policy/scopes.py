"""What a person is offered to allow for longer than once: sensibly general, and never more than the label says."""

import os
from collections.abc import Sequence

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.paths import is_inside, relative_to, shown
from crow.policy.base import Scope, Where
from crow.policy.globs import SPECIAL
from crow.visible import title_line

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
    if SPECIAL & set(name) or name.startswith("~"):
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
