"""Runs everything that shows how Crow keeps the protocol, and writes docs/conformance.md.

    python -m tests.conformance

Exit status 1 if a rule is broken, if a rule that applies is shown by no test, or if a judge found something.
"""

import importlib.metadata
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

from crow import __version__
from tests.conformance import conversations, digest, outside, recordings, schema_check, session_conversations
from tests.conformance.clients import Judgement, judge_clients
from tests.conformance.joining import judge_joining
from tests.conformance.llama import judge_llama
from tests.conformance.mcp_sdk import judge_mcp
from tests.conformance.web_sdk import judge_web

PROJECT = Path(__file__).parent.parent.parent
REPORT = PROJECT / "docs" / "conformance.md"


class Rule(NamedTuple):
    id: str
    rule: str
    state: str
    tests: dict[str, str]
    """Outcome by test."""

    @property
    def result(self) -> str:
        bad = [name for name, outcome in self.tests.items() if outcome == "failed"]
        if bad:
            return f"**broken** ({', '.join(bad)})"
        if self.state:
            # What is not offered is not kept either: a test here only shows that it is refused as it should be.
            return self.state + (", and refused" if self.tests else "")
        return "kept" if "passed" in self.tests.values() else "**not shown**"

    @property
    def ok(self) -> bool:
        return "**" not in self.result


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="crow-conformance-") as name:
        folder = Path(name)
        outcomes = run_tests(folder / "outcomes.json")
        judgements = [judge_recordings(folder), judge_digest(), *judge_clients(folder), *judge_joining(folder)]
        judgements += [*judge_web(folder), *judge_mcp(folder), *judge_llama(folder)]
    rules = read_rules(outcomes)
    REPORT.write_text(report(rules, judgements, len(outcomes)))
    broken = [rule for rule in rules if not rule.ok]
    for rule in broken:
        print(f"{rule.id}: {rule.rule} {rule.result}")
    for judgement in judgements:
        print(f"{judgement.judge}: {judgement.verdict}")
    print(
        f"{len(rules) - len(broken)} of {len(rules)} rules are kept or do not apply; see {REPORT.relative_to(PROJECT)}"
    )
    return int(bool(broken) or not all(judgement.ok for judgement in judgements))


def run_tests(path: Path) -> dict[str, dict]:
    """Every test that carries a rule, by name: its rules and its outcome."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "rule", f"--rules-to={path}", "--processes", "auto"]
    subprocess.run(command, cwd=PROJECT)
    return json.loads(path.read_text())


def read_rules(outcomes: dict[str, dict]) -> list[Rule]:
    written = tomllib.loads((Path(__file__).parent / "rules.toml").read_text())
    unknown = {id for test in outcomes.values() for id in test["rules"]} - set(written)
    if unknown:
        raise SystemExit(f"tests name rules that are not written down: {sorted(unknown)}")
    return [Rule(id, entry["rule"], entry.get("state", ""), tests_of(id, outcomes)) for id, entry in written.items()]


def tests_of(rule: str, outcomes: dict[str, dict]) -> dict[str, str]:
    """The tests that show a rule, their variants counted as one; one that fails makes it failed."""
    found: dict[str, str] = {}
    for name, test in outcomes.items():
        if rule in test["rules"]:
            plain = name.partition("[")[0].removeprefix("tests/")
            if found.get(plain) != "failed":
                found[plain] = test["outcome"]
    return found


def judge_recordings(folder: Path) -> Judgement:
    name = f"the protocol's JSON schema ({outside.SDK}) and its prose"
    records = [*conversations.record_all(folder), *session_conversations.record_all(folder)]
    shared = session_conversations.record_shared(folder)
    unshown = recordings.missing(*records, *shared)
    records += conversations.golden(folder)
    try:
        schema = outside.schema()
    except outside.Unavailable as why:
        return Judgement(name, "; ".join([f"not asked: {why}", *unshown]), ok=not unshown)
    found = schema_check.findings(schema, *records) + schema_check.findings(schema, *shared, shared=True) + unshown
    every = "every method and every kind of update is shown"
    verdict = "; ".join(found[:10]) or f"found nothing in {len(records + shared)} recorded conversations; {every}"
    return Judgement(name, verdict, ok=not found)


def judge_digest() -> Judgement:
    name = f"our types, and the names and shapes of the unstable schema ({outside.SDK})"
    try:
        is_it = digest.DIGEST.read_text() == digest.written(digest.digest(outside.unstable_schema()))
    except outside.Unavailable as why:
        return Judgement(name, f"not asked: {why}", ok=True)
    stale = "tests/conformance/protocol.json is not what the package has: python -m tests.conformance.digest"
    return Judgement(name, "compared, with every difference listed" if is_it else stale, ok=is_it)


def report(rules: list[Rule], judgements: list[Judgement], tests: int) -> str:
    kept = sum(rule.result == "kept" for rule in rules)
    waiting = sum(rule.ok and rule.result != "kept" for rule in rules)
    broken = len(rules) - kept - waiting
    sdk = importlib.metadata.version("agent-client-protocol")
    lines = [
        "# How Crow keeps the protocol",
        "",
        "Written by `make conformance`; do not edit. Each rule of the Agent Client Protocol (version 1), and each",
        "choice that it leaves to an agent, with the tests that show it.",
        "",
        f"- Crow {__version__}, {time.strftime('%Y-%m-%d')}, Python {sys.version.partition(' ')[0]}",
        f"- {len(rules)} rules: {kept} kept, {waiting} do not apply yet, {broken} broken or not shown",
        f"- {tests} tests; in those that talk to Crow through the tests' own editor, every message that it sent was",
        f"  validated with the models of the official Python SDK {sdk}",
        *(f"- {judgement.judge}: {judgement.verdict}" for judgement in judgements),
        "",
        "| rule | what it says | tests | result |",
        "|---|---|---|---|",
        *(f"| {rule.id} | {rule.rule} | {_listed(rule.tests)} | {rule.result} |" for rule in rules),
    ]
    return "\n".join(lines) + "\n"


def _listed(tests: dict[str, str]) -> str:
    """A few tests in full, the others by number."""
    names = [f"`{name}`" for name in sorted(tests)]
    return "<br>".join(names[:4]) + (f"<br>and {len(names) - 4} more" if len(names) > 4 else "")


if __name__ == "__main__":
    sys.exit(main())
