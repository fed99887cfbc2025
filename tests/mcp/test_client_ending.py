"""When a session is closed, nothing of its servers is left, whatever they do or do not."""

import pytest

from tests.mcp.guests import (
    PATIENT,
    are_gone,
    bad,
    calling,
    children_of,
    editing,
    hung,
    notice_about,
    over_http,
    pids_in,
    shown,
)
from tests.support.editor import Editor
from tests.support.patience import eventually
from tests.support.scripts import DONE, reply, say


def close_session(editor: Editor) -> None:
    editor.request("session/close", {"sessionId": editor.session_id})


def is_ready(editor: Editor, name: str) -> bool:
    editor.prompt("/mcp")
    return f"**{name}** (from your editor): ready" in editor.text()


def test_servers_that_hang_do_not_hold_up_the_end_of_the_session(tmp_path):
    pids = tmp_path / "pids"
    with hung() as (root, _):
        editor = editing(tmp_path, DONE)
        editor.new_session(
            mcpServers=[
                bad("deaf", pids),
                *(over_http(f"{root}/{path}", path) for path in ("silent", "goodbye", "call")),
                *(over_http(f"{root}/{path}", path, "sse") for path in ("sse-silent", "sse-start")),
            ]
        )
        for name in ("goodbye", "call"):
            eventually(lambda name=name: is_ready(editor, name), f"{name} is ready")
        running = pids_in(pids)
        close_session(editor)
        are_gone(running)
        eventually(lambda: len(children_of(editor.process.pid)) <= 1, "only the fork server is left")
        editor.close()


@pytest.mark.parametrize(("path", "kind"), [("call", "http"), ("sse-call", "sse")])
def test_a_call_that_is_not_answered_does_not_hold_it_up_either(tmp_path, path, kind):
    with hung() as (root, _):
        editor = editing(tmp_path, calling(("mcp__web__go", {})), config=PATIENT + "mcp_call = 100\n")
        editor.new_session(mcpServers=[over_http(f"{root}/{path}", kind=kind)])
        pending = editor.start_prompt("Go.")
        editor.wait_until(lambda: "in_progress" in str(editor.tool_calls()), "the call is running")
        close_session(editor)
        assert pending.answer() == {"stopReason": "cancelled"}
        editor.close()


def test_one_that_does_not_say_goodbye_can_be_started_again(tmp_path):
    with hung() as (root, _):
        editor = editing(tmp_path, reply(say("Fine.")) + calling(("mcp__web__go", {})))
        editor.new_session(mcpServers=[over_http(f"{root}/goodbye")])
        editor.prompt("Is it there?")
        editor.prompt("/mcp restart web")
        notice_about(editor, "`web`", "is ready now")
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\ngone\n```"
        editor.close()
