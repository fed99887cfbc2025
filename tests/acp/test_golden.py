"""Whole conversations, kept in files and read like code: every message, ids and paths made the same.

When a conversation is over, another process loads its session, and must show what was seen live.

Beside the messages, the last lines say what the model was told of its calls. `CROW_WRITE_GOLDEN=1` writes the files
anew; the difference is then reviewed like any other change. `make conformance` shows them to the protocol's schema.

What a client offers decides how files and commands are handled, and nothing else. So those conversations are held
with each of the four kinds of clients, and there are two files for them: one for clients that offer what it is about
(`…-client`), one for those that do not (`…-local`).
"""

import json
import re
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest

from crow.model.scripted import Call
from tests.support.editor import FILES, NOTICES, TERMINAL, Editor, Json, Later, chose
from tests.support.golden import (
    assert_golden,
    is_aside,
    is_preview,
    loaded_again,
    tools_transcript,
    transcript,
    whole_transcript,
)
from tests.support.patience import DEADLINE
from tests.support.provider import Provider
from tests.support.scripts import DONE as ENOUGH
from tests.support.scripts import call, edit, reply, run, say
from tests.support.zed import Zed

HELLO = '[[reply]]\nrepeat = true\nevents = [{ thought = "A greeting." }, { text = "Hello there." }]'
READ = '[[reply]]\nevents = [{{ text = "Let me look." }}, {{ call = "read", arguments = {{ path = "{}" }} }}]\n'
DONE = '[[reply]]\nevents = [{ text = "Done." }, { usage = { input_tokens = 12, output_tokens = 3 } }]\n'

CLIENTS: dict[str, Json] = {"none": {}, "fs": FILES, "terminal": TERMINAL, "both": FILES | TERMINAL}


@pytest.fixture
def open_editor(open_editor: Callable[..., Editor]) -> Iterator[Callable[..., Editor]]:
    """Each editor's session is loaded by another one when it is over, and must look as it did."""
    yield from loaded_again(open_editor)


@pytest.mark.rule("R16", "R17", "R32", "R58", "R80")
def test_prompt(open_editor):
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.prompt("hi")
    assert_golden("prompt", transcript(crow))


@pytest.mark.rule("R67", "R88", "R144")
def test_read(open_editor):
    crow = open_editor(script=READ.format("notes.txt") + DONE)
    (crow.workspace / "notes.txt").write_text("one\ntwo\n")
    crow.new_session()
    crow.prompt("read my notes")
    assert_golden("read", transcript(crow))


@pytest.mark.rule("R101", "R103", "R105")
@pytest.mark.parametrize("option", ["once", "reject"])
def test_permission(open_editor, tmp_path, option):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "notes.txt").write_text("far away\n")
    crow = open_editor(script=READ.format(outside / "notes.txt") + DONE, permit=lambda request: chose(option))
    crow.new_session()
    crow.prompt("read those notes")
    assert_golden(f"permission-{option}", transcript(crow, outside))


@pytest.mark.rule("R68", "R69", "R70", "R72")
def test_cancel(open_editor):
    from tests.support.editor import SILENCE

    crow = open_editor(script=READ.format("notes.txt"), capabilities=FILES)
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.files[str(crow.workspace / "notes.txt")] = SILENCE
    crow.new_session()
    prompt = crow.start_prompt("read my notes")
    crow.wait_for_call("fs/read_text_file")
    crow.cancel()
    prompt.answer()
    assert_golden("cancel", transcript(crow))


def test_steering(open_editor):
    """Two messages into a running turn, which the model gets together with what its call gave; one that comes too late;
    and one that is left over when the turn is cancelled."""
    answers = Queue[Json]()
    waiting = '[[reply]]\nwhen = "story"\nevents = [{ text = "Once" }, { wait = 600 }]\n'
    script = READ.format("notes.txt") + reply(say("Good to know."), when="tabs") + waiting
    crow = open_editor(
        script=script,
        capabilities=FILES | NOTICES,
        answers={"fs/read_text_file": lambda params: Later(lambda: answers.get(timeout=DEADLINE))},
    )
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.new_session()
    prompt = crow.start_prompt("read my notes")
    crow.wait_for_call("fs/read_text_file")
    crow.steer("I use tabs.").answer()
    crow.steer("/and this is no command").answer()
    answers.put({"content": "one\n"})
    prompt.answer()
    crow.steer("Too late.").answer()
    story = crow.start_prompt("tell me a story")
    crow.wait_until(lambda: crow.text().endswith("Once"), "the story")
    crow.steer("A short one.").answer()
    crow.cancel()
    story.answer()
    assert_golden("steering", transcript(crow))


