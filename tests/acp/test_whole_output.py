"""`_crow/output`: all that a command has written, as it wrote it, while the session is open."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.editor import Editor, Json, chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, reply, run


def opened(open_editor: Callable[..., Editor], *commands: str, **options: object) -> Editor:
    script = "".join(reply(run(command)) for command in commands) + DONE
    crow = open_editor(script=script, permit=lambda _: chose("once"), **options)
    crow.new_session()
    return crow


def part(crow: Editor, call: str, **more: int) -> Json:
    return crow.request("_crow/output", {"sessionId": crow.session_id, "toolCallId": call, **more})


def parts(crow: Editor, call: str, limit: int) -> list[Json]:
    found = [part(crow, call, limit=limit)]
    while found[-1]["next"] < found[-1]["total"]:
        found.append(part(crow, call, limit=limit, offset=found[-1]["next"]))
    return found


def test_it_has_escape_sequences_and_carriage_returns(open_editor):
    crow = opened(open_editor, r"printf '\033[31mred\033[0m\n10%%\r100%%\n'")
    crow.prompt("go")
    written = "\x1b[31mred\x1b[0m\n10%\r100%\n"
    whole = {"data": written, "offset": 0, "next": len(written), "total": len(written), "running": False}
    assert part(crow, "t1-c1") == whole
    assert part(crow, "t1-c1", offset=5, limit=4)["data"] == "red\x1b"
    assert part(crow, "t1-c1", offset=1000) == whole | {"data": "", "offset": len(written)}


@pytest.mark.parametrize("lines", [100, 60_000], ids=["in memory", "in a file"])
def test_no_character_is_cut_wherever_the_parts_are(open_editor, lines):
    crow = opened(open_editor, f"yes 'aä€🙂' | head -{lines}")
    crow.prompt("go")
    found = parts(crow, "t1-c1", 7 if lines == 100 else 99_999)
    assert "".join(each["data"] for each in found) == "aä€🙂\n" * lines
    assert found[-1]["total"] == len("aä€🙂\n".encode()) * lines
    assert all(each["offset"] == before["next"] for before, each in pairwise(found))
    assert part(crow, "t1-c1", offset=2, limit=6)["data"] == "€"  # the second half of ä, and the first of 🙂


def test_what_is_no_utf8_is_replaced(open_editor):
    crow = opened(open_editor, r"printf 'a\377b\342\202'")
    crow.prompt("go")
    assert part(crow, "t1-c1")["data"] == "a\ufffdb\ufffd"


def test_a_running_command_can_be_read_as_it_grows(open_editor):
    crow = opened(open_editor, "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second")
    turn = crow.start_prompt("go")
    crow.wait_until(lambda: "text\\nfirst" in str(crow.tool_calls()), "the first line")
    begun = part(crow, "t1-c1")
    assert (begun["data"], begun["running"]) == ("first\n", True)
    (crow.workspace / "go").touch()
    turn.answer()
    more = part(crow, "t1-c1", offset=begun["next"])
    assert (more["data"], more["running"]) == ("second\n", False)


def test_it_is_gone_with_the_session_and_nothing_is_left_behind(open_editor, tmp_path):
    crow = opened(open_editor, "yes | head -50000", environment={"TMPDIR": str(tmp_path)})
    crow.prompt("go")
    assert part(crow, "t1-c1")["total"] == 100_000
    assert [path.suffix for path in sorted(tmp_path.glob("crow-*/*"))] == [".raw", ".txt"]
    crow.request("session/close", {"sessionId": crow.session_id})
    eventually(lambda: not list(tmp_path.glob("crow-*")), "the output is removed")
    crow.load_session(crow.session_id)
    refused = crow.start("_crow/output", {"sessionId": crow.session_id, "toolCallId": "t1-c1"}).error()
    assert (refused.code, "t1-c1" in refused.message) == (-32602, True)


def test_a_client_of_another_process_can_read_it(tmp_path: Path):
    script = reply(run("yes | head -50000")) + DONE
    owner = Editor(tmp_path, script=script, client_info={"name": "owner"}, permit=lambda _: chose("once"))
    other = Editor(tmp_path, client_info={"name": "other"})
    try:
        session = owner.new_session()
        owner.prompt("go")
        other.load_session(session)
        assert "".join(each["data"] for each in parts(other, "t1-c1", 30_000)) == "y\n" * 50_000
        other.close()
        owner.close()
    finally:
        other.kill()
        owner.kill()
