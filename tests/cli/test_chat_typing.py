"""What reaches the model of what is typed and pasted in `crow chat`, whatever the terminal makes of it."""

import os
import sys
from pathlib import Path

import pytest

from crow.cli.chat.keyboard import KEY, known_key, without_false_ends
from crow.cli.chat.messages import clean_lines
from tests.cli.chat_support import (
    AS_A_SHELL_LEAVES_IT,
    DONE,
    INPUT,
    STATUS,
    STOP_COUNTS_ON,
    chat,
    prompt_in,
    recording,
    talk_to,
)
from tests.cli.test_run import HELLO, LOOK_OUTSIDE, play
from tests.support.patience import eventually
from tests.support.puppet import Puppet
from tests.support.window import Window


def send(window: Window) -> None:
    """Presses Enter with another key: alone it may come so soon after a paste that it is taken for a part of it."""
    window.type("\x05\r")


# --- pastes


def test_lines_that_come_at_once_are_a_draft_where_the_terminal_marks_no_paste(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("one\rtwo\rthree\r")
        window.wait_for_rows("▸ one", "  two", "  three", "", "ask · their/model")
        window.type("four")
        window.wait_for_rows("▸ one", "  two", "  three", "  four", "ask · their/model")
        send(window)
        assert prompt_in(agent) == "one\ntwo\nthree\nfour"


def test_5000_lines_that_no_terminal_marks_are_one_prompt(tmp_path: Path) -> None:
    lines = [f"line {number}: some words that make it longer" for number in range(1, 5001)]
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.paste("\r".join(lines), marked=False)
        window.wait_until("line 5000: some words that make it longer")
        window.press("alt-enter")  # is never taken for a part of the paste
        window.type("that is all")
        window.wait_until("that is all")
        send(window)
        assert prompt_in(agent) == "\n".join([*lines, "that is all"])


def test_a_line_with_its_enter_is_sent_however_long_it_is(tmp_path: Path) -> None:
    text = "a long line that some program types " * 20
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type(f"{text}end\r")
        assert prompt_in(agent) == f"{text}end"


@pytest.mark.parametrize("line_end", ["\r\n", "\r\r", "\n", "\r"])
@pytest.mark.parametrize("marked", [True, False])
def test_line_ends_of_a_paste_are_neither_damaged_nor_doubled(tmp_path: Path, line_end: str, marked: bool) -> None:
    text = "def nest():\n    return 1\n\n\n# the end\n"
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.paste(text.replace("\n", line_end), marked=marked)
        window.wait_until("# the end")
        window.press("alt-enter")
        window.type("well?")
        window.wait_until("well?")
        send(window)
        assert prompt_in(agent) == f"{text}\nwell?"


@pytest.mark.parametrize(
    ("pasted", "text"),
    [
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("one\r\rtwo\r\r", "one\ntwo\n"),
        ("one\r\r\r\rtwo", "one\n\ntwo"),
        ("a paragraph\r\ranother\r\rand one more", "a paragraph\n\nanother\n\nand one more"),
        ("one\r\rtwo\rthree\r", "one\n\ntwo\nthree\n"),
        ("one\n\ntwo\n\n", "one\n\ntwo\n\n"),
        ("10 %\r100 %\n", "10 %\n100 %\n"),
        ("no end", "no end"),
        ("", ""),
    ],
)
def test_line_ends_are_made_plain(pasted: str, text: str) -> None:
    assert clean_lines(pasted) == text


def test_a_paste_whose_end_is_lost_does_not_swallow_every_key(tmp_path: Path) -> None:
    with Puppet(tmp_path, fault=STOP_COUNTS_ON) as agent, talk_to(agent, tmp_path) as window:
        window.type("\x1b[200~cut off")
        window.type(" here")
        window.press("ctrl-c")
        window.wait_for_rows(INPUT, "Press again to quit", "ask · their/model")
        window.press("up")
        window.wait_for_rows("▸ cut off here", "ask · their/model")


def test_a_paste_that_holds_the_sign_of_its_own_end_is_not_sent(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("\x1b[200~harmless\x1b[201~\rand not\r\x1b[201~")
        window.wait_until("  and not")
        window.type(" any more")
        window.wait_until("any more")
        send(window)
        assert prompt_in(agent) == "harmless\nand not\n any more"


@pytest.mark.parametrize(
    ("typed", "in_paste", "kept"),
    [
        ("\x1b[200~a\x1b[201~\r", False, "\x1b[200~a\x1b[201~\r"),
        ("\x1b[200~a\x1b[201~b\x1b[200~c\x1b[201~", False, "\x1b[200~a\x1b[201~b\x1b[200~c\x1b[201~"),
        ("a\x1b[201~b\x1b[201~c", True, "ab\x1b[201~c"),
    ],
)
def test_several_pastes_end_where_they_do(typed: str, in_paste: bool, kept: str) -> None:
    assert without_false_ends(typed, in_paste=in_paste) == kept


def test_lines_that_come_at_once_answer_no_question(tmp_path: Path) -> None:
    play(tmp_path, LOOK_OUTSIDE, DONE)
    with chat(tmp_path, "look") as window:
        window.wait_until("n  Reject")
        window.wait_until(lambda: INPUT not in window.text)
        window.type("y\ry\rand more")
        window.wait_until("  and more")
        assert "y  Allow once" in window.text


# --- bytes


def test_bytes_that_are_no_text_do_not_keep_a_prompt_from_being_sent(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        os.write(window._master, b"a \xff byte")
        window.wait_until("▸ a � byte")
        window.press("enter")
        assert prompt_in(agent) == "a \ufffd byte"


def test_a_locale_that_knows_but_ascii_loses_no_letter(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, Window(tmp_path, "chat", program=agent.program, PYTHONIOENCODING="ascii") as window:
        agent.expect("session/new")
        window.wait_until("ask - their/model")
        window.type("größe")
        window.press("enter")
        assert prompt_in(agent) == "größe"


def test_a_prompt_of_the_command_line_may_hold_any_bytes_and_line_ends(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, Window(tmp_path, "chat", os.fsdecode(b"a \xff\r\nb"), program=agent.program):
        assert prompt_in(agent) == "a \ufffd\nb"


# --- keys


@pytest.mark.parametrize("key", ["\x1b[1;17A", "\x1b\x1b[1;17A", "\x1b[I", "\x1b[57441u", "\x1b[?1;2c"])
def test_a_key_that_is_not_known_does_nothing(tmp_path: Path, key: str) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("go\r")
        prompt = agent.expect("session/prompt")
        window.type(f"a{key}b")
        window.wait_until("▸ ab\n")
        agent.answer(prompt, {"stopReason": "end_turn"})
        window.wait_until("✓ done")
        send(window)
        assert agent.next()["method"] == "session/prompt"  # and the turn was not cancelled


@pytest.mark.parametrize("key", ["\x1b[13;2u", "\x1b[13;5u", "\x1b[27;2;13~", "\x1b[27;5;13~", "\x1b\r"])
def test_enter_with_another_key_begins_a_new_line(tmp_path: Path, key: str) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type(f"one{key}two")
        window.wait_for_rows("▸ one", "  two", "ask · their/model")


@pytest.mark.parametrize(
    ("key", "usual"),
    [
        ("\x1b[99;5u", "\x03"),
        ("\x1b[27u", "\x1b"),
        ("\x1b[9;2u", "\x1b[Z"),
        ("\x1b[98;3u", "\x1bb"),
        ("\x1b[97;1u", "a"),
        ("\x1b[13u", "\r"),
        ("\x1b[A", "\x1b[A"),
        ("\x1b\x1b[A", "\x1b\x1b[A"),
        ("\x1b[[A", "\x1b[[A"),
        ("\x1b[99999999u", ""),
        ("\x1b[1114112u", ""),
    ],
)
def test_keys_that_are_told_by_their_code_are_the_usual_ones(key: str, usual: str) -> None:
    assert KEY.sub(known_key, key) == usual


@pytest.mark.parametrize("word", ["/exit", "/quit"])
def test_a_word_leaves_that_leaves_elsewhere(tmp_path: Path, word: str) -> None:
    with Puppet(tmp_path) as agent, Window(tmp_path, "chat", program=agent.program) as window:
        agent.expect("session/new")
        window.wait_until("their/model")
        window.type(f"{word}\r")
        assert window.ended() == 0


# --- what was typed ahead


def test_what_was_typed_ahead_has_plain_lines_and_no_keys_in_it(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    sent = recording(tmp_path)
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\n{AS_A_SHELL_LEAVES_IT}")
    slow.chmod(0o755)
    with Window(tmp_path, "chat", "--cwd", str(tmp_path / "project"), program=str(slow)) as window:
        window.wait_until("ready")
        window.type("!hello\r\nthere\x1b[A\r\nhalf\x1bOB typed")
        window.wait_until("Hello there!\n\n✓ done")
        window.wait_for_rows("▸ half typed", STATUS + " · 0% of 100k tokens")
    assert '"hello\\nthere"' in sent.read_text()


# --- completion


def test_a_folder_that_was_chosen_shows_what_is_in_it(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO)
    (project / "my docs").mkdir()
    (project / "my docs" / "nest plan.txt").write_text("x\n")
    (project / "my docs" / "old").mkdir()
    (project / "my docs" / "old" / "a.txt").write_text("x\n")
    with chat(tmp_path) as window:
        window.type("see @my")
        window.wait_until("  my docs/")
        window.press("tab")
        window.wait_until('▸ see @"my docs/')
        window.press("enter")
        found = ("  my docs/nest plan.txt", "  my docs/old/", "  my docs/old/a.txt")
        window.wait_for_rows('▸ see @"my docs/', *found, STATUS)
        window.press("tab")
        window.wait_until('▸ see @"my docs/nest plan.txt"')


def test_the_ends_of_long_paths_are_shown_in_a_narrow_window(tmp_path: Path) -> None:
    project = play(tmp_path, HELLO)
    folder = project / "packages" / "feathers_and_wings"
    folder.mkdir(parents=True)
    for name in ("long_primary.py", "long_secondary.py"):
        (folder / name).write_text("x\n")
    with chat(tmp_path, columns=40) as window:
        window.type("@long")
        window.wait_for_rows(
            "▸ @long", "  …s/feathers_and_wings/long_primary.py", "  …feathers_and_wings/long_secondary.py", STATUS
        )


def test_a_folder_that_does_not_answer_keeps_nobody_from_leaving(tmp_path: Path) -> None:
    """Neither one that is typed nor that of the settings, which are read once the input line is there."""
    tried = tmp_path / "tried"
    fault = f"import os, time; os.scandir = lambda _: [os.makedirs({str(tried)!r}, exist_ok=True), time.sleep(3600)]"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        eventually(tried.exists, "the settings are being read")
        window.type("see @/net/x")
        window.wait_until("▸ see @/net/x")
        window.press("ctrl-u")
        window.wait_until(INPUT)
        window.press("ctrl-d")
        assert window.ended() == 0


# --- a terminal that can only print lines
