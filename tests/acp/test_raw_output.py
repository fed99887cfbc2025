"""What a client is shown that has terminals for the output of commands which Crow runs itself (Zed's extension)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.editor import NOTICES, RAW_OUTPUT, TERMINAL, Editor, Json, chose
from tests.support.golden import assert_golden, tools_transcript
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, reply, run

COLOURED = r"printf '\033[31mred\033[0m\n'; printf '10%%\r100%%\n'; test -t 1 && echo terminal; exit 3"


def opened(open_editor: Callable[..., Editor], *replies: str, capabilities: Json = RAW_OUTPUT) -> Editor:
    crow = open_editor(script="".join(replies) + DONE, capabilities=capabilities, permit=lambda request: chose("once"))
    crow.new_session()
    return crow


def metas(crow: Editor, key: str) -> list[Json]:
    """What updates had under a key of `_meta`, in order."""
    return [update["_meta"][key] for update in crow.updates if key in update.get("_meta", {})]


def written(crow: Editor) -> str:
    """What the terminals were sent."""
    return "".join(piece["data"] for piece in metas(crow, "terminal_output"))


def told_to_model(crow: Editor) -> str:
    *_, result = [message for message in crow.model_requests()[-1]["messages"] if message["role"] == "tool"]
    return result["text"]


def test_the_person_sees_what_was_written_and_the_model_reads_plain_text(open_editor):
    crow = opened(open_editor, reply(run(COLOURED)))
    crow.prompt("go")
    call_id = crow.the_call()["toolCallId"]
    [info] = metas(crow, "terminal_info")
    assert info == {"terminal_id": call_id, "cwd": str(crow.workspace)}
    assert {piece["terminal_id"] for piece in metas(crow, "terminal_output")} == {call_id}
    assert written(crow) == "\x1b[31mred\x1b[0m\n10%\r100%\nterminal\n"
    assert metas(crow, "terminal_exit") == [{"terminal_id": call_id, "exit_code": 3, "signal": None}]
    assert crow.the_call()["content"] == [{"type": "terminal", "terminalId": call_id}]
    assert told_to_model(crow) == "red\n100%\nterminal\n[exit code 3]"


def test_the_terminal_is_announced_before_it_is_shown_and_shown_before_it_is_written_to(open_editor):
    crow = opened(open_editor, reply(run("sleep 0.3; echo later")))
    crow.prompt("go")
    order = [
        [kind for kind in ("terminal_info", "terminal_output", "terminal_exit") if kind in update.get("_meta", {})]
        or [item["type"] for item in update.get("content", ()) if item["type"] == "terminal"]
        for update in crow.updates
        if update["sessionUpdate"].startswith("tool_call")
    ]
    assert [kind for kinds in order for kind in kinds] == [
        "terminal_info",
        "terminal",
        "terminal_output",
        "terminal_exit",
    ]
    assert crow.updates[0]["sessionUpdate"] == "tool_call", "clients look for the announcement nowhere else"


@pytest.mark.parametrize("capabilities", [{}, {"_meta": {"terminal_output": "yes"}}, {"_meta": []}, {"_meta": None}])
def test_other_clients_are_shown_text(open_editor, capabilities):
    crow = opened(open_editor, reply(run(COLOURED)), capabilities=capabilities)
    crow.prompt("go")
    assert not any("_meta" in update for update in crow.updates)
    [shown] = crow.the_call()["content"]
    assert shown["content"]["text"].startswith("```text\nred\n100%\nterminal\nexit 3 · ")


def test_a_command_in_the_clients_own_terminal_is_written_by_nobody_else(open_editor):
    crow = opened(open_editor, reply(run("echo here")), capabilities=RAW_OUTPUT | TERMINAL)
    crow.prompt("go")
    [content] = crow.the_call()["content"]
    assert content["terminalId"] != crow.the_call()["toolCallId"]
    assert not metas(crow, "terminal_output") + metas(crow, "terminal_exit")


def test_another_folder_is_said(open_editor):
    crow = opened(open_editor, reply(run("pwd", cwd="sub")))
    (crow.workspace / "sub").mkdir()
    crow.prompt("go")
    assert written(crow) == f"{crow.workspace}/sub\n"
    assert f"in {crow.workspace}/sub" in str(crow.updates)


def test_one_that_takes_too_long_keeps_its_terminal_and_the_title_says_why_it_ended(open_editor):
    crow = opened(open_editor, reply(run("echo begun; exec sleep 1000", timeout=0.5)))
    crow.prompt("go")
    shown = crow.the_call()
    assert shown["content"] == [{"type": "terminal", "terminalId": shown["toolCallId"]}]
    assert shown["title"].endswith("timed out after 0.5 s")
    assert metas(crow, "terminal_exit")[0]["signal"] == "SIGTERM"


def test_one_that_is_cancelled_keeps_its_terminal_and_says_so_beside_it(open_editor):
    crow = opened(open_editor, reply(run("echo begun; exec sleep 1000")))
    prompt = crow.start_prompt("go")
    crow.wait_until(lambda: written(crow) == "begun\n", "the output")
    crow.cancel()
    assert prompt.answer()["stopReason"] == "cancelled"
    terminal, said = crow.the_call()["content"]
    assert terminal == {"type": "terminal", "terminalId": crow.the_call()["toolCallId"]}
    assert said["type"] == "content"
    assert crow.the_call()["status"] == "failed"
    assert len(metas(crow, "terminal_exit")) == 1


def test_one_that_is_rejected_gets_no_terminal(open_editor):
    crow = open_editor(script=reply(run("echo never")) + DONE, capabilities=RAW_OUTPUT)
    crow.new_session()
    crow.prompt("go")
    assert not any(item["type"] == "terminal" for item in crow.the_call()["content"])
    assert not metas(crow, "terminal_exit")


@pytest.mark.parametrize("ends", ["by itself", "stopped"])
def test_the_output_of_a_background_command_goes_on_in_its_call(open_editor, ends):
    stop = reply(call("terminal_stop", id="b1"), when="stop") if ends == "stopped" else ""
    line = "echo up; until [ -e more ]; do sleep 0.02; done; echo more; until [ -e stop ]; do sleep 0.02; done; exit 3"
    crow = opened(open_editor, reply(run(line, background=True)), stop, capabilities=RAW_OUTPUT | NOTICES)
    crow.prompt("go")
    assert not metas(crow, "terminal_exit")
    (crow.workspace / "more").touch()
    crow.wait_until(lambda: written(crow) == "up\nmore\n", "what it prints between two turns")
    if ends == "stopped":
        crow.prompt("stop it")
    (crow.workspace / "stop").touch()
    crow.wait_until(lambda: bool(metas(crow, "terminal_exit")), "its end")
    [ended] = metas(crow, "terminal_exit")
    assert (ended["exit_code"], ended["signal"]) == ((3, None) if ends == "by itself" else (None, "SIGTERM"))
    first = next(iter(crow.tool_calls().values()))
    assert first["content"] == [{"type": "terminal", "terminalId": first["toolCallId"]}]


def test_a_client_that_does_not_read_for_a_while_is_sent_all_of_it_then(open_editor):
    line = "echo ready; until [ -e go ]; do sleep 0.02; done; seq 1 40000; touch done; sleep 0.3; echo end"
    crow = opened(open_editor, reply(run(line)))
    prompt = crow.start_prompt("go")
    crow.wait_until(lambda: written(crow) == "ready\n", "the first of it")
    crow.stop_reading()
    (crow.workspace / "go").touch()
    eventually((crow.workspace / "done").exists, "all of it is written")
    crow.read_on()
    prompt.answer()
    assert written(crow) == "ready\n" + "".join(f"{number}\n" for number in range(1, 40_001)) + "end\n"


def test_a_flood_is_cut_and_says_so(open_editor):
    crow = opened(open_editor, reply(run("yes 'a line of a flood' | head -c 60000000; echo end")))
    crow.prompt("go")
    assert len(written(crow)) < 5 * 2**20
    assert "left out here; all of it is in" in written(crow)
    assert written(crow).endswith("end\n")
    assert max(len(piece["data"]) for piece in metas(crow, "terminal_output")) < 2**19


def test_a_session_that_is_loaded_shows_the_command_as_text(open_editor):
    crow = opened(open_editor, reply(run(COLOURED)))
    crow.prompt("go")
    crow.close()
    other = open_editor(folder=crow.folder, capabilities=RAW_OUTPUT)
    other.load_session(crow.session_id)
    assert "red\n100%\n" in str(other.the_call()["content"][0]["content"]["text"])
    assert not any("_meta" in update for update in other.updates)


def test_the_whole_conversation(open_editor):
    crow = opened(open_editor, reply(run(r"printf '\033[31mred\033[0m\n'; exit 3")))
    crow.prompt("go")
    assert_golden("command-raw", tools_transcript(crow))


def test_binary_garbage_breaks_nothing(open_editor, tmp_path: Path):
    garbage = os.urandom(50_000) + bytes(range(256)) * 20
    crow = opened(open_editor, reply(run("cat garbage")))
    (crow.workspace / "garbage").write_bytes(garbage)
    crow.prompt("go")
    assert written(crow).encode("utf-8", "replace") == garbage.decode("utf-8", "replace").encode()
    assert "\x1b" not in told_to_model(crow)
