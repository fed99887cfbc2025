"""Conversations that real clients hold with Crow, and what must have come of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conformance import outside, schema_check
from tests.support.scripts import DONE, edit, reply, run, say


class Judgement(NamedTuple):
    judge: str
    verdict: str
    ok: bool


class Scene(NamedTuple):
    title: str
    script: str
    printed: str
    """Words that the client must have shown."""
    after: str = "one\n"
    """What `notes.txt` holds in the end; in the beginning it holds one line."""
    permission: str = "--approve-all"
    status: int = 0
    """The client's exit status."""


EDIT = reply(edit("notes.txt", "one", "1")) + DONE
COMMAND = reply(run("echo so it is > notes.txt; exit 3")) + DONE
SCENES = [
    Scene("a prompt", reply(say("Hello there.")), "Hello there."),
    Scene(
        "an error",
        "[[reply]]\nevents = [{ fail = { status = 400, message = 'no such tool' } }]",
        "no such tool",
        status=1,
    ),
    Scene("an edit with permission", EDIT, "Edit notes.txt", after="1\n"),
    Scene("a rejected edit", EDIT, "Edit notes.txt", permission="--deny-all", status=5),
    Scene("a command with exit code 3", COMMAND, "exit 3", after="so it is\n"),
]
SESSION = (
    reply(say("Hello there."), when="greet")
    + "[[reply]]\nwhen = 'wait'\nevents = [{ text = 'Once' }, { wait = 600 }]\n"
    + reply(edit("notes.txt", "one", "1"), when="change")
    + DONE
)
WAITING = ("prompt", "wait")
STEPS: list[tuple[tuple[str, ...], str]] = [
    (("sessions", "new"), "created session"),
    (("prompt", "greet"), "Hello there."),
    (WAITING, "[done] cancelled"),
    (("set-mode", "plan"), "mode set: plan"),
    (("prompt", "change"), "not allowed in `plan` mode"),
    (("set", "mode", "edit"), "edit"),
    (("sessions", "list"), "greet"),
    (("sessions", "close"), ""),
]
"""What acpx is told, and words that it must then have shown."""
IN_A_NOTEBOOK = [
    Scene("an edit", EDIT, "Done.", after="1\n"),
    Scene("a command with exit code 3", COMMAND, "Done.", after="so it is\n"),
]


def judge_clients(folder: Path) -> Iterator[Judgement]:
    for scene in SCENES:
        yield _judge(f"{outside.ACPX}, {scene.title}", folder, scene)
    for may_resume in (False, True):
        yield _judge_a_session(folder, may_resume=may_resume)
    for scene in IN_A_NOTEBOOK:
        yield _judge(f"{outside.KERNEL[0]} in Jupyter, {scene.title}", folder, scene, in_a_notebook=True)


def _judge_a_session(folder: Path, *, may_resume: bool) -> Judgement:
    """One process makes the session; another one opens it before the first prompt and works in it."""
    method = "session/resume" if may_resume else "session/load"
    name = f"{outside.ACPX}, a session: new, {method.removeprefix('session/')}, prompt, cancel, set-mode"
    project = folder / method.replace("/", "-")
    project.mkdir()
    (project / "notes.txt").write_text("one\n")
    wrong: list[str] = []
    try:
        acpx = outside.AcpxSession(project, SESSION, may_resume=may_resume)
        for arguments, printed in STEPS:
            is_to_be_cancelled = arguments == WAITING
            exchange = acpx.cancel_after("Once", *arguments) if is_to_be_cancelled else acpx.run(*arguments)
            if exchange.status != 0 or printed not in exchange.printed:
                wrong.append(f"{' '.join(arguments)}: status {exchange.status}, {exchange.printed[-300:]!r}")
        wrong += schema_check.findings(outside.schema(), exchange.record)[:3]
        wrong += _not_as_told(exchange.record, method)
    except outside.Unavailable as why:
        return Judgement(name, f"not asked: {why}", ok=True)
    return Judgement(name, "; ".join(wrong) or "as it should be", not wrong)


def _not_as_told(record: Path, method: str) -> Iterator[str]:
    """What is wrong with the processes that acpx started and with what it asked of them."""
    asked: dict[str, list[str]] = {}
    for line in record.read_text().splitlines():
        entry = json.loads(line)
        if entry["from"] == "client" and "method" in entry["msg"]:
            asked.setdefault(entry["run"], []).append(entry["msg"]["method"])
    first, second, *_ = asked.values()
    if first != ["initialize", "session/new"]:
        yield f"the first process was asked {first}"
    if second[:3] != ["initialize", method, "session/prompt"]:
        yield f"the second process was asked {second}"
    missing = {"session/cancel", "session/set_mode"} - {called for calls in asked.values() for called in calls}
    if missing:
        yield f"acpx did not send {sorted(missing)}"


def _judge(name: str, folder: Path, scene: Scene, *, in_a_notebook: bool = False) -> Judgement:
    project = folder / "".join(letter if letter.isalnum() else "-" for letter in name)
    project.mkdir()
    notes = project / "notes.txt"
    notes.write_text("one\n")
    try:
        if in_a_notebook:
            exchange = outside.kernel_cell(project, scene.script)
        else:
            exchange = outside.acpx_exec(project, scene.script, scene.permission)
        wrong = schema_check.findings(outside.schema(), exchange.record)[:3]
    except outside.Unavailable as why:
        return Judgement(name, f"not asked: {why}", ok=True)
    if exchange.status != scene.status:
        wrong.append(f"exit status {exchange.status}")
    if scene.printed not in exchange.printed:
        wrong.append(f"{scene.printed!r} was not shown")
    if notes.read_text() != scene.after:
        wrong.append(f"the file holds {notes.read_text()!r}")
    return Judgement(
        name, f"{'; '.join(wrong)} ({exchange.printed[-300:]!r})" if wrong else "as it should be", not wrong
    )
