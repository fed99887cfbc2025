"""The client hands over MCP servers: good ones, broken ones, far too many tools."""

import json
import os
import signal

import pytest

from tests.mcp.guests import (
    PATIENT,
    are_gone,
    bad,
    calling,
    children_of,
    configured,
    editing,
    good,
    is_alive,
    listening,
    notice_about,
    offered,
    one_call,
    over_http,
    pids_in,
    shown,
    told_model,
)
from tests.support.editor import chose
from tests.support.patience import eventually
from tests.support.scripts import DONE, call, reply, say


@pytest.mark.rule("R154", "R155", "R156")
def test_one_good_server_on_pipes_one_over_http_and_three_broken_ones(tmp_path):
    script = calling(("mcp__good__add", {"a": 1, "b": 2}), ("mcp__web__add", {"a": 3, "b": 4}), ("mcp__dies__go", {}))
    pids = tmp_path / "pids"
    # What hangs is told of in time; the good ones get as long as a busy machine takes.
    config = "[limits]\nmcp_start = 8\nmcp_late = 1\n"
    with listening("http") as (url, _):
        editor = editing(tmp_path, script, config=config)
        assert editor.initialized["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": True}
        missing = {"name": "missing", "command": "/no/such/command", "args": [], "env": []}
        editor.new_session(
            mcpServers=[good(), over_http(url), bad("hangs", pids), bad("dies-in-call", name="dies"), missing]
        )
        assert editor.prompt("Go.") == {"stopReason": "end_turn"}

        came = editor.received
        opened = next(number for number, message in enumerate(came) if "sessionId" in message.get("result", {}))
        told = next(number for number, message in enumerate(came) if "`missing`" in json.dumps(message))
        assert opened < told, "the session was there before anything was known of any server"

        first, second, third = editor.tool_calls().values()
        assert (first["status"], shown(first)) == ("completed", "```text\nthe sum is 3\n```")
        assert (second["status"], shown(second)) == ("completed", "```text\nthe sum is 7\n```")
        assert third["status"] == "failed"
        assert "exit status 3" in shown(third)
        assert "the oven exploded" in shown(third)
        assert "`/no/such/command`" in notice_about(editor, "`missing`")
        assert "8 s" in notice_about(editor, "`hangs`")
        assert "exit status 3" in notice_about(editor, "`dies`")

        are_gone(pids_in(pids))
        assert len(children_of(editor.process.pid)) > 1, "the good one is still there"
        editor.request("session/close", {"sessionId": editor.session_id})
        eventually(lambda: len(children_of(editor.process.pid)) <= 1, "only the fork server is left")
        editor.close()


def test_the_question_shows_server_tool_and_arguments_in_full(tmp_path):
    long = "bread " * 500
    call_shown, editor = one_call(tmp_path, bad("plain"), "go", note=f"\u202e{long}")
    [request] = editor.permissions
    text = shown(request["toolCall"])
    assert "server: plain (from your editor)" in text
    assert "tool: go" in text
    assert long in text
    assert "⟨U+202E⟩" in text
    assert [option["kind"] for option in request["options"]] == [
        "allow_once",
        "allow_always",
        "allow_always",
        "reject_once",
    ]
    assert call_shown["status"] == "completed"


def test_calls_of_a_tool_that_calls_itself_read_only_run_one_after_the_other(tmp_path):
    rule = '[[permission.rules]]\ntool = "mcp__good__*"\ndecision = "allow"\n'
    adds = [call("mcp__good__add", a=number, b=1) for number in range(3)]
    editor = editing(tmp_path, reply(*adds) + DONE, config=PATIENT + rule)
    editor.new_session(mcpServers=[good()])
    editor.prompt("Go.")
    editor.close()
    assert [added["kind"] for added in editor.tool_calls().values()] == ["read"] * 3
    changes = [(update.get("status"), update.get("toolCallId")) for update in editor.updates]
    assert [change for change in changes if change[0] in ("in_progress", "completed")] == [
        (status, f"t1-c{number}") for number in (1, 2, 3) for status in ("in_progress", "completed")
    ]


def test_a_rule_for_all_tools_of_a_server_covers_them(tmp_path):
    rule = '[[permission.rules]]\ntool = "mcp__plain__*"\ndecision = "allow"\n'
    done, editor = one_call(tmp_path, bad("plain"), "go", {"config": PATIENT + rule})
    assert editor.permissions == []
    assert done["status"] == "completed"


def test_three_hundred_tools_cost_a_tenth_of_the_window_at_most_and_the_one_that_is_found_can_be_called(tmp_path):
    script = (
        reply(call("find_tools", query="weigh an elephant"))
        + reply(call("mcp__many__weigh_elephant"))
        + reply(call("mcp__many__bake_7"))
        + DONE
    )
    alone, crowded = tmp_path / "alone", tmp_path / "crowded"
    sizes = []
    for folder, servers in ((alone, []), (crowded, [bad("many")])):
        editor = editing(folder, script, config="context_window = 100000\n" + PATIENT)
        editor.new_session(mcpServers=servers)
        editor.prompt("Go.")
        sizes.append(len(json.dumps(editor.model_requests()[0]["tools"])))
        editor.close()
    assert sizes[1] - sizes[0] <= 100_000 * 3 / 10  # three bytes a token is the most there are

    requests = editor.model_requests()
    assert "find_tools" in offered(requests[0])
    assert not any(name.startswith("mcp__") for name in offered(requests[0]))
    assert "mcp__many__weigh_elephant" in offered(requests[1])
    found, elephant, by_name = editor.tool_calls().values()
    assert "mcp__many__weigh_elephant" in shown(found).splitlines()[1]
    assert shown(elephant) == "```text\ncalled weigh_elephant\n```"
    assert shown(by_name) == "```text\ncalled bake_7\n```"


