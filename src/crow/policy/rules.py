"""The built-in rules: what goes without asking, and what asks."""

import os
from collections.abc import Sequence

from crow.actions import Deed
from crow.paths import is_inside
from crow.policy.base import Allow, Ask, Scope, Verdict
from crow.policy.paths import is_secret


class BuiltInPolicy:
    """Reading inside the workspace goes. Reading outside asks, and so does a secret, wherever it is."""

    def __init__(self, roots: Sequence[str], private: Sequence[str]) -> None:
        self._roots = tuple(roots)
        self._private = tuple(private)
        self._granted: list[Scope] = []

    def judge(self, deed: Deed) -> Verdict:
        for path in deed.reads:
            if self.is_secret(path):
                reason = f"{path} may hold keys or passwords, and the model would see them."
                return Ask("a secret asks", reason)
            if not self._covers(path) and not self._was_granted(deed.tool, path):
                reason = f"{path} lies outside the workspace."
                return Ask("a read outside the workspace asks", reason, _folder_scope(deed.tool, path))
        return Allow("reading in the workspace goes")

    def is_secret(self, path: str) -> bool:
        return is_secret(path, self._private)

    def remember(self, scope: Scope) -> None:
        self._granted.append(scope)

    def _covers(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self._roots)

    def _was_granted(self, tool: str, path: str) -> bool:
        return any(scope.tool == tool and is_inside(path, scope.folder) for scope in self._granted)


def _folder_scope(tool: str, path: str) -> Scope | None:
    """The path's folder, unless that would be the whole disk or a home: too much to say yes to in passing."""
    folder = os.path.dirname(path)
    if folder in ("/", os.path.expanduser("~"), "/home", "/root"):
        return None
    return Scope(f"Allow reading in {folder} for this session", tool, folder)
