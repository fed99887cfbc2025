"""The window of `crow chat`: long outputs, modes, narrow and resized windows, hostile text, colours."""

import re
from pathlib import Path

import pytest

from tests.cli.chat_support import DONE, INPUT, chat, numbered, question, state, talk_to, wait_for_question
from tests.cli.test_run import HELLO, play
from tests.support.puppet import Puppet
from tests.support.scripts import call, edit, say
from tests.support.scripts import run as run_command


def test_long_outputs_are_folded_and_unfolded(tmp_path: Path) -> None:
    play(tmp_path, run_command("seq 1 60"), DONE)
    with chat(tmp_path, "--mode", "auto", status="auto · play/it") as window:
        window.type("count")
        window.press("enter")
        window.wait_until("✓ done")
        assert "  │ … 50 earlier lines · Ctrl-O\n  │ 51\n" in window.text
        assert "  12\n" not in window.text
        window.press("ctrl-o")
        window.wait_until("\nseq 1 60\n1-16 of 60 · ")
        assert "  1\n  2\n" in window.text
        assert "  16\n" in window.text
        window.press("page-down", "down")
        window.wait_until("\nseq 1 60\n17-32 of 60")
        window.press("ctrl-o")
        window.wait_for_rows("", INPUT, "auto · play/it")
        assert "  20\n" not in window.text
        window.press("ctrl-o")
        window.wait_until("1-16 of 60")
        window.press("enter")  # all of it, to stay
        window.wait_until("  60\n\n▸")
        assert [row for row in window.scrollback if row == "  12"] == ["  12"]


def test_the_rest_of_a_long_line_is_unfolded(tmp_path: Path) -> None:
    text = "x" * 500 + "THE-END"
    play(tmp_path, f"{run_command(f'echo {text}')}, {call('write', path='a.txt', content=text)}", DONE)
    with chat(tmp_path, "--mode", "auto", "go", status="auto · play/it", lines=50) as window:
        window.wait_until("✓ done")
        assert "  │ … long lines cut · Ctrl-O\n  │ xxx" in window.text
        assert "x…\n    (no newline at end of file)\n  … long lines cut · Ctrl-O\n" in window.text
        window.press("ctrl-o")
        window.wait_until("\nWrite a.txt +1 ")
        window.wait_until("xTHE-END\n    (no newline at end of file)")
        window.press("left")
        window.wait_until("xTHE-END\n▸")