@pytest.mark.rule("R62", "R24")
def test_error(open_editor):
    crow = open_editor(
        script='[[reply]]\nevents = [{ text = "I thi" }, { fail = { status = 401, message = "bad key" } }]'
    )
    crow.new_session()
    crow.start_prompt("hi").error()
    assert_golden("error", transcript(crow))


@pytest.mark.rule("R62", "R160")
@pytest.mark.parametrize("capabilities", [{}, NOTICES], ids=["message", "notice"])
def test_retry(open_editor, capabilities, request):
    failing = "[[reply]]\nevents = [{ fail = { status = 503, message = 'overloaded', retry_after = 0.6 } }]\n"
    crow = open_editor(script=failing + DONE, capabilities=capabilities)
    crow.new_session()
    crow.prompt("hi")
    assert_golden("retry-" + request.node.callspec.id, transcript(crow))


# --- sessions: what another process is shown of one


@pytest.mark.rule("R39", "R40", "R41", "R42", "R46")
def test_a_load(open_editor):
    """A call with a diff, a plan, and a reply that was cancelled; how full the window is comes after the answer."""
    work = reply(
        *('{ thought = "A small change." }', say("I change it."), call("plan", entries=[{"content": "change it"}])),
        *(edit("notes.txt", "one", "1"), "{ usage = { input_tokens = 12, output_tokens = 3 } }"),
        when="change",
    )
    waiting = '[[reply]]\nwhen = "story"\nevents = [{ text = "Once" }, { wait = 600 }]\n'
    crow = open_editor(script=work + waiting + DONE, permit=lambda request: chose("once"))
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.new_session()
    crow.prompt("change my notes")
    story = crow.start_prompt("and tell me a story")
    crow.wait_until(lambda: crow.text().endswith("Once"), "the story")
    crow.cancel()
    story.answer()
    crow.close()
    other = open_editor(folder=crow.folder)
    other.load_session(crow.session_id)
    other.wait_until(lambda: other.updates[-1]["sessionUpdate"] == "usage_update", "the usage")
    assert_golden("load", transcript(other))


@pytest.mark.rule("R50", "R51", "R143")
def test_a_list(open_editor):
    """A session in which nothing was said is not in it; the newest comes first."""
    crow = open_editor(script=HELLO)
    first, second, empty = (crow.new_session() for _ in range(3))
    crow.prompt("hello\nthere", session=first)
    crow.prompt("hello again", session=second)
    crow.request("session/list", {"cwd": str(crow.workspace)})
    crow.request("session/list", {"cwd": "/"})
    crow.start("session/list", {"cursor": "nonsense"}).error()
    crow.request("session/delete", {"sessionId": first})
    crow.request("session/list")
    names = {first: "FIRST", second: "SECOND", empty: "EMPTY"}
    crow.session_id = second
    assert_golden("list", whole_transcript(crow, is_left_out=is_aside, names=names))


# --- commands and modes


@pytest.mark.rule("R127", "R128")
def test_commands(open_editor):
    """They are advertised after the answer, and answered by Crow; what is unknown goes to the model."""
    crow = open_editor(script=HELLO)
    crow.new_session()
    crow.wait_until(lambda: len(crow.all_updates_of(crow.session_id)) == 1, "the commands")
    for command in ("/help", "/mode", "/mode edit", "/permissions explain rm -rf build", "/unheard of"):
        crow.prompt(command)
    assert_golden("commands", whole_transcript(crow, is_left_out=lambda message: False))


@pytest.mark.rule("R136", "R140", "R142")
@pytest.mark.parametrize("option", ["session", "reject"])
def test_plan_mode(open_editor, option):
    """From the command to the plan, the question, and the work."""
    plan = "1. Change `notes.txt`.\n2. Look at it again."
    script = (
        reply(call("read", path="notes.txt"), when="mend")
        + reply(say("I know enough."), call("leave_plan", plan=plan), when="mend")
        + reply(edit("notes.txt", "one", "1"), when="mend")
    )
    crow = open_editor(script=script + DONE, permit=lambda request: chose(option))
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.new_session()
    crow.prompt("/plan mend my notes")
    assert_golden(f"plan-mode-{option}", transcript(crow))
    assert (crow.workspace / "notes.txt").read_text() == ("1\n" if option == "session" else "one\n")


