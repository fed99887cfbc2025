"""A server's life: however it misbehaves, it costs its own tools alone, and the person learns why."""

import time
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from crow.mcp.client.message_guard import BURST, PART, THROWN_AWAY, MessageGuard, Pace
from tests.mcp.guests import (
    PATIENT,
    are_gone,
    bad,
    calling,
    configured,
    editing,
    endless,
    good,
    hung,
    listening,
    newer,
    notice_about,
    one_call,
    over_http,
    pids_in,
    restless,
    shown,
    told_model,
)
from tests.support.editor import chose
from tests.support.patience import DEADLINE, eventually
from tests.support.scripts import DONE, reply, say
from tests.support.scripts import call as calls

SOON = "[limits]\nmcp_start = 1\n"


def test_one_that_dies_at_start_is_named_with_its_last_words(tmp_path):
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[bad("dies-at-start")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    notice = notice_about(editor, "`dies-at-start`")
    assert "exit status 4" in notice
    assert "no flour in the house" in notice, "the server's own words"
    log = editor.home / "mcp" / "log" / "dies-at-start.log"
    assert log.read_text().startswith("no flour in the house\n")
    assert log.stat().st_mode & 0o777 == 0o600
    assert log.parent.stat().st_mode & 0o777 == 0o700
    editor.close()


def test_one_that_writes_garbage_is_named_with_what_it_wrote(tmp_path):
    # On a busy machine it may write after the first limit: then what it wrote is told with the second.
    editor = editing(tmp_path, DONE, config=SOON + "mcp_late = 10\n")
    editor.new_session(mcpServers=[bad("garbage")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    notice_about(editor, "`garbage`", "Its output begins with: Welcome to the bakery!")
    editor.close()


def test_one_that_greets_first_is_used_all_the_same(tmp_path):
    call, _ = one_call(tmp_path, bad("greets"), "go")
    assert call["status"] == "completed"


def test_one_that_floods_before_it_is_ready_holds_up_nothing(tmp_path):
    editor = editing(tmp_path, DONE, config="[limits]\nmcp_start = 1\n")
    editor.new_session(mcpServers=[bad("floods"), bad("plain")])
    assert editor.prompt("Go.") == {"stopReason": "end_turn"}
    assert "is not ready after 1 s" in notice_about(editor, "`floods`", "is not ready")
    editor.close()


def test_one_that_floods_is_read_slowly_and_can_be_called(tmp_path):
    editor = editing(tmp_path, reply(say("Hm.")) + calling(("mcp__floods__go", {})))
    editor.new_session(mcpServers=[restless("floods")])
    editor.prompt("Go.")
    assert "Crow reads them slowly; its answers may be delayed" in notice_about(editor, "`floods`", "slowly")
    editor.prompt("Go on.")
    assert shown(editor.the_call()) == "```text\ngone\n```"
    editor.close()


def test_what_is_sent_unasked_is_read_for_a_small_part_of_the_time():
    now, slow = [0.0], []
    pace = Pace(lambda: now[0], lambda: slow.append(True))
    pace.spend(BURST)
    assert (pace.due(), slow) == (0.0, [])
    read = 0
    while now[0] < 100:
        pace.spend(THROWN_AWAY)
        read += 1
        now[0] += pace.due()
    assert abs(read * THROWN_AWAY / 100 - PART) < PART / 10
    assert slow == [True], "it is told once"
    now[0] += 1000
    pace.spend(BURST)
    assert pace.due() == 0.0, "after a pause there is room for a burst again"


def test_what_nobody_uses_is_thrown_away_and_changes_are_heard_ten_times_a_second():
    now = [0.0]
    guard = MessageGuard(lambda: now[0], lambda name, wrong: None)

    def takes(method: str, **params: Any) -> bool:
        notice = JSONRPCNotification(jsonrpc="2.0", method=f"notifications/{method}", params=params)
        return guard.take(SessionMessage(notice))

    assert not takes("message", data="x")
    assert not takes("resources/updated", uri="x:")
    for method, params in (("tools/list_changed", {}), ("progress", {"progressToken": 1})):
        heard = 0
        for _ in range(1000):
            now[0] += 0.001
            heard += takes(method, **params)
        assert 9 <= heard <= 11
    assert takes("progress", progressToken=2), "that of another call"
    assert takes("elicitation/complete", elicitationId="x")


def test_answers_that_were_asked_for_are_no_flood_and_others_are():
    guard = MessageGuard(lambda: 0.0, lambda name, wrong: None)
    answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))
    for _ in range(10_000):
        guard.asks()
        assert guard.take(answer, 1_000_000)
    assert guard.pace.due() == 0.0
    for _ in range(5000):
        guard.take(answer)
    assert guard.pace.due() > 1.0


def test_a_message_that_is_far_too_long_ends_the_server_and_fails_the_call(tmp_path):
    call, _ = one_call(tmp_path, bad("huge-line"), "go")
    assert call["status"] == "failed"
    assert "more than 32 MB" in shown(call)


@pytest.mark.parametrize("kind", ["plain", "packed", "events"])
def test_an_endless_answer_over_http_fails_the_call_before_it_fills_the_memory(tmp_path, kind):
    with endless(kind) as url:
        editor = editing(tmp_path, calling(("mcp__web__go", {})), config=PATIENT + "mcp_call = 100\n", cold=True)
        editor.new_session(mcpServers=[over_http(url)])
        editor.prompt("Go.")
        assert "32 MB" in shown(editor.the_call())
        status = Path(f"/proc/{editor.process.pid}/status").read_text()
        [highest] = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
        assert highest < 300 * 1024
        editor.close()


@pytest.mark.parametrize("behaviour", ["half-character", "no-text"])
def test_an_answer_with_what_is_no_text_is_used_all_the_same(tmp_path, behaviour):
    call, _ = one_call(tmp_path, bad(behaviour), "go")
    read = {"half-character": "\\ud83d 🥐 \ufffd!", "no-text": "caf\ufffd"}
    assert shown(call) == f"```text\n{read[behaviour]}\n```"


def test_a_tool_whose_description_holds_half_a_character_can_be_used(tmp_path):
    call, editor = one_call(tmp_path, bad("half-described"), "go")
    assert call["status"] == "completed"
    [tool] = [tool for tool in editor.model_requests()[0]["tools"] if tool["name"] == "mcp__half-described__go"]
    assert "Bakes \ufffd bread." in tool["description"]


def test_an_answer_that_is_no_message_fails_its_call_at_once(tmp_path):
    call, _ = one_call(tmp_path, bad("no-version"), "go", {"config": PATIENT + "mcp_call = 100\n"})
    assert call["status"] == "failed"
    assert "malformed" in shown(call)


def test_a_malformed_result_is_a_failed_call(tmp_path):
    call, editor = one_call(tmp_path, bad("malformed"), "go")
    assert call["status"] == "failed"
    assert "malformed" in told_model(editor)


def test_a_call_that_is_not_answered_ends_at_its_limit(tmp_path):
    config = PATIENT + "mcp_call = 0.5\n"
    call, _ = one_call(tmp_path, bad("silent"), "go", {"config": config})
    assert call["status"] == "failed"
    assert "0.5 s" in shown(call)


def test_a_server_has_limits_of_its_own(tmp_path):
    config = PATIENT + configured(bad("silent")) + "mcp_call = 0.25\n"
    editor = editing(tmp_path, calling(("mcp__silent__go", {})), config=config)
    editor.new_session()
    editor.prompt("Go.")
    assert "within 0.25 s" in shown(editor.the_call())
    editor.close()


def test_one_that_died_is_started_again_for_the_next_call(tmp_path):
    editor = editing(tmp_path, calling(("mcp__dies__go", {}), ("mcp__dies__go", {})))
    editor.new_session(mcpServers=[bad("dies-in-call", name="dies")])
    editor.prompt("Go.")
    first, second = editor.tool_calls().values()
    for call in (first, second):
        assert "exit status 3" in shown(call)
    assert "Restarting it." in notice_about(editor, "`dies`", "has stopped")
    assert "is ready now" in notice_about(editor, "`dies`", "is ready now")
    editor.close()


def test_a_person_can_start_one_again(tmp_path):
    pids = tmp_path / "pids"
    editor = editing(tmp_path, calling(("mcp__plain__go", {})))
    editor.new_session(mcpServers=[bad("plain", pids)])
    editor.prompt("/mcp restart nobody")
    assert editor.text().endswith("`plain`."), "those there are"
    before = pids_in(pids)
    editor.prompt("/mcp restart plain")
    notice_about(editor, "`plain`", "is ready now")
    are_gone(before)
    assert pids_in(pids) != before
    editor.prompt("Go.")
    assert editor.the_call()["status"] == "completed"
    editor.close()


def test_what_is_waited_for_is_named(tmp_path):
    editor = editing(tmp_path, DONE, config="[limits]\nmcp_start = 4\n", environment={"CROW_PATIENCE": "0.2"})
    editor.new_session(mcpServers=[bad("hangs")])
    editor.prompt("Go.")
    assert any(notice.startswith("Waiting for the MCP server hangs (") for notice in editor.notices)
    editor.close()


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_one_over_http_that_was_started_anew_is_reached_again(tmp_path, kind):
    script = calling(("mcp__web__add", {"a": 1, "b": 1})) + "".join(
        calling(("mcp__web__add", {"a": number, "b": 2})).removesuffix(DONE) for number in range(20)
    )
    script = script.replace(DONE, reply(say("So far."))) + DONE
    editor = editing(tmp_path, script)
    with listening(kind) as (url, _):
        editor.new_session(mcpServers=[over_http(url, kind=kind)])
        editor.prompt("Go.")
        assert shown(editor.the_call()) == "```text\nthe sum is 2\n```"
    port = int(url.split(":")[2].split("/")[0])
    with listening(kind, port):
        end = time.monotonic() + DEADLINE
        while [call["status"] for call in editor.tool_calls().values()].count("completed") < 2:
            assert time.monotonic() < end, [shown(call) for call in editor.tool_calls().values()]
            editor.prompt("Go on.")
        editor.close()


def test_answers_that_drip_end_at_the_limit_of_their_call(tmp_path):
    paths = ("head", "body", "events")
    with hung() as (root, _):
        script = calling(*((f"mcp__{path}__go", {}) for path in paths))
        editor = editing(tmp_path, script, config=PATIENT + "mcp_call = 0.5\n")
        editor.new_session(mcpServers=[over_http(f"{root}/drip-{path}", path) for path in paths])
        assert editor.prompt("Go.") == {"stopReason": "end_turn"}
        assert ["0.5 s" in shown(call) for call in editor.tool_calls().values()] == [True] * 3
        editor.close()


def test_a_call_over_the_older_kind_of_http_ends_at_its_limit(tmp_path):
    with hung() as (root, _):
        config = PATIENT + "mcp_call = 0.5\n"
        editor = editing(tmp_path, calling(("mcp__web__go", {}), ("mcp__plain__go", {})), config=config)
        editor.new_session(mcpServers=[over_http(f"{root}/sse-call", kind="sse"), bad("plain")])
        editor.prompt("Go.")
        first, second = editor.tool_calls().values()
        assert "0.5 s" in shown(first)
        assert second["status"] == "completed"
        editor.close()


def test_one_over_the_older_kind_of_http_that_dies_in_a_call_fails_the_call_at_once(tmp_path):
    with hung() as (root, process):
        editor = editing(tmp_path, calling(("mcp__web__go", {})), config=PATIENT + "mcp_call = 100\n", cold=True)
        editor.new_session(mcpServers=[over_http(f"{root}/sse-dies", kind="sse")])
        editor.prompt("Go.")
        assert process.wait() == 1
        assert "the connection was lost during the call" in shown(editor.the_call())
        assert "Restarting it." in notice_about(editor, "`web`", "has stopped")
        editor.close()


def test_one_that_speaks_only_the_newer_protocol_is_used_and_its_changes_are_noticed(tmp_path):
    first = reply(calls("mcp__newer__shift")) + reply(say("So far."))
    editor = editing(tmp_path, first + calling(("mcp__newer__shifted", {})))
    editor.new_session(mcpServers=[newer()])
    editor.prompt("Go.")
    assert shown(editor.the_call()) == "```text\ndone\n```"

    def has_both() -> bool:
        editor.prompt("/mcp")
        return "`mcp__newer__shifted`" in editor.text()

    eventually(has_both, "the new tool is there")
    editor.prompt("Go on.")
    assert [one["status"] for one in editor.tool_calls().values()] == ["completed", "completed"]
    editor.close()


def test_an_address_where_nobody_listens_is_named(tmp_path):
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[over_http("http://127.0.0.1:9/mcp")])
    editor.prompt("Go.")
    assert "reached" in notice_about(editor, "`web`")
    editor.close()


