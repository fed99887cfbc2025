"""Why a deed may run, must be asked about or is refused, in lines for a person."""

from typing import assert_never

from crow.actions import Deed
from crow.policy.base import Allow, Ask, Deny, Verdict
from crow.policy.judging import Situation
from crow.visible import one_line


def explain(deed: Deed, verdicts: list[Verdict], situation: Situation) -> str:
    lines = [f"{_subject(deed)} in mode {situation.mode}:"]
    lines += [f"- {_line(verdict)}" for verdict in verdicts]
    return "\n".join(lines)


def _subject(deed: Deed) -> str:
    details = [deed.command, deed.host, *deed.writes, *deed.reads]
    shown = ", ".join(one_line(detail) for detail in details if detail)
    return f"{deed.tool} ({shown})" if shown else deed.tool


def _line(verdict: Verdict) -> str:
    match verdict:
        case Allow():
            return f"goes, by {verdict.rule} ({verdict.origin})"
        case Deny():
            return f"refused, by {verdict.rule} ({verdict.origin}): {verdict.reason}"
        case Ask():
            offered = [scope.label for scope in (verdict.session, verdict.project) if scope is not None]
            once = "; it can only be allowed once" if not offered else f"; on offer: {'; '.join(offered)}"
            why = f": {verdict.reason}" if verdict.reason else ""
            return f"asks, by {verdict.rule} ({verdict.origin}){why}{once}"
        case _:
            assert_never(verdict)
