"""Plan mode: nothing that changes anything is allowed, and leaving it is for the person to say.

The request stays the same in every mode, the tools too: providers' caches live on that. The model is told in a message.
"""

from typing import Any

import pytest

from crow.tools.ask import PLAN_MODE
from tests.support.editor import NOTHING, Later, chose
from tests.support.scripts import DONE, call, edit, reply, run, say

PLAN = "1. Change `a.txt`.\n2. Look at it again."
LEAVE = reply(say("I know enough."), call("leave_plan", plan=PLAN))
CHANGE = reply(call("write", path="b.txt", content="new\n"))

TOOLS = {
    *("read", "find", "search", "web_search", "web_fetch", "terminal_read", "terminal_stop", "plan", "ask", "task"),
    *("write", "edit", "terminal", "leave_plan"),
}


@pytest.fixture
def plan(open_editor):
    def start(script: str, permit: Any = lambda request: chose("reject"), **more: Any):
        crow = open_editor(script=script, permit=permit, environment={"CROW_MODE": "plan"}, **more)
        crow.new_session()
        return crow

    return start


def offered(request: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in request["tools"]}


def modes(crow: Any) -> list[str]:
    return [update["currentModeId"] for update in crow.updates if update["sessionUpdate"] == "current_mode_update"]


def options(crow: Any) -> list[str]:
    updates = [update for update in crow.updates if update["sessionUpdate"] == "config_option_update"]
    return [
        option["currentValue"] for update in updates for option in update["configOptions"] if option["id"] == "mode"
    ]


def last_result(crow: Any) -> str:
    return crow.model_requests()[-1]["messages"][-1]["text"]


def texts(message: dict[str, Any]) -> list[str]:
    return [part["text"] for part in message["parts"]]


def test_the_model_is_told_once_with_the_same_tools(plan):
    crow = plan(DONE + DONE)
    crow.prompt("go")
    crow.prompt("again")
    first, second = crow.model_requests()
    assert offered(first) == offered(second) == TOOLS
    assert texts(first["messages"][0]) == ["go", PLAN_MODE]
    assert texts(second["messages"][-1]) == ["again"]


def test_other_modes_know_nothing_of_it(open_editor):
    crow = open_editor(script=DONE)
    crow.new_session()
    crow.prompt("go")
    (request,) = crow.model_requests()
    assert offered(request) == TOOLS
    assert [texts(message) for message in request["messages"]] == [["go"]]


def test_a_loaded_session_tells_the_mode_again_only_if_it_has_changed(plan, open_editor):
    crow = plan(DONE)
    crow.prompt("go")
    crow.close()
    again = open_editor(folder=crow.folder, script=DONE + DONE)
    again.load_session(crow.session_id)
    again.prompt("more")
    assert texts(again.model_requests()[-1]["messages"][-1]) == ["more"]


@pytest.mark.rule("R142")
@pytest.mark.parametrize(
    "attempt", [call("write", path="b.txt", content="x"), edit("a.txt", "one", "two"), run("touch b.txt")]
)
def test_a_changing_tool_that_is_called_all_the_same_is_refused_unasked(plan, attempt):
    crow = plan(reply(attempt) + DONE)
    (crow.workspace / "a.txt").write_text("one\n")
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert crow.permissions == []
    assert crow.the_call()["status"] == "failed"
    assert "not allowed in `plan` mode" in last_result(crow)
    assert "not allowed in `plan` mode" in crow.the_call()["content"][-1]["content"]["text"]
    assert sorted(path.name for path in crow.workspace.iterdir()) == ["a.txt"]
    assert (crow.workspace / "a.txt").read_text() == "one\n"