def test_a_question_that_comes_while_something_is_unfolded_says_what_to_do(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("x")
        window.press("enter")
        agent.expect("session/prompt")
        output = {"type": "content", "content": {"type": "text", "text": f"```text\n{numbered(40)}```"}}
        agent.update(
            sessionUpdate="tool_call",
            toolCallId="c1",
            title="seq",
            kind="execute",
            status="completed",
            content=[output],
        )
        window.wait_until("30 earlier lines · Ctrl-O")
        window.press("ctrl-o")
        window.wait_until("1-16 of 40")
        asked = agent.request("session/request_permission", question())
        window.wait_until("Ctrl-O closes this; then answer")
        window.press("y", "ctrl-o")
        window.wait_until(lambda: "of 40" not in window.text)
        wait_for_question(window, "y  Yes")
        window.press("y")
        answer = agent.next()
        assert (answer["id"], answer["result"]["outcome"]["optionId"]) == (asked, "yes")


def test_what_is_unfolded_names_its_call(tmp_path: Path) -> None:
    text = "\n".join(f"twig {number}" for number in range(80))
    play(tmp_path, f"{call('write', path='nest.txt', content=text)}, {run_command('seq 1 60')}", DONE)
    with chat(tmp_path, "--mode", "auto", "go", status="auto · play/it") as window:
        window.wait_until("✓ done")
        window.press("ctrl-o")
        window.wait_until("\nseq 1 60\n1-")
        window.press("left")
        window.wait_until("\nWrite nest.txt +80 ")
        window.press("enter")
        window.wait_until(lambda: any(row.startswith("▾ Write nest.txt +80 ") for row in window.scrollback))


def test_shift_tab_changes_the_mode(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.press("shift-tab")
        window.wait_for_rows(INPUT, "edit · play/it")


def test_no_mode_is_put_into_effect_on_the_way_to_another(tmp_path: Path) -> None:
    fault = "conversation.MODE_DELAY = 3600"
    with Puppet(tmp_path, fault=fault) as agent, talk_to(agent, tmp_path) as window:
        for mode in ("edit", "plan"):
            window.press("shift-tab")
            window.wait_until(f"ask → {mode} · their/model")
        window.type("x")
        window.press("enter")  # it counts for the prompt
        changed = agent.next()
        assert (changed["method"], changed["params"]["value"]) == ("session/set_config_option", "plan")
        agent.answer(changed, {"configOptions": []})
        assert agent.next()["method"] == "session/prompt"


@pytest.mark.parametrize("columns", [40, 30, 20])
def test_a_narrow_window_is_readable(tmp_path: Path, columns: int) -> None:
    text = "Crows are very clever birds that use tools, plan ahead and remember faces for years."
    project = play(tmp_path, f"{say(text)}, {edit('nest.py', 'twigs', 'feathers')}", DONE)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "tell", columns=columns, lines=20, status="ask") as window:
        window.wait_until("n  Reject")
        words = " ".join("\n".join(window.scrollback).split())
        assert text in words
        assert "Allow edits of nest.py for this session" in words
        assert "ask · play/it" in window.picture[-1]
        choices = window.picture[window.picture.index("  y  Allow once") : -1]
        assert all(re.match(r"  [yapn ]  \S", row) for row in choices), choices


def test_the_window_is_resized_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        prompt = agent.expect("session/prompt")
        agent.say("Before that there were\nsome lines\nand now a line that grows word by word ")
        window.wait_until("word by word")
        # What is drawn for 80 columns and read after the resize is not to be told from what was there before: all of
        # it has to be there, the row that comes with the next tick too. From then on only the seconds change.
        window.wait_until(" writing")
        window.wait_until(lambda: window.picture[-2:] == [INPUT, "ask · their/model"])
        window.resize(40, 24)
        window.wait_until("▸ / for commands, @ for files, Ctrl-D…\n")
        agent.say("until it is longer than the window is now, which is not much.\n")
        window.wait_until("which is not much.")
        window.resize(90, 24)
        window.wait_until(INPUT)
        agent.say("And the end.")
        agent.answer(prompt, {"stopReason": "end_turn"})
        window.wait_for_rows(
            "▸ go",
            "",
            "Before that there were",
            "some lines",
            "and now a line that grows word by word",
            "until it is longer than the window is",
            "now, which is not much.",
            "And the end.",
            "",
            "✓ done",
            "",
            INPUT,
            "ask · their/model",
        )


def test_nothing_that_others_wrote_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    hostile = "red \x1b[31m clear \x1b[2J title \x1b]0;owned\x07 bidi \u202e\u2066 c1 \x9b31m bell \x07 tag \U000e0041."
    visible = "red ␛[31m clear ␛[2J title ␛]0;owned␇ bidi ⟨U+202E⟩"
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.type("go")
        window.press("enter")
        agent.expect("session/prompt")
        agent.say(hostile)
        window.wait_until(visible)
        command = {"name": "evil\x1b[2J", "description": hostile}
        agent.update(sessionUpdate="available_commands_update", availableCommands=[command])
        agent.update(sessionUpdate="tool_call", toolCallId="c1", title=hostile, kind="execute", status="in_progress")
        window.wait_until("title ⟨U+001B⟩]0;owned")
        state(agent, "running", by=hostile)
        agent.request("session/request_permission", question(hostile))
        wait_for_question(window, "n  No")
        window.press("n")
        agent.next()
        window.type("/ev")
        window.wait_until("/evil⟨U+001B⟩[2J")
    for sequence in (b"\x1b[31m", b"\x1b[2J", b"\x1b]0;", b"\x07", "\u202e".encode(), "\x9b".encode()):
        assert sequence not in window.written


def test_without_colours(tmp_path: Path) -> None:
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go", NO_COLOR="1") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("Hello **there**!")
        window.wait_until("✓ done")
    assert not colours_in(window.written)


def test_colours_are_the_terminals_own_and_the_background_is_left_alone(tmp_path: Path) -> None:
    """So it can be read on a light background as well as on a dark one."""
    project = play(tmp_path, edit("nest.py", "twigs", "feathers"), HELLO)
    (project / "nest.py").write_text("twigs\n")
    with chat(tmp_path, "go", TERM="xterm-256color", XTERM_VERSION="1") as window:
        wait_for_question(window)
        window.press("y")
        window.wait_until("✓ done")
    assert colours_in(window.written) == {31, 32, 33, 35, 36} & colours_in(window.written) != set()


def colours_in(written: bytes) -> set[int]:
    codes = {int(code) for codes in re.findall(rb"\x1b\[([0-9;]+)m", written) for code in codes.split(b";")}
    return {code for code in codes if code >= 30}


def test_a_prompt_of_one_endless_line_is_folded(tmp_path: Path) -> None:
    with Puppet(tmp_path) as agent, talk_to(agent, tmp_path) as window:
        window.paste("twig " * 4000)
        window.wait_until("twig twig")
        window.type("\x05\r")
        agent.answer(agent.expect("session/prompt"), {"stopReason": "end_turn"})
        window.wait_until("✓ done")
        assert sum("twig twig" in row for row in window.scrollback) < 15
        assert "  … long lines cut · Ctrl-O" in window.scrollback
        window.press("ctrl-o")
        window.wait_until("Your message\n1-16 of 2")


def test_a_low_window_shows_that_there_are_other_choices(tmp_path: Path) -> None:
    play(tmp_path, run_command("touch f1"), DONE)
    with chat(tmp_path, "go", lines=5, columns=70) as window:
        window.wait_until("  y/a/p/n: y Allow once · a Allow")
        window.wait_until(lambda: "Keys ignored" not in window.text)
        window.press("n")
        window.wait_until("✓ done")
        assert "  → Reject" in window.scrollback


def test_after_a_command_of_crows_own_nothing_says_that_it_is_done(tmp_path: Path) -> None:
    play(tmp_path, HELLO)
    with chat(tmp_path) as window:
        window.type("/rename nest")
        window.press("enter")
        window.wait_until("Renamed to: nest")
        window.wait_until(INPUT)
        window.type("hello")
        window.press("enter")
        window.wait_until("✓ done")
        assert sum("done" in row for row in window.scrollback) == 1


def test_all_lines_of_a_long_output_are_counted(tmp_path: Path) -> None:
    play(tmp_path, run_command("seq 300000"), HELLO)
    with chat(tmp_path, "--mode", "auto", status="auto · play/it") as window:
        window.type("count\r")
        window.wait_until("299990 earlier lines · Ctrl-O")
