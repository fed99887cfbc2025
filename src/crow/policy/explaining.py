"""Why a deed may run, must be asked about or is refused, in lines for a person."""

from typing import assert_never

from crow.actions import Deed
from crow.markdown import code
from crow.policy.base import Allow, Ask, Deny, Origin, Verdict
from crow.policy.judging import Situation
from crow.policy.modes import Aspect


def explain(deed: Deed, verdicts: list[Verdict], situation: Situation) -> str:
    lines = [f"{_subject(deed)}, in mode `{situation.mode}`:"]
    lines += [f"- {_line(verdict, deed)}" for verdict in verdicts]
    return "\n".join(lines)


def _subject(deed: Deed) -> str:
    if deed.command:
        return f"The command {code(deed.command)}"
    for verb, details in (("Writing", deed.writes), ("Reading", deed.reads), ("Asking", (deed.host,))):
        if any(details):
            return f"{verb} {', '.join(map(code, details))}"
    return f"The tool {code(deed.tool)}"


def _line(verdict: Verdict, deed: Deed) -> str:
    by_mode = verdict.origin is Origin.BUILT_IN
    match verdict:
        case Allow():
            does = "runs" if deed.command else "is done"
            return f"It {does} without asking: {_why_allowed(verdict)}."
        case Deny():
            return f"It is refused: {verdict.reason}"
        case Ask():
            why = f": {verdict.rule} needs your permission in this mode." if by_mode else "."
            return " ".join(filter(None, (f"You are asked first{why}", verdict.reason, _offered(verdict))))
        case _:
            assert_never(verdict)


def _why_allowed(verdict: Allow) -> str:
    if verdict.origin is not Origin.BUILT_IN:
        return f"a rule allows it ({verdict.rule}; {verdict.origin})"
    if verdict.rule == Aspect.NOTHING:
        return f"it does {verdict.rule}"
    return f"{verdict.rule} needs no permission in this mode"


def _offered(ask: Ask) -> str:
    labels = [scope.label for scope in (ask.session, ask.project) if scope is not None]
    return f"Besides a single yes you can choose: {'; '.join(labels)}." if labels else "It can only be allowed once."
