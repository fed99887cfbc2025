"""Secrets and protected paths: what asks in every mode, wherever it lies.

Paths are absolute. Names are compared case-folded, since on many disks `.ENV` is the same file as `.env`. The caller
gives paths with symbolic links resolved; a spelling that is not resolved may be judged beside it, and then both count.
No rule and no "always" lifts what is said here.
"""

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import pairwise

from crow.paths import is_inside
from crow.policy.tables import names

_SECRET_NAMES = (".env*", "*.pem", "*.key", ".netrc", ".npmrc", ".pypirc")
_HARMLESS_NAMES = (".env.example",)
_SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".kube"})
_SECRET_ENDINGS = ("/.docker/config.json", "/etc/shadow")

_START_UP_FILES = names(
    """
    .profile .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .inputrc .zshrc .zshenv .zprofile .zlogin
    .zlogout .kshrc .mkshrc .shrc .cshrc .tcshrc .login .logout .xprofile .xinitrc .xsession .xsessionrc
    .pam_environment
    """
)
_PROTECTED_NAMES = _START_UP_FILES | {
    ".gitconfig",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
    ".envrc",
    ".mcp.json",
    "agents.md",
    "claude.md",
}
_PROTECTED_FOLDERS = frozenset({".git", ".ssh", ".gnupg", ".vscode", ".idea", ".zed", ".cursor", ".husky", ".crow"})
_PROTECTED_BRANCHES = (
    (".github", "workflows"),
    (".config", "git"),
    (".config", "fish"),
    (".config", "systemd"),
    (".config", "autostart"),
    ("library", "launchagents"),
    ("library", "launchdaemons"),
)
"""Folders within folders, wherever they lie."""
_PROTECTED_SYSTEM = re.compile(
    r"/etc/(profile|profile\.d|bash\.bashrc|bashrc|bash\.bash_logout|zsh|zshenv|zshrc|fish|environment|crontab|anacrontab"
    r"|cron\.[^/]+|systemd|init\.d|rc\.local|xdg/autostart)(/.*)?"
    r"|/var/spool/(cron|at)(/.*)?|(/usr)?(/local)?/lib/systemd(/.*)?|/run/systemd(/.*)?"
)
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Some disks leave these out when they compare names, so that `.g\\u200cit` is `.git`."""


def is_secret(path: str, private: Sequence[str] = ()) -> bool:
    """Whether reading the path may show credentials. `private` names folders that are secret as a whole."""
    folded = _folded(path)
    folder, name = os.path.split(folded)
    if name not in _HARMLESS_NAMES and any(fnmatchcase(name, pattern) for pattern in _SECRET_NAMES):
        return True
    if not _SECRET_FOLDERS.isdisjoint(folded.split("/")) or folded.endswith(_SECRET_ENDINGS):
        return True
    if folder.startswith("/proc/") and name == "environ":
        return True
    return any(is_inside(folded, _folded(root)) for root in private)


def is_protected(path: str, private: Sequence[str] = ()) -> bool:
    """Whether writing the path could make something run later, or change what Crow may do; secrets count too."""
    folded = _folded(path)
    parts = folded.split("/")
    if parts[-1] in _PROTECTED_NAMES or not _PROTECTED_FOLDERS.isdisjoint(parts):
        return True
    if any(branch in _PROTECTED_BRANCHES for branch in pairwise(parts)):
        return True
    return _PROTECTED_SYSTEM.fullmatch(folded) is not None or is_secret(path, private)


def _folded(path: str) -> str:
    return _INVISIBLE.sub("", os.path.normpath(path)).casefold()