def test_an_address_that_is_none_is_not_tried_again(tmp_path):
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[over_http("http://[::1")])
    editor.prompt("Go.")
    notice = notice_about(editor, "`web`")
    assert "check the url" in notice
    assert "started again" not in notice
    editor.close()


def test_cancelling_the_turn_cancels_the_call_at_the_server(tmp_path):
    witness = tmp_path / "witness"
    editor = editing(tmp_path, calling(("mcp__good__slow", {"path": str(witness)})))
    editor.new_session(mcpServers=[good()])
    pending = editor.start_prompt("Go.")
    editor.wait_until(lambda: "kneading (3 of 10)" in str(editor.tool_calls()), "progress is shown")
    editor.cancel()
    assert pending.answer() == {"stopReason": "cancelled"}
    editor.wait_until(witness.exists, "the server learned of it")
    editor.close()


def test_a_rejected_call_never_reaches_the_server(tmp_path):
    editor = editing(tmp_path, calling(("mcp__dies__go", {})), permit=lambda request: chose("reject"))
    editor.new_session(mcpServers=[bad("dies-in-call", name="dies")])
    editor.prompt("Go.")
    assert "exit status" not in shown(editor.the_call())
    editor.prompt("/mcp")
    assert "**dies** (from your editor): ready" in editor.text()
    editor.close()


