"""acpx in a session that lives in `crow chat`: it joins while a turn runs, and answers the question of that turn."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.acp.test_attach import GATE
from tests.config.support import crow
from tests.conformance import outside, schema_check
from tests.conformance.clients import Judgement
from tests.support.scripts import DONE, edit, reply, run, say
from tests.support.window import Window

SCRIPT = (
    reply(run(GATE), when="begin")
    + reply(edit("notes.txt", "one", "1"), when="begin")
    + reply(say("Changed."), when="begin")
    + reply(say("Hello there."), when="greet")
    + DONE
)

CODE = re.compile(r"type this code there: (\S{9})")


def judge_joining(folder: Path) -> Iterator[Judgement]:
    for may_resume in (False, True):
        method = "session/resume" if may_resume else "session/load"
        name = f"{outside.ACPX}, joining a running turn of crow chat with {method}"
        project = folder / f"joining-{method.replace('/', '-')}"
        project.mkdir()
        (project / "notes.txt").write_text("one\n")
        try:
            wrong = list(_joined(project, method, outside.AcpxSession(project, SCRIPT, may_resume=may_resume)))
        except outside.Unavailable as why:
            yield Judgement(name, f"not asked: {why}", ok=True)
        except AssertionError as failed:
            yield Judgement(name, f"it did not come so far: {failed}", ok=False)
        else:
            yield Judgement(name, "; ".join(wrong) or "its question is answered by acpx, as it should be", not wrong)


def _joined(project: Path, method: str, acpx: outside.AcpxSession) -> Iterator[str]:
    """What is wrong. acpx takes part in a session of another's making with `sessions new --resume-session`; from its
    first prompt on, which is refused while the chat's turn runs, a process of it stays in the session."""
    home = acpx.home
    with Window(home, "chat", "--cwd", str(project), "begin", CROW_HOME=str(home)) as chat:
        chat.wait_until(lambda: "n  Reject" in chat.text and "a moment" not in chat.text)
        chat.press("y")
        chat.wait_until((project / "began").exists)
        (session,) = json.loads(crow(home, "sessions", "list", "--json", CROW_HOME=str(home)).stdout)
        yield from _not_said(acpx.run("sessions", "new", "--resume-session", session["id"]), "created session")
        yield from _not_said(acpx.run("prompt", "meanwhile"), "You only watch this session", status=1)
        # A command has run: who joins now takes part once its person has typed the code that the chat shows.
        chat.wait_until(lambda: CODE.search(chat.text))
        yield from _not_said(acpx.run("prompt", CODE.findall(chat.text)[-1]), "")
        yield from _not_said(acpx.run("prompt", "meanwhile"), "begun in crow-chat", status=1)
        (project / "go").touch()
        # acpx answers by itself, perhaps before the chat has drawn the question, which it then does not draw at all.
        chat.wait_until("\n\ni Allowed in acpx: Edit notes.txt\n")
        chat.wait_until("Changed.\n\n✓ done")
        if (changed := (project / "notes.txt").read_text()) != "1\n":
            yield f"the file holds {changed!r}"
        yield from _not_said(acpx.run("prompt", "greet"), "Hello there.")
        chat.wait_until("▸ greet\n\nHello there.\n")
        exchange = acpx.run("sessions", "close")
        yield from _not_said(exchange, "")
        chat.type("go on")
        chat.press("enter")
        chat.wait_until("Done.\n\n✓ done")
        chat.press("ctrl-d")
        if chat.ended() != 0:
            yield "the chat did not end well"
    yield from schema_check.findings(outside.schema(), exchange.record, shared=True)[:3]
    yield from _not_as_told(exchange.record, method)


def _not_said(exchange: outside.Exchange, words: str, status: int = 0) -> Iterator[str]:
    if exchange.status != status or words not in exchange.printed:
        yield f"status {exchange.status} and not {words!r}: {exchange.printed[-300:]!r}"


def _not_as_told(record: Path, method: str) -> Iterator[str]:
    """What is wrong with how acpx came into the session, and with what it answered."""
    entries = [json.loads(line) for line in record.read_text().splitlines()]
    joined = [entry["msg"]["method"] for entry in entries if entry["from"] == "client" and "method" in entry["msg"]]
    if joined.count(method) < 2 or "session/new" in joined:
        yield f"acpx asked for {joined}"
    answers = [entry["msg"].get("result") or {} for entry in entries if entry["from"] == "client"]
    chosen = [answer["outcome"].get("optionId") for answer in answers if "outcome" in answer]
    if chosen != ["once"]:
        yield f"acpx chose {chosen}"
