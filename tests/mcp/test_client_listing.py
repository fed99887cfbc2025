"""What a server lists, however long, odd or often: the usable part is used, and the person is told once."""

from crow.mcp.client.inventory import LONGEST_PAUSE, SHORTEST_PAUSE, Pauses
from tests.mcp.guests import calling, editing, notice_about, odd, offered, one_call, shown, told_model
from tests.mcp.test_client_results import highest_memory
from tests.support.scripts import DONE


def test_one_that_changes_its_list_over_and_over_is_told_of_once_and_asked_less_often(tmp_path):
    listings = tmp_path / "listings"
    editor = editing(tmp_path, DONE)
    editor.new_session(mcpServers=[odd("restless", listings)])
    editor.prompt("Go.")
    notice_about(editor, "keeps announcing")
    left_out, restless = editor.notices
    assert "left out: unusable_0 (inputSchema: Input should be a valid dictionary" in left_out
    assert left_out.endswith(" and 90 more.")
    assert restless.endswith("less and less often, eventually every 30 s.")
    assert int(listings.read_text()) <= 6
    editor.close()


def test_a_server_is_asked_again_soon_unless_it_announces_one_change_after_the_other():
    pauses = Pauses()
    now = 0.0
    seen = []
    for _ in range(12):
        seen.append(pauses.next(now))
        now += seen[-1]
        pauses.has_listed(now)
    assert seen[:3] == [SHORTEST_PAUSE, 2 * SHORTEST_PAUSE, 4 * SHORTEST_PAUSE]
    assert seen[-1] == LONGEST_PAUSE
    assert pauses.next(now + 21) == SHORTEST_PAUSE


def test_of_far_too_many_tools_the_first_count_and_the_memory_stays_small(tmp_path):
    editor = editing(tmp_path, calling(("mcp__crowd__go_1999", {}), ("mcp__crowd__go_2000", {})), cold=True)
    editor.new_session(mcpServers=[odd("crowd")])
    editor.prompt("Go.")
    first, second = editor.tool_calls().values()
    assert [first["status"], second["status"]] == ["completed", "failed"]
    assert "It lists too many tools: only the first 2,000 are used." in notice_about(editor, "`crowd`")
    assert highest_memory(editor) < 300
    editor.close()


def test_an_odd_hint_costs_the_hint_and_not_the_tools(tmp_path):
    editor = editing(tmp_path, calling(("mcp__hints__go_0", {}), ("mcp__hints__go_1", {})))
    editor.new_session(mcpServers=[odd("hints")])
    editor.prompt("Go.")
    names = [name for name in offered(editor.model_requests()[0]) if name.startswith("mcp__")]
    assert names == ["mcp__hints__go_0", "mcp__hints__go_1", "mcp__hints__go_2"]
    assert [one["kind"] for one in editor.tool_calls().values()] == ["other", "read"]
    editor.close()


def test_content_of_a_new_kind_is_named_and_the_rest_is_there(tmp_path):
    call, editor = one_call(tmp_path, odd("video"), "go")
    assert call["status"] == "completed"
    unknown = "(content of an unknown kind, video, left out)"
    assert told_model(editor) == f"before\n\n{unknown}\n\nafter"


def test_resources_are_listed_from_all_pages_as_far_as_there_is_room(tmp_path):
    editor = editing(tmp_path, calling(("mcp_resources", {})))
    editor.new_session(mcpServers=[odd("library")])
    editor.prompt("Go.")
    lines = shown(editor.the_call()).splitlines()
    assert lines[1:3] == ["library:", "- note://0/0 (a note)"]
    assert lines[-3:] == ["- note://6/19 (a note)", "- and more", "```"]
    editor.close()