def state_of(editor, server: str) -> str:
    before = editor.text()
    editor.prompt("/mcp")
    said = editor.text().removeprefix(before)
    return said.partition(f"**{server}** (from your editor): ")[2].partition("\n")[0]


def in_two_turns(tool: str) -> str:
    return (reply(calls(tool)) + reply(say("Done."))) * 2


def test_a_call_right_after_a_server_was_lost_waits_for_its_next_life(tmp_path):
    server = restless("closes-output", tmp_path / "closed")
    editor = editing(tmp_path, in_two_turns("mcp__closes-output__go"))
    editor.new_session(mcpServers=[server])
    editor.prompt("Go.")
    eventually(lambda: state_of(editor, "closes-output") == "waiting to restart", "the end was noticed")
    editor.prompt("Go on.")
    assert [shown(call) for call in editor.tool_calls().values()] == ["```text\ngone\n```"] * 2
    editor.close()


def test_one_that_is_being_started_again_is_not_ready(tmp_path):
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[restless("stubborn")])
    editor.prompt("Go.")
    assert state_of(editor, "stubborn") == "ready"
    editor.prompt("/mcp restart stubborn")
    assert state_of(editor, "stubborn") == "waiting to restart"
    notice_about(editor, "`stubborn`", "is ready now")
    assert state_of(editor, "stubborn") == "ready"
    editor.close()


