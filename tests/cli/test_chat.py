"""`crow chat` in a real terminal: what is on the screen after each thing that a person does."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.chat_support import (
    DONE,
    INPUT,
    STATUS,
    chat,
    recording,
    wait_for_question,
)
from tests.cli.test_run import HELLO, play, wait_until_nothing_runs
from tests.config.support import crow, write_config
from tests.support.puppet import Puppet
from tests.support.scripts import edit
from tests.support.window import Window

# --- talking


def test_a_prompt_is_typed_and_answered(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("hello")
        window.wait_until("▸ hello")
        window.press("enter")
        window.wait_for_rows(
            "i Crow 0.1.0 in ~/project",
            "",
            "▸ hello",
            "",
            "… A greeting.",
            "",
            "Hello there!",
            "",
            "✓ done",
            "",
            INPUT,
            "ask · play/it · 0% of 100k tokens",
        )
        window.press("ctrl-d")
        assert window.ended() == 0
        assert window.is_restored
        assert window.picture[-2] == ""
        assert window.picture[-1].startswith("i To continue: crow chat --resume ")  # we are not in its folder
        assert INPUT not in window.text
    wait_until_nothing_runs(tmp_path)


def test_a_prompt_can_come_with_the_command(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path, "hello", "there") as window:
        window.wait_until("▸ hello there")
        window.wait_until("Hello there!")


def test_a_prompt_may_have_several_lines(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    with chat(tmp_path) as window:
        window.type("one")
        window.press("alt-enter")
        window.type("two")
        window.press("ctrl-j")
        window.type("three\\")
        window.wait_until("  three\\")  # what comes at once with the Enter is taken for a paste
        window.press("enter")
        window.wait_for_rows("  three", "", STATUS)
        window.type("four")
        window.wait_for_rows("▸ one", "  two", "  three", "  four", STATUS)
        window.press("enter")
        window.wait_until("✓ done")
        assert "▸ one\n  two\n  three\n  four\n\n… A greeting." in window.text
    assert '"one\\ntwo\\nthree\\nfour"' in sent.read_text()


def test_what_is_typed_before_the_session_is_there_is_sent_when_it_is(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent:
        del agent.answers["session/new"]
        with Window(tmp_path, "chat", program=agent.program) as window:
            window.wait_for_rows(INPUT, "starting")
            opened = agent.expect("session/new")  # it waits, and the input line is there
            window.type("hello")
            window.wait_until("▸ hello")
            window.press("enter")
            window.wait_for_rows("  queued: hello", INPUT, "↑: edit", "starting")
            agent.answer(opened, {"sessionId": "s1"})
            assert agent.expect("session/prompt")["params"]["prompt"] == [{"type": "text", "text": "hello"}]


def test_a_paste_of_5000_lines_is_one_prompt(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    pasted = "\n".join(f"line {number}: some words that make it longer" for number in range(1, 5001))
    with chat(tmp_path) as window:
        window.type("look: ")
        window.paste(pasted)
        window.wait_until("line 5000: some words that make it longer")
        assert window.picture[-1].startswith("ask")
        assert len(window.picture) <= 24
        window.press("enter")
        window.wait_until("✓ done")
        assert "  line 10: some words that make it longer\n  … 4990 more lines · Ctrl-O\n" in window.text
        window.press("ctrl-o")
        window.wait_until("Your message\n1-16 of 5000")
    request = json.loads(sent.read_text().splitlines()[0])
    assert f"look: {pasted}" in json.dumps(request).encode().decode("unicode_escape")


# --- completion


def test_commands_are_completed(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("/pla")
        window.wait_for_rows("▸ /pla", "  /plan  Switch to plan mode: read and plan, change nothing", STATUS)
        window.press("tab")
        window.wait_until("▸ /plan")
        window.press("enter")
        window.wait_for_rows("▸ /plan", STATUS)
        window.press("enter")
        window.wait_until("Mode: plan")


def test_files_and_folders_are_completed(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO)
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / ".gitignore").write_text("hidden\n")
    for name in ("src/nest.py", "src/deep/feather.py", "my notes.txt", "hidden/secret.txt"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"what is in {name}\n")
    sent = recording(tmp_path)
    with chat(tmp_path) as window:
        window.type("see @")
        window.wait_for_rows("▸ see @", "  .gitignore", "  my notes.txt", "  src/", STATUS)
        window.type("sr")
        window.wait_for_rows("▸ see @sr", "  src/", "  src/deep/", "  src/deep/feather.py", "  src/nest.py", STATUS)
        window.press("tab", "enter")
        window.wait_until("▸ see @src/")
        window.type("n")
        window.wait_for_rows("▸ see @src/n", "  src/nest.py", STATUS)
        window.press("tab", "enter")
        window.type("and @feath")
        window.wait_for_rows("▸ see @src/nest.py and @feath", "  src/deep/feather.py", STATUS)
        window.press("tab", "enter")
        window.type("and @my")
        window.wait_until("  my notes.txt")
        window.press("tab", "enter")
        window.wait_until('@"my notes.txt"')
        window.press("enter")
        window.wait_until("✓ done")
    for name in ("src/nest.py", "src/deep/feather.py", "my notes.txt"):
        assert f"what is in {name}" in sent.read_text()


def test_what_is_attached_goes_with_the_first_prompt(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO, HELLO)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(30)
    (tmp_path / "sketch.png").write_bytes(picture)
    (project / "notes.txt").write_text("crows are clever\n")
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + 'record = "sent.jsonl"\n[providers.play.models.it]\nimages = true\n')
    files = ("--attach", str(tmp_path / "sketch.png"), "--attach", str(project / "notes.txt"))
    with chat(tmp_path, *files) as window:
        window.wait_for_rows(INPUT, "with sketch.png, notes.txt", STATUS)
        window.type("look")
        window.press("enter")
        window.wait_until("✓ done")
        window.wait_until(INPUT)
    sent = (tmp_path / "crow" / "sent.jsonl").read_text()
    assert "crows are clever" in sent
    assert "image/png" in sent


# --- loading


def test_a_conversation_goes_on(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO, DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "soften it") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("✓ done")
        window.press("ctrl-d")
        assert window.ended() == 0
    with chat(tmp_path, "--continue") as window:
        window.wait_for_rows(
            "i Crow 0.1.0 in ~/project",
            "",
            "▸ soften it",
            "",
            "✓ Edit nest.py +1 −1",  # noqa: RUF001 -- a minus sign
            "  nest.py · +1 −1",  # noqa: RUF001 -- a minus sign
            "  - twigs",
            "  + feathers",
            "",
            "… A greeting.",
            "",
            "Hello there!",
            "",
            "i Continuing: soften it",
            "",
            INPUT,
            "ask · play/it · 0% of 100k tokens",
        )
        window.type("more")
        window.press("enter")
        window.wait_until("▸ more")
        window.wait_until("✓ done")


def test_a_session_is_picked_from_a_list_with_a_search(tmp_path: Path) -> None:
    play(tmp_path, DONE)
    for prompt in ("build a nest", "find a worm", "build a tower"):
        assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), prompt).returncode == 0
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), "--resume") as window:
        window.wait_until("search:")
        rows = [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "…", row) for row in window.picture]
        assert rows == ["> …  build a tower", "  …  find a worm", "  …  build a nest", "", "search:"]
        window.type("build")
        window.wait_until(lambda: "worm" not in window.text)
        window.press("down", "enter")
        window.wait_until("Continuing: build a nest")
        assert "▸ build a nest" in window.text


def test_crow_run_has_the_same_list(tmp_path: Path) -> None:
    play(tmp_path, DONE)
    for prompt in ("build a nest", "find a worm"):
        assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), prompt).returncode == 0
    with Window(tmp_path, "run", "--cwd", str(tmp_path / "project"), "--resume", "and another one") as window:
        window.wait_until("search:")
        window.type("nest")
        window.wait_until(lambda: "worm" not in window.text)
        window.press("enter")
        window.wait_until("Continuing: build a nest")
        assert window.ended() == 0
    with Window(tmp_path, "run", "--cwd", str(tmp_path / "project"), "--resume", "and another one") as window:
        window.wait_until("search:")
        window.press("escape")
        assert window.ended() == 1
    assert "No session was picked." in window.text


def test_only_the_last_prompts_of_a_long_conversation_are_drawn(tmp_path: Path) -> None:
    def load(_: dict) -> dict:
        for number in range(40):
            agent.say(f"prompt {number}", "user_message_chunk", f"u{number}")
            agent.say(f"reply {number}", message=f"a{number}")
        return {}

    play(tmp_path, HELLO)
    assert crow(tmp_path, "run", "--cwd", str(tmp_path / "project"), "hello").returncode == 0
    with Puppet(tmp_path) as agent:
        agent.answers["session/load"] = load
        arguments = ("chat", "--cwd", str(tmp_path / "project"), "--continue")
        with Window(tmp_path, *arguments, program=agent.program) as window:
            agent.expect("session/load")
            window.wait_until("Continuing: ")
            text = "\n".join(window.scrollback)
            assert "10 earlier messages not shown. To see all: crow sessions show" in text
            assert "prompt 9\n" not in text
            assert "▸ prompt 10\n\nreply 10\n" in text


# --- terminals that can do little, and none


def test_a_terminal_that_only_prints_lines_is_told_what_to_use(tmp_path: Path) -> None:
    with Window(tmp_path, "chat", TERM="dumb") as window:
        assert window.ended() == 2
        window.wait_until('Use: crow run "…"')
    assert b"\x1b" not in window.written


@pytest.mark.parametrize("stdin", ["", "hello\n"])
def test_without_a_terminal_it_says_what_to_use(tmp_path: Path, stdin: str) -> None:
    said = crow(tmp_path, "chat", stdin=stdin)
    assert (said.returncode, said.stdout) == (2, "")
    assert "crow run" in said.stderr
    assert said.stderr.count("\n") == 1


# --- bare crow


def test_bare_crow_in_a_terminal_is_a_conversation_once_a_model_is_set_up(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Window(tmp_path) as window:
        window.wait_until(STATUS)
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")


def test_bare_crow_says_what_to_do_before_that(tmp_path: Path) -> None:
    with Window(tmp_path) as window:
        assert window.ended() == 0
    assert "login" in window.text
    write_config(tmp_path, "mode = 1\n")
    with Window(tmp_path) as window:
        assert window.ended() == 1
    assert "config   broken" in window.text


def test_status_says_it_always(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with Window(tmp_path, "status") as window:
        assert window.ended() == 0
    assert "play/it (from the config file)" in window.text


def test_without_a_model_it_ends_with_what_to_do(tmp_path: Path) -> None:
    with Window(tmp_path, "chat") as window:
        assert window.ended() == 1
        assert window.is_restored
    assert "crow login" in window.text
    assert "Go on with" not in window.text


# --- history and attention


def test_history_is_kept_for_each_project(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    (tmp_path / "other").mkdir()
    with chat(tmp_path) as window:
        window.type("of this project")
        window.press("enter")
        window.wait_until("✓ done")
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "other")) as window:
        window.wait_until(STATUS)
        window.press("up")
        window.type("of the other")
        window.wait_until("▸ of the other")
        window.press("enter")
        window.wait_until("✓ done")
    with chat(tmp_path) as window:
        window.press("up")
        window.wait_until("▸ of this project")
        window.press("up", "down")
        window.wait_for_rows(INPUT, STATUS)
    files = list((tmp_path / "crow" / "history").iterdir())
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o600]


def test_what_was_typed_before_is_searched(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        for text in ("build a nest", "find a worm"):
            window.type(text)
            window.press("ctrl-c")
            window.wait_until(INPUT)
        window.type("\x12nest")
        window.wait_for_rows("▸ build a nest", "search history: nest", STATUS)
        window.press("escape")
        window.wait_for_rows("▸ build a nest", STATUS)


@pytest.mark.parametrize(
    ("setting", "sequence"), [("bell", b"\x07"), ("desktop", b"\x1b]9;Crow is done.\x1b\\"), ("off", b"")]
)
def test_the_end_of_a_turn_calls_the_person(tmp_path: Path, setting: str, sequence: bytes) -> None:
    play(tmp_path, "{ wait = 0.5 }, " + HELLO)  # a silence shows something only once the settings have been read
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + f'[chat]\nnotify = "{setting}"\nnotify_after = 0\n')
    with chat(tmp_path) as window:
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")
        window.wait_until(lambda: sequence in window.written)  # who leaves at once is not called
        window.press("ctrl-d")
        window.ended()
    if sequence:
        assert window.written.count(sequence) == 1
    else:
        assert b"\x07" not in window.written
        assert b"\x1b]" not in window.written


def test_nobody_is_called_who_is_there(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    config = tmp_path / "crow" / "config.toml"
    config.write_text(config.read_text() + "[chat]\nnotify_after = 3600\n")
    with chat(tmp_path) as window:
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")
    assert b"\x07" not in window.written
