"""Judges each thing that a deed does (paths, command, host, tool) by rules and mode: one verdict for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import assert_never

import msgspec

from crow.actions import Deed
from crow.messages import SERVER_TOOL
from crow.paths import is_inside, shown
from crow.policy.base import Allow, Ask, Deny, Mode, Origin, Scope, Verdict, Where, said
from crow.policy.commands import CommandPattern
from crow.policy.grants import command_scope, host_scope, read_scope, tool_scope, write_scope
from crow.policy.mode_defaults import ALWAYS_ASKED, Aspect, decision_of
from crow.policy.nested_commands import FoundCommands, find_commands
from crow.policy.path_words import ExecutionContext
from crow.policy.paths import what_secret_in, why_protected
from crow.policy.protected_links import why_linked
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
    reason = why or f"A rule wants you to be asked each time: {said(ready.rule)}."
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
        if why := _why_protected(path, situation):
            return Aspect.WRITE_PROTECTED, why
        return Aspect.WRITE_INSIDE if inside else Aspect.WRITE_OUTSIDE, ""
    if what := what_secret_in(path, situation.private, situation.readable):
        return Aspect.READ_SECRET, what
    return Aspect.READ_INSIDE if inside else Aspect.READ_OUTSIDE, ""


def _why_protected(path: str, situation: Situation) -> str:
    why = why_protected(path, situation.private) or situation.programs().get(path.casefold(), "")
    return why or (why_linked(path, situation.roots) if situation.contains(path) else "")


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
            return f"{name} may hold {detail}, and the model would see them."
        case Aspect.READ_OUTSIDE | Aspect.WRITE_OUTSIDE:
            return f"{name} lies outside the workspace."
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
            return _covered(deed.command, rules, execution)
        except NotCovered as found:
            why = str(found)
    suggestion = cache(lambda: suggest(deed.command, execution))
    return _by_mode(situation.mode, Aspect.TERMINAL, why, lambda where: command_scope(deed.tool, suggestion(), where))


def _hit_verdict(revealed: FoundCommands, denying: list[ReadyRule], asking: list[ReadyRule]) -> Deny | Ask | None:
    strike = first_hit(revealed, _patterns(denying))
    if strike is not None and strike.certain:
        return _refusal(denying[strike.number])
    tightening = denying or asking
    if strike is not None or not revealed.complete:
        rule = denying[strike.number] if strike is not None else tightening[0]
        return _question(rule, f"It cannot be told whether the line runs what a rule is about ({said(rule.rule)}).")
    strike = first_hit(revealed, _patterns(asking))
    return _question(asking[strike.number]) if strike is not None else None


def _covered(line: str, rules: list[ReadyRule], execution: ExecutionContext) -> Allow:
    used = list(dict.fromkeys(coverage(line, _patterns(rules), execution)))
    names = ", ".join(said(rules[number].rule) for number in used)
    return Allow(names, rules[used[0]].known.origin)


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
    host = deed.host or "A host on the web"
    return _by_mode(situation.mode, Aspect.WEB, f"{host} would be asked.", lambda where: host_scope(deed, where))


def _judge_tool(deed: Deed, situation: Situation, aspect: Aspect, offer: Offer) -> Verdict:
    why = ""
    if aspect not in ALWAYS_ASKED:
        for ready in _allowing(deed.tool, aspect, situation):
            if ready.whole_tool and ready.is_about(deed.digest):
                return Allow(said(ready.rule), ready.known.origin)
            if ready.whole_tool:
                why = f"You allowed `{deed.tool}`, but it changed: its server, its description or its arguments."
    return _by_mode(situation.mode, aspect, why, offer)


def _by_mode(mode: Mode, aspect: Aspect, why: str, offer: Offer) -> Verdict:
    decision = decision_of(mode, aspect)
    match decision:
        case "allow":
            return Allow(aspect)
        case "deny":
            return Deny(aspect, f"the mode is `{mode}`, in which {aspect} is not allowed.")
        case "ask":
            return Ask(aspect, why, Origin.BUILT_IN, offer("session"), offer("project"))
        case _:
            assert_never(decision)
