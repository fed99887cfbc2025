"""Conversations that real clients hold with Crow, and what must have come of them."""

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
IN_A_NOTEBOOK = [
    Scene("an edit", EDIT, "Done.", after="1\n"),
    Scene("a command with exit code 3", COMMAND, "Done.", after="so it is\n"),
]


def judge_clients(folder: Path) -> Iterator[Judgement]:
    for scene in SCENES:
        yield _judge(f"{outside.ACPX}, {scene.title}", folder, scene)
    for scene in IN_A_NOTEBOOK:
        yield _judge(f"{outside.KERNEL[0]} in Jupyter, {scene.title}", folder, scene, in_a_notebook=True)


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