@pytest.mark.rule("R142", "R140", "R136")
def test_leaving_is_asked_with_the_plan_and_then_the_work_begins(plan):
    crow = plan(LEAVE + CHANGE + DONE, permit=lambda request: chose("once"))
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    leaving, writing = crow.permissions
    assert leaving["toolCall"]["kind"] == "switch_mode"
    assert leaving["toolCall"]["content"][0] == {"type": "content", "content": {"type": "text", "text": PLAN}}
    assert [(option["kind"], option["name"]) for option in leaving["options"]] == [
        ("allow_once", "Yes, and ask before each change"),
        ("allow_always", "Yes, and edit files without asking"),
        ("reject_once", "Reject"),
    ]
    assert writing["toolCall"]["title"] == "Write b.txt"  # the mode is `ask`: each change is asked about
    assert modes(crow) == ["ask"]
    assert options(crow) == ["ask"]
    planning, working, _ = crow.model_requests()
    assert offered(planning) == offered(working) == TOOLS
    assert planning["system"] == working["system"]
    assert working["messages"][-1]["text"] == "The user agreed to the plan. The mode is now `ask`: carry it out."
    shown = crow.tool_calls()["t1-c1"]
    assert shown["status"] == "completed"
    assert shown["content"][0]["content"]["text"] == PLAN
    assert (crow.workspace / "b.txt").read_text() == "new\n"


def test_the_broader_yes_goes_on_in_edit_mode(plan):
    crow = plan(LEAVE + CHANGE + DONE, permit=lambda request: chose("session"))
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert len(crow.permissions) == 1
    assert modes(crow) == ["edit"]
    assert (crow.workspace / "b.txt").read_text() == "new\n"


def test_it_is_asked_again_each_time(plan):
    crow = plan(LEAVE + reply(say("Good.")) + LEAVE + DONE, permit=lambda request: chose("session"))
    crow.prompt("go")
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
    crow.prompt("go on")
    assert len(crow.permissions) == 2


def test_a_rejected_plan_leaves_everything_as_it_was(plan):
    crow = plan(LEAVE + DONE)
    assert crow.prompt("go") == {"stopReason": "end_turn"}
    assert modes(crow) == []
    assert "permission was asked for, and refused" in last_result(crow)
    assert crow.the_call()["status"] == "failed"


def test_cancelling_in_the_question_stays_in_plan_mode(plan):
    crow = plan(LEAVE + DONE, permit=lambda request: {"outcome": {"outcome": "cancelled"}})
    assert crow.prompt("go") == {"stopReason": "cancelled"}
    assert modes(crow) == []


def test_a_plan_is_not_left_twice(open_editor):
    crow = open_editor(script=LEAVE + DONE)
    crow.new_session()
    crow.prompt("go")
    assert crow.permissions == []
    assert "The mode is `ask`, not `plan`" in last_result(crow)


def test_a_plan_must_say_something(plan):
    crow = plan(reply(call("leave_plan", plan="")) + DONE)
    crow.prompt("go")
    assert crow.permissions == []
    assert "do not fit" in last_result(crow)


def test_the_plan_grows_while_it_is_written(plan):
    steps = "\n".join(f"{number}. Change file {number}." for number in range(400))
    crow = plan(reply(call("leave_plan", plan=steps, pieces=2)) + DONE, capabilities=NOTHING)
    crow.prompt("go")
    growing = [update for update in crow.updates if "content" in update and update.get("status") in (None, "pending")]
    assert any("Change file" in str(update["content"]) for update in growing)
    (asked,) = crow.permissions
    assert asked["toolCall"]["content"][0]["content"]["text"] == steps


def test_entering_plan_mode_during_a_turn_counts_from_the_next_request_on(open_editor):
    def answer() -> Any:
        crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "plan"})
        return chose("once")

    crow = open_editor(script=CHANGE + DONE + DONE, permit=lambda request: Later(answer))
    crow.new_session()
    crow.prompt("go")
    # The yes came after the change, and plan mode changes nothing.
    assert not (crow.workspace / "b.txt").exists()
    crow.request("session/set_mode", {"sessionId": crow.session_id, "modeId": "edit"})
    crow.prompt("now do it")
    before, in_plan, after = crow.model_requests()
    assert texts(in_plan["messages"][-1]) == [PLAN_MODE]
    assert texts(after["messages"][-1]) == ["now do it", "[Plan mode is over: the mode is `edit` now.]"]
    assert in_plan["messages"][: len(before["messages"])] == before["messages"]
    assert after["messages"][: len(in_plan["messages"])] == in_plan["messages"]
