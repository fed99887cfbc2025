"""What git's configuration names outside `.git`: folders of hooks (`core.hooksPath`), which are run as those in
`.git/hooks` are, and further files of configuration.

The configurations of the repositories that a path lies in are read, those of the person, and what they include; each
is read once for each of its states.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from crow.paths import is_inside
from crow.policy.repositories import common_directory, read_start, repository_of
from crow.policy.tables import names

_LARGEST = 256 * 1024
_MOST_INCLUDED = 10
_HOOKS = names(
    """
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman
    post-index-change
    """
)
_SECTION = re.compile(r"\s*\[\s*([\w.-]+)[^\]\n]*\]")
_SETTING = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)")
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\(.)|([^"\\#;]+)|[#;].*')
_WANTED = frozenset({("core", "hookspath"), ("include", "path"), ("includeif", "path")})


def is_obeyed_by_git(path: str) -> bool:
    """Whether an absolute path lies in a folder of hooks, or is a file that git's configuration includes."""
    folder = os.path.dirname(path)
    path = path.casefold()  # as on disks that do not tell upper from lower case
    while found := repository_of(folder):
        top, git = found
        for named in map(str.casefold, _named_by_configuration(top, git)):
            if is_inside(path, named) and (not is_inside(top.casefold(), named) or _is_named_as_hook(path, named)):
                return True
        if top == "/":
            break
        folder = os.path.dirname(top)
    return False


def _is_named_as_hook(path: str, hooks: str) -> bool:
    """For hooks that lie among all the other files of a repository."""
    return os.path.dirname(path) == hooks and os.path.basename(path) in _HOOKS


def _named_by_configuration(top: str, git: str) -> Iterator[str]:
    own = [git, common_directory(git)] if os.path.lexists(f"{git}/commondir") else [git]
    home = os.path.expanduser("~")
    shared = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    waiting = ["/etc/gitconfig", f"{home}/.gitconfig", f"{shared}/git/config"]
    waiting += [f"{folder}/{name}" for folder in own for name in ("config", "config.worktree")]
    left = _MOST_INCLUDED
    while waiting:
        path = waiting.pop()
        for section, value in _settings(path):
            if not value:
                continue
            start = top if section == "core" else os.path.dirname(path)
            named = os.path.normpath(os.path.join(start, os.path.expanduser(value)))
            yield from dict.fromkeys((named, os.path.realpath(named)))
            if section != "core" and left:
                left -= 1
                waiting.append(named)


def _settings(path: str) -> tuple[tuple[str, str], ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return _read_settings(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=64)
def _read_settings(path: str, changed: int, size: int, inode: int) -> tuple[tuple[str, str], ...]:
    """The sections and values of the settings that matter. All but the path only tell the file's states apart."""
    text = os.fsdecode(read_start(path, _LARGEST) or b"").replace("\\\n", "")
    found: list[tuple[str, str]] = []
    section = ""
    for line in text.splitlines():
        begin = 0
        if match := _SECTION.match(line):
            section, begin = match[1].casefold(), match.end()
        if (match := _SETTING.match(line, begin)) and (section, match[1].casefold()) in _WANTED:
            found.append((section, _unquoted(match[2])))
    return tuple(found)


def _unquoted(value: str) -> str:
    return "".join(match[1] or match[2] or match[3] or "" for match in _VALUE.finditer(value)).strip()
