"""Judges each thing that a deed does by rules and mode, joins the verdicts into the strictest, and explains them.

The things are paths, commands, hosts and tools. Deny beats ask beats allow.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import assert_never

import msgspec

from crow.actions import Deed
from crow.messages import SERVER_TOOL
from crow.paths import is_inside, shown
from crow.policy.base import (
    ALWAYS_ASKED,
    Allow,
    Ask,
    Aspect,
    Deny,
    Mode,
    Origin,
    Scope,
    Verdict,
    Where,
    decision_of,
    said,
)
from crow.policy.commands import CommandPattern
from crow.policy.grants import command_scope, host_scope, read_scope, tool_scope, write_scope
from crow.policy.nested_commands import FoundCommands, find_commands
from crow.policy.path_words import ExecutionContext
from crow.policy.paths import what_secret_in, why_linked, why_protected
from crow.policy.rule_matching import ReadyRule, RuleBook
from crow.policy.shell import NotCovered, coverage, first_hit, suggest
from crow.results import MAY_CHANGE, ToolKind
from crow.visible import code

Offer = Callable[[Where], Scope | None]

_QUIET_TOOLS = frozenset({"plan", "ask", "task", "terminal_read", "terminal_stop", "find_tools"})
"""Tools of ours that touch nothing by themselves; what a subagent does is judged call by call."""


class Situation(msgspec.Struct, frozen=True):
    """Everything that a judgement depends on."""

    book: RuleBook
    mode: Mode
    roots: tuple[str, ...]
    private: tuple[str, ...]
    readable: tuple[str, ...] = ()
    """Folders within the private ones that hold nothing secret by being there."""
    programs: Callable[[], Mapping[str, str]] = dict[str, str]
    """Files of the workspace that servers of the session run, with what is said of each."""

    def contains(self, path: str) -> bool:
        return any(is_inside(path, root) for root in self.roots)


def verdicts(deed: Deed, situation: Situation) -> list[Verdict]:
    is_doubted = deed.from_text and situation.mode == "auto"
    if is_doubted:
        # It may be a quotation of a file or a page, which trust in the model does not cover.
        situation = msgspec.structs.replace(situation, mode="ask")
    if whole := _about_whole_tool(deed, situation):
        return [whole]
    if is_doubted and deed.tool == "task":
        return [_judge_tool(deed, situation, Aspect.UNKNOWN, _no_offer)]  # the subagent's own calls are real ones
    return list(_parts(deed, situation))


def _parts(deed: Deed, situation: Situation) -> Iterator[Verdict]:
    judged, of_server = False, deed.tool.startswith(SERVER_TOOL)
    for path, written in (*((path, True) for path in deed.writes), *((path, False) for path in deed.reads)):
        yield _judge_path(deed, path, situation, written=written)
        judged = True
    if name := next((name for name in deed.read_as if what_secret_in(name, (), ())), ""):
        yield _judge_path(deed, name, situation, written=False)
    if deed.command:
        yield _judge_command(deed, situation)
        judged = True
    if deed.host or (deed.kind is ToolKind.FETCH and not judged and not of_server):
        yield _judge_host(deed, situation)
        judged = True
    if of_server:
        yield _judge_tool(deed, situation, Aspect.MCP, lambda where: tool_scope(deed, where))
    elif deed.kind is ToolKind.SWITCH_MODE:
        yield _by_mode(situation.mode, Aspect.LEAVE_MODE, "", _no_offer)
    elif not judged:
        quiet = deed.tool in _QUIET_TOOLS or deed.kind not in MAY_CHANGE
        yield _judge_tool(deed, situation, Aspect.NOTHING if quiet else Aspect.UNKNOWN, _no_offer)


def _no_offer(where: Where) -> Scope | None:
    return None


# --- rules that tighten


def _about_whole_tool(deed: Deed, situation: Situation) -> Verdict | None:
    for ready in situation.book.denying(deed.tool):
        if ready.whole_tool:
            return _refusal(ready)
    asking = next((ready for ready in situation.book.asking(deed.tool) if ready.whole_tool), None)
    if asking is None:
        return None
    # A rule that asks is weaker than one that refuses a part of it, and than a mode that refuses.
    stricter = next((verdict for verdict in _parts(deed, situation) if isinstance(verdict, Deny)), None)
    return stricter or _question(asking)


def _refusal(ready: ReadyRule) -> Deny:
    return Deny(said(ready.rule), f"a rule forbids it ({said(ready.rule)}; {ready.known.origin}).", ready.known.origin)


def _question(ready: ReadyRule, why: str = "") -> Ask:
    reason = why or f"A rule says to ask each time: {said(ready.rule)}."
    return Ask(said(ready.rule), reason, ready.known.origin)


# --- paths


def _judge_path(deed: Deed, path: str, situation: Situation, *, written: bool) -> Verdict:
    for ready in situation.book.denying(deed.tool):
        if ready.glob is not None and ready.glob.matches(path):
            return _refusal(ready)
    aspect, detail = _aspect_of(path, situation, written=written)
    for ready in situation.book.asking(deed.tool):
        if ready.glob is not None and ready.glob.matches(path) and decision_of(situation.mode, aspect) != "deny":
            return _question(ready)
    if aspect not in ALWAYS_ASKED and (ready := _allowing_path(deed.tool, path, aspect, situation)):
        return Allow(said(ready.rule), ready.known.origin)

    def offer(where: Where) -> Scope | None:
        if aspect is Aspect.WRITE_INSIDE:
            return write_scope(deed.tool, path, situation.roots, where)
        # A folder outside the workspace is no matter of the project, so it is offered for the session alone.
        return read_scope(deed.tool, path, where) if aspect is Aspect.READ_OUTSIDE and where == "session" else None

    return _by_mode(situation.mode, aspect, _why(aspect, path, detail), offer)


def _aspect_of(path: str, situation: Situation, *, written: bool) -> tuple[Aspect, str]:
    """What is done with the path; and what it triggers, or may hold."""
    inside = situation.contains(path) and "/../" not in path and not path.endswith("/..")
    if written:
        why = why_protected(path, situation.private) or situation.programs().get(path.casefold(), "")
        if why := why or (why_linked(path, situation.roots) if situation.contains(path) else ""):
            return Aspect.WRITE_PROTECTED, why
        return Aspect.WRITE_INSIDE if inside else Aspect.WRITE_OUTSIDE, ""
    if what := what_secret_in(path, situation.private, situation.readable):
        return Aspect.READ_SECRET, what
    return Aspect.READ_INSIDE if inside else Aspect.READ_OUTSIDE, ""


def _allowing_path(tool: str, path: str, aspect: Aspect, situation: Situation) -> ReadyRule | None:
    """A rule without a path means the workspace: what lies outside has to be named."""
    inside = aspect in (Aspect.READ_INSIDE, Aspect.WRITE_INSIDE)
    for ready in _allowing(tool, aspect, situation):
        if ready.glob.matches(path) if ready.glob is not None else ready.whole_tool and inside:
            return ready
    return None


def _allowing(tool: str, aspect: Aspect, situation: Situation) -> list[ReadyRule]:
    """No rule opens what the mode refuses: in `plan` nothing is changed."""
    return [] if decision_of(situation.mode, aspect) == "deny" else situation.book.allowing(tool)


def _why(aspect: Aspect, path: str, detail: str) -> str:
    name = code(shown(path))
    match aspect:
        case Aspect.READ_SECRET:
            return f"{name} may contain {detail}, which the model would see."
        case Aspect.READ_OUTSIDE | Aspect.WRITE_OUTSIDE:
            return f"{name} is outside the workspace."
        case Aspect.WRITE_PROTECTED:
            return f"{name} is protected: {detail}."
        case _:
            return ""  # the question itself says what would be changed


# --- commands


def _judge_command(deed: Deed, situation: Situation) -> Verdict:
    denying = [ready for ready in situation.book.denying(deed.tool) if ready.pattern is not None]
    asking = [ready for ready in situation.book.asking(deed.tool) if ready.pattern is not None]
    refused = decision_of(situation.mode, Aspect.TERMINAL) == "deny"
    if denying or asking:
        revealed = find_commands(deed.command)
        verdict = _hit_verdict(revealed, denying, asking)
        if isinstance(verdict, Deny) or (verdict is not None and not refused):
            return verdict
    execution = ExecutionContext(situation.roots, situation.private, deed.cwd or situation.roots[0], deed.beside)
    why = ""
    allowing = _allowing(deed.tool, Aspect.TERMINAL, situation)
    if whole := next((ready for ready in allowing if ready.whole_tool), None):
        return Allow(said(whole.rule), whole.known.origin)
    rules = [ready for ready in allowing if ready.pattern is not None]
    if rules:
        try:
            used = list(dict.fromkeys(coverage(deed.command, _patterns(rules), execution)))
        except NotCovered as found:
            why = str(found)
        else:
            return Allow(", ".join(said(rules[number].rule) for number in used), rules[used[0]].known.origin)
    suggestion = cache(lambda: suggest(deed.command, execution))
    return _by_mode(situation.mode, Aspect.TERMINAL, why, lambda where: command_scope(deed.tool, suggestion(), where))


def _hit_verdict(revealed: FoundCommands, denying: list[ReadyRule], asking: list[ReadyRule]) -> Deny | Ask | None:
    hit = first_hit(revealed, _patterns(denying))
    if hit is not None and hit[1]:
        return _refusal(denying[hit[0]])
    if hit is not None or not revealed.complete:
        rule = denying[hit[0]] if hit is not None else (denying or asking)[0]
        return _question(rule, f"This may run something that a rule restricts ({said(rule.rule)}).")
    hit = first_hit(revealed, _patterns(asking))
    return _question(asking[hit[0]]) if hit is not None else None


def _patterns(rules: Sequence[ReadyRule]) -> list[CommandPattern]:
    return [ready.pattern for ready in rules if ready.pattern is not None]


# --- hosts and tools


def _judge_host(deed: Deed, situation: Situation) -> Verdict:
    for ready in situation.book.denying(deed.tool):
        if ready.has_host(deed.host):
            return _refusal(ready)
    for ready in situation.book.asking(deed.tool):
        if ready.has_host(deed.host):
            return _question(ready)
    for ready in _allowing(deed.tool, Aspect.WEB, situation):
        if ready.has_host(deed.host) or ready.whole_tool:
            return Allow(said(ready.rule), ready.known.origin)
    host = deed.host or "the web"
    return _by_mode(situation.mode, Aspect.WEB, f"Sends a request to {host}.", lambda where: host_scope(deed, where))


def _judge_tool(deed: Deed, situation: Situation, aspect: Aspect, offer: Offer) -> Verdict:
    why = ""
    if aspect not in ALWAYS_ASKED:
        for ready in _allowing(deed.tool, aspect, situation):
            if ready.whole_tool and ready.is_about(deed.digest):
                return Allow(said(ready.rule), ready.known.origin)
            if ready.whole_tool:
                why = f"`{deed.tool}` has changed since you allowed it: its server, its description or its arguments."
    return _by_mode(situation.mode, aspect, why, offer)


def _by_mode(mode: Mode, aspect: Aspect, why: str, offer: Offer) -> Verdict:
    decision = decision_of(mode, aspect)
    match decision:
        case "allow":
            return Allow(aspect)
        case "deny":
            return Deny(aspect, f"{aspect} is not allowed in `{mode}` mode.")
        case "ask":
            return Ask(aspect, why, Origin.BUILT_IN, offer("session"), offer("project"))
        case _:
            assert_never(decision)


# --- the verdict on the whole


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
            does = "Runs" if deed.command else "Done"
            return f"{does} without asking: {_why_allowed(verdict)}."
        case Deny():
            return f"Refused: {verdict.reason}"
        case Ask():
            why = f": {verdict.rule} needs your permission in this mode." if by_mode else "."
            return " ".join(filter(None, (f"Asks you first{why}", verdict.reason, _offered(verdict))))
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
    if labels:
        return f"You can also choose: {'; '.join(labels)}."
    return "" if ask.reason.endswith("can only be allowed once.") else "It can only be allowed once."