def test_killing_crow_leaves_no_server_behind(tmp_path):
    pids = tmp_path / "pids"
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[bad("plain", pids)])
    below = pids_in(pids)
    assert all(is_alive(pid) for pid in below)
    os.kill(editor.process.pid, signal.SIGKILL)
    are_gone(below)
    editor.kill()


def test_a_servers_environment_has_no_key_and_what_its_configuration_names(tmp_path):
    environment = {"OPENAI_API_KEY": "sk-secret", "SOMETHING_ELSE": "x", "LC_TIME": "C"}
    _, editor = one_call(tmp_path, good(BAKERY="open"), "environment", {"environment": environment})
    names = set(told_model(editor).split())
    assert {"PATH", "HOME", "BAKERY", "LC_TIME"} <= names
    assert names <= {
        *("PATH", "HOME", "USER", "LANG", "TERM", "TMPDIR", "SHELL", "BAKERY", "LC_TIME"),
        *("LC_CTYPE",),  # Python sets it by itself
    }


def test_the_clients_server_takes_the_place_of_the_configured_one_of_its_name(tmp_path):
    config = PATIENT + configured({**bad("plain"), "name": "mine"}) + configured(bad("dies-at-start", name="other"))
    editor = editing(tmp_path, calling(("mcp__mine__add", {"a": 2, "b": 2})), config=config)
    editor.new_session(mcpServers=[good("mine")])
    editor.prompt("Go.")
    assert shown(editor.the_call()) == "```text\nthe sum is 4\n```"
    assert "(from your configuration)" in notice_about(editor, "`other`", "no flour in the house")
    editor.prompt("/mcp")
    assert "**mine** (from your editor): ready" in editor.text()
    editor.close()


def test_the_servers_of_a_project_start_once_it_is_trusted(tmp_path):
    pids = tmp_path / "pids"
    work = tmp_path / "work"
    work.mkdir()
    server = bad("plain", pids)
    (work / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"plain": {"command": server["command"], "args": server["args"]}}})
    )
    started_before = []

    def permit(request: dict) -> dict:
        started_before.append(pids.exists())
        return chose("once")

    editor = editing(tmp_path, calling(("mcp__plain__go", {})), permit=permit)
    editor.new_session()
    editor.prompt("Go.")
    assert started_before[0] is False
    *_, done = editor.tool_calls().values()
    assert done["status"] == "completed"
    editor.close()
    are_gone(pids_in(pids))


@pytest.mark.parametrize("changed", [None, {"other": {"command": "true"}}])
def test_a_server_that_a_project_no_longer_brings_with_the_persons_consent_ends(tmp_path, changed):
    pids, work = tmp_path / "pids", tmp_path / "work"
    work.mkdir()
    server = bad("plain", pids)
    listed = work / ".mcp.json"
    listed.write_text(json.dumps({"mcpServers": {"plain": {"command": server["command"], "args": server["args"]}}}))
    answers = ["once", "reject"]
    editor = editing(tmp_path, DONE, permit=lambda request: chose(answers.pop(0)))
    editor.new_session()
    editor.prompt("Go.")
    assert "mcp__plain__go" in offered(editor.model_requests()[-1])
    if changed is None:
        listed.unlink()
    else:
        listed.write_text(json.dumps({"mcpServers": changed}))
    editor.prompt("Go on.")
    assert not [name for name in offered(editor.model_requests()[-1]) if name.startswith("mcp__")]
    are_gone(pids_in(pids))
    editor.close()


def test_variables_in_a_projects_list_are_filled_in_after_trust_and_never_with_crows_keys(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    server = bad("plain")
    python, *rest = (server["command"], *server["args"])
    servers = {
        "plain": {"command": "${MY_PYTHON}", "args": rest},
        "thief": {"command": python, "args": [*rest, "${ANTHROPIC_API_KEY}"]},
        "unset": {"command": python, "args": [*rest, "${NOBODY_SET_THIS}"]},
    }
    (work / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    environment = {"MY_PYTHON": python, "ANTHROPIC_API_KEY": "secret"}
    editor = editing(tmp_path, calling(("mcp__plain__go", {})), environment=environment)
    editor.new_session()
    editor.prompt("Go.")
    asked = str(editor.permissions[0])
    assert "${MY_PYTHON}" in asked
    assert "secret" not in asked
    *_, done = editor.tool_calls().values()
    assert done["status"] == "completed"
    assert "keys of Crow's own: ANTHROPIC_API_KEY." in notice_about(editor, "`thief`", "is not started")
    assert "NOBODY_SET_THIS" in notice_about(editor, "`unset`", "is not started")
    editor.prompt("/mcp")
    assert "**plain** (from the project): ready" in editor.text()
    assert "thief" not in editor.text()
    editor.close()


@pytest.mark.rule("R157")
def test_a_server_of_a_kind_that_is_not_known_is_named(tmp_path):
    editor = editing(tmp_path, reply(say("Fine.")) + DONE)
    editor.new_session(mcpServers=[{"type": "acp", "name": "odd", "serverId": "x"}])
    assert "`acp` is not supported" in notice_about(editor, "`odd`")
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    editor.close()