@pytest.mark.rule("R93", "R94", "R128")
def test_an_undo(open_editor):
    """The last turn made a file and changed one; afterwards both are as they were."""
    script = reply(edit("notes.txt", "one", "1"), call("write", path="new.txt", content="new\n")) + DONE
    crow = open_editor(script=script, permit=lambda request: chose("once"))
    (crow.workspace / "notes.txt").write_text("one\n")
    crow.new_session()
    crow.prompt("change them")
    crow.prompt("/undo")
    # How full the window is after it is an estimate, which depends on the length of the folder's name.
    assert_golden("undo", [re.sub(r'"used": \d{4,}', '"used": 1000', line) for line in transcript(crow)])
    assert [path.name for path in crow.workspace.iterdir()] == ["notes.txt"]
    assert (crow.workspace / "notes.txt").read_text() == "one\n"


# --- tools, with every kind of client


@pytest.fixture(params=list(CLIENTS))
def play(open_editor: Any, request: Any) -> Callable[..., None]:
    """Holds a conversation with each kind of client, and compares it with the file for what it depends on."""

    def start(
        name: str,
        script: str,
        depends_on: str = "",
        *,
        files: dict[str, str | bytes] | None = None,
        answers: tuple[str, ...] = ("once",),
        on_save: Callable[[str], str] | None = None,
    ) -> None:
        options = iter(answers)
        offered = CLIENTS[request.param]
        zed = open_editor(
            Zed, script=script + ENOUGH, capabilities=offered, permit=lambda question: chose(next(options))
        )
        if on_save is not None:
            zed.buffers.format = on_save
        for path, content in (files or {}).items():
            (zed.workspace / path).parent.mkdir(parents=True, exist_ok=True)
            (zed.workspace / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        zed.new_session()
        zed.prompt("go")
        zed.wait_until(lambda: len(zed.terminals.released) == len(zed.terminals.created), "the releases")
        relevant = {key: value for key, value in offered.items() if key == depends_on}
        suffix = ("-client" if relevant else "-local") if depends_on else ""
        assert_golden(name + suffix, tools_transcript(zed, relevant))
        assert next(options, None) is None, "fewer questions than the test expects"

    return start


# --- files: what is shown, and who reads and writes them


@pytest.mark.rule("R92", "R93", "R95", "R120", "R121", "R122")
def test_a_changed_file(play):
    files = {"src/app.py": "def main():\n    return 1\n"}
    play("edit", reply(say("I change it."), edit("src/app.py", "return 1", "return 2")), "fs", files=files)


@pytest.mark.rule("R93", "R122")
def test_a_new_file(play):
    play("new-file", reply(call("write", path="docs/new.md", content="# New\n")), "fs")


@pytest.mark.rule("R93", "R95")
def test_a_large_file_is_shown_by_its_hunks(play):
    text = "".join(f"line {number} of a long file\n" for number in range(1, 6001))
    edits = [{"old": "line 100 of", "new": "line one hundred of"}, {"old": "line 5000 of", "new": "line 5,000 of"}]
    play("large-file", reply(call("edit", path="long.txt", edits=edits)), "fs", files={"long.txt": text})


@pytest.mark.rule("R121", "R123")
def test_a_file_that_is_formatted_when_it_is_saved(play):
    script = reply(edit("a.py", "one", "1  ")) + reply(edit("a.py", "1", "I"))
    files = {"a.py": "one\ntwo\n"}
    play("formatted", script, "fs", files=files, answers=("once", "once"), on_save=lambda text: text.replace(" ", ""))


@pytest.mark.rule("R99", "R105")
def test_what_cannot_be_done_is_told_to_both(play):
    script = reply(edit("a.py", "three", "3"), call("read", path="missing.py"), call("edit", path="a.py"))
    play("failures", script, "fs", files={"a.py": "one\ntwo\n"}, answers=())


@pytest.mark.rule("R82", "R92")
def test_what_a_result_shows(play):
    """Text and images as they are, a plan as a plan, and of the call that made it nothing more."""
    picture = b"\x89PNG\r\n\x1a\n" + bytes(8)
    entries = [{"content": "look", "status": "completed"}, {"content": "mend", "priority": "high"}]
    script = (
        reply(call("read", path="notes.txt"))
        + reply(call("read", path="dot.png"))
        + reply(call("plan", entries=entries))
    )
    files = {"notes.txt": "plain ``` text\n", "dot.png": picture}
    play("display", script, "fs", files=files, answers=())


# --- titles, arguments that arrive, ids


@pytest.mark.rule("R89", "R96", "R98")
def test_titles(play):
    script = (
        reply(call("read", path="src/app.py", offset=2, limit=2))
        + reply(call("find", pattern="*.py"))
        + reply(call("search", pattern="three", path="src"))
        + reply(call("read", path="src"))
        + reply(call("unheard"))
    )
    play("titles", script, "fs", files={"src/app.py": "one\ntwo\nthree\n"}, answers=())


@pytest.mark.rule("R67", "R90", "R97")
def test_arguments_that_arrive_slowly(open_editor):
    """The title when the path is known, the text as it grows, and its end with a count when there is much of it."""
    content = "".join(f"a line of a file that grows, number {number}\n" for number in range(1, 101))
    whole = Call("write", {"path": "src/new.txt", "content": content}, pieces=4)
    with Provider() as provider:
        server = provider.openai
        server.answer(whole, pace=0.6)
        server.answer("Done.")
        crow = open_editor(Zed, base_url=server.url, capabilities={}, permit=lambda request: chose("once"))
        crow.new_session()
        crow.prompt("write it")
    assert (crow.workspace / "src/new.txt").read_text() == content
    assert_golden("arguments", tools_transcript(crow, {}))


@pytest.mark.rule("R86", "R100")
def test_ids_that_the_model_repeats(open_editor):
    """Two calls whose pieces come interleaved, in two replies, and the model gives every call the same id."""
    both = [
        Call("write", {"path": name, "content": "text", "append": True}, pieces=3) for name in ("one.txt", "two.txt")
    ]
    with Provider() as provider:
        for _ in range(2):
            provider.openai.answer(*both, interleave=True, call_ids=["same", "same"])
        provider.openai.answer("Done.")
        crow = open_editor(base_url=provider.openai.url, permit=lambda request: chose("once"))
        crow.new_session()
        crow.prompt("write them twice")
    titles = [call["title"].partition(" +")[0] for call in crow.tool_calls().values()]
    assert titles == ["Write one.txt", "Write two.txt"] * 2
    lines = [line for line in tools_transcript(crow, {}) if not is_preview(json.loads(line)["message"])]
    assert_golden("ids", lines)


# --- commands


@pytest.mark.rule("R109", "R110", "R111", "R112", "R113", "R114", "R116", "R117", "R118")
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("command", "echo out; echo err >&2"),
        ("command-exit-3", "echo out; exit 3"),
        ("command-killed", "echo out; kill -9 $$"),
    ],
)
def test_a_command(play, name, command):
    play(name, reply(run(command)), "terminal")


