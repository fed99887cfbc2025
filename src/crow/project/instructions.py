"""What a project tells its agents: the AGENTS.md files from the repository's root down to the working directory.

They are read as text, always, and read again when they change; nothing in them is a permission.
"""

import os
from collections.abc import Sequence

from crow.paths import shown

NAME = "AGENTS.md"
LARGEST = 64 * 1024


def instruction_files(roots: Sequence[str]) -> list[str]:
    """The files there are: for each root from its repository's top to itself, general before special."""
    found: dict[str, None] = {}
    for root in roots:
        for folder in _from_repository(root):
            path = os.path.join(folder, NAME)
            if os.path.isfile(path):
                found[path] = None
    return list(found)


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

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._state: tuple[tuple[str, int, int], ...] = ()
        self._text = ""

    def text(self) -> str:
        state = tuple(_state(path) for path in instruction_files(self._roots))
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
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        return f"\n{shown(path)} could not be read: {error.strerror}.\n"
    text = content[:LARGEST].decode("utf-8", "replace").strip()
    cut = f"\n(cut: only the first {LARGEST // 1024} kB are shown)" if len(content) > LARGEST else ""
    return f"\nFrom {shown(path)}:\n\n{text}{cut}\n" if text else ""