def test_where_a_server_cannot_be_started_for_a_call_the_model_is_told_that_nothing_was_called(tmp_path):
    flour = tmp_path / "flour"
    flour.touch()
    editor = editing(tmp_path, in_two_turns("mcp__dies-until__go"))
    editor.new_session(mcpServers=[bad("dies-until", flour)])
    editor.prompt("Go.")
    flour.unlink()
    editor.prompt("/mcp restart dies-until")
    notice_about(editor, "`dies-until`", "has stopped")
    editor.prompt("Go on.")
    assert "no flour in the house. Nothing was called." in told_model(editor)
    editor.close()


@pytest.mark.parametrize("behaviour", ["progress", "blank-lines"])
def test_a_burst_of_what_is_thrown_away_anyway_is_no_flood(tmp_path, behaviour):
    call, _ = one_call(tmp_path, restless(behaviour), "go")
    assert shown(call) == "```text\ngone\n```"


def test_arguments_that_are_nested_too_deeply_are_told_in_plain_words(tmp_path):
    arguments: list = []
    for _ in range(300):
        arguments = [arguments]
    call, _ = one_call(tmp_path, bad("plain"), "go", deep=arguments)
    assert shown(call) == (
        "The MCP server `plain` gave no result: the arguments are nested too deeply to be sent. Nothing was called."
    )