@pytest.mark.rule("R91", "R115", "R117", "R119")
def test_a_command_that_takes_too_long(play):
    play("command-timeout", reply(run("sleep 1000", timeout=0.3)), "terminal")


@pytest.mark.rule("R116")
def test_a_command_in_the_background(play):
    script = (
        reply(run("sleep 1000", background=True))
        + reply(call("terminal_read", id="b1"))
        + reply(call("terminal_stop", id="b1"))
    )
    play("command-background", script, "terminal")


# --- permission


@pytest.mark.rule("R101", "R102", "R108")
@pytest.mark.parametrize("scope", ["session", "project"])
def test_allowed_for_longer(play, scope):
    """The second edit in the same folder is not asked about; one elsewhere is."""
    script = "".join(reply(edit(path, "one", "1")) for path in ("src/a.py", "src/b.py", "lib/c.py"))
    files = dict.fromkeys(("src/a.py", "src/b.py", "lib/c.py"), "one\n")
    play(f"allow-for-{scope}", script, "fs", files=files, answers=(scope, "reject"))


@pytest.mark.rule("R101", "R102")
def test_a_command_allowed_for_the_session(play):
    script = reply(run("echo one")) + reply(run("echo two")) + reply(run("echo three > out.txt"))
    play("allow-command", script, "terminal", answers=("session", "reject"))


@pytest.mark.rule("R105")
def test_a_rejected_edit_and_a_rejected_command(play):
    script = reply(edit("a.py", "one", "1")) + reply(run("rm -rf build"))
    play("rejected", script, "fs", files={"a.py": "one\n"}, answers=("reject", "reject"))


# --- the plan


@pytest.mark.rule("R125")
def test_a_plan(play):
    entries = [{"content": "look", "status": "in_progress", "priority": "high"}, {"content": "mend"}]
    ticked = [{"content": "look", "status": "completed", "priority": "high"}, {"content": "mend"}]
    plans = (entries, ticked, [])
    play("plan", "".join(reply(call("plan", entries=plan)) for plan in plans), answers=())
