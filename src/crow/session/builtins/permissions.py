"""/permissions: what may run without asking, why, and taking it back."""

from collections.abc import Sequence

from crow.actions import Deed
from crow.events import CommandInfo, Sent
from crow.policy.base import KnownRule, Origin, Policy
from crow.results import ToolKind
from crow.session.commands import Reply
from crow.turn.conversation import TurnIds
from crow.visible import one_line
from crow.workspace.base import Workspace

USAGE = (
    "`/permissions revoke N` takes a rule back. `/permissions explain COMMAND` says what would happen to a command; "
    "`explain read PATH` and `explain write PATH` say it of a file."
)


class Permissions:
    info = CommandInfo(
        "permissions", "Lists, explains and takes back what may run without asking", "[revoke N | explain COMMAND]"
    )

    def __init__(self, policy: Policy, workspace: Workspace) -> None:
        self._policy = policy
        self._workspace = workspace

    async def run(self, arguments: str, rest: Sequence[Sent], ids: TurnIds) -> Reply:
        verb, _, detail = arguments.partition(" ")
        detail = detail.strip()
        match verb:
            case "":
                return Reply(await self._policy.beside(self._list))
            case "revoke" if detail:
                return Reply(await self._policy.beside(lambda: self._revoke(detail)))
            case "explain" if detail:
                deed = await self._deed(detail)
                return Reply(await self._policy.beside(lambda: self._policy.explain(deed)))
            case _:
                return Reply(USAGE)

    def _list(self) -> str:
        rules = self._policy.rules()
        lines = [f"The mode is `{self._policy.mode}`: it decides where no rule does. Deny beats ask beats allow.\n"]
        lines += [f"{number}. {_line(known)}" for number, known in enumerate(rules, 1)]
        lines += [] if rules else ["There are no rules."]
        return "\n".join([*lines, "", USAGE])

    def _revoke(self, detail: str) -> str:
        rules = self._policy.rules()
        if not detail.isascii() or not detail.isdigit() or not 1 <= int(detail[:9]) <= len(rules):
            return f"There is no rule {one_line(detail, 40)}. `/permissions` shows their numbers."
        known = rules[int(detail) - 1]
        if self._policy.revoke(known.rule):
            return f"Taken back: {_line(known)}."
        where = "the project's `.crow/config.toml`" if known.origin is Origin.PROJECT else "your `config.toml`"
        return f"{_line(known)} is written in {where}. Change it there."

    async def _deed(self, detail: str) -> Deed:
        verb, _, path = detail.partition(" ")
        match verb, path.strip():
            case "read", path if path:
                return Deed("read", ToolKind.READ, reads=((await self._workspace.resolve(path)).real,))
            case "write", path if path:
                return Deed("write", ToolKind.EDIT, writes=(await self._workspace.resolve(path)).judged)
            case _:
                return Deed("terminal", ToolKind.EXECUTE, command=detail, cwd=self._workspace.roots[0])


def _line(known: KnownRule) -> str:
    effect = ", without effect" if known.origin is Origin.PROJECT and known.rule.decision == "allow" else ""
    return one_line(str(known), 500) + effect
