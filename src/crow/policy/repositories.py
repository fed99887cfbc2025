"""Finds git directories, hooks and configuration that may have been planted, as git obeys them and runs what they name.
Git obeys the configuration that it finds from a folder on, and that configuration names programs to run: so a folder
that looks like a git directory is protected like `.git`, and a rule covers git only in the repository that the
workspace's own folder belongs to. What git's configuration names outside `.git` is obeyed too: folders of hooks
(`core.hooksPath`), which are run as those in `.git/hooks` are, and further files of configuration. The configurations
of the repositories that a path lies in are read, those of the person, and what they include; each is read once for each
of its states.
"""

import io
import os
import re
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache

from crow.paths import is_inside
from crow.policy.base import names
from crow.visible import code

DEEPEST = 100
"""Folders of a path that are looked at; a path with more is taken for a protected one."""
_NEEDED = ("HEAD", "objects", "refs", "commondir")


def looks_like_git_directory(folder: str, also: str = "") -> bool:
    """Whether git would take the folder for a git directory if it also held something of this name."""

    def has(name: str) -> bool:
        return also == name or os.path.lexists(f"{folder}/{name}")

    return has("HEAD") and (has("commondir") or (has("objects") and has("refs")))


def is_in_git_directory(path: str) -> bool:
    """Whether a path lies in what looks like a git directory, or would make its folder one."""
    parts = path.split("/")
    if len(parts) > DEEPEST:
        return True
    folder = ""
    for part in parts[1:]:
        name = next((needed for needed in _NEEDED if needed.casefold() == part.casefold()), "")
        if looks_like_git_directory(folder or "/", name):
            return True
        folder = f"{folder}/{part}"
        if not os.path.isdir(folder):
            return False
    return looks_like_git_directory(folder)


def is_in_another_repository(path: str, root: str) -> bool:
    """Whether a folder below the root, on the way to a path in it, is a repository or a submodule of its own."""
    folder = root
    for part in path[len(root) :].split("/"):
        folder = f"{folder}/{part}" if part else folder
        if part in ("", ".", ".."):
            continue  # looked at already
        if os.path.lexists(f"{folder}/.git"):
            return True
        if not os.path.lexists(folder):
            return False
    return False


def why_repository_untrusted(folder: str, roots: Sequence[str]) -> str | None:
    """Why git would obey a repository from there on that may have been planted; None if it would not.

    The repository is found as git finds it: from the folder upwards, a `.git` before a folder that is bare.
    """
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isfile(git):
            return _led_astray(folder, git, roots)
        if os.path.lexists(git):
            return None if os.path.realpath(git) == git else f"{code(git)} is a link"
        if looks_like_git_directory(folder):
            return f"{code(folder)} is itself a git directory, whose configuration git would follow"
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


def _led_astray(folder: str, git: str, roots: Sequence[str]) -> str | None:
    """A `.git` file, as worktrees and submodules have one, may lead out of the workspace, or to a real `.git`."""
    target = target_of_git_file(folder, git)
    if target is None:
        return f"{code(git)} cannot be read"
    if ".git" in target.split("/") or not any(is_inside(target, root) for root in roots):
        return None
    return f"{code(git)} points to another folder of the workspace"


def target_of_git_file(folder: str, git: str) -> str | None:
    """Where a `.git` file leads; None if it cannot be read."""
    text = read_start(git, 5000)
    if text is None:
        return None
    return os.path.realpath(os.path.join(folder, os.fsdecode(text).removeprefix("gitdir:").strip()))


def common_directory(git: str) -> str:
    """The `.git` that a worktree's shares with others."""
    text = read_start(os.path.join(git, "commondir"), 5000)
    return os.path.realpath(os.path.join(git, os.fsdecode(text).strip()) if text is not None else git)


def read_start(path: str, most: int) -> bytes | None:
    """The first bytes of a file; None if it cannot be read, or is none: a pipe would keep whoever opens it waiting."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        try:
            return _read_whole(file, most)
        except OSError:
            return None


def _read_whole(file: io.FileIO, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := file.read(most)):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def repository_of(folder: str) -> tuple[str, str] | None:
    """The folder from which on a repository's files lie, and its git directory, as git finds them from a folder."""
    while True:
        git = os.path.join(folder, ".git")
        if os.path.lexists(git):
            target = target_of_git_file(folder, git) if os.path.isfile(git) else git
            return (folder, target) if target is not None else None
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


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
_SECTION = re.compile(r"\s*\[\s*([\w.-]++)[^\]\n]*\]")
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


def obeyed_in_worktree(folder: str) -> str | None:
    """What lies among a repository's own files although git obeys it: hooks, or configuration that is included."""
    found = repository_of(folder)
    if found is None:
        return None
    top, git = found
    return next(
        (named for named in _named_by_configuration(top, git) if is_inside(named, top) and not is_inside(named, git)),
        None,
    )


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
