"""A small workspace, and policies over it."""

from pathlib import Path

import msgspec

from crow.actions import Deed
from crow.config.settings import PermissionRule
from crow.policy.base import Allow, Ask, Deny, Mode, Verdict
from crow.policy.rule_policy import RulePolicy
from crow.results import ToolKind


def allow(command: str) -> PermissionRule:
    return PermissionRule("terminal", "allow", command=command)


def deny(command: str) -> PermissionRule:
    return PermissionRule("terminal", "deny", command=command)


class Workshop(msgspec.Struct):
    """The workspace `work` with a neighbour `outside`, and links from the one to the other."""

    root: str
    outside: str
    home: str

    @classmethod
    def build(cls, folder: Path) -> "Workshop":
        folder = folder.resolve()
        for name in ("work/src/deep", "work/.git/hooks", "work/.github/workflows", "outside", "home"):
            (folder / name).mkdir(parents=True)
        for name in ("work/a.txt", "work/b.txt", "work/.env", "work/src/app.py", "outside/secret.txt", "home/x"):
            (folder / name).write_text("text\n")
        (folder / "work/run.sh").write_text("#!/bin/sh\n")
        (folder / "work/link").symlink_to(folder / "outside/secret.txt")
        (folder / "work/folder-link").symlink_to(folder / "outside")
        (folder / "work/innocent").symlink_to(folder / "work/.env")
        return cls(str(folder / "work"), str(folder / "outside"), str(folder / "home"))

    def policy(
        self, *rules: PermissionRule, mode: Mode = "ask", project: tuple[PermissionRule, ...] = ()
    ) -> RulePolicy:
        return RulePolicy([self.root], [self.home], mode=mode, user_rules=rules, project_rules=project)

    def line(self, command: str, cwd: str = "") -> Deed:
        return Deed("terminal", ToolKind.EXECUTE, command=command, cwd=cwd or self.root)

    def read(self, path: str) -> Deed:
        return Deed("read", ToolKind.READ, reads=(self.path(path),))

    def write(self, path: str, tool: str = "write") -> Deed:
        return Deed(tool, ToolKind.EDIT, writes=(self.path(path),))

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self.root}/{path}"


def word(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return "allow"
        case Ask():
            return "ask"
        case Deny():
            return "deny"
