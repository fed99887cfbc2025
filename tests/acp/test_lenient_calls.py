"""Calls that are not written as they should be, in a real conversation: what is judged, shown, stored and sent back."""

import json
import subprocess
import sys

from tests.support import scripts
from tests.support.editor import chose

DENY = '[[permission.rules]]\ntool = "terminal"\ndecision = "deny"\ncommand = "rm *"\n'


def test_what_is_asked_about_shown_and_sent_back_is_what_runs(open_editor):
    crow = open_editor(
        script=scripts.reply(
            scripts.call_as_written("ReadFile", "{'file_path': 'a.txt', 'limit': '1'}"),
            scripts.call_as_written("functions.bash:1", '{"cmd": ["touch", "a b"]}'),
            scripts.call_as_written("write_file", '{"path": "c.txt", "content": "half of'),
        )
        + scripts.DONE,
        permit=lambda request: chose("once"),
    )
    (crow.workspace / "a.txt").write_text("one\ntwo\n")
    crow.new_session()
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    read, command, cut = crow.tool_calls().values()
    assert (read["title"], read["rawInput"]) == ("Read a.txt:1-1", {"path": "a.txt", "limit": 1})
    [asked] = crow.permissions
    assert asked["toolCall"]["title"] == "touch 'a b'"
    assert command["rawInput"] == {"command": "touch 'a b'"}
    assert (crow.workspace / "a b").exists()
    assert cut["status"] == "failed"
    assert not (crow.workspace / "c.txt").exists()

    messages = crow.model_requests()[-1]["messages"]
    [reply] = [message for message in messages if message["role"] == "assistant"]
    assert [(part["name"], part["arguments"]) for part in reply["parts"]] == [
        ("read", '{"path":"a.txt","limit":1}'),
        ("terminal", '{"cmd": ["touch", "a b"]}'),
        ("write", '{"path": "c.txt", "content": "half of'),
    ]
    results = [message["text"] for message in messages if message["role"] == "tool"]
    assert results[0].endswith(
        '\n(the arguments were no JSON object and were read as {"path":"a.txt","limit":1}; '
        "`file_path` was read as `path`)"
    )
    assert results[1].endswith("\n(`cmd` was read as `command`)")
    assert "the call was cut off" in results[2]

    shown = {call_id: (call["title"], call["rawInput"]) for call_id, call in crow.tool_calls().items()}
    session = crow.session_id
    crow.request("session/close", {"sessionId": session})
    crow.updates.clear()
    crow.load_session(session)
    assert {call_id: (call["title"], call["rawInput"]) for call_id, call in crow.tool_calls().items()} == shown


def test_no_other_name_gets_a_call_past_a_rule(open_editor):
    calls = [
        ("Bash", {"cmd": "rm a.txt"}),
        ("terminal", {"arguments": {"command": ["rm", "a.txt"]}}),
        ("functions.run_command", {"script": "true && rm a.txt"}),
    ]
    crow = open_editor(
        script=scripts.reply(*(scripts.call_as_written(tool, json.dumps(given)) for tool, given in calls))
        + scripts.DONE,
        config=DENY,
    )
    (crow.workspace / "a.txt").write_text("kept")
    crow.new_session()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "auto"})
    crow.prompt("go")
    assert [call["status"] for call in crow.tool_calls().values()] == ["failed"] * 3
    assert (crow.workspace / "a.txt").read_text() == "kept"


PLAIN = """
import sys
from crow.messages import ToolCall
from crow.tools.arguments import read_call
from crow.tools.edit import Edit
from crow.tools.read import ReadTracker
from crow.tools.base import Toolbox

tool = Toolbox([Edit(ReadTracker())]).find("edit")
call = ToolCall("c1", "edit", '{"path": "a", "edits": [{"old": "x", "new": "y", "all": true}]}')
assert read_call(call, tool.spec).call is call
print([name for name in sys.modules if "lenient" in name])
"""


def test_nothing_is_loaded_for_a_call_that_is_as_it_should_be():
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
