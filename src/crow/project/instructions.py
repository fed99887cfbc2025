"""What a project tells its agents: the AGENTS.md files from the repository's root down to the working directory.

They are read as text, always, and read again when they change; nothing in them is a permission. One that is a link
out of the project, or to a file that may hold secrets, is not read: cloning a repository must not hand over a key.
"""

import os
from collections.abc import Callable, Sequence

from crow.paths import is_inside, shown

NAME = "AGENTS.md"
LARGEST = 64 * 1024


def instruction_files(roots: Sequence[str], is_secret: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """The files there are, and those that lead astray: from each root's repository down, general before special."""
    found: dict[str, None] = {}
    astray: dict[str, None] = {}
    for root in roots:
        folders = _from_repository(root)
        for folder in folders:
            path = os.path.join(folder, NAME)
            target = os.path.realpath(path)
            if is_secret(target) or not is_inside(target, os.path.realpath(folders[0])):
                if os.path.lexists(path):
                    astray[path] = None
            elif os.path.isfile(target):
                found[target] = None
    return list(found), list(astray)


def _from_repository(folder: str) -> list[str]:
    folders = [folder]
    while not os.path.exists(os.path.join(folders[0], ".git")):
        parent = os.path.dirname(folders[0])
        if parent == folders[0]:
            return [folder]  # no repository: only the folder itself speaks
        folders.insert(0, parent)
    return folders


class Instructions:
    """The files' text, read anew only when one of them has changed."""

    def __init__(self, roots: Sequence[str], is_secret: Callable[[str], bool]) -> None:
        self._roots = roots
        self._is_secret = is_secret
        self._state: tuple[tuple[str, int, int], ...] = ()
        self._text = ""

    def astray(self) -> list[str]:
        """Links that are not followed."""
        return instruction_files(self._roots, self._is_secret)[1]

    def text(self) -> str:
        found, _ = instruction_files(self._roots, self._is_secret)
        state = tuple(_state(path) for path in found)
        if state != self._state:
            self._state = state
            self._text = "".join(_quoted(path) for path, _, _ in state)
        return self._text


def _state(path: str) -> tuple[str, int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return path, 0, 0
    return path, status.st_mtime_ns, status.st_size


def _quoted(path: str) -> str:
    try:
        # The target itself, and no link that may have taken its place since.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        return f"\n{shown(path)} could not be read: {error.strerror}.\n"
    text = content[:LARGEST].decode("utf-8", "replace").strip()
    cut = f"\n(cut: only the first {LARGEST // 1024} kB are shown)" if len(content) > LARGEST else ""
    return f"\nFrom {shown(path)}:\n\n{text}{cut}\n" if text else ""
