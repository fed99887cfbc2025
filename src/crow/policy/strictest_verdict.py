"""Joins the verdicts on what a deed does into one, the strictest: deny beats ask beats allow; and explains them to a
person.
"""

from typing import assert_never

from crow.actions import Deed
from crow.policy.base import Allow, Ask, Deny, Mode, Origin, Scope, Verdict
from crow.policy.mode_defaults import Aspect
from crow.visible import code


def strictest_verdict(verdicts: list[Verdict]) -> Verdict:
    """A deed does all that it does, so that the strictest word on a part of it is the word on the whole."""
    for verdict in verdicts:
        if isinstance(verdict, Deny):
            return verdict
    asks = [verdict for verdict in verdicts if isinstance(verdict, Ask)]
    if not asks:
        return next(iter(verdicts), Allow("nothing that needs permission goes"))
    return asks[0] if len(asks) == 1 else _all_of(asks)


def _all_of(asks: list[Ask]) -> Ask:
    """One question for several reasons. What would be remembered must answer each of them, or it is not offered."""
    reason = " ".join(dict.fromkeys(ask.reason for ask in asks if ask.reason))
    session = _joined([ask.session for ask in asks])
    return Ask(asks[0].rule, reason, asks[0].origin, session, _joined([ask.project for ask in asks]))


def _joined(scopes: list[Scope | None]) -> Scope | None:
    offered = list(dict.fromkeys(scopes))
    return offered[0] if len(offered) == 1 else None


# --- why a deed may run, must be asked about or is refused, in lines for a person


def explained(deed: Deed, verdicts: list[Verdict], mode: Mode) -> str:
    lines = [f"{_subject(deed)}, in mode `{mode}`:"]
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
